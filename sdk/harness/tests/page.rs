//! What docs/testing.md shows is what is read.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use gavel_harness::{CaseFile, TestTable};
use std::path::Path;

/// The first block of this language.
fn block(language: &str) -> String {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/testing.md");
    let page = std::fs::read_to_string(page).unwrap();
    let (_, rest) = page.split_once(&format!("```{language}\n")).unwrap();
    rest.split_once("```").unwrap().0.to_owned()
}

#[test]
fn the_cases_are_cases() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("cases.jsonl");
    std::fs::write(&path, block("jsonl")).unwrap();
    let file = CaseFile::read(&path).unwrap();
    file.require_expectations().unwrap();
    assert_eq!(file.cases().len(), 7);
}

#[test]
fn the_table_is_a_table() {
    #[derive(serde::Deserialize)]
    struct Manifest {
        test: TestTable,
    }
    let Manifest { test } = toml::from_str(&block("toml")).unwrap();
    assert_eq!(test.chat["judge"].replies.len(), 2);
    test.limits.validate("test.limits").unwrap();
    test.grant.check().unwrap();
}
