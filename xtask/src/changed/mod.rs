//! Which tests a change can have touched, for `cargo xtask test --changed`.

mod files;
mod mentions;
mod packages;
mod rules;
mod selection;

pub use selection::{Selected, Selection};

use crate::failure::Result;
use packages::Packages;
use std::path::Path;

/// Selects the tests for what differs between the files in `root` and the commit `base`.
pub fn select(root: &Path, base: Option<&str>) -> Result<Selection> {
    let files = files::changed(root, base)?;
    rules::select(root, &Packages::read(root)?, &files)
}
