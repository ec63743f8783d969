//! The configurations of models and adapters as files.

use crate::error::{PolicyError, Result};
use gavel_data::files::read_regular_text;
use std::path::Path;

/// The most bytes of a configuration.
const MOST_BYTES: u64 = 64 << 20;

/// The text of a configuration.
///
/// # Errors
/// The file cannot be read, or is too large.
pub(crate) fn read(path: &Path) -> Result<String> {
    read_regular_text(path, MOST_BYTES).map_err(|source| PolicyError::Io {
        action: "read",
        path: path.to_owned(),
        source,
    })
}
