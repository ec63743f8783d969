//! The Pythons of this machine.

use crate::command::Call;
use crate::failure::{Failure, Result};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// The versions that are looked for: `3.N`.
const VERSIONS: std::ops::RangeInclusive<u32> = 10..=19;

/// The oldest and the newest Python that the wheel supports, with their versions; one if there is only one.
pub fn oldest_and_newest() -> Result<Vec<(String, PathBuf)>> {
    let found: BTreeMap<u32, PathBuf> =
        candidates().into_iter().filter_map(|path| Some((version(&path)?, path))).collect();
    let name = |(minor, path): (&u32, &PathBuf)| (format!("3.{minor}"), path.clone());
    match (found.first_key_value(), found.last_key_value()) {
        (Some(oldest), Some(newest)) if oldest.0 < newest.0 => Ok(vec![name(oldest), name(newest)]),
        (Some(only), _) => Ok(vec![name(only)]),
        _ => {
            Err(Failure::new("there is no Python 3.10 or newer")
                .hint("install one (Debian, Ubuntu: apt install python3)"))
        }
    }
}

/// Interpreters on the path, and those that pyenv has installed.
fn candidates() -> Vec<PathBuf> {
    let named = VERSIONS.map(|minor| format!("python3.{minor}").into());
    let pyenv = std::env::var_os("PYENV_ROOT").map(PathBuf::from);
    let pyenv = pyenv.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".pyenv")));
    let installed = pyenv.and_then(|pyenv| std::fs::read_dir(pyenv.join("versions")).ok());
    let installed = installed.into_iter().flatten().flatten().map(|entry| entry.path().join("bin/python3"));
    // The first of each version is used last.
    installed.chain(named).chain(["python3".into()]).collect()
}

/// The N of `3.N`, if it is a Python that runs and that the wheel supports.
fn version(python: &PathBuf) -> Option<u32> {
    let print = "import sys, venv; print(*sys.version_info[:2], sys.implementation.name)";
    let printed = Call::new(python, ["-c", print]).read("it is no Python").ok()?;
    match *printed.split(' ').collect::<Vec<_>>() {
        ["3", minor, "cpython"] => minor.parse().ok().filter(|minor| VERSIONS.contains(minor)),
        _ => None,
    }
}
