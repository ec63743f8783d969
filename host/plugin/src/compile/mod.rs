//! Compiles a component to machine code. The component is checked first, then
//! compiled in a child process, since nothing else limits what a compiler uses.
//! There its core modules are merged into one where its form allows it.

mod cache;
mod check;
mod child;
mod code;
mod engine_config;
mod functions;
mod here;
mod limits;
mod merge;
mod order;
mod reset;
mod snapshot;
mod trusted;

pub use cache::component_cache;
pub(crate) use cache::{Cache, Key};
pub use check::TooCostly;
pub use child::{COMPILE_COMMAND, CompilerProgram, compile_command};
pub(crate) use code::Code;
pub(crate) use engine_config::engine_config;
pub use limits::{LoadBudget, LoadLimits};
pub(crate) use merge::merged;
pub(crate) use order::{Form, NotCompiled, Order, chain};
pub(crate) use reset::{
    MEMORY as RESET_MEMORY, MEMORY_START as RESET_MEMORY_START, REST as RESET_REST, STRETCHES as RESET_STRETCHES,
};
pub(crate) use snapshot::{Instrumented, NoSnapshot};

use here::compile_here;
use std::sync::OnceLock;

static PROGRAM: OnceLock<CompilerProgram> = OnceLock::new();

/// Compiles components in child processes from now on. `program` must answer
/// [`COMPILE_COMMAND`] with [`compile_command`]. Without a program, components
/// are compiled in this process, protected only by the check of their form.
pub fn compile_with(program: impl Into<CompilerProgram>) {
    // The first program stays.
    let _ = PROGRAM.set(program.into());
}

/// The program of [`compile_with`].
pub(crate) fn default_program() -> Option<CompilerProgram> {
    PROGRAM.get().cloned()
}

/// Compiles components within limits.
pub(crate) struct Compiler {
    /// The program that compiles; `None` for this process.
    pub(crate) program: Option<CompilerProgram>,
    pub(crate) limits: LoadLimits,
}

impl Compiler {
    /// Checks and compiles a component; blocks until it is done.
    pub(crate) fn compile(&self, order: Order<'_>) -> Result<Code, NotCompiled> {
        check::check(order.component, self.limits.size).map_err(NotCompiled::TooCostly)?;
        let code = match &self.program {
            Some(program) => child::compile(program, &self.limits, order)?,
            None => compile_here(order)?,
        };
        Ok(Code::from_bytes(code))
    }
}
