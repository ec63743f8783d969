//! componentize-py, which makes components from Python code, in its own virtual
//! environment in the user's cache.

use crate::command::Call;
use crate::failure::Result;
use crate::setup::cannot;
use crate::{cache, ui};
use std::fs;
use std::path::{Path, PathBuf};

/// The version that the components are made with; it determines which Python is
/// in them (3.14).
const VERSION: &str = "0.25.1";

/// Written last, so that an interrupted installation is recognised.
const WHOLE: &str = "whole";

/// Provides componentize-py and returns its virtual environment (`bin/python3`,
/// `bin/componentize-py`): an earlier installation in the user's cache, else a
/// new one there.
pub fn environment() -> Result<PathBuf> {
    let folder = cache::folder()?.join(format!("componentize-py-{VERSION}"));
    ui::step(&format!("componentize-py {VERSION}"), || {
        let found = folder.display().to_string();
        if folder.join(WHOLE).exists() {
            return Ok((folder, format!("found, {found}")));
        }
        let _lock = cache::lock("componentize-py")?;
        // Another set-up may have installed it while we waited.
        if !folder.join(WHOLE).exists() {
            install(&folder)?;
        }
        Ok((folder, format!("installed from PyPI, {found}")))
    })
}

/// The other packages from PyPI that the tests use, and their purpose.
const TEST_TOOLS: [(&str, &str, &str); 2] = [
    ("ziglang", "0.17.1", "which the tests compile C with"),
    ("openai", "3.54.0", "which the tests ask `gavel serve` with"),
];

/// Provides the tools that a user would install for plugins in Python and C and
/// to talk to a server. Returns the folder of their programs.
pub fn test_tools() -> Result<PathBuf> {
    let environment = environment()?;
    for (name, version, purpose) in TEST_TOOLS {
        let package = format!("{name}=={version}");
        ui::step(&format!("{name} {version}"), || {
            let whole = environment.join(&package);
            if whole.exists() {
                return Ok(((), "found".into()));
            }
            let _lock = cache::lock("componentize-py")?;
            Call::new(environment.join("bin/python3"), ["-m", "pip", "install", "--only-binary=:all:", &package])
                .read(&format!("cannot install {name} {version}, {purpose}"))
                .map_err(|failure| failure.hint("check the network, then repeat"))?;
            fs::write(&whole, "").map_err(|error| cannot("write", &whole, &error))?;
            Ok(((), "installed from PyPI".into()))
        })?;
    }
    Ok(environment.join("bin"))
}

fn install(folder: &Path) -> Result<()> {
    cache::remove(folder)?;
    let what = "cannot make a virtual environment for componentize-py";
    Call::new("python3", [Path::new("-m"), Path::new("venv"), folder]).read(what).map_err(|failure| {
        failure.hint("install it (Debian, Ubuntu: apt install python3-venv; others have it with Python 3), then repeat")
    })?;
    let package = format!("componentize-py=={VERSION}");
    Call::new(folder.join("bin/python3"), ["-m", "pip", "install", "--only-binary=:all:", &package])
        .read(&format!("cannot install componentize-py {VERSION}, which makes components from Python code"))
        .map_err(|failure| failure.hint("check the network, then repeat"))?;
    let whole = folder.join(WHOLE);
    fs::write(&whole, "").map_err(|error| cannot("write", &whole, &error))
}
