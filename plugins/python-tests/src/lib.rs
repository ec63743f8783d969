//! Runs the Python code of a response against test cases, each in a fresh child
//! that sees only the case's input. The expected answer and the comparison stay
//! here.

use code_testing::{CPU_MS, Language, MAX_TESTS, Tester};
use gavel_sdk::{Failure, Info, Reference, Reward, Sample, Verdict};
use serde::Deserialize;
use std::num::{NonZeroU32, NonZeroU64, NonZeroUsize};

#[derive(Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Params {
    /// The program that runs Python, by its name in the configuration.
    program: String,
    /// The cases that count, from the first.
    max_tests: NonZeroUsize,
    /// Time on a processor of each case, in milliseconds.
    cpu_ms: NonZeroU32,
    /// Memory of each case, in MiB; by default the program's limit.
    memory_mib: Option<NonZeroU64>,
    /// Whether the score is 1 if every case passes, and 0 otherwise. By default
    /// it is the share of cases that pass.
    all_or_nothing: bool,
}

impl Default for Params {
    fn default() -> Self {
        let program = Language::Python.name().into();
        Self { program, max_tests: MAX_TESTS, cpu_ms: CPU_MS, memory_mib: None, all_or_nothing: false }
    }
}

struct PythonTests {
    tester: Tester,
}

impl Reward for PythonTests {
    type Params = Params;

    fn new(params: Params) -> Result<Self, String> {
        let Params { program, max_tests, cpu_ms, memory_mib, all_or_nothing } = params;
        let language = Language::Python;
        Ok(Self { tester: Tester { language, program, max_tests, cpu_ms, memory_mib, all_or_nothing } })
    }

    fn info(&self) -> Info {
        // Not pure: whether a case ends within its time does not depend on the sample alone.
        Info::new(env!("CARGO_PKG_NAME"), env!("CARGO_PKG_VERSION")).score_range(0.0, 1.0)
    }

    fn score(&self, sample: &Sample, reference: &Reference) -> Result<Verdict, Failure> {
        self.tester.score(sample, reference)
    }
}

gavel_sdk::export_reward!(PythonTests);
