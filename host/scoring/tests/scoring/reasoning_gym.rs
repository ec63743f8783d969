//! The plugin `reasoning-gym` against the package: the rows of
//! `tests/parity/reasoning-gym.parquet`, which
//! `tests/parity/reasoning_gym_rows.py` writes with the package's own scores.

use gavel_data::{Json, Row, RowReader};
use gavel_plugin::{Limits, PluginSpec, SandboxConfig};
use gavel_scoring::{Scorer, WeightedPlugin, completion};
use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::path::Path;
use std::time::Duration;

#[test]
fn reasoning_gym_agrees_with_the_package() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let component = root.join("target/plugins/reasoning-gym.wasm");
    assert!(component.exists(), "{} is missing: run `cargo xtask plugins`", component.display());
    // All rows start at once, on a machine that may be busy.
    let limits = Limits { deadline: Duration::from_secs(600), cpu: Duration::from_secs(10), ..Limits::default() };
    let spec = PluginSpec { limits, ..PluginSpec::new("reasoning-gym", component) };
    let threads = std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
    let scorer =
        Scorer::new(vec![WeightedPlugin::new(spec, 1.0)], SandboxConfig::with_threads(threads).into()).unwrap();

    let rows = RowReader::open(&root.join("tests/parity/reasoning-gym.parquet")).unwrap();
    let rows: Vec<Row> = rows.map(|row| with_entry(row.unwrap())).collect();
    let mut families = BTreeMap::<String, usize>::new();
    for row in &rows {
        *families.entry(row.columns.get("family").unwrap().string().unwrap()).or_default() += 1;
    }
    assert!(families.len() == 90 && families.values().all(|rows| *rows == 50), "{families:?}");
    let start = |row: &Row| scorer.start_alone(completion(row.clone(), "reasoning-gym").unwrap(), 0);
    let pending: Vec<_> = rows.iter().map(start).collect();
    let mut wrong = Vec::new();
    for (row, pending) in rows.iter().zip(pending) {
        let outcome = scorer.wait(pending);
        // Where the package raises, the answer has no score there, and 0 here.
        let score = row.columns.get("score").unwrap().parse().unwrap_or(0.0);
        // The last digit of a sum differs since Python 3.12.
        if !outcome.reward.is_some_and(|reward| (reward - score).abs() < 1e-12) {
            let shown = serde_json::to_string(&row.columns).unwrap();
            wrong.push(format!("{shown}: {:?} {:?}", outcome.reward, outcome.reason));
        }
    }
    assert!(
        wrong.is_empty(),
        "{} of {} rows differ:\n{}",
        wrong.len(),
        rows.len(),
        wrong[..wrong.len().min(20)].join("\n")
    );
}

/// The row with its column `entry`, which the file has as a text.
fn with_entry(mut row: Row) -> Row {
    let entry: Json = serde_json::from_str(&row.columns.get("entry").unwrap().string().unwrap()).unwrap();
    row.columns.insert("entry", entry);
    row
}
