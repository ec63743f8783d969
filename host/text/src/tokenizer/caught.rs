//! Panics of the library: it asserts what a `tokenizer.json` may lack.

use crate::error::TextError;
use gavel_data::panics;
use std::path::Path;

/// A call of the library that failed.
pub(crate) enum Failure {
    /// Its error.
    Error(String),
    /// The message of its panic.
    Panic(String),
}

/// Calls the library.
pub(crate) fn caught<T>(work: impl FnOnce() -> tokenizers::Result<T>) -> Result<T, Failure> {
    match panics::caught(work) {
        Ok(done) => done.map_err(|error| Failure::Error(error.to_string())),
        Err(panic) => Err(Failure::Panic(panic)),
    }
}

impl Failure {
    /// The error of the tokenizer in the file `path`.
    pub(crate) fn of(self, path: &Path) -> TextError {
        match self {
            Self::Error(what) => TextError::Tokenizer(what),
            Self::Panic(panic) => {
                let what = format!(
                    "the definition is damaged: the tokenizers library panicked: {panic}\nhint: download the file again, or save it with `transformers`"
                );
                TextError::File { path: path.to_owned(), what }
            }
        }
    }
}
