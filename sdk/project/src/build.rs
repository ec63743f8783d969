//! From sources to a component in a predictable place.

use crate::component;
use crate::error::Error;
use crate::manifest::Project;
use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// A component that was built.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Built {
    /// The file: `build/NAME.wasm` in the project's folder.
    pub component: PathBuf,
    /// Bytes of the file.
    pub size: u64,
    /// BLAKE3 of the file, in hexadecimal.
    pub hash: String,
    /// How long the build took.
    pub took: Duration,
    /// What the language's tools printed, the warnings apart.
    pub said: String,
    /// What will not work although it builds, in lines; often nothing.
    pub warnings: String,
}

/// Builds the component of `project` and checks it against its manifest. The
/// component's file changes all at once, and only by a build that succeeds.
///
/// # Errors
/// Where a tool is missing or fails, or where what it built is not what the
/// manifest says.
pub fn build(project: &Project) -> Result<Built, Error> {
    let begun = Instant::now();
    let folder = project.build_folder();
    fs::create_dir_all(&folder).map_err(Error::file("make", &folder))?;
    let compiled = project.manifest.language.toolchain().build(project)?;
    component::check(&compiled.component, &project.manifest)?;

    let component = project.component();
    let partial = folder.join(format!("{}.partial", project.manifest.name));
    fs::write(&partial, &compiled.component).map_err(Error::file("write", &partial))?;
    fs::rename(&partial, &component).map_err(Error::file("write", &component))?;
    Ok(Built {
        component,
        size: compiled.component.len() as u64,
        hash: blake3::hash(&compiled.component).to_hex().to_string(),
        took: begun.elapsed(),
        said: compiled.said,
        warnings: compiled.warnings,
    })
}
