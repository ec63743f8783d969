//! The sandbox, which all plugins of a process share: engines, threads and memory.

use crate::budget::{AddressSpace, ChildLimits, Lanes, TooSmall, machine_limits};
use crate::compile::{self, Cache, Compiler, CompilerProgram, LoadLimits};
use crate::engine::{InstanceLimits, Shared, TickingEngines};
use crate::error::LoadError;
use crate::load::{Program, ProgramSpec};
use crate::outside::{ChatModel, HttpResponder, Outside, RewardModel, Written};
use crate::tape::Tape;
use gavel_endpoint::Limiter;
use std::io;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio::runtime::Handle;

/// The memory of all children is the plugins' memory divided by this, in addition to it.
const CHILDREN_SHARE: usize = 4;

/// The limits that all plugins share.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SandboxConfig {
    /// Threads for calls. One less than that, at a lower priority, continue the
    /// calls that last longer.
    pub threads: NonZeroUsize,
    /// Whether a model computes in this process, to which the calls yield; by default, none does.
    pub beside_model: bool,
    /// Bytes of memory of all instances together.
    pub memory: usize,
    /// The folder of compiled plugins; by default `components` in
    /// `$GAVEL_CACHE_DIR`, else in the user's cache of `gavel`.
    pub cache: Option<PathBuf>,
    /// The limits of loading a component.
    pub loading: LoadLimits,
    /// The program that compiles components in child processes; by default the
    /// program set with [`compile_with`](crate::compile_with).
    pub compiler: Option<CompilerProgram>,
    /// The longest pause of a run while servers are down that plugins ask, after which the run stops. By default, a
    /// pause lasts for as long as it takes.
    pub max_pause: Option<Duration>,
}

impl SandboxConfig {
    /// `threads`, and half of the machine's memory: the other half is for the
    /// model.
    pub fn with_threads(threads: NonZeroUsize) -> Self {
        let (loading, compiler) = (LoadLimits::default(), compile::default_program());
        let memory = machine_limits::memory() / 2;
        Self { threads, beside_model: false, memory, cache: None, loading, compiler, max_pause: None }
    }
}

/// Compiles components and runs their calls.
pub struct Sandbox {
    shared: Arc<Shared>,
}

impl Sandbox {
    /// Starts an engine, the threads for its calls, and the thread that interrupts
    /// them.
    ///
    /// # Errors
    /// A thread cannot be started, or the address space of the process is too small.
    pub fn new(config: SandboxConfig) -> Result<Self, LoadError> {
        machine_limits::allow_open_files();
        let space = AddressSpace::of_this_process()
            .map_err(|TooSmall { limit, needed }| LoadError::AddressSpace { limit, needed })?;
        let engine = |error: io::Error| LoadError::Engine(error.to_string());
        let shared = Shared {
            ticking: TickingEngines::start(space).map_err(engine)?,
            cache: match &config.cache {
                Some(folder) => Cache::open(folder),
                None => Cache::of_user(),
            },
            compiler: Compiler { program: config.compiler, limits: config.loading },
            lanes: Arc::new(Lanes::new(config.threads, config.beside_model).map_err(engine)?),
            instances: InstanceLimits::new(config.memory),
            children: Arc::new(ChildLimits::new(config.memory / CHILDREN_SHARE, space)),
            tape: OnceLock::new(),
            outside: Outside::with_max_pause(config.max_pause),
        };
        Ok(Self { shared: Arc::new(shared) })
    }

    /// The threads that calls are started on.
    pub fn handle(&self) -> &Handle {
        self.shared.lanes.handle()
    }

    /// Sets the tape that records or replays the answers from outside, for all
    /// later calls. A tape that is already set stays.
    pub fn use_tape(&self, tape: Tape) {
        // An error only means that there is one already.
        let _ = self.shared.tape.set(tape);
    }

    /// Adds a language model, with `concurrency` requests at once, for plugins that
    /// are granted `name` and loaded after this.
    pub fn add_chat(&self, name: impl Into<String>, model: Arc<dyn ChatModel>, concurrency: NonZeroUsize) {
        self.shared.outside.chat.add(name.into(), model, concurrency, self.handle().clone());
    }

    /// Adds a limiter, for plugins whose grants name it and which are loaded after this.
    pub fn add_limiter(&self, name: impl Into<String>, limiter: Limiter) {
        self.shared.outside.add_limiter(name.into(), limiter);
    }

    /// The limiter of this name, or the names of the configured limiters.
    pub fn limiter(&self, name: &str) -> Result<Limiter, Vec<String>> {
        self.shared.outside.limiter(name)
    }

    /// The longest pause of a run while servers are down.
    pub fn max_pause(&self) -> Option<Duration> {
        self.shared.outside.max_pause
    }

    /// Notes that the servers of all plugins have answered, because another process has tried them.
    pub fn note_answers(&self) {
        self.shared.outside.note_answers();
    }

    /// Why a run must stop: servers of a plugin are down, and the run does not wait for them, or no longer.
    pub fn must_stop(&self) -> Option<String> {
        self.shared.outside.must_stop()
    }

    /// Adds a reward model, for plugins that are granted `name` and loaded after this.
    pub fn add_reward_model(&self, name: impl Into<String>, model: Arc<dyn RewardModel>) {
        let (models, handle) = (&self.shared.outside.reward_models, self.handle().clone());
        models.add(name.into(), Arc::new(Written(model)), NonZeroUsize::MAX, handle);
    }

    /// Adds a program, for plugins that are granted its name and loaded after this.
    /// Returns BLAKE3 of its component, in hexadecimal.
    ///
    /// # Errors
    /// It is not a component with `wasi:cli/run`, or its limits exceed the limits of
    /// all children together.
    pub fn add_program(&self, spec: ProgramSpec) -> Result<String, LoadError> {
        let name = spec.name.clone();
        let program = Program::load(&self.shared, spec)?;
        let hash = program.hash.clone();
        self.shared.outside.programs.add(name, Arc::new(program), self.handle().clone());
        Ok(hash)
    }

    /// Lets `responder` answer the requests of plugins that are loaded after this,
    /// in place of all servers. A responder that is already set stays.
    pub fn answer_http(&self, responder: Arc<dyn HttpResponder>) {
        // An error only means that there is one already.
        let _ = self.shared.outside.http.set(responder);
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    /// The variable of a process whose address space is limited.
    const LIMITED: &str = "GAVEL_TEST_LIMITED";

    #[test]
    fn a_sandbox_without_address_space_is_refused() {
        if std::env::var_os(LIMITED).is_some() {
            let Err(error) = Sandbox::new(SandboxConfig::with_threads(NonZeroUsize::MIN)) else {
                panic!("it is accepted");
            };
            let error = error.to_string();
            let start = "the address space of this process is limited to 15625 MiB, and plugins need ";
            assert!(error.starts_with(start) && error.contains("\nhint: `ulimit -v unlimited` lifts"), "{error}");
            return;
        }
        let mut limited = Command::new("sh");
        limited.args(["-c", "ulimit -v 16000000 && exec \"$0\" \"$@\""]).arg(std::env::current_exe().unwrap());
        limited.args(["sandbox::tests::a_sandbox_without_address_space_is_refused", "--exact"]).env(LIMITED, "1");
        let output = limited.output().unwrap();
        assert!(output.status.success(), "{output:?}");
        assert!(String::from_utf8_lossy(&output.stdout).contains("1 passed"), "{output:?}");
    }
}
