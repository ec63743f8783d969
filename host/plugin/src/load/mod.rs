//! Loads components and programs: read, checked, compiled and initialised.

pub(crate) mod component;
pub(crate) mod contract;
mod loading;
mod program;
mod spec;

pub(crate) use loading::load;
pub(crate) use program::Program;
pub use spec::{PluginSpec, ProgramSpec};
