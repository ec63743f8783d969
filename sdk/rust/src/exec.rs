//! Programs that the run grants: `grant = { exec = ["NAME"] }`. They run as
//! children that see only their arguments and their input, so that they can run
//! code that the policy wrote.
//!
//! ```no_run
//! use gavel_sdk::exec::{self, Ending, Job};
//! use gavel_sdk::Failure;
//! use serde_json::json;
//!
//! /// Whether the Python code prints 4 for each input, in a second each.
//! fn passes(code: &str, inputs: &[&str]) -> Result<bool, Failure> {
//!     let job = json!({ "code": code }).to_string();
//!     let job = |input: &&str| Job::new("python").args([&job]).stdin(*input).cpu_ms(1000);
//!     for output in exec::run(inputs.iter().map(job).collect()) {
//!         let output = output?;
//!         if !matches!(output.ending, Ending::Exited(0)) || output.stdout.trim_ascii() != b"4" {
//!             return Ok(false);
//!         }
//!     }
//!     Ok(true)
//! }
//! ```

use crate::Failure;
use crate::bindings::gavel::plugin::exec as contract;
use std::fmt;

pub use contract::{Ending, Error, Output};

/// The job of a child.
#[derive(Debug, Clone)]
pub struct Job(contract::Job);

impl Job {
    /// A job for the program with the name `program` in the configuration.
    pub fn new(program: impl Into<String>) -> Self {
        let program = program.into();
        Self(contract::Job { program, args: Vec::new(), stdin: Vec::new(), cpu_ms: None, memory: None })
    }

    /// Adds arguments.
    #[must_use]
    pub fn args<A: Into<String>>(mut self, args: impl IntoIterator<Item = A>) -> Self {
        self.0.args.extend(args.into_iter().map(Into::into));
        self
    }

    /// Sets the child's input.
    #[must_use]
    pub fn stdin(mut self, stdin: impl Into<Vec<u8>>) -> Self {
        self.0.stdin = stdin.into();
        self
    }

    /// Sets a lower limit of processor time, in milliseconds, than the
    /// configuration allows.
    #[must_use]
    pub fn cpu_ms(mut self, cpu_ms: u32) -> Self {
        self.0.cpu_ms = Some(cpu_ms);
        self
    }

    /// Sets a lower limit of memory, in bytes, than the configuration allows.
    #[must_use]
    pub fn memory(mut self, memory: u64) -> Self {
        self.0.memory = Some(memory);
        self
    }
}

/// Runs all jobs, several at once, and waits for the last. Returns one answer
/// for each job, in order.
pub fn run(jobs: Vec<Job>) -> Vec<Result<Output, Error>> {
    let jobs: Vec<_> = jobs.into_iter().map(|Job(job)| job).collect();
    contract::run(&jobs)
}

impl From<Error> for Failure {
    /// An unavailable host may run the job later; other errors are the plugin's
    /// fault.
    fn from(error: Error) -> Self {
        match error {
            Error::Unavailable(_) => Failure::unavailable(error.to_string()),
            Error::InvalidRequest(_) => Failure::internal(error.to_string()),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Error::InvalidRequest(what) | Error::Unavailable(what)) = self;
        f.write_str(what)
    }
}
