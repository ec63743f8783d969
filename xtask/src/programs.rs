//! Builds the programs that plugins run as children: each a folder of
//! `programs/` with a world `program` in `wit/` and Python code in `main.py`.

use crate::command::Call;
use crate::failure::Result;
use crate::guests::put;
use crate::setup::cannot;
use crate::ui;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Builds every program to `<folder>/<name>.wasm` and gives their names. One
/// whose files are those of its last build is not built again: that takes
/// about 15 seconds.
pub fn build(root: &Path, environment: &Path, folder: &Path) -> Result<BTreeSet<String>> {
    let sources = root.join("programs");
    let names = names(&sources)?;
    for name in &names {
        ui::step(&format!("program {name}"), || {
            let source = sources.join(name);
            let built = root.join("target/programs").join(name);
            let inputs = format!("{}\n{}", environment.display(), inputs(&source)?);
            let component = folder.join(format!("{name}.wasm"));
            if component.exists() && fs::read_to_string(built.join("inputs")).is_ok_and(|last| last == inputs) {
                return Ok(((), "unchanged".into()));
            }
            fs::create_dir_all(&built).map_err(|error| cannot("make", &built, &error))?;
            let made = componentize(environment, &source, &built)?;
            put(folder, name, &fs::read(&made).map_err(|error| cannot("read", &made, &error))?)?;
            let stamp = built.join("inputs");
            fs::write(&stamp, inputs).map_err(|error| cannot("write", &stamp, &error))?;
            Ok(((), format!("built, {}", component.strip_prefix(root).unwrap_or(&component).display())))
        })?;
    }
    Ok(names)
}

fn componentize(environment: &Path, source: &Path, built: &Path) -> Result<PathBuf> {
    let made = built.join("component.wasm");
    let arguments = ["-q", "-d", "wit", "-w", "program", "componentize", "main", "-p", ".", "-o"];
    Call::new(environment.join("bin/componentize-py"), arguments.map(Path::new).into_iter().chain([made.as_path()]))
        .within(source)
        // Or it would add the packages of whatever Python is installed.
        .env("VIRTUAL_ENV", built.join("no-packages"))
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .read(&format!("cannot build the program {}", source.display()))
        .map_err(|failure| failure.hint("the traceback above says what is wrong in main.py"))?;
    Ok(made)
}

/// The folders of `sources` with Python code in `main.py`.
pub fn names(sources: &Path) -> Result<BTreeSet<String>> {
    let entries = fs::read_dir(sources).map_err(|error| cannot("read", sources, &error))?;
    let folders = entries.flatten().filter(|entry| entry.path().join("main.py").is_file());
    Ok(folders.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect())
}

/// Every file of a folder that decides what is built of it, with its name.
pub fn inputs(source: &Path) -> Result<String> {
    let mut files = Vec::new();
    gather(source, &mut files)?;
    files.sort();
    let mut text = String::new();
    for path in files {
        let content = fs::read_to_string(&path).map_err(|error| cannot("read", &path, &error))?;
        text += &format!("{}\n{content}\n", path.strip_prefix(source).unwrap_or(&path).display());
    }
    Ok(text)
}

fn gather(folder: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
    let entries = fs::read_dir(folder).map_err(|error| cannot("read", folder, &error))?;
    for path in entries.flatten().map(|entry| entry.path()) {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if path.is_dir() {
            // Not what tools make, nor an environment.
            if name != "build" && name != "__pycache__" && !name.starts_with('.') {
                gather(&path, files)?;
            }
        } else if path.extension().is_some_and(|kind| ["py", "wit", "toml", "txt"].iter().any(|one| kind == *one)) {
            files.push(path);
        }
    }
    Ok(())
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
        let before = inputs(&folder).unwrap();
        assert_eq!(before, "main.py\nmain.py\nwit/deps/run.wit\nwit/deps/run.wit\nwit/world.wit\nwit/world.wit\n");
        fs::write(folder.join("README.md"), "other").unwrap();
        assert_eq!(inputs(&folder).unwrap(), before);
        fs::write(folder.join("main.py"), "other").unwrap();
        assert_ne!(inputs(&folder).unwrap(), before);
    }
}
