//! Panics of the Parquet and Arrow readers as errors.

use super::parquet_rows::AnyError;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Calls `read` and turns its error or panic into a message. The Parquet
/// libraries assert some contents of a file, and a damaged file must not end
/// the process.
pub(super) fn caught<T, E: Into<AnyError>>(read: impl FnOnce() -> Result<T, E>) -> Result<T, String> {
    match catch_unwind(AssertUnwindSafe(read)) {
        Ok(read) => read.map_err(|error| error.into().to_string()),
        Err(_) => Err("the file is damaged: its reader panicked".into()),
    }
}
