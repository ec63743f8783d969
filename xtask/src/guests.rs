//! Builds the components that run in the sandbox: the standard plugins and the
//! guests of the tests.

use crate::command::Call;
use crate::failure::{Failure, Result};
use crate::setup::{GUEST_TARGET, cannot};
use crate::{attacks, programs, python, python_plugins, rust_plugins, ui};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// A cargo workspace of components, one a folder, and the folder that they are
/// built to.
pub struct Guests {
    /// Their name in messages.
    pub title: &'static str,
    /// The folder of the workspace, from the root.
    pub workspace: &'static str,
    /// The folder into which they are built, from the root.
    pub folder: &'static str,
}

/// The folder of the standard plugins and the programs that they run, from the root.
const SHIPPED: &str = "target/plugins";
const TEST_GUESTS: Guests = Guests { title: "test guests", workspace: "tests/guests", folder: "target/guests" };

/// Builds all of them to `target/plugins/<name>.wasm`,
/// `target/guests/<name>.wasm` and `target/hostile/<name>.wasm`. The name is the
/// name of the component's folder. The programs that plugins run are beside the
/// plugins.
pub fn build(root: &Path) -> Result<()> {
    build_shipped(root)?;
    remove_others(&TEST_GUESTS.build(root)?, &root.join(TEST_GUESTS.folder))?;
    attacks::build(root)
}

/// Builds the standard plugins and the programs alone, and gives the names of
/// the programs.
pub fn build_shipped(root: &Path) -> Result<Vec<String>> {
    let folder = root.join(SHIPPED);
    let environment = python::environment()?;
    // Either alone leaves cores idle.
    let (rust, python) = std::thread::scope(|scope| {
        let python = scope.spawn(|| {
            let programs = programs::build(root, &environment, &folder)?;
            Ok((programs, python_plugins::build(root, &environment, &folder)?))
        });
        let rust = rust_plugins::build(root, &folder);
        (rust, python.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    });
    let (mut names, (programs, mut plugins)) = (rust?, python?);
    names.extend(programs.iter().cloned());
    names.append(&mut plugins);
    remove_others(&names, &folder)?;
    Ok(programs.into_iter().collect())
}

/// Builds only the named standard plugins, which are written in Rust.
pub fn build_plugins(root: &Path, names: &[&str]) -> Result<()> {
    rust_plugins::build_named(root, names, &root.join(SHIPPED))
}

impl Guests {
    /// Builds them and gives their names.
    fn build(&self, root: &Path) -> Result<BTreeSet<String>> {
        ui::loud_step(self.title, "building", || {
            let names = names(&root.join(self.workspace))?;
            let folder = root.join(self.folder);
            place(&names, &self.compile(root, &["--workspace"])?, &folder)?;
            let found = format!("{} in {}/", names.len(), self.folder);
            Ok((names, found))
        })
    }

    /// Compiles the packages of the workspace that these arguments of cargo
    /// choose. Returns the folder with cargo's components.
    pub fn compile(&self, root: &Path, packages: &[&str]) -> Result<PathBuf> {
        // The target folder as in the workspace's own configuration, whatever CARGO_TARGET_DIR says.
        let built = root.join("target/wasm");
        Call::cargo(
            ["build", "--release", "--target", GUEST_TARGET, "--target-dir"]
                .map(Path::new)
                .into_iter()
                .chain([built.as_path()])
                .chain(packages.iter().map(Path::new)),
        )
        .within(&root.join(self.workspace))
        // The flags of the standard plugins, so that crates of both are compiled once.
        .env(rust_plugins::FLAGS, rust_plugins::flags(root))
        .show(&format!("cannot build the {}", self.title))
        .map_err(|failure| failure.hint("the compiler's message above names the file and the error"))?;
        Ok(built.join(GUEST_TARGET).join("release"))
    }
}

/// The folders of `workspace` that hold a crate.
pub fn names(workspace: &Path) -> Result<BTreeSet<String>> {
    let entries = fs::read_dir(workspace).map_err(|error| cannot("read", workspace, &error))?;
    let mut names = BTreeSet::new();
    for entry in entries {
        let entry = entry.map_err(|error| cannot("read", workspace, &error))?;
        if entry.path().join("Cargo.toml").is_file() {
            names.insert(entry.file_name().to_string_lossy().into_owned());
        }
    }
    Ok(names)
}

/// Copies the components from cargo's folder `built` to `folder`.
pub fn place(names: &BTreeSet<String>, built: &Path, folder: &Path) -> Result<()> {
    for name in names {
        let component = built.join(format!("{}.wasm", name.replace('-', "_")));
        let bytes = fs::read(&component).map_err(|error| {
            cannot("read", &component, &error).hint(format!(
                "the folder `{name}` must hold a crate of that name, be a member of its workspace, and be a `cdylib`"
            ))
        })?;
        put(folder, name, &bytes)?;
    }
    Ok(())
}

/// Writes `folder/<name>.wasm`. The file is replaced atomically, and only if it
/// differs, as a test may be reading it.
pub fn put(folder: &Path, name: &str, bytes: &[u8]) -> Result<()> {
    fs::create_dir_all(folder).map_err(|error| cannot("make", folder, &error))?;
    let target = folder.join(format!("{name}.wasm"));
    if fs::read(&target).is_ok_and(|present| present == bytes) {
        return Ok(());
    }
    let partial = folder.join(format!("{name}.partial"));
    fs::write(&partial, bytes).map_err(|error| cannot("write", &partial, &error))?;
    fs::rename(&partial, &target).map_err(|error| cannot("write", &target, &error))
}

/// Removes from `folder` the components that are no longer built.
pub fn remove_others(names: &BTreeSet<String>, folder: &Path) -> Result<()> {
    let entries = fs::read_dir(folder).map_err(|error| cannot("read", folder, &error))?;
    for path in entries.flatten().map(|entry| entry.path()) {
        let stale = path.extension().is_some_and(|kind| kind == "wasm")
            && !path.file_stem().is_some_and(|name| names.contains(&*name.to_string_lossy()));
        if stale {
            fs::remove_file(&path).map_err(|error| cannot("remove", &path, &error))?;
        }
    }
    Ok(())
}

/// Fails if no test names a guest of the tests: it would be built for nothing.
pub fn check_all_are_used(root: &Path) -> Result<()> {
    let mut unused = names(&root.join("tests/guests"))?;
    for folder in ["host", "sdk", "tests"] {
        drop_mentioned(&root.join(folder), &mut unused)?;
    }
    if unused.is_empty() {
        return Ok(());
    }
    let unused = unused.into_iter().collect::<Vec<_>>().join(", ");
    Err(Failure::new(format!("no test uses these guests of tests/guests: {unused}"))
        .hint("name the guest in a test (\"NAME\" or NAME.wasm), or remove its folder"))
}

fn drop_mentioned(folder: &Path, names: &mut BTreeSet<String>) -> Result<()> {
    let entries = fs::read_dir(folder).map_err(|error| cannot("read", folder, &error))?;
    for path in entries.flatten().map(|entry| entry.path()) {
        if path.is_dir() {
            // A guest's own source does not count.
            if !path.ends_with("tests/guests") && !path.ends_with("tests/hostile") {
                drop_mentioned(&path, names)?;
            }
        } else if path.extension().is_some_and(|kind| kind == "rs" || kind == "toml" || kind == "trycmd") {
            let text = fs::read_to_string(&path).map_err(|error| cannot("read", &path, &error))?;
            names.retain(|name| !text.contains(&format!("\"{name}\"")) && !text.contains(&format!("{name}.wasm")));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn components_are_placed_by_name_and_stale_ones_go() {
        let folder = tempfile::tempdir().unwrap();
        let (built, placed) = (folder.path().join("built"), folder.path().join("placed"));
        fs::create_dir_all(&built).unwrap();
        fs::create_dir_all(&placed).unwrap();
        fs::write(built.join("two_words.wasm"), "new").unwrap();
        fs::write(placed.join("two-words.wasm"), "old").unwrap();
        fs::write(placed.join("gone.wasm"), "old").unwrap();
        let names = BTreeSet::from(["two-words".to_owned()]);
        place(&names, &built, &placed).unwrap();
        remove_others(&names, &placed).unwrap();
        assert_eq!(fs::read_to_string(placed.join("two-words.wasm")).unwrap(), "new");
        assert_eq!(fs::read_dir(&placed).unwrap().count(), 1);
    }

    #[test]
    fn a_folder_that_was_not_built_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let error = place(&BTreeSet::from(["absent".to_owned()]), folder.path(), folder.path()).unwrap_err();
        assert!(error.to_string().contains("the folder `absent` must hold a crate"), "{error}");
    }

    #[test]
    fn a_guest_counts_as_used_where_a_test_names_it() {
        let root = tempfile::tempdir().unwrap();
        for folder in ["host/plugin/tests", "sdk", "tests/guests/trap/src", "tests/guests/loop/src"] {
            fs::create_dir_all(root.path().join(folder)).unwrap();
        }
        for guest in ["trap", "loop"] {
            let folder = root.path().join("tests/guests").join(guest);
            fs::write(folder.join("Cargo.toml"), "").unwrap();
            fs::write(folder.join("src/lib.rs"), "// \"loop\" \"trap\"").unwrap();
        }
        fs::write(root.path().join("host/plugin/tests/a.rs"), "guest(\"trap\")").unwrap();
        let error = check_all_are_used(root.path()).unwrap_err().to_string();
        assert!(error.contains("tests/guests: loop\n"), "{error}");
        fs::write(root.path().join("sdk/b.rs"), "load(\"guests/loop.wasm\")").unwrap();
        check_all_are_used(root.path()).unwrap();
    }
}
