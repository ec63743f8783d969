//! Components of older contracts, built before the contract changed, pass the golden cases that they were built with.

use gavel_harness::{CaseFile, Harness, TestTable, run};
use gavel_plugin::PluginSpec;
use serde_json::json;
use std::path::{Path, PathBuf};

fn kept(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/contracts/0.1").join(file)
}

/// Runs the cases of the templates for `world` with a component, and gives how many there are.
fn passes(harness: &Harness, component: PathBuf, world: &str) -> usize {
    // As in `[test]` of the templates.
    let params = match world {
        "reward" => json!({"tolerance": 0.01}),
        "judger" => json!({"penalty": 0.2}),
        _ => json!({}),
    };
    let params = serde_json::from_value(params).unwrap();
    let spec = PluginSpec { params, ..PluginSpec::new(world, component) };
    let cases = CaseFile::read(&kept(&format!("{world}.jsonl"))).unwrap();
    run(harness, &spec, &TestTable::default().chat, &cases).unwrap().assert_pass();
    cases.cases().len()
}

#[test]
fn every_world_in_rust_and_c() {
    let harness = Harness::new().unwrap();
    for (world, cases) in [("reward", 9), ("judger", 8), ("taskset", 6), ("tool", 6), ("agent", 8)] {
        for language in ["rust", "c"] {
            assert_eq!(passes(&harness, kept(&format!("{language}-{world}.wasm")), world), cases, "{language} {world}");
        }
    }
}

#[test]
fn rewards_in_python_and_javascript() {
    let (harness, folder) = (Harness::new().unwrap(), tempfile::tempdir().unwrap());
    for language in ["py", "js"] {
        let packed = std::fs::File::open(kept(&format!("{language}-reward.wasm.zst"))).unwrap();
        let component = folder.path().join(format!("{language}-reward.wasm"));
        std::fs::write(&component, zstd::decode_all(packed).unwrap()).unwrap();
        assert_eq!(passes(&harness, component, "reward"), 9, "{language}");
    }
}
