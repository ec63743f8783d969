//! What belongs to one instance: its WASI context, its handles, its meter.

use crate::clock::{VirtualMonotonic, VirtualWall};
use crate::limits::{Limits, MemoryMeter};
use crate::stdio::Captured;
use wasmtime::component::ResourceTable;
use wasmtime::{Engine, Store, UpdateDeadline};
use wasmtime_wasi::{Deterministic, WasiCtx, WasiCtxBuilder, WasiCtxView, WasiView};

pub(crate) struct State {
    wasi: WasiCtx,
    pub(crate) table: ResourceTable,
    pub(crate) memory: MemoryMeter,
    pub(crate) stderr: Captured,
}

impl WasiView for State {
    fn ctx(&mut self) -> WasiCtxView<'_> {
        WasiCtxView { ctx: &mut self.wasi, table: &mut self.table }
    }
}

/// A store in which nothing is granted: no file, no network, no environment,
/// no real clock, and randomness that follows from `seed`.
pub(crate) fn store(engine: &Engine, limits: &Limits, seed: u64) -> Store<State> {
    let stderr = Captured::default();
    let wasi = WasiCtxBuilder::new()
        .wall_clock(VirtualWall)
        .monotonic_clock(VirtualMonotonic::default())
        .secure_random(Deterministic::new(random_bytes(seed)))
        .insecure_random(Deterministic::new(random_bytes(!seed)))
        .insecure_random_seed(u128::from(seed))
        .stderr(stderr.clone())
        .build();
    let memory = MemoryMeter::new(limits.memory);
    let mut store = Store::new(engine, State { wasi, table: ResourceTable::new(), memory, stderr });
    store.limiter(|state| &mut state.memory);
    store.set_hostcall_fuel(limits.output);
    // At every tick the call yields, which is when its deadline is looked at.
    store.set_epoch_deadline(1);
    store.epoch_deadline_callback(|_| Ok(UpdateDeadline::Yield(1)));
    store
}

/// The bytes that a plugin's random source repeats.
fn random_bytes(seed: u64) -> Vec<u8> {
    let mut bytes = vec![0; 256];
    blake3::Hasher::new().update(&seed.to_le_bytes()).finalize_xof().fill(&mut bytes);
    bytes
}
