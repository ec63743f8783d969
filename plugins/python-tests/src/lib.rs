//! Runs the Python code of a response against test cases, each in a fresh child
//! that sees only the case's input. The expected answer and the comparison stay
//! here.

mod cases;
mod checks;
mod code;
mod compare;
mod repeat;
mod rounds;
mod verdict;

use cases::Cases;
use checks::Tests;
use gavel_sdk::{Failure, Info, Reference, Reward, Sample, Verdict, exec};
use repeat::{Ran, run};
use serde::Deserialize;
use std::num::{NonZeroU32, NonZeroU64, NonZeroUsize};
use verdict::{Tally, judge};

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
        Self {
            program: "python".into(),
            // The same number as in verl.
            max_tests: NonZeroUsize::new(10).unwrap_or(NonZeroUsize::MIN),
            cpu_ms: NonZeroU32::new(2000).unwrap_or(NonZeroU32::MIN),
            memory_mib: None,
            all_or_nothing: false,
        }
    }
}

struct PythonTests {
    params: Params,
}

impl Reward for PythonTests {
    type Params = Params;

    fn new(params: Params) -> Result<Self, String> {
        Ok(Self { params })
    }

    fn info(&self) -> Info {
        // Not pure: whether a case ends within its time does not depend on the sample alone.
        Info::new(env!("CARGO_PKG_NAME"), env!("CARGO_PKG_VERSION")).score_range(0.0, 1.0)
    }

    fn score(&self, sample: &Sample, reference: &Reference) -> Result<Verdict, Failure> {
        let response = sample.response();
        let code = &code::of(&response);
        let tests = match reference.ground_truth() {
            Some(truth) => Tests::of_truth(&truth).map_err(Failure::invalid_input)?,
            None => Tests::of_columns(reference)?,
        };
        if let Some(tests) = tests {
            return Ok(self.check(code, &tests)?.verdict(self.params.all_or_nothing));
        }
        let truth = reference.require_ground_truth()?;
        let cases = Cases::read(&truth).and_then(|cases| cases.first(self.most())).map_err(Failure::invalid_input)?;
        if code.trim().is_empty() {
            return Ok(Tally::new(cases.len())
                .score(self.params.all_or_nothing)
                .note("no code in the response")
                .into());
        }
        let outputs = run(cases.len(), |number, repeat| {
            let (job, stdin) = cases.job(number, code, repeat);
            self.job(job, stdin)
        });
        let mut tally = Tally::new(cases.len());
        for (number, ran) in outputs.into_iter().enumerate() {
            let Ran { output, lacking } = ran?;
            let verdict = judge(&output, cases.expected(number)).map_err(|limit| self.no_room(number, limit))?;
            tally.add(number, verdict.lacking(lacking));
        }
        Ok(tally.verdict(self.params.all_or_nothing))
    }
}

gavel_sdk::export_reward!(PythonTests);

impl PythonTests {
    /// A right output that could not be printed is not wrong.
    fn no_room(&self, number: usize, limit: usize) -> Failure {
        let (case, program) = (number + 1, &self.params.program);
        Failure::invalid_input(format!(
            "case {case} of the ground truth: its output may need more than the {limit} bytes that a child may print: \
             raise `limits.log` in [exec.{program}]"
        ))
    }

    fn most(&self) -> usize {
        self.params.max_tests.get()
    }

    fn job(&self, job: String, stdin: &str) -> exec::Job {
        let job = exec::Job::new(&self.params.program).args([job]).stdin(stdin).cpu_ms(self.params.cpu_ms.get());
        match self.params.memory_mib {
            Some(mib) => job.memory(mib.get().saturating_mul(1 << 20)),
            None => job,
        }
    }
}
