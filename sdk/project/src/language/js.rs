//! JavaScript and TypeScript: bundled by esbuild, made a component with
//! StarlingMonkey by componentize-js. (QuickJS by componentize-qjs 0.4 is
//! smaller, but gives a borrowed resource back too late: every call would fail.)

use super::{Compiled, Toolchain};
use crate::contract;
use crate::error::Error;
use crate::manifest::{Import, Project};
use crate::tool::{self, Tool};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

static NODE: Tool = Tool { name: "node", purpose: "runs the tools of JavaScript", install: "apt install nodejs npm" };
static ESBUILD: Tool =
    Tool { name: "esbuild", purpose: "bundles JavaScript and compiles TypeScript", install: "npm install" };
static COMPONENTIZE: Tool =
    Tool { name: "componentize-js", purpose: "makes components of JavaScript code", install: "npm install" };

/// The plugin's first module, the first of these in its folder.
const ENTRIES: [&str; 3] = ["main.ts", "main.js", "main.mjs"];

pub(super) struct Js;

impl Toolchain for Js {
    fn sdk(&self) -> (&'static str, &'static str) {
        ("js/gavel", "gavel")
    }

    fn build(&self, project: &Project) -> Result<Compiled, Error> {
        if let Some(tool) = self.missing(project).first() {
            return Err(Error::MissingTool { tool });
        }
        let name = &project.manifest.name;
        let root = project.folder.canonicalize().map_err(Error::file("open", &project.folder))?;
        let entry = ENTRIES.into_iter().find(|entry| root.join(entry).is_file()).ok_or_else(|| Error::Source {
            what: format!("`{name}` has no main.js or main.ts"),
            hint_text: "a plugin in JavaScript begins there: call `reward(…)` of the package `gavel` in it".into(),
        })?;
        let folder = write_entry(project, &root, entry)?;
        let bundle = folder.join("bundle.js");
        let mut esbuild = Command::new(local(&root, &ESBUILD));
        esbuild.arg(folder.join("component.js")).args(["--bundle", "--format=esm", "--platform=neutral"]);
        // Names stay: a fault shows them.
        esbuild.args(["--target=es2022", "--main-fields=module,main", "--external:gavel:*", "--log-level=warning"]);
        esbuild.arg(format!("--outfile={}", bundle.display())).current_dir(&root);
        let bundled = tool::run(&mut esbuild, &ESBUILD, &format!("cannot bundle `{name}`"))?;

        let world = contract::write(project)?.canonicalize().map_err(Error::file("open", &root))?;
        let output = folder.join("component.wasm");
        let mut componentize = Command::new(local(&root, &COMPONENTIZE));
        componentize.arg("--wit").arg(world).args(["--world-name", contract::WORLD]);
        // There is no network.
        componentize.args(["--disable", "http", "--disable", "fetch-event", "--out"]).arg(&output).arg(bundle);
        componentize.current_dir(&root);
        let made = tool::run(&mut componentize, &COMPONENTIZE, &format!("cannot build `{name}`"))?;
        let component = fs::read(&output).map_err(Error::file("read", &output))?;
        Ok(Compiled { component, said: made.err, warnings: bundled.err })
    }

    fn missing(&self, project: &Project) -> Vec<&'static Tool> {
        if !tool::works(Command::new("node").arg("--version")) {
            return vec![&NODE];
        }
        // Both come with the one command.
        [&ESBUILD, &COMPONENTIZE].into_iter().find(|tool| !local(&project.folder, tool).exists()).into_iter().collect()
    }

    fn how_to_export(&self) -> &'static str {
        "export it in main.js with `reward(…)`, `judger(…)` or `taskset(…)` of the package `gavel`"
    }
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
