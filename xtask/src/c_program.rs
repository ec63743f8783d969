//! Builds the program that runs C: its compiler, which is written in C, and the
//! component that has it.

use crate::command::Call;
use crate::failure::{Failure, Result};
use crate::guests::put;
use crate::setup::{GUEST_TARGET, cannot};
use crate::{python, rust_plugins, ui};
use gavel_project::{Inputs, Stamp};
use std::fs;
use std::path::{Path, PathBuf};

/// The program's name, and its folder in `programs/`.
pub const NAME: &str = "c";

/// What zig is given for the compiler's sources.
const ARGUMENTS: [&str; 12] = [
    "-m",
    "ziglang",
    "cc",
    "-target",
    "wasm32-wasi",
    "-O2",
    "-std=gnu11",
    "-w",
    "-s",
    "-DXCC_TARGET_ARCH=XCC_ARCH_WASM",
    "-Wl,-z,stack-size=1048576",
    "-o",
];
/// Tells the program's build where the compiler is.
const COMPILER_VARIABLE: &str = "WCC_WASM";
/// Folders of its sources, in `vendor/xcc/src`. Each is one of headers, too.
const FOLDERS: [&str; 4] = ["cc/frontend", "cpp", "util", "wcc"];

/// The compiler, a module for WASI.
const COMPILER: &str = "wcc.wasm";

/// The folder that it is built in.
fn built(root: &Path) -> PathBuf {
    root.join("target/programs").join(NAME)
}

/// The folder of what cargo builds for it.
fn target(root: &Path) -> PathBuf {
    root.join("target/wasm").join(NAME)
}

/// Tests its logic on this machine, without optimisation. It must have been built.
pub fn test(root: &Path) -> Result<()> {
    let target = target(root);
    Call::cargo(["test", "--locked", "--target-dir"].map(Path::new).into_iter().chain([target.as_path()]))
        .within(&root.join("programs").join(NAME))
        .env(COMPILER_VARIABLE, built(root).join(COMPILER))
        .show("tests of the program that runs C failed")
}

/// Builds it to `<folder>/c.wasm`. It is not built again if its inputs have not
/// changed.
pub fn build(root: &Path, folder: &Path) -> Result<()> {
    let tools = python::c_compiler()?;
    ui::step(&format!("program {NAME}"), || {
        let source = root.join("programs").join(NAME);
        let built = built(root);
        fs::create_dir_all(&built).map_err(|error| cannot("make", &built, &error))?;
        let made = built.join("component.wasm");
        let mut inputs = Inputs::default();
        inputs.set("the tool zig", python::zig_version());
        inputs.set("what it is told", ARGUMENTS.join(" "));
        inputs.set("the tool rustc", Call::new("rustc", ["--version"]).read("cannot run rustc")?);
        inputs.files(&source).map_err(|error| Failure::new(error.to_string()))?;
        let why = match Stamp::check(&made, &inputs, &source) {
            Ok(_) => "unchanged".to_owned(),
            Err(reason) => {
                let compiler = built.join(COMPILER);
                compile_compiler(&tools, &source.join("vendor/xcc/src"), &compiler)?;
                let component = component(root, &source, &compiler)?;
                fs::write(&made, &component).map_err(|error| cannot("write", &made, &error))?;
                Stamp::new(&component, inputs).write(&made).map_err(|error| Failure::new(error.to_string()))?;
                format!("built ({reason})")
            }
        };
        put(folder, NAME, &fs::read(&made).map_err(|error| cannot("read", &made, &error))?)?;
        let component = folder.join(format!("{NAME}.wasm"));
        Ok(((), format!("{why}, {}", component.strip_prefix(root).unwrap_or(&component).display())))
    })
}

/// Compiles wcc to a module for WASI.
fn compile_compiler(tools: &Path, sources: &Path, compiler: &Path) -> Result<()> {
    let mut files = Vec::new();
    for folder in FOLDERS.map(|folder| sources.join(folder)) {
        let entries = fs::read_dir(&folder).map_err(|error| cannot("read", &folder, &error))?;
        let paths = entries.flatten().map(|entry| entry.path());
        files.extend(paths.filter(|path| path.extension().is_some_and(|kind| kind == "c")));
    }
    files.sort();
    let relative = |path: &Path| path.strip_prefix(sources).unwrap_or(path).to_owned();
    let headers = FOLDERS.iter().map(|folder| PathBuf::from(format!("-I{folder}")));
    let arguments = ARGUMENTS.iter().map(PathBuf::from).chain([compiler.to_owned()]).chain(headers);
    Call::new(tools.join("python3"), arguments.chain(files.iter().map(|path| relative(path))))
        // The names of files are in assertions' messages, so they are relative.
        .within(sources)
        .read("cannot compile the C compiler of programs/c")
        .map_err(|failure| failure.hint("the compiler's message above names the file and the error"))
        .map(drop)
}

/// Builds the component with the compiler in it.
fn component(root: &Path, source: &Path, compiler: &Path) -> Result<Vec<u8>> {
    let target = target(root);
    let arguments = ["build", "--quiet", "--locked", "--release", "--target", GUEST_TARGET, "--target-dir"];
    Call::cargo(arguments.map(Path::new).into_iter().chain([target.as_path()]))
        .within(source)
        .env(rust_plugins::FLAGS, rust_plugins::flags(root))
        .env(COMPILER_VARIABLE, compiler)
        .show("cannot build the program that runs C")
        .map_err(|failure| failure.hint("the compiler's message above names the file and the error"))?;
    let built = target.join(GUEST_TARGET).join("release").join(format!("{NAME}.wasm"));
    fs::read(&built).map_err(|error| cannot("read", &built, &error))
}
