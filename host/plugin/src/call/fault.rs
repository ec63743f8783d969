//! The outcome and the diagnosis of a call that ended with an error.

use crate::budget::{Limits, STACK};
use crate::imports::LogFull;
use gavel_data::{Blame, Budget, Diagnosis, Outcome};
use wasmtime::component::ResourceTableError;
use wasmtime::{Trap, WasmBacktrace};
use wasmtime_wasi::I32Exit;

/// The most frames of a backtrace; more of a recursion does not help.
const FRAMES: usize = 16;

/// The outcome of a call that ended with an error. `printed` is the plugin's
/// output.
pub(crate) fn outcome(error: &wasmtime::Error, limits: &Limits, printed: &str) -> Outcome {
    let over = |which: Budget, what: String| Outcome::OutOfBudget { which, what };
    match error.downcast_ref::<Trap>() {
        Some(Trap::StackOverflow) => {
            return over(Budget::Stack, format!("more than the {STACK} bytes allowed were needed"));
        }
        Some(Trap::OutOfFuel) => {
            let fuel = limits.fuel.unwrap_or_default();
            return over(Budget::Fuel, format!("all of {fuel} units were used"));
        }
        _ => {}
    }
    if let Some(LogFull(limit)) = error.downcast_ref() {
        return over(Budget::Log, format!("more than {limit} bytes were printed"));
    }
    let cause = error.root_cause().to_string();
    // wasmtime has no types for these two errors, only messages.
    if cause.contains("fuel allocated for hostcalls has been exhausted") {
        return over(Budget::Output, format!("more than {} bytes were handed to the host at once", limits.output));
    }
    if matches!(error.downcast_ref(), Some(ResourceTableError::Full)) || cause.contains("handle limit exceeded") {
        return over(Budget::Handles, format!("more than {} handles were held at once", limits.handles));
    }
    let what = match error.downcast_ref::<I32Exit>() {
        Some(exit) => format!("the plugin called exit({}) instead of returning", exit.0),
        None => cause,
    };
    let what = match last_words(printed) {
        Some(words) => format!("{words} ({what})"),
        None => what,
    };
    Outcome::Fault { whose: Blame::Plugin, what }
}

/// The backtrace of an error, if there is one, and the plugin's output.
pub(crate) fn diagnosis(error: Option<&wasmtime::Error>, printed: String) -> Option<Diagnosis> {
    let backtrace = error.and_then(|error| error.downcast_ref::<WasmBacktrace>()).map(frames).unwrap_or_default();
    let diagnosis = Diagnosis { backtrace, stderr: printed };
    (diagnosis != Diagnosis::default()).then_some(diagnosis)
}

/// The names of the guest's functions, without the functions of the language
/// between a panic and its trap.
fn frames(backtrace: &WasmBacktrace) -> Vec<String> {
    let names: Vec<String> = backtrace
        .frames()
        .iter()
        .map(|frame| match frame.func_name() {
            Some(name) => format!("{:#}", rustc_demangle::demangle(name)),
            None => format!("function {}", frame.func_index()),
        })
        .collect();
    let machinery = names.iter().take_while(|name| is_machinery(name)).count();
    let from = if machinery < names.len() { machinery } else { 0 };
    names.into_iter().skip(from).take(FRAMES).collect()
}

fn is_machinery(name: &str) -> bool {
    [
        "std::",
        "core::",
        "alloc::",
        "<core::",
        "<std::",
        "<alloc::",
        "rust_",
        "__rust",
        "_R",
        "abort",
        "panic",
        "function ",
    ]
    .iter()
    .any(|start| name.starts_with(start))
}

/// The last two lines of a panic or a traceback.
fn last_words(printed: &str) -> Option<String> {
    let lines: Vec<&str> = printed
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty() && !line.starts_with("note: run with `RUST_BACKTRACE"))
        .collect();
    let last = &lines[lines.len().saturating_sub(2)..];
    (!last.is_empty()).then(|| last.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_words_of_a_panic_and_of_a_traceback() {
        let panic = "\nthread '<unnamed>' panicked at src/lib.rs:9:5:\nno answer\nnote: run with `RUST_BACKTRACE=1` environment variable\n";
        assert_eq!(last_words(panic).unwrap(), "thread '<unnamed>' panicked at src/lib.rs:9:5: no answer");
        let traceback = "Traceback (most recent call last):\n  File \"app.py\", line 3, in score\nValueError: x\n";
        assert_eq!(last_words(traceback).unwrap(), "File \"app.py\", line 3, in score ValueError: x");
        assert_eq!(last_words(" \n"), None);
    }

    #[test]
    fn a_budget_is_told_from_a_fault() {
        let limits = Limits { fuel: Some(5), ..Limits::default() };
        let budget = |error: wasmtime::Error| match outcome(&error, &limits, "") {
            Outcome::OutOfBudget { which, .. } => Some(which),
            _ => None,
        };
        assert_eq!(budget(Trap::StackOverflow.into()), Some(Budget::Stack));
        assert_eq!(budget(Trap::OutOfFuel.into()), Some(Budget::Fuel));
        assert_eq!(budget(wasmtime::Error::new(LogFull(7))), Some(Budget::Log));
        assert_eq!(budget(wasmtime::Error::new(ResourceTableError::Full)), Some(Budget::Handles));
        assert_eq!(budget(Trap::UnreachableCodeReached.into()), None);
        let Outcome::Fault { what, .. } = outcome(&wasmtime::Error::new(I32Exit(3)), &limits, "") else { panic!() };
        assert!(what.contains("exit(3)"));
    }
}
