//! Builds the programs that plugins run as children. Each is a folder of
//! `programs/` with a world `program` in `wit/`, and code in `main.py` or
//! `main.js`. `c_program.rs` builds the one that runs C.

use crate::command::Call;
use crate::failure::{Failure, Result};
use crate::guests::put;
use crate::setup::cannot;
use crate::{c_program, node, ui};
use gavel_project::{Inputs, Stamp};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// What makes a component from the code of a program.
struct Tool {
    name: &'static str,
    path: PathBuf,
    version: String,
    /// Its arguments, before the file that it writes.
    before: &'static [&'static str],
    /// Its arguments after that.
    after: &'static [&'static str],
}

impl Tool {
    /// componentize-py of the virtual environment.
    fn python(environment: &Path) -> Result<Self> {
        let path = environment.join("bin/componentize-py");
        let version = Call::new(&path, ["--version"]).read("cannot run componentize-py")?;
        let before = &["-q", "-d", "wit", "-w", "program", "componentize", "main", "-p", ".", "-o"];
        Ok(Self { name: "componentize-py", path, version, before, after: &[] })
    }

    /// componentize-js, without what only a server or a client needs.
    fn javascript() -> Result<Self> {
        // First, as componentize-js may be there without it.
        let running = node::version()?;
        let path = node::componentize_js()?.join("node_modules/.bin/componentize-js");
        let version = Call::new(&path, ["--version"]).read("cannot run componentize-js")?;
        let version = format!("{version} with Node.js {running}");
        let before =
            &["--wit", "wit", "--world-name", "program", "--disable", "fetch-event", "--disable", "http", "--out"];
        Ok(Self { name: "componentize-js", path, version, before, after: &["main.js"] })
    }

    /// The inputs of the program in `source`.
    fn inputs(&self, source: &Path) -> Result<Inputs> {
        let mut inputs = Inputs::default();
        inputs.set(format!("the tool {}", self.name), &self.version);
        inputs.set("what it is told", [self.before, self.after].concat().join(" "));
        inputs.files(source).map_err(|error| Failure::new(error.to_string()))?;
        Ok(inputs)
    }

    /// Makes the component `made` of the program in `source`.
    fn make(&self, source: &Path, made: &Path) -> Result<()> {
        let after = self.after.iter().map(Path::new);
        Call::new(&self.path, self.before.iter().map(Path::new).chain([made]).chain(after))
            .within(source)
            // Otherwise it would add the packages of any installed Python.
            .env("VIRTUAL_ENV", made.with_file_name("no-packages"))
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .read(&format!("cannot build the program {}", source.display()))
            .map_err(|failure| failure.hint("the message above shows the error in the program's code"))?;
        Ok(())
    }
}

/// Builds every program to `<folder>/<name>.wasm` and returns their names. A
/// program whose inputs have not changed is not built again, as a build takes
/// about 15 seconds.
pub fn build(root: &Path, environment: &Path, folder: &Path) -> Result<BTreeSet<String>> {
    let sources = root.join("programs");
    let python = with_main(&sources, "main.py")?;
    let mut names = python.clone();
    build_with(&Tool::python(environment)?, root, &python, folder)?;
    let javascript = with_main(&sources, "main.js")?;
    build_with(&Tool::javascript()?, root, &javascript, folder)?;
    names.extend(javascript);
    c_program::build(root, folder)?;
    names.insert(c_program::NAME.to_owned());
    Ok(names)
}

fn build_with(tool: &Tool, root: &Path, names: &BTreeSet<String>, folder: &Path) -> Result<()> {
    for name in names {
        ui::step(&format!("program {name}"), || {
            let source = root.join("programs").join(name);
            let built = root.join("target/programs").join(name);
            fs::create_dir_all(&built).map_err(|error| cannot("make", &built, &error))?;
            let made = built.join("component.wasm");
            let inputs = tool.inputs(&source)?;
            let why = match Stamp::check(&made, &inputs, &source) {
                Ok(_) => "unchanged".to_owned(),
                Err(reason) => {
                    tool.make(&source, &made)?;
                    let component = fs::read(&made).map_err(|error| cannot("read", &made, &error))?;
                    Stamp::new(&component, inputs).write(&made).map_err(|error| Failure::new(error.to_string()))?;
                    format!("built ({reason})")
                }
            };
            put(folder, name, &fs::read(&made).map_err(|error| cannot("read", &made, &error))?)?;
            let component = folder.join(format!("{name}.wasm"));
            Ok(((), format!("{why}, {}", component.strip_prefix(root).unwrap_or(&component).display())))
        })?;
    }
    Ok(())
}

/// The folders of `sources` with code in the file `main`, such as `main.py`.
pub fn with_main(sources: &Path, main: &str) -> Result<BTreeSet<String>> {
    let entries = fs::read_dir(sources).map_err(|error| cannot("read", sources, &error))?;
    let folders = entries.flatten().filter(|entry| entry.path().join(main).is_file());
    Ok(folders.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_its_code_and_its_world() {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("python");
        fs::create_dir_all(folder.join("wit/deps")).unwrap();
        fs::create_dir_all(folder.join("__pycache__")).unwrap();
        for file in ["main.py", "wit/world.wit", "wit/deps/run.wit", "README.md", "__pycache__/main.py"] {
            fs::write(folder.join(file), file).unwrap();
        }
        assert_eq!(with_main(root.path(), "main.py").unwrap(), BTreeSet::from(["python".to_owned()]));
        assert!(with_main(root.path(), "main.js").unwrap().is_empty());
        let tool = |version: &str| Tool {
            name: "tool",
            path: PathBuf::new(),
            version: version.to_owned(),
            before: &["-o"],
            after: &["main.py"],
        };
        let before = tool("1").inputs(&folder).unwrap();
        fs::write(folder.join("README.md"), "other").unwrap();
        assert_eq!(tool("1").inputs(&folder).unwrap(), before);
        assert_ne!(tool("2").inputs(&folder).unwrap(), before);
        fs::write(folder.join("main.py"), "other").unwrap();
        assert_ne!(tool("1").inputs(&folder).unwrap(), before);
    }
}
