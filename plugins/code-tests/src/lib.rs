//! Runs the code of a response, in the language that the configuration names,
//! against test cases, each in a fresh child that sees only the case's input.
//! The expected answer and the comparison stay here.

use code_testing::{CPU_MS, Language, MAX_TESTS, Tester};
use gavel_sdk::{Failure, Info, Reference, Reward, Sample, Verdict};
use serde::Deserialize;
use std::num::{NonZeroU32, NonZeroU64, NonZeroUsize};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Params {
    /// The language of the code.
    language: Language,
    /// The program that runs it, by its name in the configuration; by default
    /// the language's name.
    #[serde(default)]
    program: Option<String>,
    /// The cases that count, from the first.
    #[serde(default = "max_tests")]
    max_tests: NonZeroUsize,
    /// Time on a processor of each case, in milliseconds.
    #[serde(default = "cpu_ms")]
    cpu_ms: NonZeroU32,
    /// Memory of each case, in MiB; by default the program's limit.
    #[serde(default)]
    memory_mib: Option<NonZeroU64>,
    /// Whether the score is 1 if every case passes, and 0 otherwise. By default
    /// it is the share of cases that pass.
    #[serde(default)]
    all_or_nothing: bool,
}

fn max_tests() -> NonZeroUsize {
    MAX_TESTS
}

fn cpu_ms() -> NonZeroU32 {
    CPU_MS
}

struct CodeTests {
    tester: Tester,
}

impl Reward for CodeTests {
    type Params = Params;

    fn new(params: Params) -> Result<Self, String> {
        let Params { language, program, max_tests, cpu_ms, memory_mib, all_or_nothing } = params;
        let program = program.unwrap_or_else(|| language.name().to_owned());
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

gavel_sdk::export_reward!(CodeTests);
