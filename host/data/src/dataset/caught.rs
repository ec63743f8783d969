//! Panics of the Parquet and Arrow readers as errors.

use super::parquet_rows::AnyError;
use crate::panics;

/// Calls `read` and turns its error or panic into a message. The Parquet
/// libraries assert some contents of a file, and a damaged file must not end
/// the process.
pub(super) fn caught<T, E: Into<AnyError>>(read: impl FnOnce() -> Result<T, E>) -> Result<T, String> {
    match panics::caught(read) {
        Ok(read) => read.map_err(|error| error.into().to_string()),
        Err(what) => Err(format!("the file is damaged: its reader panicked: {what}")),
    }
}
