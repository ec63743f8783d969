//! A function in Python as a component.

use crate::error::GavelError;
use crate::interruptible::wait_for;
use gavel_data::files::write_whole;
use gavel_project::{Error, Wrap, use_environment};
use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// A function to build a component of.
struct Function {
    file: PathBuf,
    /// Its name; by default the one that the file tells.
    name: Option<String>,
    /// The file with its packages; by default the one beside its file.
    requirements: Option<PathBuf>,
}

/// A component that is built, and the warnings of its build.
struct Built {
    component: Vec<u8>,
    warnings: String,
}

/// Builds the component of a function to `output`, with the tools of this environment. Returns the warnings of the
/// build.
#[pyfunction]
pub fn build(
    py: Python<'_>,
    file: PathBuf,
    name: Option<String>,
    requirements: Option<PathBuf>,
    output: PathBuf,
    environment: PathBuf,
) -> PyResult<String> {
    let cannot_write = |error: io::Error| PyOSError::new_err(format!("cannot write {}: {error}", output.display()));
    // Before the build, which takes seconds.
    let folder = output.parent().filter(|folder| !folder.as_os_str().is_empty());
    tempfile::tempfile_in(folder.unwrap_or(Path::new("."))).map_err(cannot_write)?;
    use_environment(environment);
    let plugin = plugin_name(&output);
    let function = Function { file, name, requirements };
    let panicked = "the function cannot be built: the thread that builds it panicked";
    let built = wait_for(py, panicked, move || function.build(&plugin))?;
    let Built { component, warnings } = built.map_err(GavelError::new_err)?;
    write_whole(&output, &component).map_err(cannot_write)?;
    Ok(warnings)
}

/// The name of a plugin whose component has this path: the name of the file, with dashes for what a plugin's name may
/// not have.
fn plugin_name(component: &Path) -> String {
    let stem = component.file_stem().unwrap_or_default().to_string_lossy().to_lowercase();
    let words = stem.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    words.collect::<Vec<_>>().join("-")
}

impl Function {
    /// Builds it in a folder that is then removed.
    fn build(&self, plugin: &str) -> Result<Built, String> {
        let folder = tempfile::tempdir().map_err(|error| format!("cannot make a temporary folder: {error}"))?;
        self.build_in(folder.path(), plugin).map_err(|error| error.to_string())
    }

    fn build_in(&self, folder: &Path, plugin: &str) -> Result<Built, Error> {
        let wrap = Wrap {
            name: plugin,
            convention: None,
            file: &self.file,
            function: self.name.as_deref(),
            requirements: self.requirements.as_deref(),
            cases: None,
        };
        let project = gavel_project::wrap(wrap, folder)?.created.project;
        let built = gavel_project::build(&project, &mut |_| {})?;
        let component = fs::read(&built.component).map_err(|source| Error::File {
            action: "read",
            path: built.component,
            source,
        })?;
        Ok(Built { component, warnings: built.warnings })
    }
}
