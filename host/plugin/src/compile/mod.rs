//! From a component to machine code: checked first, then compiled in a process
//! of its own, since nothing else bounds what a compiler uses.

mod check;
mod child;
mod functions;

pub use check::TooCostly;
pub use child::{COMPILE_COMMAND, compile_command};

use crate::code::Code;
use crate::engine;
use crate::snapshot;
use functions::Functions;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Duration;

/// What it may take to load a component.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoadLimits {
    /// Bytes of the component. reasoning-gym, CPython with its packages and
    /// their data, has 134 MB.
    pub size: usize,
    /// Bytes of address space that the compiler may take beside the program
    /// itself. reasoning-gym takes 1.2 GB.
    pub memory: usize,
    /// Processor time of the compiler, all threads together. CPython takes 12 s.
    pub cpu: Duration,
    /// Wall-clock time of the compiler, for a machine that is busy.
    pub timeout: Duration,
}

impl Default for LoadLimits {
    fn default() -> Self {
        Self { size: 512 << 20, memory: 4 << 30, cpu: Duration::from_secs(120), timeout: Duration::from_secs(600) }
    }
}

/// A limit of [`LoadLimits`] that the compiler exceeded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LoadBudget {
    /// [`LoadLimits::memory`]
    Memory,
    /// [`LoadLimits::cpu`]
    Cpu,
    /// [`LoadLimits::timeout`]
    Timeout,
}

impl LoadBudget {
    /// Its key in a configuration.
    pub fn key(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Cpu => "cpu",
            Self::Timeout => "timeout",
        }
    }
}

static PROGRAM: OnceLock<PathBuf> = OnceLock::new();

/// Compiles components in child processes of this process from now on.
/// `program` must answer [`COMPILE_COMMAND`] with [`compile_command`]. Without
/// one, components are compiled in this process, and only the check of their
/// form guards it.
pub fn compile_with(program: PathBuf) {
    // What was set first stays.
    let _ = PROGRAM.set(program);
}

/// The program of [`compile_with`].
pub(crate) fn default_program() -> Option<PathBuf> {
    PROGRAM.get().cloned()
}

/// Compiles components within limits.
pub(crate) struct Compiler {
    /// What compiles; this process where there is none.
    pub(crate) program: Option<PathBuf>,
    pub(crate) limits: LoadLimits,
}

/// A component to compile.
#[derive(Clone, Copy)]
pub(crate) struct Order<'a> {
    pub(crate) component: &'a [u8],
    pub(crate) form: Form,
    /// Whether the code meters fuel.
    pub(crate) fuel: bool,
    /// Where the code of single functions is kept, so that the component with
    /// other data in it is compiled in a third of the time.
    pub(crate) functions: Option<&'a Path>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Form {
    /// As it was built.
    Plain,
    /// With functions that read out its memory, for a snapshot.
    Instrumented,
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

impl Compiler {
    /// Checks and compiles a component; blocks meanwhile.
    pub(crate) fn compile(&self, order: Order<'_>) -> Result<Code, NotCompiled> {
        check::check(order.component, self.limits.size).map_err(NotCompiled::TooCostly)?;
        let code = match &self.program {
            Some(program) => child::compile(program, &self.limits, order)?,
            None => compile_here(order)?,
        };
        Ok(Code::from_bytes(code))
    }
}

/// Compiles in this process.
fn compile_here(order: Order<'_>) -> Result<Vec<u8>, NotCompiled> {
    let invalid = |error: wasmtime::Error| NotCompiled::Invalid(chain(&error));
    let instrumented = match order.form {
        Form::Plain => None,
        Form::Instrumented => Some(snapshot::instrument(order.component).map_err(NotCompiled::Invalid)?),
    };
    let functions = order.functions.map(Functions::open);
    let engine = engine::compiling(order.fuel, functions.clone().map(|known| known as _)).map_err(invalid)?;
    let component = instrumented.as_deref().unwrap_or(order.component);
    let code = engine.precompile_component(component).map_err(invalid)?;
    // Without the file, the next snapshot only takes longer.
    if let Some(Err(error)) = functions.map(|functions| functions.keep()) {
        tracing::debug!("the functions of a component are not kept: {error}");
    }
    Ok(code)
}

/// An error and its causes in one line.
pub(crate) fn chain(error: &wasmtime::Error) -> String {
    error.chain().map(|cause| cause.to_string()).collect::<Vec<_>>().join(": ")
}
