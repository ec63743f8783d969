//! Builds a project's component to a fixed place.

use crate::component;
use crate::error::Error;
use crate::language::{Compiled, Language, Prepared, python};
use crate::manifest::Project;
use crate::stamp::{Reason, Stamp, put};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The component of a build, new or unchanged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Built {
    /// The file: `build/NAME.wasm` in the project's folder.
    pub component: PathBuf,
    /// Bytes of the file.
    pub size: u64,
    /// BLAKE3 of the file, in hexadecimal.
    pub hash: String,
    /// Whether the file already existed and needed no build.
    pub unchanged: bool,
    /// How long the build took.
    pub took: Duration,
    /// The output of the language's tools, without warnings.
    pub said: String,
    /// Warnings of code that builds but will not work, in lines; often empty.
    pub warnings: String,
}

/// A step of a build.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step<'a> {
    /// It waits for another build of the same project.
    Waiting,
    /// It installs the packages that this file names.
    Installing(&'static str),
    /// It runs the language's tools, for this reason. Without a reason, the
    /// tools find out themselves what changed.
    Building(Option<&'a Reason>),
}

/// Builds the component of `project` and checks it against its manifest, unless
/// its inputs have not changed. The component's file is replaced atomically,
/// and only by a build that succeeds. `told` is called at the start of each
/// step.
///
/// # Errors
/// A tool is missing or fails, or the component does not match the manifest.
pub fn build(project: &Project, told: &mut dyn FnMut(Step<'_>)) -> Result<Built, Error> {
    build_at(project.component(), project, |told| project.manifest.language.toolchain().prepare(project, told), told)
}

/// Builds a component only for tests. It imports the sources of a plugin in Python when it is initialised, from the
/// folder mounted at [`QUICK_SOURCES`], so that an edit needs no build. `None` for other languages, which build in
/// seconds.
///
/// # Errors
/// As [`build`].
pub fn build_quick(project: &Project, told: &mut dyn FnMut(Step<'_>)) -> Option<Result<Built, Error>> {
    if project.manifest.language != Language::Python {
        return None;
    }
    let component = project.build_folder().join("quick.wasm");
    Some(build_at(component, project, |told| python::prepare_quick(project, told), told))
}

/// The folder from which a component of [`build_quick`] reads the plugin's
/// sources.
pub const QUICK_SOURCES: &str = "/sources";

fn build_at<'a>(
    component: PathBuf,
    project: &'a Project,
    prepare: impl FnOnce(&mut dyn FnMut(Step<'_>)) -> Result<Prepared<'a>, Error>,
    told: &mut dyn FnMut(Step<'_>),
) -> Result<Built, Error> {
    let begun = Instant::now();
    let folder = project.build_folder();
    fs::create_dir_all(&folder).map_err(Error::file("make", &folder))?;
    let _alone = lock(&folder, told)?;
    let Prepared { inputs, make } = prepare(told)?;

    let reason = match inputs.as_ref().map(|inputs| Stamp::check(&component, inputs, &project.folder)) {
        Some(Ok(Stamp { component: hash, warnings, .. })) => {
            let size = fs::metadata(&component).map_err(Error::file("read", &component))?.len();
            let took = begun.elapsed();
            return Ok(Built { component, size, hash, unchanged: true, took, said: String::new(), warnings });
        }
        Some(Err(reason)) => Some(reason),
        None => None,
    };
    told(Step::Building(reason.as_ref()));
    let Compiled { component: bytes, said, warnings, elsewhere } = make()?;
    component::check(&bytes, &project.manifest)?;
    let unchanged = fs::read(&component).is_ok_and(|present| present == bytes);
    if !unchanged {
        put(&component, &bytes)?;
    }
    let hash = blake3::hash(&bytes).to_hex().to_string();
    if let Some(inputs) = inputs {
        let stamp = Stamp { component: hash.clone(), warnings: warnings.clone(), inputs, elsewhere };
        stamp.write(&component)?;
    }
    Ok(Built { component, size: bytes.len() as u64, hash, unchanged, took: begun.elapsed(), said, warnings })
}

/// Allows one build of a project at a time, as builds write the same files. The
/// lock ends with the process that holds it.
struct BuildLock(File);

impl Drop for BuildLock {
    fn drop(&mut self) {
        // Closing the file is not enough: a child process that is being started has it open until its program begins.
        let _ = self.0.unlock();
    }
}

fn lock(folder: &Path, told: &mut dyn FnMut(Step<'_>)) -> Result<BuildLock, Error> {
    let path = folder.join("lock");
    let file = File::create(&path).map_err(Error::file("write", &path))?;
    if file.try_lock().is_err() {
        told(Step::Waiting);
        file.lock().map_err(Error::file("lock", &path))?;
    }
    Ok(BuildLock(file))
}
