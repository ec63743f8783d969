//! Builds the standard plugins that are written in Python, as `gavel plugin
//! build` does it.

use crate::failure::{Failure, Result};
use crate::guests::put;
use crate::setup::cannot;
use crate::{programs, ui};
use gavel_project::Project;
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

/// Builds every plugin of `plugins/` that has a `main.py` to
/// `<folder>/<name>.wasm` and gives their names. One whose files are those of
/// its last build, the SDK's and the contract's included, is not built again:
/// that takes most of a minute.
pub fn build(root: &Path, environment: &Path, folder: &Path) -> Result<BTreeSet<String>> {
    let sources = root.join("plugins");
    let names = programs::names(&sources)?;
    let shared = programs::inputs(&root.join("sdk/python/gavel"))? + &programs::inputs(&root.join("wit"))?;
    for name in &names {
        ui::step(&format!("plugin {name}"), || {
            let source = sources.join(name);
            let inputs = format!("{}\n{shared}{}", environment.display(), programs::inputs(&source)?);
            let stamp = root.join("target/programs").join(name).join("inputs");
            let component = folder.join(format!("{name}.wasm"));
            if component.exists() && fs::read_to_string(&stamp).is_ok_and(|last| last == inputs) {
                return Ok(((), "unchanged".into()));
            }
            lend(environment, &source)?;
            let built = Project::open(&source).and_then(|project| gavel_project::build(&project));
            let built = built.map_err(|error| Failure::new(error.to_string()))?;
            put(folder, name, &fs::read(&built.component).map_err(|error| cannot("read", &built.component, &error))?)?;
            let made = stamp.parent().unwrap_or(root);
            fs::create_dir_all(made).map_err(|error| cannot("make", made, &error))?;
            fs::write(&stamp, inputs).map_err(|error| cannot("write", &stamp, &error))?;
            Ok(((), format!("built, {}", component.strip_prefix(root).unwrap_or(&component).display())))
        })?;
    }
    Ok(names)
}

/// Links the environment as the plugin's `.venv`, where a build looks first,
/// unless the plugin has one of its own.
fn lend(environment: &Path, source: &Path) -> Result<()> {
    let link = source.join(".venv");
    if link.is_dir() && !link.is_symlink() {
        return Ok(());
    }
    if link.is_symlink() {
        fs::remove_file(&link).map_err(|error| cannot("remove", &link, &error))?;
    }
    symlink(environment, &link).map_err(|error| cannot("make", &link, &error))
}
