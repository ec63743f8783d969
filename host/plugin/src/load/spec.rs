//! The specification of a component in a run: its file, its parameters, its
//! budgets and its grants.

use crate::budget::Limits;
use crate::grant::Grants;
use serde_json::{Map, Value};
use std::num::NonZeroU32;
use std::path::PathBuf;

/// A component and how a run uses it.
#[derive(Debug, Clone)]
pub struct PluginSpec {
    /// Its name in the run.
    pub name: String,
    /// The component's file.
    pub path: PathBuf,
    /// The JSON object that `init` gets.
    pub params: Map<String, Value>,
    /// The budgets of each call.
    pub limits: Limits,
    /// Its grants.
    pub grants: Grants,
    /// The number of calls that an instance answers; by default, every call has a
    /// fresh instance. Only for a plugin that declares itself pure.
    pub reuse: Option<NonZeroU32>,
}

impl PluginSpec {
    /// A plugin without parameters and grants, in the default limits.
    pub fn new(name: impl Into<String>, path: impl Into<PathBuf>) -> Self {
        Self {
            name: name.into(),
            path: path.into(),
            params: Default::default(),
            limits: Limits::default(),
            grants: Grants::default(),
            reuse: None,
        }
    }
}

/// A component that plugins run as a program, and the limits of each job.
#[derive(Debug, Clone)]
pub struct ProgramSpec {
    /// Its name in the run.
    pub name: String,
    /// The component's file.
    pub path: PathBuf,
    /// The budgets of each job; `log` limits what it prints.
    pub limits: Limits,
}
