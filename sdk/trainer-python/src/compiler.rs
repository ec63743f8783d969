//! The process that compiles components: this interpreter, started again.

use gavel_plugin::CompilerProgram;
use pyo3::pyfunction;
use std::path::PathBuf;

/// Compiles components in processes that `program` starts with these arguments, from now on.
#[pyfunction]
pub fn compile_with(program: PathBuf, arguments: Vec<String>) {
    gavel_plugin::compile_with(CompilerProgram { program, arguments });
}

/// Compiles the component on the standard input, as the order says, to the standard output. Returns the exit status of
/// the process.
#[pyfunction]
pub fn compile_component(order: &str) -> u8 {
    gavel_plugin::compile_command(order)
}
