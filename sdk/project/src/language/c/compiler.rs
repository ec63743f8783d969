//! Finds a C compiler for WebAssembly.

use crate::tool::{self, Tool};
use std::path::{Path, PathBuf};
use std::process::Command;

pub(super) static ZIG: Tool =
    Tool { name: "zig", purpose: "compiles C to WebAssembly", install: "python3 -m pip install ziglang" };

/// A compiler that has the target `wasm32-wasi` and a C library for it.
pub(super) enum Compiler {
    /// `zig` itself.
    Zig,
    /// The package `ziglang` of PyPI.
    Ziglang,
    /// A clang whose libraries for WASI are installed.
    Clang(PathBuf),
}

impl Compiler {
    /// The first of: the WASI SDK that `WASI_SDK_PATH` names, `zig`, Python's
    /// `ziglang`, and a `clang` with a C library for WASI.
    pub fn find() -> Option<Self> {
        let sdk = std::env::var_os("WASI_SDK_PATH").map(|folder| Path::new(&folder).join("bin/clang"));
        if let Some(clang) = sdk.filter(|clang| tool::works(Command::new(clang).arg("--version"))) {
            return Some(Self::Clang(clang));
        }
        [Self::Zig, Self::Ziglang]
            .into_iter()
            .find(|compiler| tool::works(compiler.program().arg("version")))
            .or_else(|| clang_with_library("clang".into()))
    }

    /// The program, without arguments.
    fn program(&self) -> Command {
        match self {
            Self::Zig => Command::new("zig"),
            Self::Ziglang => {
                let mut python = Command::new("python3");
                python.args(["-m", "ziglang"]);
                python
            }
            Self::Clang(clang) => Command::new(clang),
        }
    }

    /// The C compiler and linker, with its target.
    pub fn c(&self) -> Command {
        let mut command = self.program();
        match self {
            Self::Zig | Self::Ziglang => command.args(["cc", "-target", "wasm32-wasi"]),
            Self::Clang(_) => command.arg("--target=wasm32-wasi"),
        };
        command
    }

    /// The C++ compiler, with its library.
    pub fn cpp(&self) -> Command {
        let mut command = self.program();
        match self {
            Self::Zig | Self::Ziglang => command.args(["c++", "-target", "wasm32-wasi"]),
            Self::Clang(_) => command.args(["--driver-mode=g++", "--target=wasm32-wasi"]),
        };
        command
    }
}

/// `clang`, if it finds the start file of a reactor.
fn clang_with_library(clang: PathBuf) -> Option<Compiler> {
    let asked = Command::new(&clang).args(["--target=wasm32-wasi", "-print-file-name=crt1-reactor.o"]).output().ok()?;
    // If the file is missing, it prints the bare name.
    let found = String::from_utf8_lossy(&asked.stdout);
    Path::new(found.trim()).is_absolute().then_some(Compiler::Clang(clang))
}
