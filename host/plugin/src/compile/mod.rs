//! Compiles a component to machine code. The component is checked first, then
//! compiled in a child process, since nothing else limits what a compiler uses.
//! There its core modules are merged into one where its form allows it.

mod cache;
mod check;
mod child;
mod code;
mod engine_config;
mod functions;
mod globals;
mod here;
mod limits;
mod merge;
mod order;
mod output;
mod reserved;
mod reset;
mod snapshot;
mod split;
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
pub(crate) use split::{code_name, is_code_name};

use code::Stored;
use here::compile_here;
use output::{ModuleOutput, Output};
use std::path::Path;
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
    pub(crate) fn compile(&self, order: Order<'_>, cache: &Cache) -> Result<Code, NotCompiled> {
        check::check(order.component, self.limits.size).map_err(NotCompiled::TooCostly)?;
        if let Some(code) = stored(self.run(order, cache.folder())?, cache) {
            return Ok(code);
        }
        // Code was removed from the cache meanwhile.
        let output = self.run(order, None)?;
        stored(output, cache).ok_or_else(|| NotCompiled::Host("the compiler left code out".into()))
    }

    /// `cache` is the folder that may have the code that is split off.
    fn run(&self, order: Order<'_>, cache: Option<&Path>) -> Result<Output, NotCompiled> {
        match &self.program {
            Some(program) => child::compile(program, &self.limits, order, cache),
            None => compile_here(order, cache),
        }
    }
}

/// The code that was compiled, with the modules in the cache; `None` if one is not there any more.
fn stored(output: Output, cache: &Cache) -> Option<Code> {
    let modules = output.modules.into_iter().map(|module| stored_module(module, cache)).collect::<Option<_>>()?;
    Some(Code { component: Stored::from_bytes(output.component), modules })
}

fn stored_module(module: ModuleOutput, cache: &Cache) -> Option<Stored> {
    match module.code {
        Some(code) => Some(cache.keep(&module.key, &(), Code::alone(code)).component),
        None => cache.find::<()>(&module.key).map(|((), code)| code.component),
    }
}
