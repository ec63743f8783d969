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

/// Written last, so that an interrupted installation is recognised.
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
        if folder.join(WHOLE).exists() {
            return Ok((folder, format!("found, {found}")));
        }
        let _lock = cache::lock("componentize-js")?;
        // Another set-up may have installed it while we waited.
        if !folder.join(WHOLE).exists() {
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

fn install(folder: &Path) -> Result<()> {
    version()?;
    cache::remove(folder)?;
    fs::create_dir_all(folder).map_err(|error| cannot("make", folder, &error))?;
    let package = format!("@bytecodealliance/componentize-js@{VERSION}");
    let prefix = folder.display().to_string();
    let options = ["--no-audit", "--no-fund", "--prefer-offline", "--fetch-retries=5", "--prefix"];
    Call::new("npm", ["install"].into_iter().chain(options).chain([prefix.as_str(), package.as_str()]))
        .read(&format!("cannot install componentize-js {VERSION}, which makes components from JavaScript code"))
        .map_err(|failure| failure.hint("check that npm is installed, and the network, then repeat"))?;
    let whole = folder.join(WHOLE);
    fs::write(&whole, "").map_err(|error| cannot("write", &whole, &error))
}
