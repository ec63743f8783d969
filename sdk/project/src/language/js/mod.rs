//! JavaScript and TypeScript: checked by tsc, bundled by esbuild, made into a component with StarlingMonkey by
//! componentize-js. (QuickJS by componentize-qjs 0.4 is smaller, but returns a borrowed resource too late, so that
//! every call would fail.)

mod source_map;

use self::source_map::SourceMap;
use super::{Compiled, Prepared, Toolchain};
use crate::build::Step;
use crate::contract::{self, Contract};
use crate::error::Error;
use crate::inputs::{self, Inputs};
use crate::manifest::{Import, Project};
use crate::tool::{self, Tool};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
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
        let Some(node) = node() else { return Err(Error::missing(&NODE)) };
        if let Some(tool) = missing_packages(&project.folder).first() {
            return Err(Error::missing(tool));
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
        "export it in main.js with `reward(…)`, `judger(…)`, `taskset(…)`, `tool(…)`, `agent(…)`, `advantage(…)` or `sampler(…)` of the package `gavel`"
    }
}

/// The packages that `npm install` would install in the folder of a project.
fn missing_packages(folder: &Path) -> Vec<&'static Tool> {
    // One command installs both.
    [&ESBUILD, &COMPONENTIZE].into_iter().find(|tool| !local(folder, tool).exists()).into_iter().collect()
}

/// The version of Node.js, if it is recent enough. An older one fails in the
/// middle of a build without naming its version.
fn node() -> Option<String> {
    let recent = "console.log(process.version); process.exit(parseInt(process.versions.node) >= 20 ? 0 : 1)";
    tool::version(Command::new("node").args(["-e", recent]))
}

/// Adds every package below `folder` of `root`, a `node_modules`, with its
/// version. esbuild reports the files of bundled packages.
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
    let (bundle, bundled_from) = (folder.join("bundle.js"), folder.join("bundle.json"));
    let mut esbuild = Command::new(local(root, &ESBUILD));
    esbuild.arg(folder.join("component.js")).args(["--bundle", "--format=esm", "--platform=neutral"]);
    // Names are kept, as a fault shows them.
    esbuild.args(["--target=es2022", "--main-fields=module,main", "--external:gavel:*", "--log-level=warning"]);
    esbuild.arg("--sourcemap=external").arg(format!("--metafile={}", bundled_from.display()));
    esbuild.arg(format!("--outfile={}", bundle.display())).current_dir(root);
    let bundled = tool::run(&mut esbuild, &ESBUILD, &format!("cannot bundle `{name}`"))
        .map_err(|error| refuse_modules_of_node(name, error))?;
    check_types(name, root, entry)?;
    let map = SourceMap::read(&bundle.with_extension("js.map"))?;
    append_source_map(&bundle, &map)?;
    let elsewhere = inputs::elsewhere(root, &modules(&bundled_from)?, known)?;

    let world = contract::write_without_http(project)?.canonicalize().map_err(Error::file("open", root))?;
    let output = folder.join("component.wasm");
    let mut componentize = Command::new(local(root, &COMPONENTIZE));
    componentize.arg("--wit").arg(world).args(["--world-name", contract::WORLD]);
    // A plugin answers no requests, and makes some only where its manifest imports `http`.
    componentize.args(["--disable", "fetch-event"]);
    if !project.manifest.imports.contains(&Import::Http) {
        componentize.args(["--disable", "http"]);
    }
    componentize.arg("--out").arg(&output).arg(bundle);
    componentize.current_dir(root);
    let made = tool::run(&mut componentize, &COMPONENTIZE, &format!("cannot build `{name}`"))
        .map_err(|error| in_sources(&map, error))?;
    let component = fs::read(&output).map_err(Error::file("read", &output))?;
    Ok(Compiled { component, said: made.err, warnings: bundled.err, elsewhere })
}

/// The error for modules of Node.js, where esbuild failed because of them: its own advice is to bundle for Node.js.
fn refuse_modules_of_node(name: &str, error: Error) -> Error {
    let Error::Failed { said, .. } = &error else { return error };
    let mut lines = Vec::new();
    for problem in said.split("[ERROR] ").filter(|problem| problem.contains("--platform=node")) {
        let module = problem.split('"').nth(1).unwrap_or_default();
        let place = problem.lines().skip(1).find(|line| !line.trim().is_empty()).unwrap_or_default();
        lines.push(format!("\n  {} {module:?}", place.trim()));
    }
    if lines.is_empty() {
        return error;
    }
    Error::Source {
        what: format!("`{name}` imports modules of Node.js, and a component runs only JavaScript:{}", lines.concat()),
        hint_text: "take them out, or import packages that do without them; a plugin gets its data in `sample`, \
                    `reference` and `params`, and asks servers with `fetch`"
            .into(),
    }
}

/// The error of a tool, with places in the author's files. A build runs a module once, so the error may come from it.
fn in_sources(map: &SourceMap, error: Error) -> Error {
    match error {
        Error::Failed { what, said } => Error::Failed { what, said: map.translate(&said) },
        other => other,
    }
}

/// Appends the bundle's source map to it, from which the SDK names the places of exceptions.
fn append_source_map(bundle: &Path, map: &SourceMap) -> Result<(), Error> {
    let append = || {
        let mut file = fs::OpenOptions::new().append(true).open(bundle)?;
        writeln!(file, "globalThis.gavelSourceMap = {};", serde_json::to_string(map)?)
    };
    append().map_err(Error::file("append to", bundle))
}

/// Checks the types of a plugin in TypeScript that has the compiler among its packages and a `tsconfig.json`. esbuild
/// removes types without checking them.
fn check_types(name: &str, root: &Path, entry: &str) -> Result<(), Error> {
    let tsc = local(root, &TSC);
    if !entry.ends_with(".ts") || !root.join("tsconfig.json").is_file() || !tsc.exists() {
        return Ok(());
    }
    let mut command = Command::new(tsc);
    command.args(["--noEmit", "--pretty", "false", "--project", "."]).current_dir(root);
    tool::run(&mut command, &TSC, &format!("`{name}` has type errors")).map(drop)
}

/// The files of a bundle from esbuild's metafile, by their paths from the
/// project's folder. Files that this crate wrote are left out.
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

/// The path of a program that npm installed in the project.
fn local(root: &Path, tool: &Tool) -> PathBuf {
    root.join("node_modules/.bin").join(tool.name)
}

/// The identifier of an interface: `rewardModel` for `reward-model`.
fn camel_case(name: &str) -> String {
    let (first, rest) = name.split_once('-').unwrap_or((name, ""));
    let upper = |word: &str| word[..1.min(word.len())].to_uppercase() + word.get(1..).unwrap_or_default();
    first.to_owned() + &rest.split('-').map(upper).collect::<String>()
}

/// Writes the entry module of the component, which loads the plugin's own
/// module into the SDK's exports.
fn write_entry(project: &Project, root: &Path, entry: &str) -> Result<PathBuf, Error> {
    let folder = root.join("build/js");
    fs::create_dir_all(&folder).map_err(Error::file("make", &folder))?;
    let exports: Vec<_> = project.manifest.exports.iter().map(|export| export.as_str()).collect();
    let imports = &project.manifest.imports;
    let of_contract = imports.iter().filter(|import| import.of_contract()).map(|import| import.as_str());
    let of_contract = of_contract.chain(contract::of_agent(&project.manifest).iter().copied());
    let http = imports.contains(&Import::Http).then(|| "http: true".to_owned());
    let host: Vec<_> = of_contract.clone().map(camel_case).chain(http).collect();
    let of = Contract::of(project)?;
    let import = |name: &str| format!("import * as {} from {:?};\n", camel_case(name), of.interface(name));
    let text = format!(
        "import \"../../{entry}\";\nimport {{ load }} from \"gavel/component\";\n{}\n\
         export const {{ lifecycle, {} }} = load({:?}, {exports:?}, {{ {} }});\n",
        of_contract.map(import).collect::<String>(),
        exports.join(", "),
        project.manifest.name,
        host.join(", "),
    );
    let path = folder.join("component.js");
    fs::write(&path, text).map_err(Error::file("write", &path))?;
    Ok(folder)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modules_of_node_are_refused_without_the_advice_to_bundle_for_node() {
        let of_node = |name: &str, place: &str| {
            format!(
                "✘ [ERROR] Could not resolve \"{name}\"\n\n    {place}:\n      1 │ import x from \"{name}\";\n\n  The package \"{name}\" wasn't found on the file system but is built into node. Are you trying to bundle for node? You can use \"--platform=node\" to do that, which will remove this error.\n\n"
            )
        };
        let other = "✘ [ERROR] Could not resolve \"./none.js\"\n\n    main.js:3:14:\n\n";
        let failed = |said: String| Error::Failed { what: "cannot bundle".into(), said };
        let said = of_node("node:fs", "main.js:1:15") + other + &of_node("path", "main.js:2:17");
        let expected = "`mine` imports modules of Node.js, and a component runs only JavaScript:\n  main.js:1:15: \"node:fs\"\n  main.js:2:17: \"path\"\nhint: take them out";
        let error = refuse_modules_of_node("mine", failed(said)).to_string();
        assert!(error.starts_with(expected), "{error}");
        assert!(matches!(refuse_modules_of_node("mine", failed(other.into())), Error::Failed { .. }));
    }
}
