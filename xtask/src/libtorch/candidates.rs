//! Checks folders that may hold libtorch.

use super::VERSION;
use crate::command::Call;
use crate::failure::{Failure, Result};
use std::fs;
use std::path::{Path, PathBuf};

/// Prints the folder of an installed PyTorch without importing it: an import
/// takes seconds and needs its GPU libraries.
const FIND_PYTORCH: &str = "\
import importlib.util
spec = importlib.util.find_spec('torch')
print(next(iter(spec.submodule_search_locations or []), '') if spec else '')";

/// The library that every build links to.
const LIBRARY: &str = if cfg!(target_os = "macos") {
    "lib/libtorch_cpu.dylib"
} else if cfg!(windows) {
    "lib/torch_cpu.lib"
} else {
    "lib/libtorch_cpu.so"
};

/// Why a folder is not a usable libtorch.
#[derive(Debug, PartialEq, Eq)]
pub enum Unusable {
    /// A file is missing.
    Missing(&'static str),
    /// It is another version.
    Version(String),
}

/// Whether `folder` holds the libtorch that the bindings need.
pub fn check(folder: &Path) -> std::result::Result<(), Unusable> {
    for file in [LIBRARY, "include/torch/csrc/api/include/torch/torch.h"] {
        if !folder.join(file).is_file() {
            return Err(Unusable::Missing(file));
        }
    }
    match version(folder) {
        Some(version) if version == VERSION => Ok(()),
        Some(version) => Err(Unusable::Version(version)),
        None => Err(Unusable::Missing("build-version or version.py")),
    }
}

/// The folder that the user named. It must be usable, as nothing else is tried.
pub fn named(folder: &Path) -> Result<PathBuf> {
    let hint = format!(
        "set LIBTORCH to the folder of libtorch {VERSION} (it has lib/ and include/), or unset it to have one found or installed"
    );
    // Cargo passes the path on to builds in other folders.
    let folder = std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned());
    match check(&folder) {
        Ok(()) => Ok(folder),
        Err(Unusable::Missing(file)) => {
            Err(Failure::new(format!("LIBTORCH names {}, which has no file {file}", folder.display())).hint(hint))
        }
        Err(Unusable::Version(version)) => Err(Failure::new(format!(
            "LIBTORCH names {}, which is version {version}: the bindings need {VERSION}",
            folder.display()
        ))
        .hint(hint)),
    }
}

/// The folder of an installed PyTorch of the right version.
pub fn in_python() -> Option<PathBuf> {
    // Without Python, or with one that is broken or has no PyTorch, the next route follows.
    let folder = Call::new("python3", ["-c", FIND_PYTORCH]).read("cannot ask python3").ok()?;
    let folder = PathBuf::from(folder);
    check(&folder).is_ok().then_some(folder)
}

/// The version without its build tag: `2.11.0` of `2.11.0+cu130`.
fn version(folder: &Path) -> Option<String> {
    let build_version = || fs::read_to_string(folder.join("build-version")).ok();
    let version_py = || {
        let text = fs::read_to_string(folder.join("version.py")).ok()?;
        let value = text.lines().find_map(|line| line.strip_prefix("__version__ = "))?;
        Some(value.trim().trim_matches(['\'', '"']).to_owned())
    };
    let full = build_version().or_else(version_py)?;
    full.trim().split('+').next().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn libtorch(version_file: &str, text: &str) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        let include = folder.path().join("include/torch/csrc/api/include/torch");
        fs::create_dir_all(&include).unwrap();
        fs::create_dir_all(folder.path().join("lib")).unwrap();
        fs::write(include.join("torch.h"), "").unwrap();
        fs::write(folder.path().join(LIBRARY), "").unwrap();
        fs::write(folder.path().join(version_file), text).unwrap();
        folder
    }

    #[test]
    fn both_kinds_of_packages_are_known() {
        let zip = libtorch("build-version", "2.11.0+cpu\n");
        assert_eq!(check(zip.path()), Ok(()));
        let wheel =
            libtorch("version.py", "from typing import Optional\n__version__ = '2.11.0+cu130'\ndebug = False\n");
        assert_eq!(check(wheel.path()), Ok(()));
        assert_eq!(named(wheel.path()).unwrap(), wheel.path());
    }

    #[test]
    fn a_wrong_version_names_both() {
        let old = libtorch("version.py", "__version__ = '2.10.0'\n");
        let error = named(old.path()).unwrap_err().to_string();
        assert!(error.contains("is version 2.10.0: the bindings need 2.11.0"), "{error}");
    }

    #[test]
    fn a_missing_file_is_named() {
        let broken = libtorch("build-version", "2.11.0");
        fs::remove_file(broken.path().join(LIBRARY)).unwrap();
        assert_eq!(check(broken.path()), Err(Unusable::Missing(LIBRARY)));
        let nothing = tempfile::tempdir().unwrap();
        let error = named(&nothing.path().join("typo")).unwrap_err().to_string();
        assert!(error.contains(&format!("typo, which has no file {LIBRARY}")), "{error}");
    }
}
