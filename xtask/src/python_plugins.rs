//! Builds the standard plugins that are written in Python, as `gavel plugin
//! build` does.

use crate::failure::{Failure, Result};
use crate::guests::put;
use crate::setup::cannot;
use crate::{programs, ui};
use gavel_project::{Project, Step};
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

/// Builds every plugin of `plugins/` that has a `main.py` to
/// `<folder>/<name>.wasm` and returns their names. A plugin whose inputs have
/// not changed is not built again, as a build takes most of a minute.
pub fn build(root: &Path, environment: &Path, folder: &Path) -> Result<BTreeSet<String>> {
    let sources = root.join("plugins");
    let names = programs::with_main(&sources, "main.py")?;
    for name in &names {
        ui::step(&format!("plugin {name}"), || {
            let source = sources.join(name);
            lend(environment, &source)?;
            let mut why = "unchanged".to_owned();
            let built = Project::open(&source).and_then(|project| {
                gavel_project::build(&project, &mut |step| {
                    if let Step::Building(Some(reason)) = step {
                        why = format!("built ({reason})");
                    }
                })
            });
            let built = built.map_err(|error| Failure::new(error.to_string()))?;
            put(folder, name, &fs::read(&built.component).map_err(|error| cannot("read", &built.component, &error))?)?;
            let component = folder.join(format!("{name}.wasm"));
            Ok(((), format!("{why}, {}", component.strip_prefix(root).unwrap_or(&component).display())))
        })?;
    }
    Ok(names)
}

/// Links the environment as the plugin's `.venv`, where a build looks first,
/// unless the plugin has its own.
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
