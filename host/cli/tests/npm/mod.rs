//! The packages that plugins in JavaScript and TypeScript are built with.

use crate::project::{Project, stderr};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};

/// What was installed by this process: the `package.json` without the plugin's name, and a copy of its `node_modules`,
/// in a folder of this name, as packages look for each other there.
static INSTALLED: Mutex<Vec<(String, PathBuf)>> = Mutex::new(Vec::new());

/// Does what `npm install` does in the plugin's folder. The plugins of all kinds in a language name the same versions of
/// the same packages, so the first one is installed, and the others get links to a copy: 400 MB would take seconds.
pub fn install(project: &Project, name: &str) {
    // One at a time, so that the second one finds the first one's.
    let mut installed = INSTALLED.lock().unwrap_or_else(PoisonError::into_inner);
    let packages = project.read(&format!("{name}/package.json")).replace(name, "");
    let modules = project.path(name).join("node_modules");
    if let Some((_, kept)) = installed.iter().find(|(of, _)| *of == packages) {
        link(kept, &modules);
        return;
    }
    let arguments = ["install", "--no-audit", "--no-fund", "--prefer-offline", "--fetch-retries=5"];
    let done = Command::new("npm").args(arguments).current_dir(project.path(name)).output();
    let done = done.expect("npm is needed: install Node.js");
    assert!(done.status.success(), "{}", stderr(&done));
    let kept = Path::new(env!("CARGO_TARGET_TMPDIR")).join("npm").join(installed.len().to_string());
    // An earlier run's.
    if kept.exists() {
        std::fs::remove_dir_all(&kept).unwrap();
    }
    std::fs::create_dir_all(&kept).unwrap();
    let kept = kept.join("node_modules");
    let copied = Command::new("cp").arg("-a").args([&modules, &kept]).output().unwrap();
    assert!(copied.status.success(), "{}", stderr(&copied));
    installed.push((packages, kept));
}

/// Makes a folder `to` with links to everything in `from`. A link there is copied: it leads to the plugin's own copy of
/// the SDK.
fn link(from: &Path, to: &Path) {
    std::fs::create_dir(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let leads =
            if entry.file_type().unwrap().is_symlink() { std::fs::read_link(entry.path()) } else { Ok(entry.path()) };
        symlink(leads.unwrap(), to.join(entry.file_name())).unwrap();
    }
}
