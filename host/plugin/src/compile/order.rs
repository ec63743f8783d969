//! An order to the compiler, and why there is no code.

use super::check::TooCostly;
use super::limits::LoadBudget;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// A component to compile.
#[derive(Clone, Copy)]
pub(crate) struct Order<'a> {
    pub(crate) component: &'a [u8],
    pub(crate) form: Form,
    /// Whether the code meters fuel.
    pub(crate) fuel: bool,
    /// The file with the code of single functions. With it, a component in which few functions differ compiles in a
    /// third of the time.
    pub(crate) functions: Option<&'a Path>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Form {
    /// As it was built.
    Plain,
    /// With functions that read out its memory, for a snapshot.
    Instrumented,
    /// A snapshot, with functions that set an instance back to it.
    Snapshot,
}

/// Why there is no code.
#[derive(Debug, thiserror::Error, Serialize, Deserialize)]
pub(crate) enum NotCompiled {
    #[error("{0}")]
    Invalid(String),
    #[error("{0}")]
    #[serde(skip)]
    TooCostly(TooCostly),
    #[error("the compiler exceeded its limit")]
    #[serde(skip)]
    Exceeded(LoadBudget),
    #[error("{0}")]
    #[serde(skip)]
    Host(String),
}

/// An error and its causes in one line.
pub(crate) fn chain(error: &wasmtime::Error) -> String {
    error.chain().map(|cause| cause.to_string()).collect::<Vec<_>>().join(": ")
}
