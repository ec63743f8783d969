//! What a module imports, told without running it: what comes along, and what
//! cannot.

use super::{PYTHON, program};
use crate::error::Error;
use crate::tool;
use serde::Deserialize;
use std::fmt;
use std::path::{Path, PathBuf};

/// What `sdk/python/tool/scan.py` says of a module.
#[derive(Debug, Deserialize)]
pub(crate) struct Found {
    /// The author's own files that it leads to, by their paths in the folder.
    pub local: Vec<PathBuf>,
    /// The functions at its top, in their order.
    pub functions: Vec<Function>,
    /// Modules that are imported only when a function is called.
    pub preload: Vec<String>,
    /// Every module that is imported and not the author's own.
    pub outside: Vec<String>,
    /// Imports that cannot come along.
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
    /// Whether it takes any other name too (`**kwargs`).
    pub takes_any: bool,
}

/// A place in the sources, and what is wrong there.
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
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} line {}: `{}`: {}", self.file, self.line, self.module, self.why)
    }
}

impl Place {
    /// It in lines, where it does not stop the build.
    pub fn warning(&self) -> String {
        format!("warning: {self}\n  {}\n", self.hint)
    }
}

impl Found {
    /// An error that names every import of the plugin `name` that cannot come
    /// along; nothing where all can.
    pub fn refuse(&self, name: &str) -> Result<(), Error> {
        if self.problems.is_empty() {
            return Ok(());
        }
        let lines: Vec<_> = self.problems.iter().map(|place| format!("\n  {place}")).collect();
        // One hint for all that it helps, in the order of their first lines.
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
            what: format!("`{name}` imports what cannot come along:{}", lines.concat()),
            hint_text: hints.join("\n      "),
        })
    }
}

/// Reads the module `entry` in `folder`; `packages` are folders with modules
/// that come along.
pub(crate) fn scan(python: &Path, folder: &Path, entry: &str, packages: &[PathBuf]) -> Result<Found, Error> {
    let what = format!("cannot read the imports of {entry}.py");
    let said = tool::run(program(python, "scan.py").arg(folder).arg(entry).args(packages), &PYTHON, &what)?;
    serde_json::from_str(&said.out).map_err(|error| Error::Failed { what, said: error.to_string() })
}
