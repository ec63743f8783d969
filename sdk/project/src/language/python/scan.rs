//! The imports of a module, found without running it: those that a component
//! can contain, and those that it cannot.

use super::{PYTHON, program};
use crate::error::Error;
use crate::tool;
use serde::Deserialize;
use std::fmt;
use std::path::{Path, PathBuf};

/// The report of `sdk/python/tool/scan.py` about a module.
#[derive(Debug, Deserialize)]
pub(crate) struct Found {
    /// The author's own files that it imports, by their paths in the folder.
    pub local: Vec<PathBuf>,
    /// The functions at its top, in their order.
    pub functions: Vec<Function>,
    /// Modules that are imported only when a function is called.
    pub preload: Vec<String>,
    /// Every imported module that is not the author's own.
    pub outside: Vec<String>,
    /// Imports that a component cannot contain.
    pub problems: Vec<Place>,
    /// Calls that will fail in the sandbox.
    pub warnings: Vec<Place>,
}

/// A function at the top of a module.
#[derive(Debug, Deserialize)]
pub(crate) struct Function {
    pub name: String,
    /// The names that it can be called with.
    pub arguments: Vec<String>,
    /// Whether it also takes any other name (`**kwargs`).
    pub takes_any: bool,
}

/// A place in the sources and its problem.
#[derive(Debug, Deserialize)]
pub(crate) struct Place {
    file: String,
    line: u32,
    /// The module or the call.
    module: String,
    why: String,
    pub hint: String,
    /// Whether only a package is missing.
    #[serde(default)]
    pub missing: bool,
    /// Whether the file is Python; then the problem is about a module or a call.
    #[serde(default = "yes")]
    parsed: bool,
}

fn yes() -> bool {
    true
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { file, line, module, why, .. } = self;
        match self.parsed {
            true => write!(f, "{file} line {line}: `{module}`: {why}"),
            false => write!(f, "{file} line {line}: {why}"),
        }
    }
}

impl Place {
    /// The place in lines, for a problem that does not stop the build.
    pub fn warning(&self) -> String {
        format!("warning: {self}\n  {}\n", self.hint)
    }
}

impl Found {
    /// Fails with every import of the plugin `name` that a component cannot
    /// contain, or with a file that cannot be parsed.
    pub fn refuse(&self, name: &str) -> Result<(), Error> {
        if self.problems.is_empty() {
            return Ok(());
        }
        // Nothing is known of the imports of a file that cannot be parsed.
        if let Some(place) = self.problems.iter().find(|place| !place.parsed) {
            let what = format!("`{name}` cannot be built: {place}");
            return Err(Error::Source { what, hint_text: place.hint.clone() });
        }
        let lines: Vec<_> = self.problems.iter().map(|place| format!("\n  {place}")).collect();
        // One hint for all lines with the same hint, in the order of their
        // first lines.
        let mut hints: Vec<(&str, Vec<&str>)> = Vec::new();
        for place in &self.problems {
            match hints.iter_mut().find(|(hint, _)| *hint == place.hint) {
                Some((_, modules)) if modules.contains(&place.module.as_str()) => {}
                Some((_, modules)) => modules.push(&place.module),
                None => hints.push((&place.hint, vec![&place.module])),
            }
        }
        let hints: Vec<_> = hints.iter().map(|(hint, modules)| format!("for {}: {hint}", modules.join(", "))).collect();
        Err(Error::Source {
            what: format!("`{name}` imports modules that a component cannot contain:{}", lines.concat()),
            hint_text: hints.join("\n      "),
        })
    }
}

/// Reads the module `entry` in `folder`. `packages` are folders with modules
/// for the component; `http` tells whether the plugin asks servers.
pub(crate) fn scan(
    python: &Path,
    folder: &Path,
    entry: &str,
    packages: &[PathBuf],
    http: bool,
) -> Result<Found, Error> {
    let what = format!("cannot read the imports of {entry}.py");
    let mut command = program(python, "scan.py");
    command.args(http.then_some("--http")).arg(folder).arg(entry).args(packages);
    let said = tool::run(&mut command, &PYTHON, &what)?;
    serde_json::from_str(&said.out).map_err(|error| Error::Failed { what, said: error.to_string() })
}
