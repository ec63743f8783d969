//! A call in a fresh instance, within its budgets.

use crate::call_report::{CallReport, GuestResult};
use crate::instance::FreshStore;
use crate::loaded::Loaded;
use crate::outside_waits::OutsideWaits;
use crate::state::{Traces, store};
use std::future::Future;
use std::sync::Arc;

/// The seed of `init`: what is random in it is the same whether it runs once,
/// for a snapshot, or in each instance.
pub(crate) const INIT_SEED: u64 = 0;

/// What a call is made with, beside its question.
#[derive(Clone)]
pub(crate) struct CallSetup<'a> {
    /// What distinguishes it from others of the same plugin and seed.
    pub(crate) input: &'a str,
    pub(crate) seed: u64,
    /// Where its requests are noted.
    pub(crate) waits: OutsideWaits,
}

impl CallSetup<'_> {
    /// That of `init`.
    pub(crate) fn init() -> Self {
        Self { input: "", seed: INIT_SEED, waits: OutsideWaits::default() }
    }

    /// The traces of a call that has left none yet.
    pub(crate) fn traces(&self, plugin: &Loaded) -> Traces {
        let tape = plugin.shared.tape().of_call(&plugin.name, self.input, self.seed);
        Traces::new(&plugin.limits, tape, self.waits.clone())
    }
}

/// Runs `work` in a store that has no instance yet. A call that finds no memory
/// left, though its own limit allows it, is made again once there is enough for
/// the worst.
pub(crate) async fn run_fresh<T, W>(
    plugin: &Arc<Loaded>,
    setup: &CallSetup<'_>,
    work: impl Fn(Arc<Loaded>, FreshStore) -> W,
) -> CallReport<T>
where
    T: Send + 'static,
    W: Future<Output = GuestResult<T>> + Send + 'static,
{
    for bytes in [plugin.first_reservation, plugin.limits.memory] {
        let Some((permit, reserved)) = plugin.shared.instances.permit(&plugin.slots, bytes).await else {
            return CallReport::lost("the sandbox was shut down");
        };
        let traces = setup.traces(plugin);
        // Until `init` has run, an instance that runs it itself sees what it would see once, for a snapshot.
        let seed = if plugin.no_snapshot.is_some() { INIT_SEED } else { setup.seed };
        let engine = plugin.linked.instance_pre.engine();
        let store = match store(engine, &plugin.limits, &plugin.granted, seed, &traces, reserved) {
            Ok(store) => store,
            Err(error) => return CallReport::lost(&format!("no store for a call: {error:#}")),
        };
        let call = work(plugin.clone(), FreshStore { store, permit });
        let (end, time) = plugin.shared.lanes.run(call, plugin.limits, traces.pauses.clone(), &plugin.history).await;
        if !traces.memory.crowded() {
            return CallReport::new(plugin, end, time, &traces);
        }
    }
    CallReport::lost("a call found no memory where it was kept for it")
}
