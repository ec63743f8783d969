//! The score of a response: the share of its row's test cases that its code
//! passes.

use crate::cases::Cases;
use crate::checks::Tests;
use crate::code;
use crate::language::Language;
use crate::repeat::{Ran, run};
use crate::verdict::{Tally, judge};
use gavel_sdk::{Failure, Reference, Sample, Verdict, exec};
use std::num::{NonZeroU32, NonZeroU64, NonZeroUsize};

/// The usual number of cases that count: the same as in verl.
pub const MAX_TESTS: NonZeroUsize = match NonZeroUsize::new(10) {
    Some(most) => most,
    None => NonZeroUsize::MIN,
};

/// The usual time on a processor of each case, in milliseconds.
pub const CPU_MS: NonZeroU32 = match NonZeroU32::new(2000) {
    Some(time) => time,
    None => NonZeroU32::MIN,
};

/// Tests the code of responses.
pub struct Tester {
    /// The language of the code.
    pub language: Language,
    /// The program that runs it, by its name in the configuration.
    pub program: String,
    /// The cases that count, from the first.
    pub max_tests: NonZeroUsize,
    /// Time on a processor of each case, in milliseconds.
    pub cpu_ms: NonZeroU32,
    /// Memory of each case, in MiB; by default the program's limit.
    pub memory_mib: Option<NonZeroU64>,
    /// Whether the score is 1 if every case passes, and 0 otherwise. By default
    /// it is the share of cases that pass.
    pub all_or_nothing: bool,
}

impl Tester {
    /// The verdict on a response.
    ///
    /// # Errors
    /// The tests of the row cannot be read or run, or the host cannot run the
    /// program.
    pub fn score(&self, sample: &Sample, reference: &Reference) -> Result<Verdict, Failure> {
        let response = sample.response();
        let code = &code::of(&response, self.language);
        let tests = match reference.ground_truth() {
            Some(truth) => Tests::of_truth(self.language, &truth).map_err(Failure::invalid_input)?,
            None => Tests::of_columns(self.language, reference)?,
        };
        if let Some(tests) = tests {
            let tally = match self.language {
                Language::C => self.compare(code, &tests)?,
                Language::Python | Language::JavaScript => self.check(code, &tests)?,
            };
            return Ok(tally.verdict(self.all_or_nothing));
        }
        let truth = reference.require_ground_truth()?;
        let most = self.max_tests.get();
        let cases = Cases::read(&truth).and_then(|cases| cases.first(most)).map_err(Failure::invalid_input)?;
        if code.trim().is_empty() {
            return Ok(Tally::new(cases.len()).score(self.all_or_nothing).note("no code in the response").into());
        }
        let outputs = run(self.language, cases.len(), |number, repeat| {
            let (job, stdin) = cases.job(number, code, repeat);
            self.job(job, stdin)
        });
        let mut tally = Tally::new(cases.len());
        for (number, ran) in outputs.into_iter().enumerate() {
            let Ran { output, lacking } = ran?;
            let verdict = judge(&output, cases.expected(number)).map_err(|limit| self.no_room(number, limit))?;
            tally.add(number, verdict.lacking(lacking));
        }
        Ok(tally.verdict(self.all_or_nothing))
    }

    /// A right output that could not be printed is not wrong.
    fn no_room(&self, number: usize, limit: usize) -> Failure {
        let (case, program) = (number + 1, &self.program);
        Failure::invalid_input(format!(
            "case {case} of the ground truth: its output may need more than the {limit} bytes that a child may print: \
             raise `limits.log` in [exec.{program}]"
        ))
    }

    pub(crate) fn job(&self, job: String, stdin: &str) -> exec::Job {
        let job = exec::Job::new(&self.program).args([job]).stdin(stdin).cpu_ms(self.cpu_ms.get());
        match self.memory_mib {
            Some(mib) => job.memory(mib.get().saturating_mul(1 << 20)),
            None => job,
        }
    }
}
