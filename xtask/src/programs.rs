//! Builds the programs that plugins run as children. Each is a folder of
//! `programs/` with a world `program` in `wit/` and Python code in `main.py`.

use crate::command::Call;
use crate::failure::{Failure, Result};
use crate::guests::put;
use crate::setup::cannot;
use crate::ui;
use gavel_project::{Inputs, Stamp};
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// The arguments of componentize-py, before the file that it writes.
const ARGUMENTS: [&str; 10] = ["-q", "-d", "wit", "-w", "program", "componentize", "main", "-p", ".", "-o"];

/// Builds every program to `<folder>/<name>.wasm` and returns their names. A
/// program whose inputs have not changed is not built again, as a build takes
/// about 15 seconds.
pub fn build(root: &Path, environment: &Path, folder: &Path) -> Result<BTreeSet<String>> {
    let sources = root.join("programs");
    let names = names(&sources)?;
    let tool = environment.join("bin/componentize-py");
    let version = Call::new(&tool, ["--version"]).read("cannot run componentize-py")?;
    for name in &names {
        ui::step(&format!("program {name}"), || {
            let source = sources.join(name);
            let built = root.join("target/programs").join(name);
            fs::create_dir_all(&built).map_err(|error| cannot("make", &built, &error))?;
            let made = built.join("component.wasm");
            let inputs = inputs(&source, &version)?;
            let why = match Stamp::check(&made, &inputs, &source) {
                Ok(_) => "unchanged".to_owned(),
                Err(reason) => {
                    componentize(&tool, &source, &made)?;
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
    Ok(names)
}

/// The inputs of a program in `source`, built by this version of the tool.
fn inputs(source: &Path, version: &str) -> Result<Inputs> {
    let mut inputs = Inputs::default();
    inputs.set("the tool componentize-py", version);
    inputs.set("what it is told", ARGUMENTS.join(" "));
    inputs.files(source).map_err(|error| Failure::new(error.to_string()))?;
    Ok(inputs)
}

fn componentize(tool: &Path, source: &Path, made: &Path) -> Result<()> {
    Call::new(tool, ARGUMENTS.map(Path::new).into_iter().chain([made]))
        .within(source)
        // Otherwise it would add the packages of any installed Python.
        .env("VIRTUAL_ENV", made.with_file_name("no-packages"))
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .read(&format!("cannot build the program {}", source.display()))
        .map_err(|failure| failure.hint("the traceback above shows the error in main.py"))?;
    Ok(())
}

/// The folders of `sources` with Python code in `main.py`.
pub fn names(sources: &Path) -> Result<BTreeSet<String>> {
    let entries = fs::read_dir(sources).map_err(|error| cannot("read", sources, &error))?;
    let folders = entries.flatten().filter(|entry| entry.path().join("main.py").is_file());
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
        assert_eq!(names(root.path()).unwrap(), BTreeSet::from(["python".to_owned()]));
        let before = inputs(&folder, "1").unwrap();
        fs::write(folder.join("README.md"), "other").unwrap();
        assert_eq!(inputs(&folder, "1").unwrap(), before);
        fs::write(folder.join("main.py"), "other").unwrap();
        assert_ne!(inputs(&folder, "1").unwrap(), before);
    }
}
