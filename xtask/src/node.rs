//! componentize-js, which makes components from JavaScript code, in its own
//! folder in the user's cache.

use crate::command::Call;
use crate::failure::Result;
use crate::setup::cannot;
use crate::{cache, ui};
use std::fs;
use std::path::{Path, PathBuf};

/// The version that the components are made with; it determines which engine is
/// in them. The projects of `gavel plugin new --lang js` have the same.
const VERSION: &str = "0.23.0";

/// componentize-js with preview2-shim, which it imports without naming it, and
/// in the lock all that they depend on, each with its version and hash. `npm
/// install --package-lock-only` in their folder writes the lock.
const PACKAGES: &str = include_str!("../componentize-js/package.json");
const LOCK: &str = include_str!("../componentize-js/package-lock.json");

/// A copy of the lock, written last, so that an interrupted installation and
/// one of other versions are recognised.
const WHOLE: &str = "whole";

/// The package, in the folder that [`componentize_js`] returns.
pub const PACKAGE: &str = "node_modules/@bytecodealliance/componentize-js";

/// Provides componentize-js and returns the folder in which npm installed it
/// (`node_modules/.bin/componentize-js`): an earlier installation in the user's
/// cache, else a new one there.
pub fn componentize_js() -> Result<PathBuf> {
    let folder = cache::folder()?.join(format!("componentize-js-{VERSION}"));
    ui::step(&format!("componentize-js {VERSION}"), || {
        let found = folder.display().to_string();
        if is_whole(&folder) {
            return Ok((folder, format!("found, {found}")));
        }
        let _lock = cache::lock("componentize-js")?;
        // Another set-up may have installed it while we waited.
        if !is_whole(&folder) {
            install(&folder)?;
        }
        Ok((folder, format!("installed from npm, {found}")))
    })
}

/// The version of Node.js, which runs componentize-js.
pub fn version() -> Result<String> {
    let recent = "console.log(process.version); process.exit(parseInt(process.versions.node) >= 20 ? 0 : 1)";
    Call::new("node", ["-e", recent])
        .read("cannot run Node.js 20 or later, with which programs in JavaScript are built")
        .map_err(|failure| failure.hint("install it with npm, as docs/languages/javascript.md says, then repeat"))
}

fn is_whole(folder: &Path) -> bool {
    fs::read_to_string(folder.join(WHOLE)).is_ok_and(|whole| whole == LOCK)
}

fn install(folder: &Path) -> Result<()> {
    version()?;
    cache::remove(folder)?;
    fs::create_dir_all(folder).map_err(|error| cannot("make", folder, &error))?;
    put(folder, "package.json", PACKAGES)?;
    put(folder, "package-lock.json", LOCK)?;
    let prefix = folder.display().to_string();
    let options = ["ci", "--no-audit", "--no-fund", "--prefer-offline", "--fetch-retries=5", "--prefix"];
    Call::new("npm", options.into_iter().chain([prefix.as_str()]))
        .read(&format!("cannot install componentize-js {VERSION}, which makes components from JavaScript code"))
        .map_err(|failure| failure.hint("check that npm is installed, and the network, then repeat"))?;
    put(folder, WHOLE, LOCK)
}

fn put(folder: &Path, name: &str, text: &str) -> Result<()> {
    let file = folder.join(name);
    fs::write(&file, text).map_err(|error| cannot("write", &file, &error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lock_pins_the_version() {
        let wanted = format!("\"@bytecodealliance/componentize-js\": \"{VERSION}\"");
        assert!(PACKAGES.contains(&wanted) && LOCK.contains(&wanted));
    }

    #[test]
    fn all_that_the_lock_names_is_installed() {
        // `npm ci` leaves out what no package asks for.
        assert!(!LOCK.contains("\"extraneous\""));
    }

    #[test]
    fn an_installation_of_other_versions_is_not_whole() {
        let folder = tempfile::tempdir().unwrap();
        assert!(!is_whole(folder.path()));
        for (text, is) in [("", false), (LOCK, true)] {
            fs::write(folder.path().join(WHOLE), text).unwrap();
            assert_eq!(is_whole(folder.path()), is);
        }
    }
}
