//! What all plugins of a process share: engines, threads and memory.

use crate::cache::Cache;
use crate::chat::{ChatModel, Endpoints};
use crate::compile::{self, Compiler, LoadLimits};
use crate::engine::{Engines, Slots};
use crate::error::LoadError;
use crate::grant::HttpResponder;
use crate::lanes::Lanes;
use crate::limits::Limits;
use crate::machine;
use crate::memory_budget::{MemoryReservation, pages};
use crate::program::{ChildLimits, Program, ProgramSpec};
use crate::idle_instances::IdleInstances;
use crate::instance::InstancePermit;
use crate::tape::Tape;
use std::collections::BTreeMap;
use std::num::{NonZeroU32, NonZeroUsize};
use std::path::PathBuf;
use std::pin::pin;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::sync::Semaphore;
use tokio::time::timeout;

/// How long a guest runs before it lets others run and its time is looked at.
/// Shorter ticks are fairer; below this they cost more than they give.
const TICK: Duration = Duration::from_micros(500);

/// Children may have this part of all memory beside what plugins have.
const CHILDREN_SHARE: usize = 4;

/// What plugins may use together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SandboxConfig {
    /// Threads for calls; as many less one, at a lower priority, take over the
    /// calls that last.
    pub threads: NonZeroUsize,
    /// Bytes of memory of all instances together.
    pub memory: usize,
    /// Where compiled plugins are kept; by default `components` in
    /// `$GAVEL_CACHE_DIR`, else in the user's cache of `gavel`.
    pub cache: Option<PathBuf>,
    /// What it may take to load a component.
    pub loading: LoadLimits,
    /// The program that compiles components in processes of its own; by default
    /// that of [`compile_with`](crate::compile_with).
    pub compiler: Option<PathBuf>,
}

impl SandboxConfig {
    /// `threads`, and half of the machine's memory: the other half is the
    /// model's.
    pub fn with_threads(threads: NonZeroUsize) -> Self {
        let (loading, compiler) = (LoadLimits::default(), compile::default_program());
        Self { threads, memory: machine::memory() / 2, cache: None, loading, compiler }
    }
}

/// Compiles components and runs their calls.
pub struct Sandbox {
    shared: Arc<Shared>,
}

/// What answers plugins from outside.
#[derive(Default)]
pub(crate) struct Outside {
    pub(crate) chat: Endpoints,
    pub(crate) programs: Programs,
    /// Stands in for all servers.
    http: OnceLock<Arc<dyn HttpResponder>>,
}

/// The programs that plugins may run, by name.
#[derive(Default)]
pub(crate) struct Programs(Mutex<BTreeMap<String, Arc<Program>>>);

impl Programs {
    fn add(&self, name: String, program: Program) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(name, Arc::new(program));
    }

    pub(crate) fn get(&self, name: &str) -> Option<Arc<Program>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(name).cloned()
    }

    pub(crate) fn names(&self) -> Vec<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).keys().cloned().collect()
    }
}

impl Outside {
    pub(crate) fn http(&self) -> Option<Arc<dyn HttpResponder>> {
        self.http.get().cloned()
    }
}

/// The part that calls hold on to.
pub(crate) struct Shared {
    plain: Engines,
    /// Fuel is a setting of the compiler, so that it needs engines of its own.
    fuelled: Engines,
    pub(crate) cache: Cache,
    pub(crate) compiler: Compiler,
    pub(crate) lanes: Lanes,
    memory: Arc<Semaphore>,
    memory_bytes: usize,
    instances: Arc<Semaphore>,
    idle: Mutex<Vec<Weak<IdleInstances>>>,
    tape: OnceLock<Tape>,
    pub(crate) outside: Outside,
    pub(crate) child_limits: ChildLimits,
}

impl Sandbox {
    /// Starts an engine, the threads for its calls, and the one that
    /// interrupts them.
    pub fn new(config: SandboxConfig) -> Result<Self, LoadError> {
        machine::allow_open_files();
        let engine = |error: std::io::Error| LoadError::Engine(error.to_string());
        let shared = Arc::new(Shared {
            plain: Engines::new(false),
            fuelled: Engines::new(true),
            cache: match &config.cache {
                Some(folder) => Cache::open(folder),
                None => Cache::of_user(),
            },
            compiler: Compiler { program: config.compiler, limits: config.loading },
            lanes: Lanes::new(config.threads).map_err(engine)?,
            memory: Arc::new(Semaphore::new(pages(config.memory) as usize)),
            memory_bytes: config.memory,
            instances: Arc::new(Semaphore::new(machine::max_instances())),
            idle: Mutex::default(),
            tape: OnceLock::new(),
            outside: Outside::default(),
            child_limits: ChildLimits::new(config.memory / CHILDREN_SHARE),
        });
        // Plugins may outlive the sandbox, and need it as long as they are there.
        let ticked = Arc::downgrade(&shared);
        std::thread::Builder::new()
            .name("gavel-epoch".into())
            .spawn(move || {
                while let Some(shared) = ticked.upgrade() {
                    shared.plain.tick();
                    shared.fuelled.tick();
                    drop(shared);
                    std::thread::sleep(TICK);
                }
            })
            .map_err(engine)?;
        Ok(Self { shared })
    }

    /// The threads that calls are started on.
    pub fn handle(&self) -> &Handle {
        self.shared.lanes.handle()
    }

    /// Says what becomes of the answers that plugins get from outside, for all
    /// calls after this. What was said first stays.
    pub fn use_tape(&self, tape: Tape) {
        // An error only says that there is one already.
        let _ = self.shared.tape.set(tape);
    }

    /// Gives plugins that are loaded after this, and granted `name`, a language
    /// model to ask, `concurrency` requests at once.
    pub fn add_chat(&self, name: impl Into<String>, model: Arc<dyn ChatModel>, concurrency: NonZeroUsize) {
        self.shared.outside.chat.add(name.into(), model, concurrency, self.handle().clone());
    }

    /// Gives plugins that are loaded after this, and granted its name, a
    /// program to run; returns BLAKE3 of its component, in hexadecimal.
    ///
    /// # Errors
    /// It is no component with `wasi:cli/run`, or may use more than there is.
    pub fn add_program(&self, spec: ProgramSpec) -> Result<String, LoadError> {
        let name = spec.name.clone();
        let program = Program::load(&self.shared, spec)?;
        let hash = program.hash.clone();
        self.shared.outside.programs.add(name, program);
        Ok(hash)
    }

    /// Lets `responder` answer the requests of plugins that are loaded after
    /// this, in place of all servers. What was said first stays.
    pub fn answer_http(&self, responder: Arc<dyn HttpResponder>) {
        // An error only says that there is one already.
        let _ = self.shared.outside.http.set(responder);
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }
}

/// How long a call waits for room before idle instances make it.
const PATIENCE: Duration = Duration::from_millis(50);

impl Shared {
    /// The engines for calls with these limits.
    pub(crate) fn engines(&self, limits: &Limits) -> &Engines {
        if limits.fuel.is_some() { &self.fuelled } else { &self.plain }
    }

    /// Bytes of memory that all instances together may use.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.memory_bytes
    }

    /// What becomes of the answers that plugins get from outside.
    pub(crate) fn tape(&self) -> &Tape {
        self.tape.get().unwrap_or(&Tape::Off)
    }

    /// Waits, in turn, until one more instance may live and has `bytes` of
    /// memory.
    pub(crate) async fn permit(&self, slots: &Slots, bytes: usize) -> Option<(InstancePermit, MemoryReservation)> {
        let mut waiting = pin!(async {
            let _admission = self.instances.clone().acquire_owned().await.ok()?;
            let _slot = slots.wait().await;
            Some((InstancePermit { _slot, _admission }, self.reserve(bytes).await?))
        });
        loop {
            match timeout(PATIENCE, &mut waiting).await {
                Ok(permitted) => return permitted,
                Err(_) => self.all_idle().iter().for_each(|idle| idle.clear()),
            }
        }
    }

    /// Idle instances of a plugin, which make room when others wait for it.
    pub(crate) fn idle_instances(&self, calls: NonZeroU32) -> Arc<IdleInstances> {
        let instances = Arc::new(IdleInstances::new(calls));
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(Arc::downgrade(&instances));
        instances
    }

    fn all_idle(&self) -> Vec<Arc<IdleInstances>> {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        idle.retain(|instances| instances.strong_count() > 0);
        idle.iter().filter_map(Weak::upgrade).collect()
    }

    /// Waits, in turn, until `bytes` of memory are free.
    async fn reserve(&self, bytes: usize) -> Option<MemoryReservation> {
        MemoryReservation::wait(&self.memory, bytes).await
    }
}
