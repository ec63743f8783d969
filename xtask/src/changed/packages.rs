//! The packages of the workspace, and which of them depend on each other.

use crate::command::Call;
use crate::failure::{Failure, Result};
use serde::Deserialize;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// The packages of the workspace, by their folders from the root.
#[derive(Debug)]
pub struct Packages(Vec<Package>);

#[derive(Debug)]
pub struct Package {
    pub folder: PathBuf,
    /// The programs of its tests: name and main file, from the root.
    pub tests: Vec<(String, PathBuf)>,
    /// The folders of packages that it is compiled with.
    depends_on: BTreeSet<PathBuf>,
    /// The folders of packages that only its tests are compiled with.
    tests_depend_on: BTreeSet<PathBuf>,
}

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<MetadataPackage>,
}

#[derive(Deserialize)]
struct MetadataPackage {
    manifest_path: PathBuf,
    targets: Vec<Target>,
    dependencies: Vec<Dependency>,
}

#[derive(Deserialize)]
struct Target {
    name: String,
    kind: Vec<String>,
    src_path: PathBuf,
}

#[derive(Deserialize)]
struct Dependency {
    kind: Option<String>,
    path: Option<PathBuf>,
}

impl Packages {
    /// Asks cargo.
    pub fn read(root: &Path) -> Result<Self> {
        let what = "cannot list the packages of the workspace";
        let text = Call::cargo(["metadata", "--no-deps", "--format-version", "1"]).within(root).read(what)?;
        Self::parse(root, &text)
    }

    /// Reads the output of `cargo metadata`.
    pub fn parse(root: &Path, metadata: &str) -> Result<Self> {
        let metadata: Metadata = serde_json::from_str(metadata)
            .map_err(|error| Failure::new("cannot read what cargo says of the workspace").why(error))?;
        let relative = |path: &Path| path.strip_prefix(root).unwrap_or(path).to_owned();
        let package = |package: MetadataPackage| {
            let depends_on = |tests: bool| {
                let of_kind = move |dependency: &&Dependency| (dependency.kind.as_deref() == Some("dev")) == tests;
                package.dependencies.iter().filter(of_kind).filter_map(|of| of.path.as_deref()).map(relative).collect()
            };
            let tests = package.targets.iter().filter(|target| target.kind.iter().any(|kind| kind == "test"));
            Package {
                folder: relative(package.manifest_path.parent().unwrap_or(root)),
                tests: tests.map(|target| (target.name.clone(), relative(&target.src_path))).collect(),
                depends_on: depends_on(false),
                tests_depend_on: depends_on(true),
            }
        };
        Ok(Self(metadata.packages.into_iter().map(package).collect()))
    }

    pub fn iter(&self) -> impl Iterator<Item = &Package> {
        self.0.iter()
    }

    /// The package that a file belongs to.
    pub fn of(&self, file: &Path) -> Option<&Package> {
        let holds = self.0.iter().filter(|package| file.starts_with(&package.folder));
        holds.max_by_key(|package| package.folder.components().count())
    }

    /// The folders of the packages whose tests a change of `folder` touches: of itself, of all that depend on it, and of
    /// those whose tests do.
    pub fn touched_by(&self, folder: &Path) -> BTreeSet<PathBuf> {
        let mut compiled = BTreeSet::from([folder.to_owned()]);
        loop {
            let more = self.0.iter().filter(|package| !package.depends_on.is_disjoint(&compiled));
            let more: Vec<PathBuf> = more.map(|package| package.folder.clone()).collect();
            let before = compiled.len();
            compiled.extend(more);
            if compiled.len() == before {
                break;
            }
        }
        let tested = self.0.iter().filter(|package| !package.tests_depend_on.is_disjoint(&compiled));
        let tested: Vec<PathBuf> = tested.map(|package| package.folder.clone()).collect();
        compiled.extend(tested);
        compiled
    }
}

impl Package {
    /// The test program that a file of the folder `tests/` belongs to alone.
    pub fn test_of(&self, file: &Path) -> Option<&str> {
        let of = |(_, main): &&(String, PathBuf)| {
            *main == file || main.ends_with("main.rs") && main.parent().is_some_and(|folder| file.starts_with(folder))
        };
        self.tests.iter().find(of).map(|(name, _)| name.as_str())
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;

    /// `low` ← `middle` ← `high`; the tests of `apart` use `middle`.
    pub fn example(root: &Path) -> Packages {
        let package = |name: &str, dependencies: &[(&str, &str)]| {
            let folder = root.join("host").join(name);
            let dependencies: Vec<_> = dependencies
                .iter()
                .map(|(on, kind)| {
                    let kind = Some(*kind).filter(|kind| !kind.is_empty());
                    serde_json::json!({"name": on, "kind": kind, "path": root.join("host").join(on)})
                })
                .chain([serde_json::json!({"name": "serde", "kind": null})])
                .collect();
            let target = |name: &str, kind: &str, file: &str| serde_json::json!({"name": name, "kind": [kind], "src_path": folder.join(file)});
            serde_json::json!({
                "manifest_path": folder.join("Cargo.toml"),
                "dependencies": dependencies,
                "targets": [
                    target(name, "lib", "src/lib.rs"),
                    target("one", "test", "tests/one.rs"),
                    target("two", "test", "tests/two/main.rs"),
                    target("fast", "bench", "benches/fast.rs"),
                ],
            })
        };
        let packages = [
            package("low", &[]),
            package("middle", &[("low", "build")]),
            package("high", &[("middle", "")]),
            package("apart", &[("middle", "dev")]),
        ];
        Packages::parse(root, &serde_json::json!({"packages": packages}).to_string()).unwrap()
    }

    #[test]
    fn a_change_touches_all_that_is_compiled_with_it() {
        let packages = example(Path::new("/g"));
        let touched = |name: &str| -> Vec<String> {
            let touched = packages.touched_by(&Path::new("host").join(name));
            touched.iter().map(|folder| folder.file_name().unwrap().to_string_lossy().into_owned()).collect()
        };
        assert_eq!(touched("low"), ["apart", "high", "low", "middle"]);
        assert_eq!(touched("high"), ["high"]);
        assert_eq!(touched("apart"), ["apart"]);
    }

    #[test]
    fn a_file_of_the_tests_belongs_to_its_program() {
        let packages = example(Path::new("/g"));
        let package = packages.of(Path::new("host/low/src/a.rs")).unwrap();
        let test_of = |file: &str| package.test_of(&Path::new("host/low/tests").join(file)).map(str::to_owned);
        assert_eq!(test_of("one.rs").as_deref(), Some("one"));
        assert_eq!(test_of("two/cases/a.json").as_deref(), Some("two"));
        assert_eq!(test_of("common/mod.rs"), None);
        assert!(packages.of(Path::new("host/lower/src/lib.rs")).is_none());
    }
}
