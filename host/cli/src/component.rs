//! The component that a path names: a file, or the folder of a plugin that is built.

use anyhow::Result;
use gavel_project::{Edited, MANIFEST, Project, edited};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// The name of a plugin, if its path has one, and its component: the path itself, or the built component of a plugin's
/// folder. Warns if the plugin was edited after its build.
pub fn component(path: &Path) -> Result<(Option<String>, PathBuf)> {
    let (name, component) = match path.join(MANIFEST).is_file() {
        true => {
            let project = Project::open(path)?;
            (Some(project.manifest.name.clone()), project.built()?)
        }
        false => (path.file_stem().map(|stem| stem.to_string_lossy().into_owned()), path.to_owned()),
    };
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
