//! The plugin `math-verify` against the package Math-Verify: the pairs of
//! `tests/parity/math-verify.parquet`, which `tests/parity/math_verify_pairs.py`
//! writes with the package's own scores.

use gavel_data::{Row, RowReader};
use gavel_plugin::{Limits, PluginSpec, SandboxConfig};
use gavel_scoring::{Scorer, WeightedPlugin, completion};
use std::num::NonZeroUsize;
use std::path::Path;
use std::time::Duration;

#[test]
fn math_verify_agrees_with_the_package_on_every_fifth_pair() {
    compare(5);
}

#[test]
#[ignore = "takes some minutes: run it after a change of the plugin or of the fixture"]
fn math_verify_agrees_with_the_package_on_every_pair() {
    compare(1);
}

fn compare(step: usize) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let component = root.join("target/plugins/math-verify.wasm");
    assert!(component.exists(), "{} is missing: run `cargo xtask plugins`", component.display());
    // All rows start at once, on a machine that may be busy.
    let limits = Limits { deadline: Duration::from_secs(600), cpu: Duration::from_secs(10), ..Limits::default() };
    let spec = PluginSpec { limits, ..PluginSpec::new("math-verify", component) };
    let threads = std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
    let plugins = vec![WeightedPlugin::new(spec, 1.0)];
    let scorer = Scorer::new(plugins, SandboxConfig::with_threads(threads).into()).unwrap();

    let rows = RowReader::open(&root.join("tests/parity/math-verify.parquet")).unwrap();
    let rows: Vec<Row> = rows.map(|row| row.unwrap()).collect();
    assert!(rows.len() >= 2000, "the fixture has only {} rows", rows.len());
    let rows: Vec<Row> = rows.into_iter().step_by(step).collect();
    let start = |row: &Row| scorer.start_alone(completion(row.clone(), "math-verify").unwrap(), 0);
    let pending: Vec<_> = rows.iter().map(start).collect();
    let mut wrong = Vec::new();
    for (row, pending) in rows.iter().zip(pending) {
        let outcome = scorer.wait(pending);
        if outcome.reward != row.columns.get("score").unwrap().parse::<Option<f64>>().unwrap() {
            let shown = serde_json::to_string(&row.columns).unwrap();
            wrong.push(format!("{shown}: {:?} {:?}", outcome.reward, outcome.reason));
        }
    }
    assert!(
        wrong.is_empty(),
        "{} of {} pairs differ:\n{}",
        wrong.len(),
        rows.len(),
        wrong[..wrong.len().min(20)].join("\n")
    );
}
