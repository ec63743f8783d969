//! componentize-py, which makes components from Python code, in its own virtual
//! environment in the user's cache.

use crate::command::Call;
use crate::failure::Result;
use crate::setup::cannot;
use crate::{cache, ui};
use std::ffi::OsString;
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

const ZIG: Tool = Tool { packages: &["ziglang==0.17.1"], purpose: "which compiles C and links wheels", folder: None };

/// The packages from PyPI that wheels are made with.
const WHEEL_TOOLS: [Tool; 2] = [
    ZIG,
    Tool { packages: &["auditwheel==6.8.2", "wheel==0.48.0"], purpose: "which pack and check wheels", folder: None },
];

/// The other packages from PyPI that the tests use.
const TEST_TOOLS: [Tool; 5] = [
    ZIG,
    Tool { packages: &["openai==3.54.0"], purpose: "which the tests ask `gavel serve` with", folder: None },
    Tool {
        packages: &["anthropic==2.14.0", "google-genai==3.6.1"],
        purpose: "which the tests ask `gavel serve` with in other dialects",
        folder: None,
    },
    Tool {
        packages: &["mcp-server-time==2026.10.19", "mcp==2.3.0"],
        purpose: "which the tests call as a tool",
        folder: None,
    },
    // The last that speaks no revision of MCP after 2025-11-25.
    Tool {
        packages: &["mcp-server-time==2026.10.10", "mcp==1.30.0"],
        purpose: "which the tests call as a tool",
        folder: Some("mcp-1.30.0"),
    },
];

/// Packages that are installed together.
struct Tool {
    packages: &'static [&'static str],
    purpose: &'static str,
    /// A folder of their own in the environment, for releases that do not go with the others.
    folder: Option<&'static str>,
}

/// Provides the tools that a user would install for plugins in Python and C and
/// to talk to a server. Returns the folder of their programs.
pub fn test_tools() -> Result<PathBuf> {
    install_tools(&TEST_TOOLS)
}

/// Provides the compiler of C. Returns the folder of its Python.
pub fn c_compiler() -> Result<PathBuf> {
    install_tools(&[ZIG])
}

/// The package of the compiler of C, with its version.
pub fn zig_version() -> &'static str {
    ZIG.packages.first().copied().unwrap_or_default()
}

/// Provides the tools that wheels are made with. Returns the folder of their
/// programs.
pub fn wheel_tools() -> Result<PathBuf> {
    install_tools(&WHEEL_TOOLS)
}

/// Provides packages from PyPI for the Python `version` in the environment `python`. Returns the folder of their wheels.
pub fn test_wheels(tools: &Path, python: &Path, version: &str, packages: &[&str]) -> Result<PathBuf> {
    let folder = cache::folder()?.join(format!("test-wheels-{version}"));
    let all = packages.join(" ");
    ui::step(&format!("{} for Python {version}", all.replace("==", " ")), || {
        let whole = folder.join(&all);
        if whole.exists() {
            return Ok((folder, "found".into()));
        }
        let _lock = cache::lock("test-wheels")?;
        cache::remove(&folder)?;
        let pip = ["-m", "pip", "--python"].map(OsString::from).into_iter().chain([python.into()]);
        let download = ["download", "--quiet", "--only-binary=:all:", "--dest"].map(OsString::from);
        let packages = packages.iter().map(OsString::from);
        Call::new(tools.join("python3"), pip.chain(download).chain([folder.clone().into()]).chain(packages))
            .read(&format!("cannot download {all}, with which the wheel is tested"))
            .map_err(|failure| failure.hint("check the network, then repeat"))?;
        fs::write(&whole, "").map_err(|error| cannot("write", &whole, &error))?;
        Ok((folder, "downloaded from PyPI".into()))
    })
}

fn install_tools(tools: &[Tool]) -> Result<PathBuf> {
    let environment = environment()?;
    for Tool { packages, purpose, folder } in tools {
        let all = packages.join(" ");
        ui::step(&all.replace("==", " "), || {
            let whole = environment.join(&all);
            if whole.exists() {
                return Ok(((), "found".into()));
            }
            let _lock = cache::lock("componentize-py")?;
            let mut arguments = ["-m", "pip", "install", "--only-binary=:all:"].map(OsString::from).to_vec();
            if let Some(folder) = folder {
                // Not every file of an interrupted installation is replaced.
                cache::remove(&environment.join(folder))?;
                arguments.extend(["--target".into(), environment.join(folder).into()]);
            }
            arguments.extend(packages.iter().map(OsString::from));
            Call::new(environment.join("bin/python3"), arguments)
                .read(&format!("cannot install {all}, {purpose}"))
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
