//! Installs libtorch from PyTorch's wheel on PyPI.

use super::{VERSION, candidates};
use crate::command::Call;
use crate::failure::{Failure, Result};
use crate::setup::cannot;
use crate::{cache, ui};
use std::fs;
use std::path::{Path, PathBuf};

/// PyTorch without its dependencies, and the two libraries that its CPU part
/// links to. They are enough to build and to run on the CPU.
const PACKAGES: [&str; 3] = ["torch==2.11.0", "nvidia-cuda-runtime==13.0.96", "nvidia-cuda-cupti==13.0.85"];

/// Wheels are made for a version of Python, but libtorch is the same in each.
/// So any published wheel works, whichever Python runs pip.
const WHEEL_PYTHON: &str = "3.12";

/// The folder of our own installation of libtorch.
pub fn folder() -> Result<PathBuf> {
    Ok(cache::folder()?.join(format!("libtorch-{VERSION}/torch")))
}

/// Installs libtorch and returns its folder. An interrupted installation leaves
/// a folder `….partial`, which the next one replaces.
pub fn install() -> Result<PathBuf> {
    if !cfg!(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64"))) {
        return Err(Failure::new(format!("libtorch {VERSION} is not installed automatically on this platform"))
            .why("only Linux on x86-64 and aarch64 is supported so far")
            .hint(format!(
                "install PyTorch {VERSION} or download libtorch {VERSION}, and set LIBTORCH to its folder"
            )));
    }
    let folder = folder()?;
    ui::loud_step(&format!("libtorch {VERSION}"), "installing from PyPI, 544 MB to download and 1.3 GB on disk", || {
        let _lock = cache::lock("libtorch")?;
        // Another set-up may have installed it while we waited.
        if candidates::check(&folder).is_err() {
            download(&cache::folder()?)?;
        }
        let found = folder.display().to_string();
        Ok((folder, found))
    })
}

fn download(cache: &Path) -> Result<()> {
    let whole = cache.join(format!("libtorch-{VERSION}"));
    let partial = cache.join(format!("libtorch-{VERSION}.partial"));
    for old in [&partial, &whole] {
        cache::remove(old)?;
    }
    pip(&partial)?;
    if let Err(unusable) = candidates::check(&partial.join("torch")) {
        return Err(Failure::new(format!("pip did not install a usable libtorch {VERSION}"))
            .why(format!("{unusable:?}"))
            .hint(format!("download libtorch {VERSION} from https://pytorch.org and set LIBTORCH to its folder")));
    }
    fs::rename(&partial, &whole).map_err(|error| cannot("write", &whole, &error))
}

fn pip(target: &Path) -> Result<()> {
    let other_routes = format!(
        "or take another route: install PyTorch {VERSION} for python3 yourself, or download libtorch {VERSION} and set LIBTORCH to its folder"
    );
    Call::new("python3", ["-m", "pip", "--version"])
        .read(&format!("cannot run pip to install libtorch {VERSION}"))
        .map_err(|failure| {
            failure.hint(format!(
                "install it (Debian, Ubuntu: apt install python3-pip; Fedora: dnf install python3-pip), {other_routes}"
            ))
        })?;
    let options =
        ["-m", "pip", "install", "--no-deps", "--only-binary=:all:", "--python-version", WHEEL_PYTHON, "--target"];
    let arguments = options.map(Path::new).into_iter().chain([target]).chain(PACKAGES.map(Path::new));
    Call::new("python3", arguments).show(&format!("cannot install libtorch {VERSION}")).map_err(|failure| {
        failure.hint(format!("check the network and that 2 GB of disk are free, then repeat; {other_routes}"))
    })
}
