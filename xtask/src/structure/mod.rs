//! The structure of the workspace: which crate may depend on which, with which features, which folder of a crate may
//! import which, files that import each other in a circle, and links between pages.

mod circles;
mod crates;
mod features;
mod imports;
mod links;
mod rooms;
mod tokens;

pub use circles::check as check_circles;
pub use crates::check as check_crates;
pub use features::check as check_features;
pub use links::check as check_links;
pub use rooms::check as check_rooms;

use crate::failure::Result;
use crate::setup::cannot;
use std::fs;
use std::path::{Path, PathBuf};

/// Checks crates, then their features, then their folders, then files, then pages.
pub fn check(root: &Path) -> Result<()> {
    check_crates(root)?;
    check_features(root)?;
    check_rooms(root)?;
    check_circles(root)?;
    check_links(root)
}

/// The folders in `folder` that hold a crate, in the order of their names.
fn crates_in(folder: &Path) -> Result<Vec<PathBuf>> {
    let entries = fs::read_dir(folder).map_err(|error| cannot("read", folder, &error))?;
    let mut crates: Vec<PathBuf> =
        entries.flatten().map(|entry| entry.path()).filter(|path| path.join("Cargo.toml").is_file()).collect();
    crates.sort();
    Ok(crates)
}
