//! `-` in place of a file.

use std::path::Path;

/// Whether a path stands for stdin or stdout.
pub fn is_dash(path: &Path) -> bool {
    path == Path::new("-")
}
