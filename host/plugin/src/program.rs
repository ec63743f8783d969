//! Programs that plugins may run: components with `wasi:cli/run`, each job in
//! a fresh instance that sees its arguments and its input, and nothing else.

use crate::compile::Form;
use crate::contract;
use crate::error::LoadError;
use crate::fault;
use crate::grant::Granted;
use crate::first_slice::History;
use crate::lanes::LaneEnd;
use crate::limits::Limits;
use crate::load;
use crate::memory_budget::{MemoryReservation, pages};
use crate::pauses::Pauses;
use crate::sandbox::Shared;
use crate::state::{ChildIo, State, Traces, child_store};
use crate::tape::Tape;
use gavel_data::{Budget, Outcome};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;
use wasmtime::Store;
use wasmtime_wasi::I32Exit;
use wasmtime_wasi::p2::bindings::CommandPre;

/// Children that live at once. They have their own share of the sandbox, so
/// that plugins which all wait for one cannot keep each other from it.
const CHILDREN: usize = 64;

/// A component that runs programs, and what each of them may use.
#[derive(Debug, Clone)]
pub struct ProgramSpec {
    /// Its name in the run.
    pub name: String,
    /// The component's file.
    pub path: PathBuf,
    /// The budgets of each job; `log` is what it may print.
    pub limits: Limits,
}

/// The room for children.
pub(crate) struct ChildLimits {
    children: Arc<Semaphore>,
    memory: Arc<Semaphore>,
    memory_bytes: usize,
}

impl ChildLimits {
    /// For children that together have `memory` bytes.
    pub(crate) fn new(memory: usize) -> Self {
        let all = Arc::new(Semaphore::new(pages(memory) as usize));
        Self { children: Arc::new(Semaphore::new(CHILDREN)), memory: all, memory_bytes: memory }
    }
}

/// A loaded program.
pub(crate) struct Program {
    /// BLAKE3 of the component, in hexadecimal.
    pub(crate) hash: String,
    limits: Limits,
    granted: Arc<Granted>,
    pre: CommandPre<State>,
    history: History,
}

/// What a child is to do.
pub(crate) struct ChildJob {
    pub(crate) args: Vec<String>,
    pub(crate) stdin: Vec<u8>,
    pub(crate) cpu: Option<Duration>,
    pub(crate) memory: Option<usize>,
    /// What it sees as random.
    pub(crate) seed: u64,
}

/// What became of a child.
pub(crate) struct ChildReport {
    pub(crate) ending: ChildEnding,
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: Vec<u8>,
    pub(crate) cpu: Duration,
}

/// How a child ended.
pub(crate) enum ChildEnding {
    Exited(u8),
    OutOfBudget(Budget),
    Trapped(String),
}

impl Program {
    /// Reads, compiles and checks a program.
    pub(crate) fn load(shared: &Shared, spec: ProgramSpec) -> Result<Self, LoadError> {
        let ProgramSpec { name, path, limits } = spec;
        let allowed = shared.child_limits.memory_bytes;
        if limits.memory > allowed {
            return Err(LoadError::MemoryLimit { plugin: name, asked: limits.memory, allowed });
        }
        let bytes = load::read(&name, &path)?;
        let engines = shared.engines(&limits);
        let code = load::compile_once(shared, engines, &name, &path, &bytes, Form::Plain)?;
        let placed = engines.place_on_demand(&code)?;
        contract::check_program(&name, placed.engine(), &placed.component)?;
        let mismatch =
            |error: wasmtime::Error| LoadError::Mismatch { plugin: name.clone(), what: format!("{error:#}") };
        let pre = placed.link().map_err(mismatch)?;
        let pre = CommandPre::new(pre).map_err(mismatch)?;
        let granted = Granted::nothing().map_err(|source| LoadError::Grant { plugin: name.clone(), source })?;
        let hash = blake3::hash(&bytes).to_hex().to_string();
        Ok(Self { hash, limits, granted, pre, history: History::default() })
    }

    /// Runs a job; what it used is charged to the call that `pauses` belongs
    /// to, and the wait for room is not: that call must count as queued.
    pub(crate) async fn run(self: &Arc<Self>, shared: &Arc<Shared>, job: ChildJob, pauses: &Arc<Pauses>) -> Option<ChildReport> {
        let mut limits = Limits {
            cpu: job.cpu.map_or(self.limits.cpu, |cpu| cpu.min(self.limits.cpu)),
            memory: job.memory.map_or(self.limits.memory, |memory| memory.min(self.limits.memory)),
            // All that it hands to the host is what it prints, for which it has a budget of its own.
            output: self.limits.output.max(self.limits.log.saturating_add(1)),
            ..self.limits
        };
        let _room = shared.child_limits.children.clone().acquire_owned().await.ok()?;
        // What it prints lies beside its memory.
        let bytes = limits.memory.saturating_add(limits.log).min(shared.child_limits.memory_bytes);
        let reserved = MemoryReservation::wait(&shared.child_limits.memory, bytes).await?;
        // The call has no timer while its children run: it is over when one of them has used up what it had left.
        limits.deadline = limits.deadline.min(pauses.left());
        let traces = Traces::new(&limits, Tape::Off.of_call("", "", 0));
        let io = ChildIo::new(&limits, job.args, job.stdin);
        let engine = self.pre.engine();
        let store = child_store(engine, &limits, &self.granted, job.seed, &traces, reserved, &io).ok()?;
        let child = start(self.clone(), store, shared.clone());
        let (ended, time) = shared.lanes.run(child, limits, traces.pauses.clone(), &self.history).await;
        pauses.charge(time.elapsed());
        let ending = match (traces.memory.refused(), ended) {
            (Some(_), _) => ChildEnding::OutOfBudget(Budget::Memory),
            (None, LaneEnd::Done(Ok(status))) => ChildEnding::Exited(status),
            (None, LaneEnd::Done(Err(error))) => failed(&error, &limits),
            (None, LaneEnd::OverBudget(budget)) => ChildEnding::OutOfBudget(budget),
            (None, LaneEnd::Lost(_)) => return None,
        };
        Some(ChildReport { ending, stdout: io.stdout.bytes(), stderr: io.stderr.bytes(), cpu: time.cpu })
    }
}

/// Its status. The store goes with the future, however that ends. A loop that
/// is given up ends at a tick, and ticks end with what all share.
async fn start(program: Arc<Program>, mut store: Store<State>, _shared: Arc<Shared>) -> wasmtime::Result<u8> {
    let command = program.pre.instantiate_async(&mut store).await?;
    Ok(u8::from(command.wasi_cli_run().call_run(&mut store).await?.is_err()))
}

fn failed(error: &wasmtime::Error, limits: &Limits) -> ChildEnding {
    if let Some(exit) = error.downcast_ref::<I32Exit>() {
        return ChildEnding::Exited(exit.0 as u8);
    }
    match fault::outcome(error, limits, "") {
        Outcome::OutOfBudget { which, .. } => ChildEnding::OutOfBudget(which),
        outcome => ChildEnding::Trapped(outcome.reason().unwrap_or_default()),
    }
}
