//! JavaScript and TypeScript: checked by tsc, bundled by esbuild, made a component with
//! StarlingMonkey by componentize-js. (QuickJS by componentize-qjs 0.4 is
//! smaller, but gives a borrowed resource back too late: every call would fail.)

use super::{Compiled, Prepared, Toolchain};
use crate::build::Step;
use crate::contract;
use crate::error::Error;
use crate::inputs::{self, Inputs};
use crate::manifest::{Import, Project};
use crate::tool::{self, Tool};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

static NODE: Tool = Tool {
    name: "Node.js 20 or later",
    purpose: "runs the tools of JavaScript",
    install: "curl -fsSL https://deb.nodesource.com/setup_22.x | sudo bash - && sudo apt install nodejs",
};
static ESBUILD: Tool =
    Tool { name: "esbuild", purpose: "bundles JavaScript and compiles TypeScript", install: "npm install" };
static TSC: Tool = Tool { name: "tsc", purpose: "checks the types of TypeScript", install: "npm install" };
static COMPONENTIZE: Tool =
    Tool { name: "componentize-js", purpose: "makes components of JavaScript code", install: "npm install" };

/// The plugin's first module, the first of these in its folder.
const ENTRIES: [&str; 3] = ["main.ts", "main.js", "main.mjs"];

pub(super) struct Js;

impl Toolchain for Js {
    fn sdk(&self) -> (&'static str, &'static str) {
        ("js/gavel", "gavel")
    }

    fn prepare<'a>(&self, project: &'a Project, _: &mut dyn FnMut(Step<'_>)) -> Result<Prepared<'a>, Error> {
        let Some(node) = node() else { return Err(Error::MissingTool { tool: &NODE }) };
        if let Some(tool) = missing_packages(&project.folder).first() {
            return Err(Error::MissingTool { tool });
        }
        let name = &project.manifest.name;
        let root = project.folder.canonicalize().map_err(Error::file("open", &project.folder))?;
        let entry = ENTRIES.into_iter().find(|entry| root.join(entry).is_file()).ok_or_else(|| Error::Source {
            what: format!("`{name}` has no main.js or main.ts"),
            hint_text: "a plugin in JavaScript begins there: call `reward(…)` of the package `gavel` in it".into(),
        })?;
        let mut inputs = Inputs::of(project)?;
        inputs.set("the tool Node.js", node);
        packages(&root, Path::new("node_modules"), &mut inputs);
        let known = inputs.clone();
        Ok(Prepared { inputs: Some(inputs), make: Box::new(move || compile(project, &root, entry, &known)) })
    }

    fn missing(&self, folder: &Path) -> Vec<&'static Tool> {
        if node().is_none() { vec![&NODE] } else { missing_packages(folder) }
    }

    fn missing_on_machine(&self) -> Vec<&'static Tool> {
        if node().is_none() { vec![&NODE] } else { Vec::new() }
    }

    fn how_to_export(&self) -> &'static str {
        "export it in main.js with `reward(…)`, `judger(…)` or `taskset(…)` of the package `gavel`"
    }
}

/// What `npm install` in the folder of a project would bring.
fn missing_packages(folder: &Path) -> Vec<&'static Tool> {
    // Both come with the one command.
    [&ESBUILD, &COMPONENTIZE].into_iter().find(|tool| !local(folder, tool).exists()).into_iter().collect()
}

/// The version of Node.js, where it is recent enough: an older one fails in the
/// middle of a build, and says nothing of its version.
fn node() -> Option<String> {
    let recent = "console.log(process.version); process.exit(parseInt(process.versions.node) >= 20 ? 0 : 1)";
    tool::version(Command::new("node").args(["-e", recent]))
}

/// Adds every package below `folder` of `root`, a `node_modules`, with its
/// version. The files of those that are bundled are told by esbuild.
fn packages(root: &Path, folder: &Path, inputs: &mut Inputs) {
    #[derive(Deserialize)]
    struct Package {
        version: Option<String>,
    }
    for entry in fs::read_dir(root.join(folder)).into_iter().flatten().flatten() {
        let path = folder.join(entry.file_name());
        let name = entry.file_name().to_string_lossy().into_owned();
        if name.starts_with('@') {
            // A scope, with packages below it.
            packages(root, &path, inputs);
        } else if !name.starts_with('.')
            && let Ok(about) = fs::read(root.join(&path).join("package.json"))
            && let Ok(Package { version }) = serde_json::from_slice(&about)
        {
            inputs.set(format!("the package {}", path.display()), version.unwrap_or_default());
            packages(root, &path.join("node_modules"), inputs);
        }
    }
}

fn compile(project: &Project, root: &Path, entry: &str, known: &Inputs) -> Result<Compiled, Error> {
    let name = &project.manifest.name;
    let folder = write_entry(project, root, entry)?;
    check_types(name, root, entry)?;
    let (bundle, bundled_from) = (folder.join("bundle.js"), folder.join("bundle.json"));
    let mut esbuild = Command::new(local(root, &ESBUILD));
    esbuild.arg(folder.join("component.js")).args(["--bundle", "--format=esm", "--platform=neutral"]);
    // Names stay: a fault shows them.
    esbuild.args(["--target=es2022", "--main-fields=module,main", "--external:gavel:*", "--log-level=warning"]);
    esbuild.arg(format!("--metafile={}", bundled_from.display()));
    esbuild.arg(format!("--outfile={}", bundle.display())).current_dir(root);
    let bundled = tool::run(&mut esbuild, &ESBUILD, &format!("cannot bundle `{name}`"))?;
    let elsewhere = inputs::elsewhere(root, &modules(&bundled_from)?, known)?;

    let world = contract::write(project)?.canonicalize().map_err(Error::file("open", root))?;
    let output = folder.join("component.wasm");
    let mut componentize = Command::new(local(root, &COMPONENTIZE));
    componentize.arg("--wit").arg(world).args(["--world-name", contract::WORLD]);
    // There is no network.
    componentize.args(["--disable", "http", "--disable", "fetch-event", "--out"]).arg(&output).arg(bundle);
    componentize.current_dir(root);
    let made = tool::run(&mut componentize, &COMPONENTIZE, &format!("cannot build `{name}`"))?;
    let component = fs::read(&output).map_err(Error::file("read", &output))?;
    Ok(Compiled { component, said: made.err, warnings: bundled.err, elsewhere })
}

/// Checks the types of a plugin in TypeScript that has the compiler among its packages and says in `tsconfig.json` how;
/// esbuild removes them unseen.
fn check_types(name: &str, root: &Path, entry: &str) -> Result<(), Error> {
    let tsc = local(root, &TSC);
    if !entry.ends_with(".ts") || !root.join("tsconfig.json").is_file() || !tsc.exists() {
        return Ok(());
    }
    let mut command = Command::new(tsc);
    command.args(["--noEmit", "--pretty", "false", "--project", "."]).current_dir(root);
    tool::run(&mut command, &TSC, &format!("the types of `{name}` do not fit")).map(drop)
}

/// The files of a bundle, by their paths from the project's folder, as
/// esbuild's metafile has them. What this crate wrote is not among them.
fn modules(metafile: &Path) -> Result<Vec<PathBuf>, Error> {
    #[derive(Deserialize)]
    struct Metafile {
        inputs: BTreeMap<PathBuf, serde::de::IgnoredAny>,
    }
    let text = fs::read(metafile).map_err(Error::file("read", metafile))?;
    let bundled: Metafile =
        serde_json::from_slice(&text).map_err(|error| Error::file("read", metafile)(error.into()))?;
    Ok(bundled.inputs.into_keys().filter(|path| !path.starts_with("build")).collect())
}

/// Where npm puts a program of the project.
fn local(root: &Path, tool: &Tool) -> PathBuf {
    root.join("node_modules/.bin").join(tool.name)
}

/// Writes the module that the component is made of: the plugin's own, loaded
/// into the SDK's exports.
fn write_entry(project: &Project, root: &Path, entry: &str) -> Result<PathBuf, Error> {
    let folder = root.join("build/js");
    fs::create_dir_all(&folder).map_err(Error::file("make", &folder))?;
    let exports: Vec<_> = project.manifest.exports.iter().map(|export| export.as_str()).collect();
    let (import, chat) = match project.manifest.imports.contains(&Import::Chat) {
        true => (format!("import * as chat from {:?};\n", contract::interface("chat")), ", chat"),
        false => (String::new(), ""),
    };
    let text = format!(
        "import \"../../{entry}\";\nimport {{ load }} from \"gavel/component\";\n{import}\n\
         export const {{ lifecycle, {} }} = load({:?}, {exports:?}{chat});\n",
        exports.join(", "),
        project.manifest.name,
    );
    let path = folder.join("component.js");
    fs::write(&path, text).map_err(Error::file("write", &path))?;
    Ok(folder)
}
