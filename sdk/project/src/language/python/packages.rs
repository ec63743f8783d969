//! The packages of `requirements.txt`, installed only for the component.

use super::{program, python};
use crate::build::Step;
use crate::error::Error;
use crate::inputs::Inputs;
use crate::manifest::{MANIFEST, Project};
use crate::tool::{self, Tool};
use serde::Deserialize;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const REQUIREMENTS: &str = "requirements.txt";

/// The Python in a component of componentize-py 0.25.
const PYTHON_VERSION: &str = "3.14";

static PIP: Tool =
    Tool { name: "pip", purpose: "installs Python packages", install: "apt install python3-pip python3-venv" };

/// Installs the packages of `requirements.txt` to `build/packages` and returns
/// that folder; `None` without packages. Installed packages are kept.
pub(super) fn install(
    project: &Project,
    root: &Path,
    said: &mut String,
    told: &mut dyn FnMut(Step<'_>),
) -> Result<Option<PathBuf>, Error> {
    let path = root.join(REQUIREMENTS);
    let wanted = match fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(Error::file("read", &path)(error)),
    };
    let lines: Vec<_> =
        wanted.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')).collect();
    if lines.is_empty() {
        return Ok(None);
    }
    let folder = root.join("build/packages");
    let mark = root.join("build/packages.txt");
    // The content of other files may have changed.
    let plain = lines.iter().all(|line| !line.starts_with(['-', '.', '/']) && !line.contains("file:"));
    let options: &[&str] = if project.manifest.python.no_deps { &["--no-deps"] } else { &[] };
    let wanted = format!("{wanted}{}\n", options.concat());
    if plain && folder.is_dir() && fs::read_to_string(&mark).is_ok_and(|done| done == wanted) {
        return Ok(Some(folder));
    }
    let python = python(root);
    if !tool::works(Command::new(&python).args(["-m", "pip", "--version"])) {
        return Err(Error::missing(&PIP));
    }
    told(Step::Installing(REQUIREMENTS));
    // The mark describes the folder, which is about to change.
    if mark.exists() {
        fs::remove_file(&mark).map_err(Error::file("remove", &mark))?;
    }
    let pip = |arguments: &[&str]| {
        if folder.exists() {
            fs::remove_dir_all(&folder).map_err(Error::file("remove", &folder))?;
        }
        let mut command = Command::new(&python);
        command.args(["-m", "pip", "install", "--disable-pip-version-check", "--no-input", "--no-compile", "--target"]);
        command.arg(&folder).args(["-r", REQUIREMENTS]).args(options).args(arguments).current_dir(root);
        tool::run(&mut command, &PIP, &format!("cannot install {REQUIREMENTS} of `{}`", project.manifest.name))
    };
    // Prefers the pure wheel of a package that also has compiled ones. Without a pure wheel, takes what pip finds: a
    // package without wheels is often pure too.
    let pure = ["--only-binary=:all:", "--platform", "any", "--implementation", "py", "--abi", "none"];
    let installed = match pip(&[&pure[..], &["--python-version", PYTHON_VERSION]].concat()) {
        Ok(installed) => installed,
        Err(Error::Failed { .. }) => pip(&[])?,
        Err(error) => return Err(error),
    };
    *said += &installed.out;
    refuse_compiled(project, &python, &folder)?;
    fs::write(&mark, wanted).map_err(Error::file("write", &mark))?;
    Ok(Some(folder))
}

/// Adds the packages in `folder`, by the names under which they are imported.
pub(super) fn list(folder: &Path, inputs: &mut Inputs) -> Result<(), Error> {
    for entry in fs::read_dir(folder).map_err(Error::file("read", folder))?.flatten() {
        let name = entry.file_name();
        if name != "__pycache__" {
            inputs.tree(format!("the package {}", name.to_string_lossy()), &entry.path())?;
        }
    }
    Ok(())
}

/// A package with compiled code, as reported by `sdk/python/tool/packages.py`.
#[derive(Deserialize)]
struct Compiled {
    package: String,
    file: String,
    asked_by: Vec<String>,
}

fn refuse_compiled(project: &Project, python: &Path, folder: &Path) -> Result<(), Error> {
    let what = format!("cannot list the packages of `{}`", project.manifest.name);
    let said = tool::run(program(python, "packages.py").arg(folder), &PIP, &what)?;
    let compiled: Vec<Compiled> =
        serde_json::from_str(&said.out).map_err(|error| Error::Failed { what, said: error.to_string() })?;
    if compiled.is_empty() {
        return Ok(());
    }
    let lines: Vec<_> = compiled
        .iter()
        .map(|Compiled { package, file, asked_by }| {
            let by = if asked_by.is_empty() { REQUIREMENTS.to_owned() } else { asked_by.join(", for ") };
            format!("\n  {package} (for {by}): {file}")
        })
        .collect();
    Err(Error::Source {
        what: format!(
            "`{}` needs packages with compiled code, and a component runs only Python:{}",
            project.manifest.name,
            lines.concat()
        ),
        hint_text: format!(
            "take them out of {REQUIREMENTS}, or name packages that do the same in Python; where the plugin does \
             without them, name every package that it needs, and no-deps = true under [python] in {MANIFEST}; or serve \
             the function, with any package: `PYTHONPATH=vendor python -m gavel.service rewards.py:compute_score --verl \
             --port 8000`, and url = \"http://127.0.0.1:8000\" in place of path in its [[reward]] \
             (plugins/service/README.md)"
        ),
    })
}
