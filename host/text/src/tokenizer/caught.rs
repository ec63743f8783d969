//! Panics of the library: it asserts what a `tokenizer.json` may lack.

use std::panic::{AssertUnwindSafe, catch_unwind};

/// Calls the library, and turns its error or panic into a message.
pub(crate) fn caught<T>(work: impl FnOnce() -> tokenizers::Result<T>) -> Result<T, String> {
    match catch_unwind(AssertUnwindSafe(work)) {
        Ok(done) => done.map_err(|error| error.to_string()),
        Err(_) => Err("the definition is damaged: the tokenizers library panicked".into()),
    }
}
