//! One call of a plugin: in an idle instance if there is one, else in a fresh
//! instance.

use crate::budget::Turn;
use crate::call::fresh::{CallSetup, run_fresh};
use crate::call::init::call_init;
use crate::call::loaded::Loaded;
use crate::call::question::Question;
use crate::call::report::{CallReport, GuestResult, used_fuel};
use crate::engine::{Exports, FreshStore, ReadyInstance};
use crate::imports::State;
use gavel_data::{Blame, Outcome};
use std::sync::Arc;
use wasmtime::Store;

/// Calls a plugin within its budgets.
pub(crate) async fn ask<Q: Question>(
    plugin: &Arc<Loaded>,
    question: Q,
    setup: &CallSetup<'_>,
) -> CallReport<Q::Answer> {
    // An idle instance is looked for only now: calls that looked before they waited would each start one.
    let turn = plugin.turn().await;
    let idle = plugin.idle.as_ref().and_then(|idle| idle.take());
    let report = match idle {
        Some(instance) => ask_idle(plugin, turn, instance, question, setup).await,
        None => ask_fresh(plugin, turn, question, setup).await,
    };
    let answer = report.answer.and_then(|Answered { answer, instance }| {
        if let (Some(idle), Some(instance)) = (&plugin.idle, instance) {
            idle.put(instance);
        }
        answer
    });
    CallReport { answer, details: report.details }
}

/// The result of a call, and its instance if it may answer another call.
struct Answered<A> {
    answer: Result<A, Outcome>,
    instance: Option<ReadyInstance>,
}

/// The first call of an instance.
async fn ask_fresh<Q: Question>(
    plugin: &Arc<Loaded>,
    turn: Turn,
    question: Q,
    setup: &CallSetup<'_>,
) -> CallReport<Answered<Q::Answer>> {
    let seed = setup.seed;
    run_fresh(plugin, turn, setup, |plugin, fresh| ask_first(plugin, fresh, question.clone(), seed)).await
}

async fn ask_first<Q: Question>(
    plugin: Arc<Loaded>,
    mut fresh: FreshStore,
    question: Q,
    seed: u64,
) -> GuestResult<Answered<Q::Answer>> {
    match make_ready(&plugin, &mut fresh.store, seed).await {
        Ok(Ok(exports)) => {
            let instance = fresh.ready(exports, plugin.limits.fuel.is_some());
            ask_ready(plugin, instance, question).await
        }
        Ok(Err(outcome)) => {
            let answer = Ok(Answered { answer: Err(outcome), instance: None });
            GuestResult { answer, fuel: used_fuel(&plugin, &fresh.store) }
        }
        Err(error) => GuestResult { answer: Err(error), fuel: used_fuel(&plugin, &fresh.store) },
    }
}

/// Starts an instance from a snapshot after `init`, or calls `init`. The outer
/// error is a trap.
pub(crate) async fn make_ready(
    plugin: &Loaded,
    store: &mut Store<State>,
    seed: u64,
) -> wasmtime::Result<Result<Exports, Outcome>> {
    let exports = plugin.linked.instantiate(store).await?;
    if plugin.no_snapshot.is_some() {
        store.data_mut().begin_init();
        if let Err(what) = call_init(plugin, store, &exports).await? {
            let what = format!("`init` accepted these parameters once and now refuses them: {what}");
            return Ok(Err(Outcome::Fault { whose: Blame::Plugin, what }));
        }
        store.data_mut().begin_call(&plugin.granted, seed);
    }
    Ok(Ok(exports))
}

/// A call of an instance that is ready.
async fn ask_ready<Q: Question>(
    plugin: Arc<Loaded>,
    mut instance: ReadyInstance,
    question: Q,
) -> GuestResult<Answered<Q::Answer>> {
    instance.handles = State::give_handles(&mut instance.store, &plugin.limits, question.handles());
    let answer = question.ask(plugin.clone(), &instance.exports, &mut instance.store).await;
    instance.calls += 1;
    let fuel = used_fuel(&plugin, &instance.store);
    let answer = answer.map(|answer| {
        let may_stay = Q::is_sound(&answer) && plugin.idle.is_some();
        Answered { answer: Ok(answer), instance: may_stay.then_some(instance) }
    });
    GuestResult { answer, fuel }
}

/// A further call of an idle instance; a call of a fresh instance if all memory
/// is in use, or if the idle one cannot be set back.
async fn ask_idle<Q: Question>(
    plugin: &Arc<Loaded>,
    turn: Turn,
    mut instance: ReadyInstance,
    question: Q,
    setup: &CallSetup<'_>,
) -> CallReport<Answered<Q::Answer>> {
    let traces = setup.traces(plugin);
    let traces = instance.store.data_mut().begin_again(&plugin.granted, setup.seed, traces);
    instance.store.set_epoch_deadline(1);
    let call = ask_again(plugin.clone(), instance, question.clone());
    let lanes = &plugin.shared.lanes;
    let (end, time) = lanes.run_now(turn, call, plugin.limits, traces.pauses.clone(), &plugin.history).await;
    match end.transpose() {
        Some(end) if !traces.memory.crowded() => CallReport::new(plugin, end, time, &traces),
        _ => ask_fresh(plugin, plugin.turn().await, question, setup).await,
    }
}

/// A further call of an instance; `None` if the instance cannot be made ready for it.
async fn ask_again<Q: Question>(
    plugin: Arc<Loaded>,
    mut instance: ReadyInstance,
    question: Q,
) -> Option<GuestResult<Answered<Q::Answer>>> {
    match make_ready_again(&plugin, &mut instance).await {
        Ok(true) => Some(ask_ready(plugin, instance, question).await),
        Ok(false) => None,
        Err(error) => {
            tracing::debug!("an instance of `{}` was not set back: {error:#}", plugin.name);
            None
        }
    }
}

/// Sets an idle instance back to the snapshot, if its plugin's are, and gives it fuel. Returns whether it is ready; if
/// not, or after an error, it must not be called again.
async fn make_ready_again(plugin: &Loaded, instance: &mut ReadyInstance) -> wasmtime::Result<bool> {
    let mut fuel = plugin.limits.fuel;
    if plugin.sets_back {
        if fuel.is_some() {
            // The call does not pay for it.
            instance.store.set_fuel(u64::MAX)?;
        }
        let is_set_back = plugin.linked.set_back(&mut instance.store, &instance.exports, instance.handles).await;
        if let Some(idle) = &plugin.idle {
            idle.note(matches!(is_set_back, Ok(true)));
        }
        if !is_set_back? {
            return Ok(false);
        }
        instance.store.data_mut().renew_table();
    }
    // What was left for the first call: an instance may use fuel when it starts.
    if plugin.no_snapshot.is_none() {
        fuel = instance.fuel;
    }
    if let Some(fuel) = fuel {
        instance.store.set_fuel(fuel)?;
    }
    Ok(true)
}
