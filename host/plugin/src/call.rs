//! One call of a plugin: a fresh instance, its budgets, and what comes of it.

use crate::bindings::exports::gavel::plugin::lifecycle;
use crate::exports::Exports;
use crate::fault;
use crate::grant::Refusals;
use crate::lanes::Ended;
use crate::limits::Limits;
use crate::meter::Refused;
use crate::plugin::{Info, Loaded};
use crate::question::Question;
use crate::reuse::{Kept, Room};
use crate::state::{State, Traces, store};
use crate::time::TimeUse;
use gavel_data::{Blame, Budget, Diagnosis, Outcome, Usage};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use wasmtime::Store;
use wasmtime::component::Instance;

/// What is random in `init` is the same whether it runs once, for a snapshot,
/// or in each instance.
const INIT_SEED: u64 = 0;

/// What is done with a store that has no instance yet.
type Work<T> = Box<dyn FnOnce(Arc<Loaded>, Store<State>, Room) -> Running<T> + Send>;
type Running<T> = Pin<Box<dyn Future<Output = (wasmtime::Result<T>, Option<u64>)> + Send>>;

/// What a call came to: what the plugin answered, or why it did not.
pub(crate) struct Ending<T> {
    pub(crate) answer: Result<T, Outcome>,
    pub(crate) trail: Trail,
}

/// What else there is to say of a call.
#[derive(Default)]
pub(crate) struct Trail {
    pub(crate) usage: Usage,
    pub(crate) diagnosis: Option<Diagnosis>,
    pub(crate) refusals: Refusals,
}

/// Asks a plugin, in an instance that is kept where there is one.
pub(crate) async fn ask<Q: Question>(plugin: &Arc<Loaded>, question: Q, input: &str, seed: u64) -> Ending<Q::Answer> {
    let kept = plugin.shelf.as_ref().and_then(|shelf| shelf.take());
    let ending = match kept {
        Some(kept) => ask_again(plugin, kept, question, input, seed).await,
        None => run(plugin, input, seed, || first(question.clone(), seed)).await,
    };
    let answer = ending.answer.and_then(|Answered { answer, kept }| {
        if let (Some(shelf), Some(kept)) = (&plugin.shelf, kept) {
            shelf.put(kept);
        }
        answer
    });
    Ending { answer, trail: ending.trail }
}

/// An instance after `init`.
pub(crate) struct Initialised {
    pub(crate) info: Info,
    pub(crate) store: Store<State>,
    pub(crate) instance: Instance,
    pub(crate) room: Room,
}

/// Why an instance is not ready for calls.
pub(crate) enum NotReady {
    /// Its exports have other types than the contract's.
    Mismatch(wasmtime::Error),
    /// It refuses the parameters, in its own words.
    Params(String),
}

/// Only initialises an instance: wrong types and wrong parameters show.
pub(crate) async fn init(plugin: &Arc<Loaded>) -> Ending<Result<Initialised, NotReady>> {
    run(plugin, "", INIT_SEED, || {
        Box::new(|plugin, mut store, room| {
            Box::pin(async move {
                let started = async {
                    let instance = plugin.linked.instance_pre.instantiate_async(&mut store).await?;
                    let exports = match plugin.linked.exports(&mut store, &instance) {
                        Ok(exports) => exports,
                        Err(error) => return Ok((instance, Err(NotReady::Mismatch(error)))),
                    };
                    store.data_mut().begin_init();
                    Ok((instance, call_init(&plugin, &mut store, &exports).await?.map_err(NotReady::Params)))
                }
                .await;
                let fuel = used_fuel(&plugin, &store);
                let initialised = started.map(|(instance, answer): (_, Result<lifecycle::Info, _>)| {
                    answer.map(|info| Initialised { info: info.into(), store, instance, room })
                });
                (initialised, fuel)
            })
        })
    })
    .await
}

/// Only starts an instance.
pub(crate) async fn start(plugin: &Arc<Loaded>) -> Ending<()> {
    run(plugin, "", INIT_SEED, || {
        Box::new(|plugin, mut store, room| {
            Box::pin(async move {
                let started = plugin.linked.instantiate(&mut store).await.map(|_| ());
                let fuel = used_fuel(&plugin, &store);
                drop(store);
                drop(room);
                (started, fuel)
            })
        })
    })
    .await
}

/// What came of a call, and the instance where it may answer another.
struct Answered<A> {
    answer: Result<A, Outcome>,
    kept: Option<Kept>,
}

/// The first call of an instance.
fn first<Q: Question>(question: Q, seed: u64) -> Work<Answered<Q::Answer>> {
    Box::new(move |plugin, store, room| Box::pin(ask_first(plugin, store, room, question, seed)))
}

async fn ask_first<Q: Question>(
    plugin: Arc<Loaded>,
    mut store: Store<State>,
    room: Room,
    question: Q,
    seed: u64,
) -> (wasmtime::Result<Answered<Q::Answer>>, Option<u64>) {
    let exports = async {
        let exports = plugin.linked.instantiate(&mut store).await?;
        if plugin.no_snapshot.is_some() {
            store.data_mut().begin_init();
            if let Err(what) = call_init(&plugin, &mut store, &exports).await? {
                let what = format!("`init` accepted these parameters once and now refuses them: {what}");
                return Ok(Err(Outcome::Fault { whose: Blame::Plugin, what }));
            }
            store.data_mut().begin_call(&plugin.granted, seed);
        }
        Ok(Ok(exports))
    }
    .await;
    match exports {
        Ok(Ok(exports)) => ask_in(plugin, Kept { store, exports, _room: room, calls: 0 }, question).await,
        Ok(Err(outcome)) => (Ok(Answered { answer: Err(outcome), kept: None }), used_fuel(&plugin, &store)),
        Err(error) => (Err(error), used_fuel(&plugin, &store)),
    }
}

/// A call of an instance that is ready for it.
async fn ask_in<Q: Question>(
    plugin: Arc<Loaded>,
    mut kept: Kept,
    question: Q,
) -> (wasmtime::Result<Answered<Q::Answer>>, Option<u64>) {
    State::give_handles(&mut kept.store, &plugin.limits, question.handles());
    let answer = question.ask(plugin.clone(), &kept.exports, &mut kept.store).await;
    kept.calls += 1;
    let fuel = used_fuel(&plugin, &kept.store);
    let answered = answer.map(|answer| {
        let may_stay = Q::is_sound(&answer) && plugin.shelf.is_some();
        Answered { answer: Ok(answer), kept: may_stay.then_some(kept) }
    });
    (answered, fuel)
}

/// A further call of an instance that has answered others.
async fn ask_again<Q: Question>(
    plugin: &Arc<Loaded>,
    mut kept: Kept,
    question: Q,
    input: &str,
    seed: u64,
) -> Ending<Answered<Q::Answer>> {
    let tape = plugin.shared.tape().of_call(&plugin.name, input, seed);
    let traces = kept.store.data_mut().begin_again(&plugin.granted, &plugin.limits, seed, tape);
    kept.store.set_epoch_deadline(1);
    if let Some(fuel) = plugin.limits.fuel
        && let Err(error) = kept.store.set_fuel(fuel)
    {
        return lost(&format!("no fuel for a call: {error:#}"));
    }
    let call = ask_in(plugin.clone(), kept, question.clone());
    let (ended, time) = plugin.shared.lanes.run(call, plugin.limits, traces.pauses.clone(), &plugin.history).await;
    if traces.memory.crowded() {
        return run(plugin, input, seed, || first(question.clone(), seed)).await;
    }
    ending(plugin, ended, time, &traces)
}

async fn call_init(
    plugin: &Loaded,
    store: &mut Store<State>,
    exports: &Exports,
) -> wasmtime::Result<Result<lifecycle::Info, String>> {
    exports.lifecycle.call_init(store, &plugin.params).await
}

fn used_fuel(plugin: &Loaded, store: &Store<State>) -> Option<u64> {
    Some(plugin.limits.fuel?.saturating_sub(store.get_fuel().ok()?))
}

/// Runs one call within its budgets. A call that finds no memory left, though
/// its own limit allows it, is made again once there is enough for the worst.
async fn run<T: Send + 'static>(plugin: &Arc<Loaded>, input: &str, seed: u64, work: impl Fn() -> Work<T>) -> Ending<T> {
    for bytes in [plugin.first_reservation, plugin.limits.memory] {
        let Some((room, reserved)) = plugin.shared.room(&plugin.slots, bytes).await else {
            return lost("the sandbox was shut down");
        };
        let tape = plugin.shared.tape().of_call(&plugin.name, input, seed);
        let traces = Traces::new(&plugin.limits, tape);
        // Until `init` has run, an instance that runs it itself sees what it would see once, for a snapshot.
        let seed = if plugin.no_snapshot.is_some() { INIT_SEED } else { seed };
        let store = match store(
            plugin.linked.instance_pre.engine(),
            &plugin.limits,
            &plugin.granted,
            seed,
            &traces,
            reserved,
        ) {
            Ok(store) => store,
            Err(error) => return lost(&format!("no store for a call: {error:#}")),
        };
        let call = work()(plugin.clone(), store, room);
        let (ended, time) = plugin.shared.lanes.run(call, plugin.limits, traces.pauses.clone(), &plugin.history).await;
        if !traces.memory.crowded() {
            return ending(plugin, ended, time, &traces);
        }
    }
    lost("a call found no memory where it was kept for it")
}

/// A call that the host could not make.
fn lost<T>(what: &str) -> Ending<T> {
    Ending { answer: Err(Outcome::Fault { whose: Blame::Host, what: what.into() }), trail: Trail::default() }
}

fn ending<T>(
    plugin: &Loaded,
    ended: Ended<(wasmtime::Result<T>, Option<u64>)>,
    time: TimeUse,
    traces: &Traces,
) -> Ending<T> {
    let limits = &plugin.limits;
    let over = |which, what| Err(Outcome::OutOfBudget { which, what });
    let (answer, fuel, error) = match ended {
        Ended::Done((Ok(answer), fuel)) => (Ok(answer), fuel, None),
        Ended::Done((Err(error), fuel)) => (Err(fault::outcome(&error, limits, &traces.log.text())), fuel, Some(error)),
        Ended::Spent(Budget::Cpu) => {
            let what = format!("{} used, {} allowed", seconds(time.cpu), seconds(limits.cpu));
            (over(Budget::Cpu, what), None, None)
        }
        Ended::Spent(which) => {
            let what = format!("not done after {}, {} allowed", seconds(time.elapsed()), seconds(limits.deadline));
            (over(which, what), None, None)
        }
        Ended::Lost(what) => (Err(Outcome::Fault { whose: Blame::Host, what }), None, None),
    };
    // A guest that goes on after a refusal, or without an answer, has not had what it needed.
    let answer = match (traces.memory.refused(), traces.requests.check(), traces.tape.trouble()) {
        (Some(refused), ..) => over(Budget::Memory, refused_memory(refused, limits)),
        (None, Err(error), _) => over(Budget::Requests, error.to_string()),
        (None, Ok(()), Some(trouble)) => Err(trouble),
        (None, Ok(()), None) => answer,
    };
    let usage = Usage {
        elapsed_us: time.elapsed().as_micros() as u64,
        cpu_us: time.cpu.as_micros() as u64,
        fuel,
        peak_memory: traces.memory.peak() as u64,
    };
    let diagnosis = fault::diagnosis(error.as_ref(), traces.log.text());
    let diagnosis = diagnosis.map(|diagnosis| plugin.granted.tell_diagnosis(diagnosis));
    Ending { answer, trail: Trail { usage, diagnosis, refusals: traces.refusals.clone() } }
}

fn refused_memory(refused: Refused, limits: &Limits) -> String {
    let allowed = limits.memory;
    match refused {
        Refused::Guest(asked) => format!("{asked} bytes asked for, {allowed} allowed"),
        Refused::Host => format!("more than {allowed} bytes were needed, with what the host held for the call"),
    }
}

fn seconds(time: std::time::Duration) -> String {
    format!("{:.3} s", time.as_secs_f64())
}
