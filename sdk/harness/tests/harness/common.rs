//! The shared parts of the harness's tests.

use gavel_harness::{CaseResult, CaseResults};
use snapbox::{Assert, IntoData};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

pub fn built(path: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target").join(path);
    assert!(path.exists(), "{} is missing: run `cargo xtask plugins`", path.display());
    path
}

/// What is wrong with each case, joined.
pub fn mismatches(results: &CaseResults) -> Vec<String> {
    let of_case = |case: &CaseResult| case.mismatches.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ");
    results.cases.iter().map(of_case).collect()
}

/// The message with which `run` panics.
pub fn panic_of(run: impl FnOnce()) -> String {
    let panicked = catch_unwind(AssertUnwindSafe(run)).expect_err("it did not panic");
    panicked.downcast_ref::<String>().expect("a panic with a text").clone()
}

/// Compares a message; `SNAPSHOTS=overwrite` writes the present one.
#[track_caller]
pub fn assert_shows(said: String, must: impl IntoData) {
    Assert::new().action_env("SNAPSHOTS").normalize_paths(false).eq(said, must);
}
