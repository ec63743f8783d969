//! Gavel's rewards in Python: the extension module `gavel_rl._native`.
//!
//! A [`scorer::Scorer`] is made from a [`config::Config`] and scores rows, which [`row`] reads from Python. What it
//! gives are [`outcome::Outcome`]s. No thread of the sandbox ever waits for Python's lock: a thread of Python waits for
//! outcomes without the lock, or an event loop gets them from an [`inbox::Inbox`].
//!
//! The wheel's program, the `gavel` [`command`], is linked from the same archive.

mod batches;
mod calls;
mod cases;
mod command;
mod compiler;
mod config;
mod credit;
mod error;
mod evaluation;
mod function;
mod inbox;
mod interruptible;
mod loaded;
mod outcome;
mod queue;
mod row;
mod scorer;
mod turns;
mod value;

/// What the package `gavel_rl` is made from.
#[pyo3::pymodule]
mod _native {
    #[pymodule_export]
    use crate::batches::{ScoredBatch, ScoredBatches};
    #[pymodule_export]
    use crate::cases::GoldenCases;
    #[pymodule_export]
    use crate::compiler::{compile_component, compile_with};
    #[pymodule_export]
    use crate::credit::Credit;
    #[pymodule_export]
    use crate::error::GavelError;
    #[pymodule_export]
    use crate::evaluation::Evaluation;
    #[pymodule_export]
    use crate::function::build;
    #[pymodule_export]
    use crate::inbox::{Call, Inbox};
    #[pymodule_export]
    use crate::outcome::Outcome;
    #[pymodule_export]
    use crate::scorer::Scorer;
    #[pymodule_export]
    use crate::turns::{Courier, Turns};
}
