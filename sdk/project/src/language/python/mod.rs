//! Python: componentize-py, with pure-Python packages of `requirements.txt`.

mod packages;
pub(crate) mod scan;

use super::{Compiled, Prepared, Toolchain};
use crate::build::Step;
use crate::contract;
use crate::embedded;
use crate::error::Error;
use crate::inputs::{self, Inputs};
use crate::manifest::Project;
use crate::tool::{self, Tool};
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
        let name = &project.manifest.name;
        let root = project.folder.canonicalize().map_err(Error::file("open", &project.folder))?;
        let python = recent(&root).ok_or(Error::MissingTool { tool: &PYTHON })?;
        let (command, version) = componentize(&root).ok_or(Error::MissingTool { tool: &COMPONENTIZE })?;
        let entry = root.join(format!("{ENTRY}.py"));
        if !entry.is_file() {
            return Err(Error::Source {
                what: format!("`{name}` has no {ENTRY}.py"),
                hint_text: format!("a plugin in Python begins there: write its functions into {}", entry.display()),
            });
        }
        let mut said = String::new();
        let packages = packages::install(project, &root, &mut said, told)?;
        let mut inputs = Inputs::of(project)?;
        inputs.set("the tool Python", python);
        inputs.set("the tool componentize-py", version);
        if let Some(folder) = &packages {
            packages::list(folder, &mut inputs)?;
        }
        let known = inputs.clone();
        let make = move || compile(project, &root, command, packages, said, &known);
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
        "export it in main.py with `@gavel.reward`, `@gavel.judger` or `@gavel.taskset` over the function"
    }
}

/// Makes the component with `command`, componentize-py.
fn compile(
    project: &Project,
    root: &Path,
    mut command: Command,
    packages: Option<PathBuf>,
    mut said: String,
    known: &Inputs,
) -> Result<Compiled, Error> {
    let name = &project.manifest.name;
    let folders: Vec<PathBuf> = [root.join("vendor")].into_iter().chain(packages).collect();
    let found = scan::scan(&python(root), root, ENTRY, &folders)?;
    found.refuse(name)?;
    let warnings = found.warnings.iter().map(|place| format!("warning: {place}\n  {}\n", place.hint)).collect();
    let elsewhere = inputs::elsewhere(root, &found.local, known)?;

    let app = write_app(project, root, &found.preload)?;
    let world = contract::write(project)?.canonicalize().map_err(Error::file("open", root))?;
    // Not `build/NAME.wasm`: that one changes only when the build succeeds.
    let output = app.join("component.wasm");
    command.arg("-q").arg("-d").arg(world).args(["-w", contract::WORLD, "--world-module", WORLD_MODULE]);
    command.args(["componentize", APP, "-o"]).arg(&output);
    // The plugin's own folder first: the SDK takes the first one's files for the plugin's.
    for folder in [root, &app].into_iter().chain(folders.iter().map(PathBuf::as_path)) {
        command.arg("-p").arg(folder);
    }
    // Or it would add the packages of whatever Python is installed.
    command.env("VIRTUAL_ENV", app.join("no-packages"));
    let made = tool::run(command.current_dir(root), &COMPONENTIZE, &format!("cannot build `{name}`"));
    let made = made.map_err(|error| own_words(error, name))?;
    said += &made.err;
    let component = fs::read(&output).map_err(Error::file("read", &output))?;
    Ok(Compiled { component, said, warnings, elsewhere })
}

/// The module that the component is made of, in `build/python`.
pub(crate) const APP: &str = "gavel_app";

/// The module that componentize-py makes of the contract.
pub(crate) const WORLD_MODULE: &str = "gavel_world";

/// Writes that module: it loads the plugin into the SDK's exports.
fn write_app(project: &Project, root: &Path, preload: &[String]) -> Result<PathBuf, Error> {
    let folder = root.join("build/python");
    // A venv without a package.
    let none = folder.join("no-packages/lib/site-packages");
    fs::create_dir_all(&none).map_err(Error::file("make", &none))?;
    let exports: Vec<_> = project.manifest.exports.iter().map(|export| export.as_str()).collect();
    let text = format!(
        "import sys\n\n# The folders are those of the author.\nsys.dont_write_bytecode = True\n\n\
         from gavel.component import Judger, Lifecycle, Reward, Taskset, load\n\n\
         load({:?}, {ENTRY:?}, {exports:?}, {preload:?})\n",
        project.manifest.name
    );
    let path = folder.join(format!("{APP}.py"));
    fs::write(&path, text).map_err(Error::file("write", &path))?;
    Ok(folder)
}

/// What the user needs of a failure: what the SDK says where a function is
/// missing, else Python's traceback without that of componentize-py itself.
fn own_words(error: Error, name: &str) -> Error {
    let Error::Failed { what, said } = error else { return error };
    let inner = said.split_once("AssertionError: ").map_or(&*said, |(_, inner)| inner);
    let inner = inner.split_once("\nCaused by:").map_or(inner, |(inner, _)| inner).trim();
    // Of a SystemExit, Python shows the words alone.
    if let Some((words, hint)) = inner.split_once("\nhint: ").filter(|_| !inner.contains("Traceback")) {
        let hint_text = hint.lines().next().unwrap_or_default().to_owned();
        return Error::Source { what: format!("`{name}`: {words}"), hint_text };
    }
    // The folders of the guest: the plugin's own is the first.
    Error::Failed { what, said: inner.replace("\"/0/", "\"") }
}

/// The Python of the project's environment, else the one on the path.
pub(crate) fn python(root: &Path) -> PathBuf {
    in_environment(root, "python3").unwrap_or_else(|| "python3".into())
}

/// The version of that Python, where it can read what plugins are written in.
fn recent(root: &Path) -> Option<String> {
    let version = "import sys; assert sys.version_info >= (3, 10); print(sys.version)";
    tool::version(Command::new(python(root)).args(["-c", version]))
}

/// componentize-py, from the same places, or as a module of that Python, with
/// its version; nothing where it does not run.
fn componentize(root: &Path) -> Option<(Command, String)> {
    let program = in_environment(root, COMPONENTIZE.name).unwrap_or_else(|| COMPONENTIZE.name.into());
    let program = || Command::new(&program);
    let module = || {
        let mut command = Command::new(python(root));
        command.args(["-m", "componentize_py"]);
        command
    };
    let version = |mut command: Command| tool::version(command.arg("--version"));
    let found = |command: Command, version| Some((command, version?));
    found(program(), version(program())).or_else(|| found(module(), version(module())))
}

/// A program in the project's `.venv`, else in the active environment.
fn in_environment(root: &Path, program: &str) -> Option<PathBuf> {
    let active = std::env::var_os("VIRTUAL_ENV").map(PathBuf::from);
    let folders = [Some(root.join(".venv")), active];
    // Absolute: commands run in other folders.
    folders.into_iter().flatten().map(|folder| folder.join("bin").join(program)).find_map(|path| {
        let path = std::path::absolute(path).ok()?;
        path.is_file().then_some(path)
    })
}

/// A program of the SDK's `tool/`, to be run with its arguments.
fn program(python: &Path, name: &str) -> Command {
    let text = embedded::under("python/tool").find(|(file, _)| *file == name);
    let text = text.map(|(_, bytes)| String::from_utf8_lossy(bytes).into_owned()).unwrap_or_default();
    let mut command = Command::new(python);
    command.args(["-I", "-c"]).arg(text);
    command
}
