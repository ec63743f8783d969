//! Python: componentize-py, with pure-Python packages of `requirements.txt`.

mod environment;
mod packages;
pub(crate) mod scan;

use super::{Compiled, Prepared, Toolchain};
use crate::build::Step;
use crate::contract;
use crate::embedded;
use crate::error::Error;
use crate::inputs::{self, Inputs};
use crate::manifest::{Export, Import, Project};
use crate::tool::{self, Tool};
pub(crate) use environment::python;
use environment::{componentize, missing, recent};
pub use environment::{own_python, use_environment};
use scan::{Found, Place};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The plugin's first module, `main.py` in its folder.
pub(crate) const ENTRY: &str = "main";

static PYTHON: Tool = Tool {
    name: "python3",
    purpose: "reads what a plugin imports, and installs it",
    install: "apt install python3 python3-venv",
};
static COMPONENTIZE: Tool = Tool {
    name: "componentize-py",
    purpose: "makes components of Python code",
    install: "python3 -m venv .venv && .venv/bin/pip install componentize-py==0.25.1",
};

pub(super) struct Python;

impl Toolchain for Python {
    fn sdk(&self) -> (&'static str, &'static str) {
        ("python/gavel", "gavel")
    }

    fn prepare<'a>(&self, project: &'a Project, told: &mut dyn FnMut(Step<'_>)) -> Result<Prepared<'a>, Error> {
        let tools = Tools::of(project)?;
        let mut said = String::new();
        let packages = packages::install(project, &tools.root, &mut said, told)?;
        let mut inputs = Inputs::of(project)?;
        tools.add_to(&mut inputs, packages.as_deref())?;
        let known = inputs.clone();
        let make = move || {
            let found = tools.scan(project, packages.as_deref())?;
            let warnings = found.warnings.iter().map(Place::warning).collect();
            let elsewhere = inputs::elsewhere(&tools.root, &found.local, &known)?;
            let component = tools.compile(project, packages, &Loads::Now(found.preload), &mut said)?;
            Ok(Compiled { component, said, warnings, elsewhere })
        };
        Ok(Prepared { inputs: Some(inputs), make: Box::new(make) })
    }

    fn missing(&self, folder: &Path) -> Vec<&'static Tool> {
        let mut missing = Vec::new();
        if recent(folder).is_none() {
            missing.push(&PYTHON);
        }
        if componentize(folder).is_none() {
            missing.push(&COMPONENTIZE);
        }
        missing
    }

    fn how_to_export(&self) -> &'static str {
        "export it in main.py with `@gavel.reward`, `@gavel.judger`, `@gavel.taskset`, `@gavel.agent`, `@gavel.advantage` or `@gavel.sampler` over the function, or `@gavel.tool` over the class"
    }
}

/// A component that imports the plugin's sources when it is initialised. It stays the same until they import another
/// module.
pub(crate) fn prepare_quick<'a>(project: &'a Project, told: &mut dyn FnMut(Step<'_>)) -> Result<Prepared<'a>, Error> {
    let tools = Tools::of(project)?;
    let mut said = String::new();
    let packages = packages::install(project, &tools.root, &mut said, told)?;
    let found = tools.scan(project, packages.as_deref())?;
    let mut inputs = Inputs::of_manifest(project);
    inputs.tree("the SDK", &tools.root.join("vendor"))?;
    tools.add_to(&mut inputs, packages.as_deref())?;
    let seldom = found.outside.iter().filter(|name| !OFTEN.contains(&name.as_str()));
    inputs.set("what it imports", seldom.cloned().collect::<Vec<_>>().join(", "));
    let make = move || {
        let imports = found.outside.into_iter().chain(OFTEN.map(str::to_owned)).collect();
        let component = tools.compile(project, packages, &Loads::Late(imports), &mut said)?;
        Ok(Compiled { component, said, warnings: String::new(), elsewhere: Inputs::default() })
    };
    Ok(Prepared { inputs: Some(inputs), make: Box::new(make) })
}

/// The SDK, and modules of Python's library that rewards often import. They are imported before the plugin.
const OFTEN: [&str; 28] = [
    "ast",
    "bisect",
    "collections",
    "collections.abc",
    "copy",
    "dataclasses",
    "datetime",
    "decimal",
    "difflib",
    "enum",
    "fractions",
    "functools",
    "hashlib",
    "gavel",
    "heapq",
    "html",
    "itertools",
    "json",
    "math",
    "operator",
    "random",
    "re",
    "statistics",
    "string",
    "textwrap",
    "typing",
    "unicodedata",
    "xml.etree.ElementTree",
];

/// When a component imports the plugin's module, with the other modules that are imported at build time.
enum Loads {
    /// When it is built.
    Now(Vec<String>),
    /// When it is initialised, from a mounted folder.
    Late(Vec<String>),
}

/// The tools that build a plugin.
struct Tools {
    /// The plugin's folder.
    root: PathBuf,
    /// The version of its Python.
    python: String,
    componentize: Command,
    /// The version of componentize-py.
    version: String,
}

impl Tools {
    fn of(project: &Project) -> Result<Self, Error> {
        let name = &project.manifest.name;
        let root = project.folder.canonicalize().map_err(Error::file("open", &project.folder))?;
        let python = recent(&root).ok_or_else(|| missing(&PYTHON, &root))?;
        let (componentize, version) = componentize(&root).ok_or_else(|| missing(&COMPONENTIZE, &root))?;
        let entry = root.join(format!("{ENTRY}.py"));
        if !entry.is_file() {
            return Err(Error::Source {
                what: format!("`{name}` has no {ENTRY}.py"),
                hint_text: format!("a plugin in Python begins there: write its functions into {}", entry.display()),
            });
        }
        Ok(Self { root, python, componentize, version })
    }

    fn add_to(&self, inputs: &mut Inputs, packages: Option<&Path>) -> Result<(), Error> {
        inputs.set("the tool Python", &self.python);
        inputs.set("the tool componentize-py", &self.version);
        packages.map_or(Ok(()), |folder| packages::list(folder, inputs))
    }

    /// The folders with modules that are put into the component.
    fn folders(&self, packages: Option<&Path>) -> Vec<PathBuf> {
        [self.root.join("vendor")].into_iter().chain(packages.map(Path::to_owned)).collect()
    }

    /// The imports of the plugin. All of them must be available in the
    /// component.
    fn scan(&self, project: &Project, packages: Option<&Path>) -> Result<Found, Error> {
        let http = project.manifest.imports.contains(&Import::Http);
        let found = scan::scan(&python(&self.root), &self.root, ENTRY, &self.folders(packages), http)?;
        found.refuse(&project.manifest.name)?;
        Ok(found)
    }

    /// Runs componentize-py.
    fn compile(
        self,
        project: &Project,
        packages: Option<PathBuf>,
        loads: &Loads,
        said: &mut String,
    ) -> Result<Vec<u8>, Error> {
        let name = &project.manifest.name;
        let app = write_app(project, &self.root, loads)?;
        let world = contract::write(project)?.canonicalize().map_err(Error::file("open", &self.root))?;
        // Not `build/NAME.wasm`, which changes only when the build succeeds.
        let output = app.join("component.wasm");
        let folders = self.folders(packages.as_deref());
        // The plugin's own folder comes first: the SDK assumes that the files of the first folder are the plugin's.
        let own = matches!(loads, Loads::Now(_)).then_some(self.root.as_path());
        let mut command = self.componentize;
        command.arg("-q").arg("-d").arg(world).args(["-w", contract::WORLD, "--world-module", WORLD_MODULE]);
        command.args(["componentize", APP, "-o"]).arg(&output);
        for folder in own.into_iter().chain([&*app]).chain(folders.iter().map(PathBuf::as_path)) {
            command.arg("-p").arg(folder);
        }
        // Otherwise it would add the packages of any installed Python.
        command.env("VIRTUAL_ENV", app.join("no-packages"));
        let made = tool::run(command.current_dir(&self.root), &COMPONENTIZE, &format!("cannot build `{name}`"));
        *said += &made.map_err(|error| own_words(error, name))?.err;
        fs::read(&output).map_err(Error::file("read", &output))
    }
}

/// The entry module of the component, in `build/python`.
pub(crate) const APP: &str = "gavel_app";

/// The module that componentize-py generates from the contract.
pub(crate) const WORLD_MODULE: &str = "gavel_world";

/// Writes the entry module, which loads the plugin into the SDK's exports.
fn write_app(project: &Project, root: &Path, loads: &Loads) -> Result<PathBuf, Error> {
    let folder = root.join("build/python");
    // A virtual environment without packages.
    let none = folder.join("no-packages/lib/site-packages");
    fs::create_dir_all(&none).map_err(Error::file("make", &none))?;
    let exports: Vec<_> = project.manifest.exports.iter().map(|export| export.as_str()).collect();
    let (load, preload) = match loads {
        Loads::Now(preload) => ("load", preload),
        Loads::Late(preload) => ("load_late", preload),
    };
    // The world of a component that is not a tool lacks the types for it.
    let (tool, then) = match project.manifest.exports.contains(&Export::Tool) {
        true => ("from gavel.sessions import Tool, stand_in\n", "stand_in()\n"),
        false => ("", ""),
    };
    // An older SDK in the project's folder does not have them.
    let newer = [(Export::Advantage, "Advantage, "), (Export::Sampler, "Sampler, ")];
    let newer = newer.into_iter().filter(|(export, _)| project.manifest.exports.contains(export));
    let newer: String = newer.map(|(_, class)| class).collect();
    let text = format!(
        "import sys\n\n# The folders are those of the author.\nsys.dont_write_bytecode = True\n\n\
         from gavel.component import {newer}Agent, Judger, Lifecycle, Reward, Taskset, {load}\n{tool}\n\
         {load}({:?}, {ENTRY:?}, {exports:?}, {preload:?})\n{then}",
        project.manifest.name
    );
    let path = folder.join(format!("{APP}.py"));
    fs::write(&path, text).map_err(Error::file("write", &path))?;
    Ok(folder)
}

/// The part of a failure that the user needs: the SDK's message if a function
/// is missing, else Python's traceback without componentize-py's traceback.
fn own_words(error: Error, name: &str) -> Error {
    let Error::Failed { what, said } = error else { return error };
    let inner = said.split_once("AssertionError: ").map_or(&*said, |(_, inner)| inner);
    let inner = inner.split_once("\nCaused by:").map_or(inner, |(inner, _)| inner).trim();
    // For a SystemExit, Python shows only the message.
    if let Some((words, hint)) = inner.split_once("\nhint: ").filter(|_| !inner.contains("Traceback")) {
        let hint_text = hint.lines().next().unwrap_or_default().to_owned();
        return Error::Source { what: format!("`{name}`: {words}"), hint_text };
    }
    // Folders of the guest; the plugin's own is the first.
    Error::Failed { what, said: inner.replace("\"/0/", "\"") }
}

/// A program of the SDK's `tool/`, without its arguments.
fn program(python: &Path, name: &str) -> Command {
    let text = embedded::under("python/tool").find(|(file, _)| *file == name);
    let text = text.map(|(_, bytes)| String::from_utf8_lossy(bytes).into_owned()).unwrap_or_default();
    let mut command = Command::new(python);
    command.args(["-I", "-c"]).arg(text);
    command
}
