//! What belongs to one instance: its WASI context, its grants, its handles,
//! its meter.

use crate::grant::{CallGrants, Granted, Refusals};
use crate::limits::Limits;
use crate::meter::{MemoryMeter, MemoryUse, Reservation};
use crate::pauses::Pauses;
use crate::stdio::Log;
use crate::tape::CallTape;
use std::sync::Arc;
use wasmtime::component::ResourceTable;
use wasmtime::{Engine, Store, UpdateDeadline};
use wasmtime_wasi::p2::pipe::MemoryInputPipe;
use wasmtime_wasi::{WasiCtx, WasiCtxBuilder, WasiCtxView, WasiView};

pub(crate) struct State {
    wasi: WasiCtx,
    pub(crate) grants: CallGrants,
    pub(crate) table: ResourceTable,
    memory: MemoryMeter,
    traces: Traces,
}

impl State {
    /// From here on `init` runs, which is not yet a call.
    pub(crate) fn begin_init(&mut self) {
        self.grants.begin_init();
    }

    /// From here on the plugin sees what a call of this `seed` sees from its
    /// beginning.
    pub(crate) fn begin_call(&mut self, granted: &Arc<Granted>, seed: u64) {
        (self.wasi, self.grants) = context(granted, seed, &self.traces);
    }

    /// Makes the state that of a further call, which leaves traces of its own.
    pub(crate) fn begin_again(&mut self, granted: &Arc<Granted>, limits: &Limits, seed: u64, tape: CallTape) -> Traces {
        let fresh = Traces::new(limits, tape);
        // The meter and the interruption belong to the store.
        let (memory, pauses) = (self.traces.memory.clone(), self.traces.pauses.clone());
        pauses.was_interrupted();
        self.traces = Traces { memory, pauses, ..fresh };
        self.begin_call(granted, seed);
        self.traces.clone()
    }
}

impl WasiView for State {
    fn ctx(&mut self) -> WasiCtxView<'_> {
        WasiCtxView { ctx: &mut self.wasi, table: &mut self.table }
    }
}

/// What a call leaves behind when its store is gone.
#[derive(Clone)]
pub(crate) struct Traces {
    pub(crate) memory: Arc<MemoryUse>,
    pub(crate) log: Log,
    /// Requests that its grants did not cover.
    pub(crate) refusals: Refusals,
    pub(crate) tape: CallTape,
    pub(crate) pauses: Arc<Pauses>,
}

impl Traces {
    pub(crate) fn new(limits: &Limits, tape: CallTape) -> Self {
        Self {
            memory: Arc::default(),
            log: Log::new(limits),
            refusals: Refusals::default(),
            tape,
            pauses: Arc::default(),
        }
    }
}

/// A store in which a call sees what is granted and nothing else; `seed` is
/// what it sees as random.
pub(crate) fn store(
    engine: &Engine,
    limits: &Limits,
    granted: &Arc<Granted>,
    seed: u64,
    traces: &Traces,
    reserved: Reservation,
) -> wasmtime::Result<Store<State>> {
    store_of(engine, limits, context(granted, seed, traces), traces, reserved)
}

/// What goes into a child and comes out of it.
pub(crate) struct ChildIo {
    args: Vec<String>,
    stdin: bytes::Bytes,
    pub(crate) stdout: Log,
    pub(crate) stderr: Log,
}

impl ChildIo {
    pub(crate) fn new(limits: &Limits, args: Vec<String>, stdin: Vec<u8>) -> Self {
        let [stdout, stderr] = Log::pair(limits.log);
        Self { args, stdin: stdin.into(), stdout, stderr }
    }
}

/// A store in which a program sees its arguments and its input.
pub(crate) fn child_store(
    engine: &Engine,
    limits: &Limits,
    granted: &Arc<Granted>,
    seed: u64,
    traces: &Traces,
    reserved: Reservation,
    io: &ChildIo,
) -> wasmtime::Result<Store<State>> {
    let mut wasi = WasiCtxBuilder::new();
    let grants = granted.call(&mut wasi, seed, traces);
    wasi.args(&io.args).stdin(MemoryInputPipe::new(io.stdin.clone()));
    wasi.stdout(io.stdout.clone()).stderr(io.stderr.clone());
    store_of(engine, limits, (wasi.build(), grants), traces, reserved)
}

/// A store with this view of the world, metered and interruptible.
fn store_of(
    engine: &Engine,
    limits: &Limits,
    (wasi, grants): (WasiCtx, CallGrants),
    traces: &Traces,
    reserved: Reservation,
) -> wasmtime::Result<Store<State>> {
    let mut table = ResourceTable::new();
    table.set_max_capacity(limits.handles);
    let memory = MemoryMeter::new(limits.memory, traces.memory.clone(), reserved);
    let mut store = Store::new(engine, State { wasi, grants, table, memory, traces: traces.clone() });
    store.limiter(|state| &mut state.memory);
    store.set_hostcall_fuel(limits.output);
    store.set_max_component_handles(limits.handles);
    if let Some(fuel) = limits.fuel {
        store.set_fuel(fuel)?;
    }
    // At every tick the call yields, which is when its time is looked at.
    store.set_epoch_deadline(1);
    let pauses = traces.pauses.clone();
    store.epoch_deadline_callback(move |_| {
        pauses.interrupt();
        Ok(UpdateDeadline::Yield(1))
    });
    Ok(store)
}

/// What a call of this `seed` sees of the world.
fn context(granted: &Arc<Granted>, seed: u64, traces: &Traces) -> (WasiCtx, CallGrants) {
    let mut wasi = WasiCtxBuilder::new();
    let grants = granted.call(&mut wasi, seed, traces);
    (wasi.stdout(traces.log.clone()).stderr(traces.log.clone()).build(), grants)
}
