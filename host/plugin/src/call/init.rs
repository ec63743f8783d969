//! The first instance of a plugin, which shows whether it starts and whether
//! `init` accepts its parameters.

use crate::bindings::exports::gavel::plugin::lifecycle;
use crate::call::fresh::{CallSetup, run_fresh};
use crate::call::info::Info;
use crate::call::loaded::Loaded;
use crate::call::report::{CallReport, GuestResult, used_fuel};
use crate::engine::{Exports, FreshStore, InstancePermit};
use crate::imports::State;
use std::sync::Arc;
use wasmtime::Store;
use wasmtime::component::Instance;

/// An instance after `init`.
pub(crate) struct Initialised {
    pub(crate) info: Info,
    pub(crate) store: Store<State>,
    pub(crate) instance: Instance,
    pub(crate) permit: Option<InstancePermit>,
}

/// Why an instance is not ready for calls.
pub(crate) enum NotReady {
    /// The types of its exports differ from the contract's.
    Mismatch(wasmtime::Error),
    /// It refuses the parameters, in its own words.
    Params(String),
}

/// Only initialises an instance, which detects wrong types and wrong parameters.
pub(crate) async fn init(plugin: &Arc<Loaded>) -> CallReport<Result<Initialised, NotReady>> {
    run_fresh(plugin, plugin.turn().await, &CallSetup::init(), initialise).await
}

/// Only starts an instance.
pub(crate) async fn start(plugin: &Arc<Loaded>) -> CallReport<()> {
    run_fresh(plugin, plugin.turn().await, &CallSetup::init(), instantiate).await
}

async fn initialise(plugin: Arc<Loaded>, mut fresh: FreshStore) -> GuestResult<Result<Initialised, NotReady>> {
    let started = instantiate_and_init(&plugin, &mut fresh.store).await;
    let fuel = used_fuel(&plugin, &fresh.store);
    let answer = started.map(|started| {
        let (instance, info) = started?;
        Ok(Initialised { info, store: fresh.store, instance, permit: fresh.permit })
    });
    GuestResult { answer, fuel }
}

/// The outer error is a trap.
async fn instantiate_and_init(
    plugin: &Loaded,
    store: &mut Store<State>,
) -> wasmtime::Result<Result<(Instance, Info), NotReady>> {
    let instance = plugin.linked.instance_pre.instantiate_async(&mut *store).await?;
    let exports = match plugin.linked.exports(store, &instance) {
        Ok(exports) => exports,
        Err(error) => return Ok(Err(NotReady::Mismatch(error))),
    };
    store.data_mut().begin_init();
    let answer = call_init(plugin, store, &exports).await?;
    Ok(answer.map(|info| (instance, info.into())).map_err(NotReady::Params))
}

async fn instantiate(plugin: Arc<Loaded>, mut fresh: FreshStore) -> GuestResult<()> {
    let answer = plugin.linked.instantiate(&mut fresh.store).await.map(|_| ());
    GuestResult { answer, fuel: used_fuel(&plugin, &fresh.store) }
}

/// Calls `init` with the plugin's parameters. The outer error is a trap.
pub(crate) async fn call_init(
    plugin: &Loaded,
    store: &mut Store<State>,
    exports: &Exports,
) -> wasmtime::Result<Result<lifecycle::Info, String>> {
    exports.init(store, &plugin.params).await
}
