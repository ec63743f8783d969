//! The tests that are selected.

use crate::test_programs::Program;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::{Path, PathBuf};

/// The tests that a change can have touched.
#[derive(Debug)]
pub enum Selection {
    /// Every test, because of this file.
    Everything { because: String },
    /// Some tests.
    Some(Selected),
}

/// Some of the tests.
#[derive(Debug, Default)]
pub struct Selected {
    /// Tests of the host, by the folder of their package, from the root.
    pub suites: BTreeMap<PathBuf, Suites>,
    /// Whether the tests of the plugins' own logic are among them.
    pub plugins: bool,
}

/// Tests of a package.
#[derive(Debug)]
pub enum Suites {
    /// All of them.
    All,
    /// Programs of the folder `tests/` by their names, and the tests in `src/`.
    Some { tests: BTreeSet<String>, sources: bool },
}

impl Selected {
    /// Whether the tests of the Python package for trainers are selected.
    pub fn has_trainers(&self) -> bool {
        self.suites.contains_key(Path::new("sdk/trainer-python"))
    }

    /// Whether a test program of the repository at `root` is selected.
    pub fn has(&self, root: &Path, program: &Program) -> bool {
        let folder = program.folder.strip_prefix(root).unwrap_or(&program.folder);
        match (self.suites.get(folder), &program.test) {
            (None, _) => false,
            (Some(Suites::All), _) => true,
            (Some(Suites::Some { tests, .. }), Some(test)) => tests.contains(test),
            (Some(Suites::Some { sources, .. }), None) => *sources,
        }
    }
}

impl fmt::Display for Selection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Everything { because } => writeln!(f, "changed: {because}, so every test runs"),
            Self::Some(Selected { suites, plugins: false }) if suites.is_empty() => {
                writeln!(f, "changed: nothing that a test reads, so only the checks of the structure run")
            }
            Self::Some(Selected { suites, plugins }) => {
                writeln!(f, "changed: these tests run, and the checks of the structure:")?;
                for (folder, suites) in suites {
                    match suites {
                        Suites::All => writeln!(f, "  {}", folder.display())?,
                        Suites::Some { tests, sources } => {
                            let sources = sources.then_some("src");
                            let names: Vec<&str> =
                                sources.into_iter().chain(tests.iter().map(String::as_str)).collect();
                            writeln!(f, "  {}: {}", folder.display(), names.join(", "))?;
                        }
                    }
                }
                if *plugins { writeln!(f, "  plugins") } else { Ok(()) }
            }
        }
    }
}
