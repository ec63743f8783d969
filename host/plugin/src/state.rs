//! What belongs to one instance: its WASI context, its handles, its meter.

use crate::clock::{VirtualMonotonic, VirtualWall};
use crate::limits::Limits;
use crate::meter::{MemoryMeter, MemoryUse, Reservation};
use crate::stdio::Log;
use crate::tape::CallTape;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use wasmtime::component::ResourceTable;
use wasmtime::{Engine, Store, UpdateDeadline};
use wasmtime_wasi::{Deterministic, WasiCtx, WasiCtxBuilder, WasiCtxView, WasiView};

pub(crate) struct State {
    wasi: WasiCtx,
    pub(crate) table: ResourceTable,
    memory: MemoryMeter,
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
    pub(crate) tape: CallTape,
    /// Set when the guest was interrupted.
    pub(crate) interrupted: Arc<AtomicBool>,
}

impl Traces {
    pub(crate) fn new(limits: &Limits, tape: CallTape) -> Self {
        Self { memory: Arc::default(), log: Log::new(limits.log), tape, interrupted: Arc::default() }
    }
}

/// A store in which nothing is granted: no file, no network, no environment,
/// no real clock, and randomness that follows from `seed`.
pub(crate) fn store(
    engine: &Engine,
    limits: &Limits,
    seed: u64,
    traces: &Traces,
    reserved: Reservation,
) -> wasmtime::Result<Store<State>> {
    let wasi = WasiCtxBuilder::new()
        .wall_clock(VirtualWall)
        .monotonic_clock(VirtualMonotonic::default())
        .secure_random(Deterministic::new(random_bytes(seed)))
        .insecure_random(Deterministic::new(random_bytes(!seed)))
        .insecure_random_seed(u128::from(seed))
        .stdout(traces.log.clone())
        .stderr(traces.log.clone())
        .build();
    let mut table = ResourceTable::new();
    table.set_max_capacity(limits.handles);
    let memory = MemoryMeter::new(limits.memory, traces.memory.clone(), reserved);
    let mut store = Store::new(engine, State { wasi, table, memory });
    store.limiter(|state| &mut state.memory);
    store.set_hostcall_fuel(limits.output);
    store.set_max_component_handles(limits.handles);
    if let Some(fuel) = limits.fuel {
        store.set_fuel(fuel)?;
    }
    // At every tick the call yields, which is when its time is looked at.
    store.set_epoch_deadline(1);
    let interrupted = traces.interrupted.clone();
    store.epoch_deadline_callback(move |_| {
        interrupted.store(true, Ordering::Relaxed);
        Ok(UpdateDeadline::Yield(1))
    });
    Ok(store)
}

/// The bytes that a plugin's random source repeats.
fn random_bytes(seed: u64) -> Vec<u8> {
    let mut bytes = vec![0; 256];
    blake3::Hasher::new().update(&seed.to_le_bytes()).finalize_xof().fill(&mut bytes);
    bytes
}
