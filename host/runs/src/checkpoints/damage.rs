//! Why a checkpoint is not whole.

use std::path::{Path, PathBuf};

/// The file at fault.
#[derive(Debug)]
pub(super) struct Damage {
    pub(super) file: PathBuf,
    pub(super) what: String,
}

impl Damage {
    pub(super) fn new(file: &Path, what: impl ToString) -> Self {
        Self { file: file.to_owned(), what: what.to_string() }
    }
}
