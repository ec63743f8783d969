//! C and C++, compiled by zig or clang. The bindings and the component are made
//! here.

mod compiler;
mod module;

use super::{Compiled, Prepared, Toolchain};
use crate::build::Step;
use crate::contract;
use crate::error::Error;
use crate::inputs::Inputs;
use crate::manifest::{Import, Project};
use crate::tool::{self, Tool};
use compiler::Compiler;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use wasi_preview1_component_adapter_provider::{
    WASI_SNAPSHOT_PREVIEW1_ADAPTER_NAME, WASI_SNAPSHOT_PREVIEW1_REACTOR_ADAPTER,
};
use wit_bindgen_core::wit_parser::{Resolve, WorldId};
use wit_component::ComponentEncoder;

/// The folder of the author's sources.
const SOURCES: &str = "src";
/// The folder of the SDK's copy.
const SDK: &str = "vendor/gavel";
/// The folder of the bindings, in the project's.
const BINDINGS: &str = "build/bindings";
/// The core module from which the component is made, in the project's folder.
const MODULE: &str = "build/plugin.module.wasm";

pub(super) struct C;

impl Toolchain for C {
    fn sdk(&self) -> (&'static str, &'static str) {
        ("c", "gavel")
    }

    /// The compiler runs each time: it takes a second, and a header may be in
    /// any folder.
    fn prepare<'a>(&self, project: &'a Project, _: &mut dyn FnMut(Step<'_>)) -> Result<Prepared<'a>, Error> {
        let compiler = Compiler::find().ok_or_else(|| Error::missing(&compiler::ZIG))?;
        Ok(Prepared { inputs: None, make: Box::new(move || compile(project, &compiler)) })
    }

    fn missing(&self, _: &Path) -> Vec<&'static Tool> {
        if Compiler::find().is_some() { Vec::new() } else { vec![&compiler::ZIG] }
    }

    fn how_to_export(&self) -> &'static str {
        "write `plugin_init` and the function that gavel.h declares for each export; a taskset's functions are in build/bindings/plugin.h"
    }
}

fn compile(project: &Project, compiler: &Compiler) -> Result<Compiled, Error> {
    let name = &project.manifest.name;
    let wit = contract::write(project)?;
    let internal = |what: &str| {
        let what = format!("cannot {what} `{name}`");
        move |error: anyhow::Error| Error::Failed { what, said: format!("{error:#}") }
    };
    let (mut resolve, world) = world(&wit).map_err(internal("read the world of"))?;
    bindings(&mut resolve, world, &project.folder.join(BINDINGS)).map_err(internal("write the bindings of"))?;

    let sources = Sources::of(project)?;
    let run = |mut command: Command, args: &mut dyn Iterator<Item = OsString>| -> Result<String, Error> {
        command.current_dir(&project.folder).args(flags(project)).args(args);
        Ok(tool::run(&mut command, &compiler::ZIG, &format!("cannot compile `{name}`"))?.all())
    };
    let mut warnings = String::new();
    let mut linked = sources.c;
    for (number, source) in sources.cpp.iter().enumerate() {
        let object = PathBuf::from(format!("build/cpp-{number}.o"));
        let args = CPP.into_iter().map(OsString::from).chain(["-c".into(), source.into(), "-o".into()]);
        warnings += &run(compiler.cpp(), &mut args.chain([object.clone().into()]))?;
        linked.push(object);
    }
    let library = if sources.cpp.is_empty() { &[][..] } else { &["-lc++", "-lc++abi"] };
    let args = LINK.into_iter().chain(["-o", MODULE]).map(OsString::from);
    let args = args.chain(linked.into_iter().map(OsString::from)).chain(library.iter().map(OsString::from));
    warnings += &run(compiler.c(), &mut args.into_iter())?;

    let path = project.folder.join(MODULE);
    let module = fs::read(&path).map_err(Error::file("read", &path))?;
    let component = component(&module::without_debugging(&module)).map_err(internal("make a component of"))?;
    Ok(Compiled { component, said: String::new(), warnings, elsewhere: Inputs::default() })
}

fn world(wit: &Path) -> anyhow::Result<(Resolve, WorldId)> {
    let mut resolve = Resolve::default();
    let (package, _) = resolve.push_dir(wit)?;
    let world = resolve.select_world(&[package], Some(contract::WORLD))?;
    Ok((resolve, world))
}

/// Writes `plugin.h`, `plugin.c`, and an object that holds the world's type.
fn bindings(resolve: &mut Resolve, world: WorldId, folder: &Path) -> anyhow::Result<()> {
    let mut files = wit_bindgen_core::Files::default();
    wit_bindgen_c::Opts::default().build().generate(resolve, world, &mut files)?;
    fs::create_dir_all(folder)?;
    for (name, bytes) in files.iter() {
        fs::write(folder.join(name), bytes)?;
    }
    Ok(())
}

/// One MiB of stack. The default of zig, 16 MiB, would cost every call.
const STACK: &str = "-Wl,-z,stack-size=1048576";

/// The flags of C++. There are no exceptions, as a trap ends a call.
const CPP: [&str; 3] = ["-std=c++20", "-fno-exceptions", "-fno-rtti"];
/// The flags of C and of the linker. The result is a library that the host
/// calls.
const LINK: [&str; 3] = ["-std=c17", "-mexec-model=reactor", STACK];

/// The flags of every compilation. Paths are relative to the project's folder, so that the same sources give the same
/// component in any folder.
fn flags(project: &Project) -> Vec<OsString> {
    let manifest = &project.manifest;
    let exports = manifest.exports.iter().map(|export| format!("-DGAVEL_EXPORT_{}", export.as_str().to_uppercase()));
    let name = |import: &Import| import.as_str().to_uppercase().replace('-', "_");
    let imports = manifest.imports.iter().map(|import| format!("-DGAVEL_IMPORT_{}", name(import)));
    // The report of a trap shows names, which zig writes only beside debugging information.
    let fixed = ["-Os", "-g1", "-Wall", "-Wextra", "-I", SDK, "-I", BINDINGS];
    fixed.into_iter().map(OsString::from).chain(exports.chain(imports).map(OsString::from)).collect()
}

/// The sources of a component, by their paths from the project's folder.
struct Sources {
    /// The author's, the SDK's, and the bindings.
    c: Vec<PathBuf>,
    /// The author's in C++.
    cpp: Vec<PathBuf>,
}

impl Sources {
    fn of(project: &Project) -> Result<Self, Error> {
        let (mut c, mut cpp, mut rest) = (Vec::new(), Vec::new(), vec![Path::new(BINDINGS).join("plugin.c")]);
        collect(&project.folder, Path::new(SOURCES), &["c"], &mut c)?;
        collect(&project.folder, Path::new(SOURCES), &["cpp", "cc", "cxx"], &mut cpp)?;
        if c.is_empty() && cpp.is_empty() {
            return Err(Error::Source {
                what: format!("`{}` has no C source", project.manifest.name),
                hint_text: format!("put a file such as {SOURCES}/plugin.c or {SOURCES}/plugin.cpp into its folder"),
            });
        }
        collect(&project.folder, Path::new(SDK), &["c"], &mut rest)?;
        // Sorted, as their order affects the linker's layout and a folder's own order differs by machine.
        [&mut c, &mut cpp, &mut rest].into_iter().for_each(|sources| sources.sort());
        rest.push(Path::new(BINDINGS).join("plugin_component_type.o"));
        c.extend(rest);
        Ok(Self { c, cpp })
    }
}

/// Adds the files below `folder` that have one of `extensions`.
fn collect(root: &Path, folder: &Path, extensions: &[&str], sources: &mut Vec<PathBuf>) -> Result<(), Error> {
    let place = root.join(folder);
    if !place.is_dir() {
        return Ok(());
    }
    for entry in fs::read_dir(&place).map_err(Error::file("read", &place))? {
        let entry = entry.map_err(Error::file("read", &place))?;
        let path = folder.join(entry.file_name());
        if entry.path().is_dir() {
            collect(root, &path, extensions, sources)?;
        } else if path.extension().is_some_and(|found| extensions.iter().any(|extension| found == *extension)) {
            sources.push(path);
        }
    }
    Ok(())
}

/// Makes a component from a core module. Imports of WASI preview 1, for example
/// of `printf`, go through an adapter; a module without such imports gets no
/// adapter.
fn component(module: &[u8]) -> anyhow::Result<Vec<u8>> {
    let mut encoder = ComponentEncoder::default();
    encoder.module(module)?;
    encoder.adapter(WASI_SNAPSHOT_PREVIEW1_ADAPTER_NAME, WASI_SNAPSHOT_PREVIEW1_REACTOR_ADAPTER)?;
    encoder.validate(true).encode()
}
