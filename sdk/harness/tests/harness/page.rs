//! The examples in docs/testing.md are valid.

use gavel_harness::{Case, CaseFile, TestTable};
use std::path::Path;

/// The blocks of this language.
fn blocks(language: &str) -> Vec<String> {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/testing.md");
    let page = std::fs::read_to_string(page).unwrap();
    let fence = format!("```{language}\n");
    page.split(&fence).skip(1).map(|rest| rest.split_once("```").unwrap().0.to_owned()).collect()
}

#[test]
fn the_cases_are_cases() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("cases.jsonl");
    // For a reward, a taskset, a tool, its state, an advantage, a sampler and an agent.
    let counts = blocks("jsonl").into_iter().map(|block| {
        std::fs::write(&path, block).unwrap();
        let file = CaseFile::read(&path).unwrap();
        assert!(!file.cases().iter().any(Case::is_unstated));
        file.cases().len()
    });
    assert_eq!(counts.collect::<Vec<_>>(), [8, 3, 4, 1, 4, 3, 4]);
}

#[test]
fn the_table_is_a_table() {
    #[derive(serde::Deserialize)]
    struct Manifest {
        test: TestTable,
    }
    let Manifest { test } = toml::from_str(&blocks("toml")[0]).unwrap();
    assert_eq!(test.chat["judge"].replies.len(), 2);
    test.limits.validate("test.limits").unwrap();
    test.grant.check().unwrap();
}
