//! Finds or installs libtorch, and gives its folder to cargo.

mod candidates;
mod install;

use crate::failure::{Failure, Result};
use crate::setup::cannot;
use crate::ui;
use std::fs;
use std::path::{Path, PathBuf};

/// The version that the bindings (`tch` 0.24) are made for.
pub const VERSION: &str = "2.11.0";

/// The file with libtorch's folder, which `.cargo/config.toml` includes.
const CONFIGURATION: &str = ".cargo/libtorch.toml";

/// Provides libtorch from the first of these: the folder in `LIBTORCH`, the
/// folder that an earlier set-up found, an installed PyTorch, our own
/// installation in the user's cache, a new installation there. Writes
/// `.cargo/libtorch.toml` and returns the folder.
pub fn provide(root: &Path) -> Result<PathBuf> {
    let configuration = root.join(CONFIGURATION);
    let found = ui::step(&format!("libtorch {VERSION}"), || {
        let found = find(&configuration)?;
        let said = found.as_ref().map_or("absent".into(), |(folder, how)| format!("{how}, {}", folder.display()));
        Ok((found, said))
    })?;
    let folder = match found {
        Some((folder, _)) => folder,
        None => install::install()?,
    };
    write(&configuration, &folder)?;
    Ok(folder)
}

/// An existing usable libtorch, and how it was found.
fn find(configuration: &Path) -> Result<Option<(PathBuf, &'static str)>> {
    let earlier = configured(configuration);
    // Cargo sets the variable from the file of an earlier set-up. Then the user did not choose it.
    let variable = std::env::var_os("LIBTORCH").map(PathBuf::from).filter(|path| Some(path) != earlier.as_ref());
    if let Some(folder) = variable {
        let folder = candidates::named(&folder)?;
        return Ok(Some((folder, "named by LIBTORCH")));
    }
    if let Some(folder) = earlier.filter(|folder| candidates::check(folder).is_ok()) {
        return Ok(Some((folder, "found by an earlier set-up")));
    }
    if let Some(folder) = candidates::in_python() {
        return Ok(Some((folder, "part of the installed PyTorch")));
    }
    let own = install::folder()?;
    Ok(candidates::check(&own).is_ok().then_some((own, "installed by an earlier set-up")))
}

/// The folder that the configuration file names.
fn configured(configuration: &Path) -> Option<PathBuf> {
    let text = fs::read_to_string(configuration).ok()?;
    let value = text.lines().find_map(|line| line.trim().strip_prefix("LIBTORCH = "))?;
    serde_json::from_str::<String>(value).ok().map(PathBuf::from)
}

fn write(configuration: &Path, folder: &Path) -> Result<()> {
    let Some(folder) = folder.to_str() else {
        return Err(Failure::new(format!("the path of libtorch is not Unicode: {}", folder.display()))
            .hint("move it, or set XDG_CACHE_HOME to another folder"));
    };
    // A JSON string is a TOML basic string too.
    let text = format!("# Written by `cargo xtask setup`.\n[env]\nLIBTORCH = {}\n", serde_json::Value::from(folder));
    if fs::read_to_string(configuration).is_ok_and(|present| present == text) {
        return Ok(());
    }
    let partial = configuration.with_extension("partial");
    fs::write(&partial, text).map_err(|error| cannot("write", &partial, &error))?;
    fs::rename(&partial, configuration).map_err(|error| cannot("write", configuration, &error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_again() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("libtorch.toml");
        assert_eq!(configured(&file), None);
        for path in ["/opt/libtorch", "/home/a \"b\"/c\\d"] {
            write(&file, Path::new(path)).unwrap();
            assert_eq!(configured(&file), Some(PathBuf::from(path)));
        }
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}
