//! Where Python and componentize-py are.

use super::COMPONENTIZE;
use crate::error::Error;
use crate::tool::{self, Tool};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// The environment of a program that brings this library.
static OWN: OnceLock<PathBuf> = OnceLock::new();

/// Looks for Python and componentize-py in this environment too, whether or not it is active. The first call counts.
pub fn use_environment(folder: PathBuf) {
    OWN.get_or_init(|| folder);
}

/// The Python of the environment of [`use_environment`], if there is one.
pub fn own_python() -> Option<PathBuf> {
    OWN.get().map(|environment| environment.join("bin/python3")).filter(|python| python.is_file())
}

/// The Python of an environment of the plugin in `root`, else the one on the path.
pub(crate) fn python(root: &Path) -> PathBuf {
    in_environment(root, "python3").unwrap_or_else(|| "python3".into())
}

/// The version of that Python, if it can parse the syntax of plugins.
pub(super) fn recent(root: &Path) -> Option<String> {
    let version = "import sys; assert sys.version_info >= (3, 10); print(sys.version)";
    tool::version(Command::new(python(root)).args(["-c", version]))
}

/// componentize-py, from the same places, or as a module of that Python, with
/// its version. `None` if it does not run.
pub(super) fn componentize(root: &Path) -> Option<(Command, String)> {
    let program = in_environment(root, COMPONENTIZE.name).unwrap_or_else(|| COMPONENTIZE.name.into());
    let program = || Command::new(&program);
    let module = || {
        let mut command = Command::new(python(root));
        command.args(["-m", "componentize_py"]);
        command
    };
    let version = |mut command: Command| tool::version(command.arg("--version"));
    let found = |command: Command, version| Some((command, version?));
    found(program(), version(program())).or_else(|| found(module(), version(module())))
}

/// The error for a tool that is in none of the places, with their names.
pub(super) fn missing(tool: &'static Tool, root: &Path) -> Error {
    let places = environments(root).into_iter().map(|place| place.display().to_string()).collect::<Vec<_>>();
    Error::MissingTool { tool, searched: format!("{}, PATH", places.join(", ")) }
}

/// A program in the first environment that has it.
fn in_environment(root: &Path, program: &str) -> Option<PathBuf> {
    environments(root).into_iter().map(|folder| folder.join("bin").join(program)).find(|path| path.is_file())
}

/// The places of environments, the first of which counts: the plugin's `.venv`, the active environment, the environment
/// of [`use_environment`], and `.venv` in the folders above the plugin, in the current folder and in those above it.
/// Absolute: commands run in other folders.
fn environments(root: &Path) -> Vec<PathBuf> {
    let above = |folder: &Path| -> Vec<PathBuf> {
        let folder = folder.canonicalize().unwrap_or_default();
        folder.ancestors().map(|folder| folder.join(".venv")).collect()
    };
    let mut places = above(root);
    let active = std::env::var_os("VIRTUAL_ENV").and_then(|folder| std::path::absolute(folder).ok());
    let own = OWN.get().filter(|own| active.as_ref() != Some(own)).cloned();
    places.splice(places.len().min(1)..places.len().min(1), active.into_iter().chain(own));
    for place in above(Path::new(".")) {
        if !places.contains(&place) {
            places.push(place);
        }
    }
    places
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_environment_above_the_plugin_counts_and_its_own_comes_first() {
        let place = tempfile::tempdir().unwrap();
        let top = place.path().canonicalize().unwrap();
        let root = top.join("plugins/polite");
        let program = |folder: &Path| {
            let bin = folder.join(".venv/bin");
            std::fs::create_dir_all(&bin).unwrap();
            std::fs::write(bin.join("a-tool"), "").unwrap();
            bin.join("a-tool")
        };
        std::fs::create_dir_all(&root).unwrap();
        assert_eq!(in_environment(&root, "a-tool"), None);
        let above = program(&top);
        assert_eq!(in_environment(&root, "a-tool"), Some(above));
        let own = program(&root);
        assert_eq!(in_environment(&root, "a-tool"), Some(own));

        let places = environments(&root);
        let current = std::env::current_dir().unwrap();
        for folder in [&root, &top.join("plugins"), &top, &current, current.parent().unwrap(), Path::new("/")] {
            let place = folder.join(".venv");
            assert_eq!(places.iter().filter(|found| **found == place).count(), 1, "{place:?} of {places:?}");
        }
    }
}
