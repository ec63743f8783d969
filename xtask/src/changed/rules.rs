//! From changed files to tests. A file whose readers are not known selects every test.

use super::mentions;
use super::packages::{Package, Packages};
use super::selection::{Selected, Selection, Suites};
use crate::failure::Result;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// The workspaces of components, with the folders that hold what is no component by itself.
const COMPONENTS: [(&str, &[&str]); 2] = [("plugins", &["shared"]), ("tests/guests", &[])];

/// The attacks, which run in few tests, all of them.
const ATTACKS: &str = "tests/hostile";

/// Folders and files that tests name if they read them.
const READ_BY_NAME: [&str; 9] =
    ["docs", "demo", "examples", "tests", "README.md", "CHANGELOG.md", ".ci", ".gitignore", "rustfmt.toml"];

/// The hashes of what the plugins' sources give, which `cargo xtask hashes` compares, and no test.
const HASHES: [&str; 2] = ["plugins/B3SUMS", "plugins/B3SUMS.rust"];

/// What every component is built with or by.
const BUILD: [&str; 3] = ["sdk/rust", "sdk/project", "xtask"];

/// Selects tests for these files, whose paths are from `root`.
pub fn select(root: &Path, packages: &Packages, files: &BTreeSet<PathBuf>) -> Result<Selection> {
    let mut selected = Selected::default();
    for file in files {
        let known = match packages.of(file) {
            _ if BUILD.iter().any(|part| file.starts_with(part)) => false,
            Some(package) => {
                selected.of_package(root, packages, package, file)?;
                true
            }
            None => selected.beside_packages(root, packages, file)?,
        };
        if !known {
            return Ok(Selection::Everything { because: file.display().to_string() });
        }
    }
    Ok(Selection::Some(selected))
}

impl Selected {
    fn of_package(&mut self, root: &Path, packages: &Packages, package: &Package, file: &Path) -> Result<()> {
        let inside = file.strip_prefix(&package.folder).unwrap_or(file);
        if inside.starts_with("benches") {
            // `.ci/run` compiles them; no test runs them.
        } else if let Ok(part) = inside.strip_prefix("tests") {
            if let Some(test) = package.test_of(file) {
                let tests = BTreeSet::from([test.to_owned()]);
                self.add(&package.folder, Suites::Some { tests, sources: false });
            } else {
                let named = mentions::suites(root, package, &|text| mentions::part_is_named(text, part))?;
                self.add(&package.folder, named.unwrap_or(Suites::All));
            }
            // Some tests start another package's servers.
            self.naming(root, packages, &|text| {
                mentions::path_is_named(text, Path::new(part.file_name().unwrap_or_default()))
            })?;
        } else {
            for folder in packages.touched_by(&package.folder) {
                self.add(&folder, Suites::All);
            }
        }
        Ok(())
    }

    /// Selects for a file that is in no package. Whether its readers are known.
    fn beside_packages(&mut self, root: &Path, packages: &Packages, file: &Path) -> Result<bool> {
        if HASHES.iter().any(|hashes| file == Path::new(hashes)) {
            return Ok(true);
        }
        for (folder, shared) in COMPONENTS {
            let Ok(inside) = file.strip_prefix(folder) else { continue };
            let mut components = inside.iter().map(|component| component.to_string_lossy());
            let (Some(name), Some(_)) = (components.next(), components.next()) else { return Ok(false) };
            if shared.contains(&&*name) {
                return Ok(false);
            }
            self.plugins |= folder == "plugins";
            let built = folder.rsplit('/').next().unwrap_or(folder);
            let named = |text: &str| mentions::component_is_named(text, built, &name);
            self.naming(root, packages, &named)?;
            // Tests read the configurations of demos, examples and pages, which name plugins.
            for folder in ["demo", "examples", "docs"] {
                for (file, _) in mentions::texts(root, folder)?.iter().filter(|(_, text)| named(text)) {
                    self.naming(root, packages, &|text| mentions::path_is_named(text, file))?;
                }
            }
            return Ok(true);
        }
        if file.starts_with(ATTACKS) {
            self.naming(root, packages, &|text| text.contains("hostile"))?;
            return Ok(true);
        }
        if READ_BY_NAME.iter().any(|read| file.starts_with(read)) {
            self.naming(root, packages, &|text| mentions::path_is_named(text, file))?;
            return Ok(true);
        }
        Ok(false)
    }

    /// Selects the suites with a source that satisfies `named`.
    fn naming(&mut self, root: &Path, packages: &Packages, named: &dyn Fn(&str) -> bool) -> Result<()> {
        for package in packages.iter() {
            if let Some(suites) = mentions::suites(root, package, named)? {
                self.add(&package.folder, suites);
            }
        }
        Ok(())
    }

    fn add(&mut self, folder: &Path, more: Suites) {
        match (self.suites.get_mut(folder), more) {
            (Some(Suites::All), _) => {}
            (Some(Suites::Some { tests, sources }), Suites::Some { tests: more, sources: also }) => {
                tests.extend(more);
                *sources |= also;
            }
            (_, more) => {
                self.suites.insert(folder.to_owned(), more);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::packages::tests::example;
    use super::*;
    use std::fs;

    /// What is selected for changed files of the example's packages, one line a package.
    fn selected(files: &[&str]) -> Vec<String> {
        let root = tempfile::tempdir().unwrap();
        let sources = [
            ("host/low/src/lib.rs", "fn f() {}"),
            ("host/low/src/page.rs", "read(\"../../docs/page.md\")"),
            ("host/low/tests/one.rs", "mod common; join(\"../../tests/parity\")"),
            ("host/low/tests/common/mod.rs", ""),
            ("host/middle/tests/one.rs", "load(\"math\")"),
            ("host/middle/tests/two/main.rs", "run(\"../low/tests/server.py\")"),
            ("host/high/tests/one.rs", "load(\"target/guests/trap.wasm\")"),
            ("host/high/tests/two/attack.rs", "\"target/hostile\""),
            ("host/high/src/lib.rs", "\"../../demo/sums.toml\""),
            ("demo/sums.toml", "path = \"target/plugins/judge.wasm\""),
            ("docs/page.md", "path = \"target/plugins/length.wasm\""),
        ];
        for (file, text) in sources {
            let path = root.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let files = files.iter().map(PathBuf::from).collect();
        let selection = select(root.path(), &example(root.path()), &files).unwrap();
        selection.to_string().lines().map(|line| line.trim_start().to_owned()).collect()
    }

    const NONE: &str = "changed: nothing that a test reads, so only the checks of the structure run";
    const SOME: &str = "changed: these tests run, and the checks of the structure:";

    #[test]
    fn a_source_selects_all_packages_that_are_compiled_with_it() {
        assert_eq!(selected(&["host/middle/src/a.rs"]), [SOME, "host/apart", "host/high", "host/middle"]);
        assert_eq!(selected(&["host/high/Cargo.toml", "host/high/tests/one.rs"]), [SOME, "host/high"]);
    }

    #[test]
    fn a_test_selects_itself_and_what_tests_share_selects_these() {
        assert_eq!(selected(&["host/low/tests/one.rs"]), [SOME, "host/low: one"]);
        assert_eq!(selected(&["host/low/tests/two/a.rs", "host/low/tests/one.rs"]), [SOME, "host/low: one, two"]);
        assert_eq!(selected(&["host/low/tests/common/mod.rs"]), [SOME, "host/low: one"]);
        assert_eq!(selected(&["host/low/tests/server.py"]), [SOME, "host/low", "host/middle: two"]);
    }

    #[test]
    fn a_component_selects_the_tests_that_load_it() {
        assert_eq!(selected(&["plugins/math/src/lib.rs"]), [SOME, "host/middle: one", "plugins"]);
        assert_eq!(selected(&["plugins/judge/plugin.toml"]), [SOME, "host/high: src", "plugins"]);
        assert_eq!(selected(&["plugins/length/src/lib.rs"]), [SOME, "host/low: src", "plugins"]);
        assert_eq!(selected(&["tests/guests/trap/src/lib.rs"]), [SOME, "host/high: one"]);
        assert_eq!(selected(&["tests/hostile/recursion/expect.toml"]), [SOME, "host/high: two"]);
    }

    #[test]
    fn data_and_pages_select_the_tests_that_read_them() {
        assert_eq!(selected(&["docs/page.md"]), [SOME, "host/low: src"]);
        assert_eq!(selected(&["tests/parity/lora/a.json", "docs/other.md"]), [SOME, "host/low: one"]);
        assert_eq!(selected(&["docs/other.md", "host/low/benches/fast.rs", "README.md"]), [NONE]);
        assert_eq!(selected(&["plugins/B3SUMS", "plugins/B3SUMS.rust"]), [NONE]);
    }

    #[test]
    fn what_all_is_made_from_selects_everything() {
        for file in [
            "Cargo.lock",
            ".cargo/config.toml",
            "wit/reward.wit",
            "plugins/Cargo.lock",
            "plugins/shared/a.rs",
            "sdk/rust/src/lib.rs",
            "sdk/project/src/language/python/mod.rs",
            "xtask/src/guests.rs",
            "new/a",
        ] {
            assert_eq!(selected(&["docs/page.md", file]), [format!("changed: {file}, so every test runs")]);
        }
        assert_eq!(selected(&[]), [NONE]);
    }
}
