//! One call of a plugin: a fresh instance, its budgets, and what comes of it.

use crate::bindings::exports::gavel::plugin::lifecycle;
use crate::exports::Exports;
use crate::fault;
use crate::grant::Refusals;
use crate::lanes::LaneEnd;
use crate::limits::Limits;
use crate::memory_budget::RefusedMemory;
use crate::plugin::{Info, Loaded};
use crate::question::Question;
use crate::instance::{InstancePermit, ReadyInstance};
use crate::state::{State, Traces, store};
use crate::time_budget::TimeUse;
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
type Work<T> = Box<dyn FnOnce(Arc<Loaded>, Store<State>, InstancePermit) -> Running<T> + Send>;
type Running<T> = Pin<Box<dyn Future<Output = (wasmtime::Result<T>, Option<u64>)> + Send>>;

/// What a call came to: what the plugin answered, or why it did not.
pub(crate) struct CallReport<T> {
    pub(crate) answer: Result<T, Outcome>,
    pub(crate) details: CallDetails,
}

/// What else there is to say of a call.
#[derive(Default)]
pub(crate) struct CallDetails {
    pub(crate) usage: Usage,
    pub(crate) diagnosis: Option<Diagnosis>,
    pub(crate) refusals: Refusals,
}

/// Asks a plugin, in an instance that is kept where there is one.
pub(crate) async fn ask<Q: Question>(plugin: &Arc<Loaded>, question: Q, input: &str, seed: u64) -> CallReport<Q::Answer> {
    let instance = plugin.idle.as_ref().and_then(|idle| idle.take());
    let report = match instance {
        Some(instance) => ask_again(plugin, instance, question, input, seed).await,
        None => run(plugin, input, seed, || first(question.clone(), seed)).await,
    };
    let answer = report.answer.and_then(|Answered { answer, instance }| {
        if let (Some(idle), Some(instance)) = (&plugin.idle, instance) {
            idle.put(instance);
        }
        answer
    });
    CallReport { answer, details: report.details }
}

/// An instance after `init`.
pub(crate) struct Initialised {
    pub(crate) info: Info,
    pub(crate) store: Store<State>,
    pub(crate) instance: Instance,
    pub(crate) permit: InstancePermit,
}

/// Why an instance is not ready for calls.
pub(crate) enum NotReady {
    /// Its exports have other types than the contract's.
    Mismatch(wasmtime::Error),
    /// It refuses the parameters, in its own words.
    Params(String),
}

/// Only initialises an instance: wrong types and wrong parameters show.
pub(crate) async fn init(plugin: &Arc<Loaded>) -> CallReport<Result<Initialised, NotReady>> {
    run(plugin, "", INIT_SEED, || {
        Box::new(|plugin, mut store, permit| {
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
                    answer.map(|info| Initialised { info: info.into(), store, instance, permit })
                });
                (initialised, fuel)
            })
        })
    })
    .await
}

/// Only starts an instance.
pub(crate) async fn start(plugin: &Arc<Loaded>) -> CallReport<()> {
    run(plugin, "", INIT_SEED, || {
        Box::new(|plugin, mut store, permit| {
            Box::pin(async move {
                let started = plugin.linked.instantiate(&mut store).await.map(|_| ());
                let fuel = used_fuel(&plugin, &store);
                drop(store);
                drop(permit);
                (started, fuel)
            })
        })
    })
    .await
}

/// What came of a call, and the instance where it may answer another.
struct Answered<A> {
    answer: Result<A, Outcome>,
    instance: Option<ReadyInstance>,
}

/// The first call of an instance.
fn first<Q: Question>(question: Q, seed: u64) -> Work<Answered<Q::Answer>> {
    Box::new(move |plugin, store, permit| Box::pin(ask_first(plugin, store, permit, question, seed)))
}

async fn ask_first<Q: Question>(
    plugin: Arc<Loaded>,
    mut store: Store<State>,
    permit: InstancePermit,
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
        Ok(Ok(exports)) => ask_in(plugin, ReadyInstance { store, exports, _permit: permit, calls: 0 }, question).await,
        Ok(Err(outcome)) => (Ok(Answered { answer: Err(outcome), instance: None }), used_fuel(&plugin, &store)),
        Err(error) => (Err(error), used_fuel(&plugin, &store)),
    }
}

/// A call of an instance that is ready for it.
async fn ask_in<Q: Question>(
    plugin: Arc<Loaded>,
    mut instance: ReadyInstance,
    question: Q,
) -> (wasmtime::Result<Answered<Q::Answer>>, Option<u64>) {
    State::give_handles(&mut instance.store, &plugin.limits, question.handles());
    let answer = question.ask(plugin.clone(), &instance.exports, &mut instance.store).await;
    instance.calls += 1;
    let fuel = used_fuel(&plugin, &instance.store);
    let answered = answer.map(|answer| {
        let may_stay = Q::is_sound(&answer) && plugin.idle.is_some();
        Answered { answer: Ok(answer), instance: may_stay.then_some(instance) }
    });
    (answered, fuel)
}

/// A further call of an instance that has answered others.
async fn ask_again<Q: Question>(
    plugin: &Arc<Loaded>,
    mut instance: ReadyInstance,
    question: Q,
    input: &str,
    seed: u64,
) -> CallReport<Answered<Q::Answer>> {
    let tape = plugin.shared.tape().of_call(&plugin.name, input, seed);
    let traces = instance.store.data_mut().begin_again(&plugin.granted, &plugin.limits, seed, tape);
    instance.store.set_epoch_deadline(1);
    if let Some(fuel) = plugin.limits.fuel
        && let Err(error) = instance.store.set_fuel(fuel)
    {
        return lost(&format!("no fuel for a call: {error:#}"));
    }
    let call = ask_in(plugin.clone(), instance, question.clone());
    let (end, time) = plugin.shared.lanes.run(call, plugin.limits, traces.pauses.clone(), &plugin.history).await;
    if traces.memory.crowded() {
        return run(plugin, input, seed, || first(question.clone(), seed)).await;
    }
    report(plugin, end, time, &traces)
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
async fn run<T: Send + 'static>(plugin: &Arc<Loaded>, input: &str, seed: u64, work: impl Fn() -> Work<T>) -> CallReport<T> {
    for bytes in [plugin.first_reservation, plugin.limits.memory] {
        let Some((permit, reserved)) = plugin.shared.permit(&plugin.slots, bytes).await else {
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
        let call = work()(plugin.clone(), store, permit);
        let (end, time) = plugin.shared.lanes.run(call, plugin.limits, traces.pauses.clone(), &plugin.history).await;
        if !traces.memory.crowded() {
            return report(plugin, end, time, &traces);
        }
    }
    lost("a call found no memory where it was kept for it")
}

/// A call that the host could not make.
fn lost<T>(what: &str) -> CallReport<T> {
    CallReport { answer: Err(Outcome::Fault { whose: Blame::Host, what: what.into() }), details: CallDetails::default() }
}

fn report<T>(
    plugin: &Loaded,
    end: LaneEnd<(wasmtime::Result<T>, Option<u64>)>,
    time: TimeUse,
    traces: &Traces,
) -> CallReport<T> {
    let limits = &plugin.limits;
    let over = |which, what| Err(Outcome::OutOfBudget { which, what });
    let (answer, fuel, error) = match end {
        LaneEnd::Done((Ok(answer), fuel)) => (Ok(answer), fuel, None),
        LaneEnd::Done((Err(error), fuel)) => (Err(fault::outcome(&error, limits, &traces.log.text())), fuel, Some(error)),
        LaneEnd::OverBudget(Budget::Cpu) => {
            let what = format!("{} used, {} allowed", seconds(time.cpu), seconds(limits.cpu));
            (over(Budget::Cpu, what), None, None)
        }
        LaneEnd::OverBudget(which) => {
            let what = format!("not done after {}, {} allowed", seconds(time.elapsed()), seconds(limits.deadline));
            (over(which, what), None, None)
        }
        LaneEnd::Lost(what) => (Err(Outcome::Fault { whose: Blame::Host, what }), None, None),
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
    CallReport { answer, details: CallDetails { usage, diagnosis, refusals: traces.refusals.clone() } }
}

fn refused_memory(refused: RefusedMemory, limits: &Limits) -> String {
    let allowed = limits.memory;
    match refused {
        RefusedMemory::Guest(asked) => format!("{asked} bytes asked for, {allowed} allowed"),
        RefusedMemory::Host => format!("more than {allowed} bytes were needed, with what the host held for the call"),
    }
}

fn seconds(time: std::time::Duration) -> String {
    format!("{:.3} s", time.as_secs_f64())
}
