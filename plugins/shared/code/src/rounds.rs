//! Runs tests that are written as code, in a child that does not have the
//! code. Other children, which have only the code and the calls, answer the
//! calls; then the tests run again.

use crate::checks::Tests;
use crate::effort::Effort;
use crate::repeat::{Ran, Ways, run};
use crate::tester::Tester;
use crate::verdict::{Kind, Tally, Verdict, cut, failure};
use gavel_sdk::Failure;
use gavel_sdk::exec::{self, Ending, Output};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// A call, and the line with its answer; `None` if the code ended before.
type Answered = (Box<RawValue>, Option<String>);

#[derive(Serialize)]
#[serde(rename_all = "lowercase")]
enum Job<'a> {
    Tests(Run<'a>),
}

#[derive(Serialize)]
struct Run<'a> {
    setup: &'a str,
    cases: Option<&'a [String]>,
    most: usize,
    answers: &'a [Vec<Answered>],
}

#[derive(Serialize)]
struct Calls<'a> {
    code: &'a str,
    calls: &'a [Box<RawValue>],
    #[serde(skip_serializing_if = "Ways::is_empty")]
    repeat: &'a Ways,
}

/// The result of the tests for a case.
#[derive(Deserialize)]
struct Judged {
    name: String,
    outcome: Outcome,
    why: String,
    calls: Vec<Box<RawValue>>,
    /// Whether code that answers every call with `None` or `undefined` passes it.
    blank: bool,
}

#[derive(Deserialize, Clone, Copy, PartialEq)]
#[serde(rename_all = "lowercase")]
enum Outcome {
    Passed,
    Failed,
    Undecided,
    Unsupported,
}

impl Tester {
    /// The verdict of each case.
    ///
    /// # Errors
    /// The tests cannot be run, whatever the code is.
    pub(crate) fn check(&self, code: &str, tests: &Tests) -> Result<Tally, Failure> {
        let mut cases = self.tested(tests)?;
        let mut answers: Vec<Vec<Answered>> = cases.iter().map(|_| Vec::new()).collect();
        let no_code = || code.trim().is_empty().then(|| Verdict::new(Kind::Error, "no code in the response"));
        let mut ends: Vec<Option<Verdict>> = cases.iter().map(|_| no_code()).collect();
        let mut lacking: Vec<Option<String>> = cases.iter().map(|_| None).collect();
        let mut effort = Effort::new(self.language, self.cpu_ms, cases.len());
        loop {
            let open: Vec<usize> =
                (0..cases.len()).filter(|at| cases[*at].outcome == Outcome::Undecided && ends[*at].is_none()).collect();
            if open.is_empty() || !effort.begin(open.len()) {
                break;
            }
            let ran = run(self.language, open.len(), |number, repeat| {
                let calls = Calls { code, calls: &cases[open[number]].calls, repeat };
                self.job(json(&calls), "")
            });
            for (at, ran) in open.into_iter().zip(ran) {
                let Ran { output, lacking: what } = ran?;
                let calls = std::mem::take(&mut cases[at].calls);
                ends[at] = failure(&output);
                if !effort.add_code(at, output.cpu_us) {
                    ends[at].get_or_insert_with(|| Verdict::new(Kind::TimedOut, "it ran out of time over all rounds"));
                }
                if effort.must_advance() && calls.len() <= answers[at].len() {
                    ends[at].get_or_insert_with(|| Verdict::new(Kind::Error, "its calls change from run to run"));
                }
                lacking[at] = lacking[at].take().or(what);
                answers[at] = answered(calls, &output);
            }
            let run = self.job(json(&job(tests, self.max_tests.get(), &answers)), "");
            let output = exec::run(vec![run]).pop().ok_or_else(too_few)??;
            effort.add_tests(output.cpu_us);
            match judged(&output) {
                Ok(judged) if judged.len() == cases.len() => cases = judged,
                // An answer with which the tests do not end is wrong.
                _ => ends.iter_mut().for_each(|end| {
                    end.get_or_insert_with(|| Verdict::new(Kind::Error, "the tests do not end with these answers"));
                }),
            }
        }
        let mut tally = Tally::new(cases.len());
        for (number, ((case, end), lacking)) in cases.into_iter().zip(ends).zip(lacking).enumerate() {
            tally.add(number, case.verdict(end).lacking(lacking));
        }
        Ok(tally)
    }

    /// The results of the tests before they have any answer.
    fn tested(&self, tests: &Tests) -> Result<Vec<Judged>, Failure> {
        let run = self.job(json(&job(tests, self.max_tests.get(), &[])), "");
        let output = exec::run(vec![run]).pop().ok_or_else(too_few)??;
        let cases = judged(&output).map_err(|what| Failure::invalid_input(format!("the tests of the row: {what}")))?;
        let unsupported = cases.iter().find(|case| case.outcome == Outcome::Unsupported);
        if let Some(Judged { name, why, .. }) = unsupported {
            return Err(Failure::invalid_input(format!("the test `{}` cannot be run: {why}", cut(name))));
        }
        if cases.iter().all(|case| case.blank) {
            return Err(Failure::invalid_input("every test passes with code that does nothing, or there is none"));
        }
        Ok(cases)
    }
}

impl Judged {
    fn verdict(self, end: Option<Verdict>) -> Verdict {
        match (self.outcome, end) {
            (Outcome::Passed, None) if self.blank => Verdict::new(Kind::Blank, ""),
            (Outcome::Passed, None) => Verdict::new(Kind::Passed, ""),
            (_, Some(end)) => end,
            (Outcome::Undecided, None) => {
                Verdict::new(Kind::Error, "its calls depend on each other in too many rounds")
            }
            (Outcome::Failed | Outcome::Unsupported, None) => {
                Verdict::new(Kind::Wrong, &format!("{}: {}", cut(&self.name), cut(&self.why)))
            }
        }
    }
}

fn job<'a>(tests: &'a Tests, most: usize, answers: &'a [Vec<Answered>]) -> Job<'a> {
    Job::Tests(Run { setup: &tests.setup, cases: tests.cases.as_deref(), most, answers })
}

/// Any text and any JSON can be written as JSON.
fn json(job: &impl Serialize) -> String {
    serde_json::to_string(job).unwrap_or_default()
}

fn too_few() -> Failure {
    Failure::internal("the host gave too few answers")
}

/// The results of the row's tests. Only the answers in their child come from
/// the response, and these are data.
fn judged(output: &Output) -> Result<Vec<Judged>, String> {
    let stdout = String::from_utf8_lossy(&output.stdout);
    match (&output.ending, stdout.lines().next_back()) {
        (Ending::Exited(0), Some(line)) => serde_json::from_str(line).map_err(|error| error.to_string()),
        _ => Err(failure(output).map_or_else(|| "they say nothing".to_owned(), |verdict| verdict.note)),
    }
}

/// The calls with their answers, a line each, up to the one at which the code
/// ended.
fn answered(calls: Vec<Box<RawValue>>, output: &Output) -> Vec<Answered> {
    let stdout = String::from_utf8_lossy(&output.stdout);
    let lines = stdout.lines().map(|line| Some(line.to_owned())).chain(std::iter::repeat(None));
    calls.into_iter().zip(lines).collect()
}
