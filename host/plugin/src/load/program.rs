//! Programs that plugins may run: components with `wasi:cli/run`. Each job runs in
//! a fresh instance that sees its arguments and its input, and nothing else.

use crate::budget::{ChildLimits, History, LaneEnd, Lanes, Limits, Pauses};
use crate::call::fault;
use crate::compile::Form;
use crate::engine::{Shared, TickingEngines};
use crate::error::LoadError;
use crate::grant::Granted;
use crate::imports::{ChildIo, State, Traces, child_store};
use crate::load::component::{compile_once, read};
use crate::load::contract;
use crate::load::spec::ProgramSpec;
use crate::outside::{CallMeter, ChildEnding, ChildJob, ChildReport, OutsideWaits, RunProgram};
use crate::tape::{QueueTime, Tape};
use futures::FutureExt;
use futures::future::BoxFuture;
use gavel_data::{Budget, Outcome};
use std::sync::Arc;
use wasmtime::Store;
use wasmtime_wasi::I32Exit;
use wasmtime_wasi::p2::bindings::CommandPre;

/// A loaded program.
pub(crate) struct Program {
    /// BLAKE3 of the component, in hexadecimal.
    pub(crate) hash: String,
    limits: Limits,
    granted: Arc<Granted>,
    pre: CommandPre<State>,
    history: History,
    lanes: Arc<Lanes>,
    children: Arc<ChildLimits>,
    /// The ticks end a loop whose call has ended.
    _ticking: Arc<TickingEngines>,
}

impl Program {
    /// Reads, compiles and checks a program.
    pub(crate) fn load(shared: &Shared, spec: ProgramSpec) -> Result<Self, LoadError> {
        let ProgramSpec { name, path, limits } = spec;
        let allowed = shared.children.memory_bytes();
        if limits.memory > allowed {
            return Err(LoadError::MemoryLimit { plugin: name, asked: limits.memory, allowed });
        }
        let bytes = read(shared, &name, &path)?;
        let engines = shared.engines(&limits);
        let code = compile_once(shared, engines, &name, &path, &bytes, Form::Plain)?;
        let placed = engines.place_on_demand(&code)?;
        contract::check_program(&name, placed.engine(), &placed.component)?;
        let mismatch =
            |error: wasmtime::Error| LoadError::Mismatch { plugin: name.clone(), what: format!("{error:#}") };
        let pre = placed.link().map_err(mismatch)?;
        let pre = CommandPre::new(pre).map_err(mismatch)?;
        let granted = Granted::nothing().map_err(|source| LoadError::Grant { plugin: name.clone(), source })?;
        let hash = blake3::hash(&bytes).to_hex().to_string();
        Ok(Self {
            hash,
            limits,
            granted,
            pre,
            history: History::default(),
            lanes: shared.lanes.clone(),
            children: shared.children.clone(),
            _ticking: shared.ticking.clone(),
        })
    }

    /// Runs a job; its use is charged to the call of `pauses`, and `queued` ends once there is a place for it.
    async fn run_child(
        self: Arc<Self>,
        job: ChildJob,
        seed: u64,
        pauses: &Pauses,
        queued: &QueueTime,
    ) -> Option<ChildReport> {
        let mut limits = Limits {
            cpu: job.cpu.map_or(self.limits.cpu, |cpu| cpu.min(self.limits.cpu)),
            memory: job.memory.map_or(self.limits.memory, |memory| memory.min(self.limits.memory)),
            // A child passes only its printed output to the host, and that has its own budget.
            output: self.limits.output.max(self.limits.log.saturating_add(1)),
            ..self.limits
        };
        // The host holds the child's printed output in addition to its memory.
        let (_permit, reserved) = self.children.permit(limits.memory.saturating_add(limits.log)).await?;
        queued.stop();
        // The call has no timer while its children run: it ends when one of them has used up its remaining time.
        limits.deadline = limits.deadline.min(pauses.left());
        let traces = Traces::new(&limits, Tape::Off.of_call("", "", 0), OutsideWaits::default());
        let args = std::iter::once(job.program).chain(job.args).collect();
        let io = ChildIo::new(&limits, args, job.stdin);
        let engine = self.pre.engine();
        let store = child_store(engine, &limits, &self.granted, seed, &traces, reserved, &io).ok()?;
        let child = start(self.clone(), store);
        let (end, time) = self.lanes.run(child, limits, traces.pauses.clone(), &self.history).await;
        pauses.charge(time.elapsed());
        let ending = match (traces.memory.refused(), end) {
            (Some(_), _) => ChildEnding::OutOfBudget(Budget::Memory),
            (None, LaneEnd::Done(Ok(status))) => ChildEnding::Exited(status),
            (None, LaneEnd::Done(Err(error))) => failed(&error, &limits),
            (None, LaneEnd::OverBudget(budget)) => ChildEnding::OutOfBudget(budget),
            (None, LaneEnd::Lost(_)) => return None,
        };
        Some(ChildReport { ending, stdout: io.stdout.bytes(), stderr: io.stderr.bytes(), cpu: time.cpu })
    }
}

impl RunProgram for Program {
    fn run(
        self: Arc<Self>,
        job: ChildJob,
        seed: u64,
        parent: CallMeter,
        queued: Arc<QueueTime>,
    ) -> BoxFuture<'static, Option<ChildReport>> {
        async move { self.run_child(job, seed, parent.pauses(), &queued).await }.boxed()
    }
}

/// The exit status of a child. The store is dropped with the future, however that
/// ends. The program lives until then, since its ticks end a loop.
async fn start(program: Arc<Program>, mut store: Store<State>) -> wasmtime::Result<u8> {
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
