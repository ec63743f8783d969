//! Installs libtorch from PyTorch's wheel on PyPI.

use super::{VERSION, candidates};
use crate::command::Call;
use crate::failure::{Failure, Result};
use crate::setup::cannot;
use crate::ui;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

/// PyTorch without its dependencies, and the two libraries that its CPU part
/// is linked to: enough to build and to run on the CPU.
const PACKAGES: [&str; 3] = ["torch==2.11.0", "nvidia-cuda-runtime==13.0.96", "nvidia-cuda-cupti==13.0.85"];

/// Wheels are made for a version of Python; libtorch is the same in each, so
/// any that is published will do, whichever Python runs pip.
const WHEEL_PYTHON: &str = "3.12";

/// Where our own libtorch lies when it is installed.
pub fn folder() -> Result<PathBuf> {
    Ok(cache()?.join(format!("libtorch-{VERSION}/torch")))
}

fn cache() -> Result<PathBuf> {
    let absolute = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    absolute("XDG_CACHE_HOME")
        .or_else(|| Some(absolute("HOME")?.join(".cache")))
        .map(|cache| cache.join("gavel"))
        .ok_or_else(|| {
            Failure::new("cannot find the user's cache folder").hint("set HOME or XDG_CACHE_HOME to a folder")
        })
}

/// Installs it and gives its folder. An installation that was interrupted
/// leaves a folder `….partial`, which the next one replaces.
pub fn install() -> Result<PathBuf> {
    if !cfg!(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64"))) {
        return Err(Failure::new(format!("libtorch {VERSION} is not installed automatically on this platform"))
            .why("only Linux on x86-64 and aarch64 is supported so far")
            .hint(format!(
                "install PyTorch {VERSION} or download libtorch {VERSION}, and set LIBTORCH to its folder"
            )));
    }
    let cache = cache()?;
    fs::create_dir_all(&cache).map_err(|error| cannot("make", &cache, &error))?;
    let folder = folder()?;
    ui::loud_step(&format!("libtorch {VERSION}"), "installing from PyPI, 544 MB to download and 1.3 GB on disk", || {
        let _lock = lock(&cache)?;
        // Another set-up may have installed it while we waited.
        if candidates::check(&folder).is_err() {
            download(&cache)?;
        }
        let found = folder.display().to_string();
        Ok((folder, found))
    })
}

/// One installation at a time; the lock ends with the process that holds it.
fn lock(cache: &Path) -> Result<File> {
    let path = cache.join("libtorch.lock");
    let file = File::create(&path).map_err(|error| cannot("write", &path, &error))?;
    file.lock().map_err(|error| cannot("lock", &path, &error))?;
    Ok(file)
}

fn download(cache: &Path) -> Result<()> {
    let whole = cache.join(format!("libtorch-{VERSION}"));
    let partial = cache.join(format!("libtorch-{VERSION}.partial"));
    for old in [&partial, &whole] {
        if old.exists() {
            fs::remove_dir_all(old).map_err(|error| cannot("remove", old, &error))?;
        }
    }
    pip(&partial)?;
    if let Err(unusable) = candidates::check(&partial.join("torch")) {
        return Err(Failure::new(format!("what pip installed is no usable libtorch {VERSION}"))
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
        .read(&format!("cannot run pip, which libtorch {VERSION} is installed with"))
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
