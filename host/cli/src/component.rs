//! The component that a path names: a file, or the folder of a plugin that is built.

use anyhow::Result;
use gavel_project::{Edited, edited, named_component};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// [`named_component`], with a warning if the plugin was edited after its build.
pub fn component(path: &Path) -> Result<(Option<String>, PathBuf)> {
    let (name, component) = named_component(path)?;
    warn_if_edited(&component);
    Ok((name, component))
}

/// Warns once about a component whose plugin was edited after its build.
pub fn warn_if_edited(component: &Path) {
    static WARNED: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());
    let Some(Edited { folder, reason }) = edited(component) else { return };
    if WARNED.lock().unwrap_or_else(PoisonError::into_inner).insert(component.to_owned()) {
        tracing::warn!(
            "{} was built before its sources changed: {reason}; run `gavel plugin build {}`",
            component.display(),
            folder.display()
        );
    }
}
