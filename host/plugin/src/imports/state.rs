//! The state of one instance: its WASI context, its grants, its handles, its
//! meter.

use crate::budget::{Limits, MemoryReservation, MemoryUse, Pauses, RequestBudget};
use crate::episode::Episode;
use crate::grant::{CallGrants, Granted, Refusals};
use crate::imports::stdio::Log;
use crate::outside::{CallMeter, OutsideWaits};
use crate::tape::CallTape;
use std::any::Any;
use std::sync::Arc;
use wasmtime::component::ResourceTable;
use wasmtime::{Engine, Store, UpdateDeadline};
use wasmtime_wasi::filesystem::Descriptor;
use wasmtime_wasi::p2::pipe::MemoryInputPipe;
use wasmtime_wasi::{WasiCtx, WasiCtxBuilder, WasiCtxView, WasiView};
use wasmtime_wasi_http::{WasiHttpCtxView, WasiHttpView};

pub(crate) struct State {
    wasi: WasiCtx,
    pub(crate) grants: CallGrants,
    pub(crate) table: ResourceTable,
    /// The episode of an agent.
    pub(crate) episode: Option<Episode>,
    meter: CallMeter,
    traces: Traces,
}

impl State {
    /// Sets the number of handles that the plugin gets with its call; they do not count towards the limit of handles.
    /// Returns how many it may hold at once in all.
    pub(crate) fn give_handles(store: &mut Store<Self>, limits: &Limits, given: usize) -> usize {
        let handles = limits.handles.saturating_add(given);
        store.set_max_component_handles(handles);
        store.data_mut().table.set_max_capacity(handles);
        handles
    }

    /// Replaces its table, which holds nothing: a table that was larger would hold more than a new one may.
    pub(crate) fn renew_table(&mut self) {
        self.table = ResourceTable::new();
    }

    /// The number of folders that the plugin has open; `None` if it has any other handle.
    pub(crate) fn open_folders(&mut self) -> Option<usize> {
        let is_folder = |entry: &(dyn Any + Send)| matches!(entry.downcast_ref(), Some(Descriptor::Dir(_)));
        self.table.iter_mut().try_fold(0, |folders, entry| is_folder(entry).then_some(folders + 1))
    }

    /// The meter that is charged for the host's work for the call.
    pub(crate) fn meter(&self) -> &CallMeter {
        &self.meter
    }

    /// Begins `init`, which is not a call yet.
    pub(crate) fn begin_init(&mut self) {
        self.grants.begin_init();
    }

    /// Begins a call: from here on the plugin sees the clock and the random numbers
    /// of a call with this `seed`.
    pub(crate) fn begin_call(&mut self, granted: &Arc<Granted>, seed: u64) {
        (self.wasi, self.grants) = context(granted, seed, &self.traces, &self.meter);
    }

    /// Begins a further call, which has its own traces.
    pub(crate) fn begin_again(&mut self, granted: &Arc<Granted>, seed: u64, fresh: Traces) -> Traces {
        // The memory meter and the pauses belong to the store.
        let (memory, pauses) = (self.traces.memory.clone(), self.traces.pauses.clone());
        pauses.was_interrupted();
        pauses.worked();
        self.traces = Traces { memory, pauses, ..fresh };
        self.meter.begin_again(self.traces.requests.clone(), self.traces.waits.clone());
        self.begin_call(granted, seed);
        self.traces.clone()
    }
}

impl WasiView for State {
    fn ctx(&mut self) -> WasiCtxView<'_> {
        WasiCtxView { ctx: &mut self.wasi, table: &mut self.table }
    }
}

impl WasiHttpView for State {
    fn http(&mut self) -> WasiHttpCtxView<'_> {
        self.grants.http(&mut self.table)
    }
}

/// The traces of a call, which outlive its store.
#[derive(Clone)]
pub(crate) struct Traces {
    pub(crate) memory: Arc<MemoryUse>,
    pub(crate) log: Log,
    /// Requests that its grants did not cover.
    pub(crate) refusals: Refusals,
    pub(crate) tape: CallTape,
    pub(crate) requests: Arc<RequestBudget>,
    pub(crate) pauses: Arc<Pauses>,
    waits: OutsideWaits,
}

impl Traces {
    pub(crate) fn new(limits: &Limits, tape: CallTape, waits: OutsideWaits) -> Self {
        Self {
            memory: Arc::default(),
            log: Log::new(limits),
            refusals: Refusals::default(),
            tape,
            requests: RequestBudget::new(limits),
            pauses: Arc::default(),
            waits,
        }
    }

    fn meter(&self, limits: &Limits, reserved: MemoryReservation) -> CallMeter {
        let (memory, waits) = (self.memory.clone(), self.waits.clone());
        CallMeter::new(limits, memory, reserved, self.pauses.clone(), self.requests.clone(), waits)
    }
}

/// A store in which a call reaches only what is granted; `seed` is the seed of its
/// random numbers.
pub(crate) fn store(
    engine: &Engine,
    limits: &Limits,
    granted: &Arc<Granted>,
    seed: u64,
    traces: &Traces,
    reserved: MemoryReservation,
) -> wasmtime::Result<Store<State>> {
    let meter = traces.meter(limits, reserved);
    store_of(engine, limits, context(granted, seed, traces, &meter), traces, meter)
}

/// The input and the output of a child.
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

/// A store in which a program sees only its arguments and its input.
pub(crate) fn child_store(
    engine: &Engine,
    limits: &Limits,
    granted: &Arc<Granted>,
    seed: u64,
    traces: &Traces,
    reserved: MemoryReservation,
    io: &ChildIo,
) -> wasmtime::Result<Store<State>> {
    let mut wasi = WasiCtxBuilder::new();
    let meter = traces.meter(limits, reserved);
    let grants = granted.call(&mut wasi, seed, &traces.refusals, &traces.tape, &meter);
    wasi.args(&io.args).stdin(MemoryInputPipe::new(io.stdin.clone()));
    wasi.stdout(io.stdout.clone()).stderr(io.stderr.clone());
    store_of(engine, limits, (wasi.build(), grants), traces, meter)
}

/// A store with this WASI context, metered and interruptible.
fn store_of(
    engine: &Engine,
    limits: &Limits,
    (wasi, grants): (WasiCtx, CallGrants),
    traces: &Traces,
    meter: CallMeter,
) -> wasmtime::Result<Store<State>> {
    let mut table = ResourceTable::new();
    table.set_max_capacity(limits.handles);
    let mut store = Store::new(engine, State { wasi, grants, table, episode: None, meter, traces: traces.clone() });
    store.limiter(|state| &mut state.meter.memory);
    store.set_hostcall_fuel(limits.output);
    store.set_max_component_handles(limits.handles);
    if let Some(fuel) = limits.fuel {
        store.set_fuel(fuel)?;
    }
    // The call yields at every tick, and its time is checked then.
    store.set_epoch_deadline(1);
    let pauses = traces.pauses.clone();
    store.epoch_deadline_callback(move |_| {
        pauses.interrupt();
        Ok(UpdateDeadline::Yield(1))
    });
    Ok(store)
}

/// The WASI context and the grants of a call with this `seed`.
fn context(granted: &Arc<Granted>, seed: u64, traces: &Traces, meter: &CallMeter) -> (WasiCtx, CallGrants) {
    let mut wasi = WasiCtxBuilder::new();
    let grants = granted.call(&mut wasi, seed, &traces.refusals, &traces.tape, meter);
    (wasi.stdout(traces.log.clone()).stderr(traces.log.clone()).build(), grants)
}
