//! Paths in messages.

use std::path::Path;

/// A path as people write it: `build/x.wasm`, not `./build/x.wasm`.
pub(super) fn shown(path: &Path) -> std::path::Display<'_> {
    path.strip_prefix(".").unwrap_or(path).display()
}
