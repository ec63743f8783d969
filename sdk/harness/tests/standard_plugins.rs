//! The golden cases of the standard plugins, each in the sandbox of training.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use gavel_harness::{CaseFile, Harness, TestTable, run};
use gavel_plugin::{LimitsTable, PluginSpec};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

/// The plugins that run the code of responses: each has hostile and honest cases.
const RUN_CODE: [&str; 2] = ["code-tests", "python-tests"];

#[test]
fn every_standard_plugin_passes_its_cases() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let folders = std::fs::read_dir(root.join("plugins")).unwrap().map(|entry| entry.unwrap().path());
    // Skips folders such as `shared`.
    let mut folders: Vec<PathBuf> = folders.filter(|folder| folder.join("plugin.toml").exists()).collect();
    // The last is taken first, so that the slowest begins first.
    folders.sort_by_key(|folder| std::fs::metadata(component(&root, folder)).map_or(0, |about| about.len()));
    let folders = Mutex::new(folders);
    let next = || folders.lock().unwrap().pop();
    let work = || {
        while let Some(folder) = next() {
            passes(&root, &folder);
        }
    };
    std::thread::scope(|threads| {
        let workers = [(); 2].map(|()| threads.spawn(work));
        workers.into_iter().for_each(|worker| worker.join().unwrap());
    });
}

fn component(root: &Path, folder: &Path) -> PathBuf {
    root.join(format!("target/plugins/{}.wasm", folder.file_name().unwrap().to_str().unwrap()))
}

/// Runs all cases of the plugin in `folder`.
fn passes(root: &Path, folder: &Path) {
    let name = folder.file_name().unwrap().to_str().unwrap();
    let manifest = std::fs::read_to_string(folder.join("plugin.toml")).unwrap();
    let mut manifest: toml::Table = toml::from_str(&manifest).unwrap();
    let test: TestTable = manifest.remove("test").map(|test| test.try_into().unwrap()).unwrap_or_default();
    let harness = Harness::new().unwrap();
    for (name, table) in &test.exec {
        let mut program = table.program(name);
        program.path = folder.join(program.path);
        harness.program(program).unwrap();
    }
    let mut grants = test.grant;
    for rule in &mut grants.read {
        *rule = format!("{}/{rule}", folder.display());
    }
    let spec = PluginSpec {
        params: test.params,
        limits: test.limits.over(&LimitsTable::default()),
        grants,
        ..PluginSpec::new(name, component(root, folder))
    };
    let more = ["hostile", "honest"].map(|kind| cases(folder, kind));
    for file in more.into_iter().flatten().chain([folder.join(&test.cases)]) {
        let file = CaseFile::read(&file).unwrap();
        run(&harness, &spec, &test.chat, &file).unwrap().assert_pass();
    }
}

/// A plugin's hostile or honest cases, beside its golden ones.
fn cases(folder: &Path, kind: &str) -> Vec<PathBuf> {
    let files = match std::fs::read_dir(folder.join(kind)) {
        Ok(entries) => entries.map(|entry| entry.unwrap().path()),
        Err(error) if error.kind() == ErrorKind::NotFound && !RUN_CODE.iter().any(|name| folder.ends_with(name)) => {
            return Vec::new();
        }
        Err(error) => panic!("{}: {error}", folder.display()),
    };
    files.filter(|file| file.extension().is_some_and(|kind| kind == "jsonl")).collect()
}
