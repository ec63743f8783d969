//! The result of a call: the plugin's answer, or the budget or the fault that
//! ended it.

use crate::budget::{LaneEnd, Limits, RefusedMemory, TimeUse};
use crate::call::fault;
use crate::call::loaded::Loaded;
use crate::grant::Refusals;
use crate::imports::{State, Traces};
use gavel_data::{Blame, Budget, Diagnosis, Outcome, Usage};
use std::time::Duration;
use wasmtime::Store;

/// The result of a call: the plugin's answer, or why there is none.
pub(crate) struct CallReport<T> {
    pub(crate) answer: Result<T, Outcome>,
    pub(crate) details: CallDetails,
}

/// The details of a call beside its answer.
#[derive(Default)]
pub(crate) struct CallDetails {
    pub(crate) usage: Usage,
    pub(crate) diagnosis: Option<Diagnosis>,
    pub(crate) refusals: Refusals,
}

/// The result of an instance: its answer or a trap, and the fuel that it used.
pub(crate) struct GuestResult<T> {
    pub(crate) answer: wasmtime::Result<T>,
    pub(crate) fuel: Option<u64>,
}

/// The fuel that a call has used, where fuel is metered.
pub(crate) fn used_fuel(plugin: &Loaded, store: &Store<State>) -> Option<u64> {
    Some(plugin.limits.fuel?.saturating_sub(store.get_fuel().ok()?))
}

impl<T> CallReport<T> {
    /// A call that the host could not make.
    pub(crate) fn lost(what: &str) -> Self {
        let answer = Err(Outcome::Fault { whose: Blame::Host, what: what.into() });
        Self { answer, details: CallDetails::default() }
    }

    /// The report of a call that ended in its lane, with this use of time.
    pub(crate) fn new(plugin: &Loaded, end: LaneEnd<GuestResult<T>>, time: TimeUse, traces: &Traces) -> Self {
        let limits = &plugin.limits;
        let over = |which, what| Err(Outcome::OutOfBudget { which, what });
        let (answer, fuel, error) = match end {
            LaneEnd::Done(GuestResult { answer: Ok(answer), fuel }) => (Ok(answer), fuel, None),
            LaneEnd::Done(GuestResult { answer: Err(error), fuel }) => {
                (Err(fault::outcome(&error, limits, &traces.log.text())), fuel, Some(error))
            }
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
        // After a refusal or a missing answer, the answer of the guest does not count, since it lacked what it needed.
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
        let diagnosis = diagnosis.map(|diagnosis| plugin.granted.loggable_diagnosis(diagnosis));
        Self { answer, details: CallDetails { usage, diagnosis, refusals: traces.refusals.clone() } }
    }
}

fn refused_memory(refused: RefusedMemory, limits: &Limits) -> String {
    let allowed = limits.memory;
    match refused {
        RefusedMemory::Guest(asked) => format!("{asked} bytes asked for, {allowed} allowed"),
        RefusedMemory::Host => format!("more than {allowed} bytes were needed, with what the host held for the call"),
    }
}

fn seconds(time: Duration) -> String {
    format!("{:.3} s", time.as_secs_f64())
}
