//! Installs what a fresh machine lacks.

use crate::command::Call;
use crate::failure::{Failure, Result};
use crate::{libtorch, python, ui};
use std::path::{Path, PathBuf};

/// The target that plugins are built for.
pub const GUEST_TARGET: &str = "wasm32-wasip2";

/// Installs everything that is missing and returns the folder of libtorch.
pub fn all(root: &Path) -> Result<PathBuf> {
    let libtorch = for_rust(root)?;
    python::environment()?;
    Ok(libtorch)
}

/// Installs what the host and plugins in Rust need, and returns the folder of
/// libtorch.
pub fn for_rust(root: &Path) -> Result<PathBuf> {
    guest_target()?;
    compiler()?;
    libtorch::provide(root)
}

/// The standard library for [`GUEST_TARGET`].
pub fn guest_target() -> Result<()> {
    ui::step(&format!("target {GUEST_TARGET}"), || {
        let what = "cannot find the Rust compiler's folders";
        let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
        let libraries = Call::new(rustc, ["--print", "target-libdir", "--target", GUEST_TARGET]).read(what)?;
        if Path::new(&libraries).is_dir() {
            return Ok(((), "found".into()));
        }
        Call::new("rustup", ["target", "add", GUEST_TARGET])
            .read(&format!("cannot install the Rust target {GUEST_TARGET}, which plugins are built for"))
            .map_err(|failure| {
                failure.hint(format!(
                    "with rustup (https://rustup.rs), check the network and repeat; with another Rust, install its standard library for {GUEST_TARGET}"
                ))
            })?;
        Ok(((), "installed with rustup".into()))
    })
}

/// The C++ compiler that libtorch's bindings are built with.
fn compiler() -> Result<()> {
    ui::step("C++ compiler", || {
        let compiler = std::env::var("CXX").unwrap_or_else(|_| "c++".into());
        let version = Call::new(&compiler, ["--version"])
            .read("cannot run a C++ compiler, which libtorch's bindings are built with")
            .map_err(|failure| {
                failure.hint(
                    "install one (Debian, Ubuntu: apt install g++; Fedora: dnf install gcc-c++), or set CXX to yours",
                )
            })?;
        Ok(((), version.lines().next().unwrap_or(&compiler).to_owned()))
    })
}

/// A failure to read or write `path`.
pub fn cannot(verb: &str, path: &Path, error: &std::io::Error) -> Failure {
    Failure::new(format!("cannot {verb} {}", path.display())).why(error)
}
