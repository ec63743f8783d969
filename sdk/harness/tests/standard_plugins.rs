//! The golden cases of the standard plugins, each in the sandbox of training.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use gavel_harness::{Harness, TestTable};
use std::path::Path;

#[test]
fn every_standard_plugin_passes_its_cases() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let harness = Harness::new().unwrap();
    for folder in std::fs::read_dir(root.join("plugins")).unwrap().map(|entry| entry.unwrap().path()) {
        // What is no crate of its own, such as `shared`, is no plugin.
        if !folder.join("Cargo.toml").exists() {
            continue;
        }
        let name = folder.file_name().unwrap().to_str().unwrap();
        let manifest = std::fs::read_to_string(folder.join("plugin.toml")).unwrap();
        let mut manifest: toml::Table = toml::from_str(&manifest).unwrap();
        let test: TestTable = manifest.remove("test").map(|test| test.try_into().unwrap()).unwrap_or_default();
        let component = root.join(format!("target/plugins/{name}.wasm"));
        let plugin = harness.plugin(component).params(test.params.into());
        plugin.cases(folder.join(&test.cases)).unwrap().assert_pass();
    }
}
