//! What a wheel says of itself.

use crate::failure::{Failure, Result};
use crate::setup::cannot;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::Path;

/// `[project]` of `pyproject.toml`.
#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Project {
    name: String,
    pub version: String,
    description: String,
    requires_python: String,
    license: String,
    classifiers: Vec<String>,
    /// What other programs load, by group and name.
    #[serde(default)]
    entry_points: BTreeMap<String, BTreeMap<String, String>>,
    /// The packages that an extra adds, by its name.
    #[serde(default)]
    optional_dependencies: BTreeMap<String, Vec<String>>,
}

#[derive(Deserialize)]
struct File {
    project: Project,
}

/// Reads `pyproject.toml` of the package; its version is the workspace's.
pub fn read(package: &Path) -> Result<Project> {
    let path = package.join("pyproject.toml");
    let text = fs::read_to_string(&path).map_err(|error| cannot("read", &path, &error))?;
    let wrong = |why: String| Failure::new(format!("cannot use {}", path.display())).why(why);
    let File { project } = toml::from_str(&text).map_err(|error| wrong(error.to_string()))?;
    match &*project.version {
        env!("CARGO_PKG_VERSION") => Ok(project),
        other => Err(wrong(format!("its version is {other}, and the workspace's {}", env!("CARGO_PKG_VERSION")))),
    }
}

/// Writes the folder `NAME-VERSION.dist-info` of the package at `package`, from the root, to `folder`.
pub fn write(root: &Path, package: &str, project: &Project, tag: &str, folder: &Path) -> Result<()> {
    let info = folder.join(format!("{}-{}.dist-info", project.name.replace('-', "_"), project.version));
    let licences = info.join("licenses");
    fs::create_dir_all(&licences).map_err(|error| cannot("make", &licences, &error))?;
    let put = |path: &Path, text: String| fs::write(path, text).map_err(|error| cannot("write", path, &error));
    put(&info.join("METADATA"), metadata(&root.join(package), project)?)?;
    let pure = tag.ends_with("-any");
    put(
        &info.join("WHEEL"),
        format!("Wheel-Version: 1.0\nGenerator: cargo xtask wheel\nRoot-Is-Purelib: {pure}\nTag: {tag}\n"),
    )?;
    if !project.entry_points.is_empty() {
        put(&info.join("entry_points.txt"), entry_points(project))?;
    }
    let licence = root.join("LICENSE");
    fs::copy(&licence, licences.join("LICENSE")).map_err(|error| cannot("copy", &licence, &error))?;
    Ok(())
}

fn entry_points(project: &Project) -> String {
    let group = |(group, entries): (&String, &BTreeMap<String, String>)| {
        let entries: String = entries.iter().map(|(name, place)| format!("{name} = {place}\n")).collect();
        format!("[{group}]\n{entries}\n")
    };
    project.entry_points.iter().map(group).collect()
}

fn metadata(package: &Path, project: &Project) -> Result<String> {
    let Project { name, version, description, requires_python, license, classifiers, .. } = project;
    let readme = package.join("README.md");
    let readme = fs::read_to_string(&readme).map_err(|error| cannot("read", &readme, &error))?;
    let mut text = format!(
        "Metadata-Version: 2.4\nName: {name}\nVersion: {version}\nSummary: {description}\nLicense-Expression: {license}\nLicense-File: LICENSE\nRequires-Python: {requires_python}\n"
    );
    for classifier in classifiers {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "Classifier: {classifier}");
    }
    for (extra, packages) in &project.optional_dependencies {
        let _ = writeln!(text, "Provides-Extra: {extra}");
        for package in packages {
            let _ = writeln!(text, "Requires-Dist: {package}; extra == \"{extra}\"");
        }
    }
    Ok(format!("{text}Description-Content-Type: text/markdown\n\n{readme}"))
}
