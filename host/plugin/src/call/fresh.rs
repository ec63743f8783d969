//! A call in a fresh instance, within its budgets.

use crate::budget::{MemoryReservation, Turn};
use crate::call::loaded::Loaded;
use crate::call::report::{CallReport, GuestResult};
use crate::engine::{FreshStore, InstancePermit, Shared};
use crate::imports::{State, Traces, store};
use crate::outside::OutsideWaits;
use std::future::Future;
use std::sync::Arc;
use wasmtime::Store;

/// The seed of `init`. Its random numbers are the same whether it runs once, for
/// a snapshot, or in each instance.
const INIT_SEED: u64 = 0;

/// The inputs of a call beside its question.
#[derive(Clone)]
pub(crate) struct CallSetup<'a> {
    /// Distinguishes it from other calls of the same plugin and seed.
    pub(crate) input: &'a str,
    pub(crate) seed: u64,
    /// The place where its requests are noted.
    pub(crate) waits: OutsideWaits,
}

impl CallSetup<'_> {
    /// The setup of `init`.
    pub(crate) fn init() -> Self {
        Self { input: "", seed: INIT_SEED, waits: OutsideWaits::default() }
    }

    /// The traces of a new call.
    pub(crate) fn traces(&self, plugin: &Loaded) -> Traces {
        let tape = plugin.shared.tape().of_call(&plugin.name, self.input, self.seed);
        let tape = tape.made_for(self.waits.subject());
        Traces::new(&plugin.limits, tape, self.waits.clone())
    }
}

/// A store for an instance that its episode keeps. The instance's memory comes from the episode's rooms.
pub(crate) fn kept_store(plugin: &Loaded, seed: u64, traces: &Traces) -> wasmtime::Result<Store<State>> {
    let seed = if plugin.no_snapshot.is_some() { INIT_SEED } else { seed };
    let memory = MemoryReservation::of_its_own(plugin.limits.memory);
    store(plugin.linked.instance_pre.engine(), &plugin.limits, &plugin.granted, seed, traces, memory)
}

/// Runs `work` in a store that has no instance yet. If all memory is in use,
/// though the call's own limit allows more, the call is repeated once there is
/// memory for its whole limit.
pub(crate) async fn run_fresh<T, W>(
    plugin: &Arc<Loaded>,
    turn: Turn,
    setup: &CallSetup<'_>,
    work: impl Fn(Arc<Loaded>, FreshStore) -> W,
) -> CallReport<T>
where
    T: Send + 'static,
    W: Future<Output = GuestResult<T>> + Send + 'static,
{
    let mut turn = Some(turn);
    for bytes in [plugin.first_reservation, plugin.limits.memory] {
        let Some((turn, (permit, reserved))) = room(plugin, turn.take(), bytes).await else {
            return CallReport::lost("the sandbox was shut down");
        };
        let traces = setup.traces(plugin);
        // Without a snapshot, `init` runs in this instance. Until `init` ends, the seed is the same as for a snapshot.
        let seed = if plugin.no_snapshot.is_some() { INIT_SEED } else { setup.seed };
        let engine = plugin.linked.instance_pre.engine();
        let store = match store(engine, &plugin.limits, &plugin.granted, seed, &traces, reserved) {
            Ok(store) => store,
            Err(error) => return CallReport::lost(&format!("no store for a call: {error:#}")),
        };
        let call = work(plugin.clone(), FreshStore { store, permit: Some(permit) });
        let lanes = &plugin.shared.lanes;
        let (end, time) = lanes.run_now(turn, call, plugin.limits, traces.pauses.clone(), &plugin.history).await;
        if !traces.memory.crowded() {
            return CallReport::new(plugin, end, time, &traces);
        }
    }
    CallReport::lost("a call found no memory although it was reserved")
}

/// A turn to run, and room for an instance with `bytes` of memory. A call gives its turn up while it waits for room,
/// which calls that have one will leave.
async fn room(
    plugin: &Loaded,
    turn: Option<Turn>,
    bytes: usize,
) -> Option<(Turn, (InstancePermit, MemoryReservation))> {
    let Shared { lanes, instances, .. } = &*plugin.shared;
    if let Some(turn) = turn
        && let Some(room) = instances.try_permit(&plugin.slots, bytes)
    {
        return Some((turn, room));
    }
    let room = instances.permit(&plugin.slots, bytes).await?;
    Some((lanes.turn(&plugin.history).await, room))
}
