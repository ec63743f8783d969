//! `[exec.NAME]`: programs that plugins run as children.

use gavel_plugin::{LimitsTable, LoadError, ProgramSpec, Sandbox};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// `[exec.NAME]`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ExecTable {
    /// The component, which exports `wasi:cli/run`.
    pub path: PathBuf,
    /// The limits of each of its children. `log` limits what a child prints.
    #[serde(default)]
    pub limits: LimitsTable,
}

impl ExecTable {
    /// The program that it describes.
    pub fn program(&self, name: impl Into<String>) -> ProgramSpec {
        // The limits of plugins do not apply: a program's children are calls of another kind.
        let limits = self.limits.over(&LimitsTable::default());
        ProgramSpec { name: name.into(), path: self.path.clone(), limits }
    }
}

/// A loaded program, and the specification that it was loaded from.
pub(crate) struct LoadedProgram {
    pub(crate) spec: ProgramSpec,
    /// BLAKE3 of the component, in hexadecimal.
    pub(crate) hash: String,
}

/// Adds the programs to a sandbox.
pub(crate) fn connect(sandbox: &Sandbox, programs: Vec<ProgramSpec>) -> Result<Vec<LoadedProgram>, LoadError> {
    let load = |spec: ProgramSpec| Ok(LoadedProgram { hash: sandbox.add_program(spec.clone())?, spec });
    programs.into_iter().map(load).collect()
}
