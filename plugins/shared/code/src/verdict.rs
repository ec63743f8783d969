//! The results of the cases.

use crate::cases::Expected;
use crate::repeat::own_words;
use gavel_sdk::Score;
use gavel_sdk::exec::{Ending, Output};

/// Bytes of an answer that a note shows.
const SHOWN: usize = 120;

/// The kind of result of a case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Passed,
    /// It passed as code that does nothing would.
    Blank,
    /// It ended well, but its answer is wrong.
    Wrong,
    /// It ran out of time.
    TimedOut,
    /// It ran out of memory.
    OutOfMemory,
    /// It failed, printed too much, or exceeded the stack.
    Error,
    /// It did not pass, and the interpreter lacks what it needs.
    Unknown,
}

/// The result of a case, and its description.
pub(crate) struct Verdict {
    kind: Kind,
    pub(crate) note: String,
}

impl Verdict {
    pub(crate) fn new(kind: Kind, note: &str) -> Self {
        Self { kind, note: note.to_owned() }
    }

    /// The result of a case in which the interpreter lacked something: what
    /// does not pass then may be right.
    pub(crate) fn lacking(self, what: Option<String>) -> Self {
        match (self.kind, what) {
            (Kind::Passed | Kind::Blank, _) | (_, None) => self,
            (_, Some(what)) => Self { kind: Kind::Unknown, note: what },
        }
    }
}

/// Judges the output of a child.
///
/// # Errors
/// It was ended at the limit of output, and may have been right.
pub(crate) fn judge(output: &Output, expected: &Expected) -> Result<Verdict, usize> {
    let stdout = String::from_utf8_lossy(&output.stdout);
    let printed = output.stdout.len() + output.stderr.len();
    if matches!(&output.ending, Ending::OutOfBudget(which) if which == "log") && expected.may_exceed(printed, &stdout) {
        return Err(printed);
    }
    Ok(failure(output).unwrap_or_else(|| match expected.is(&stdout) {
        true if expected.is_blank() => Verdict::new(Kind::Blank, ""),
        true => Verdict::new(Kind::Passed, ""),
        false => {
            let (expected, stdout) = (expected.to_string(), stdout);
            Verdict::new(Kind::Wrong, &format!("expected {:?}, not {:?}", cut(&expected), cut(&stdout)))
        }
    }))
}

/// The result of a child that failed; `None` if it ended well.
pub(crate) fn failure(output: &Output) -> Option<Verdict> {
    let stderr = String::from_utf8_lossy(&output.stderr);
    let last_words = own_words(&stderr).lines().rfind(|line| !line.trim().is_empty()).unwrap_or_default();
    Some(match &output.ending {
        Ending::Exited(0) => return None,
        Ending::Exited(_) => Verdict::new(Kind::Error, cut(last_words)),
        Ending::OutOfBudget(which) if which == "memory" => Verdict::new(Kind::OutOfMemory, "it ran out of memory"),
        Ending::OutOfBudget(which) if ["cpu", "deadline", "fuel"].contains(&which.as_str()) => {
            Verdict::new(Kind::TimedOut, "it ran out of time")
        }
        Ending::OutOfBudget(which) => Verdict::new(Kind::Error, &format!("it exceeded the budget {which}")),
        Ending::Trapped(what) => Verdict::new(Kind::Error, cut(what)),
    })
}

pub(crate) fn cut(text: &str) -> &str {
    let text = text.trim();
    &text[..text.floor_char_boundary(SHOWN)]
}

/// The results of all cases.
pub(crate) struct Tally {
    total: usize,
    kinds: Vec<Kind>,
    first: Option<String>,
    unknown: Option<String>,
}

impl Tally {
    pub(crate) fn new(total: usize) -> Self {
        Self { total, kinds: Vec::new(), first: None, unknown: None }
    }

    /// Adds the case `number`, from 0.
    pub(crate) fn add(&mut self, number: usize, verdict: Verdict) {
        let note = || format!("case {}: {}", number + 1, verdict.note);
        match verdict.kind {
            Kind::Passed | Kind::Blank => {}
            Kind::Unknown => _ = self.unknown.get_or_insert_with(note),
            _ => _ = self.first.get_or_insert_with(note),
        }
        self.kinds.push(verdict.kind);
    }

    /// The score, if it is known. It is not where the result of a case is not,
    /// unless every case has to pass and another one failed.
    pub(crate) fn verdict(mut self, all_or_nothing: bool) -> gavel_sdk::Verdict {
        let is_zero = all_or_nothing && self.first.is_some();
        match self.unknown.take() {
            Some(unknown) if !is_zero => gavel_sdk::Verdict::abstain(unknown),
            _ => self.score(all_or_nothing).into(),
        }
    }

    /// The share of cases that passed, or whether all did. Passes with blank
    /// answers count only beside another pass: code that does nothing would
    /// also get them.
    pub(crate) fn score(self, all_or_nothing: bool) -> Score {
        let count = |kind| self.kinds.iter().filter(|other| **other == kind).count() as f64;
        let (blank, total) = (count(Kind::Blank), self.total as f64);
        let (passed, wrong) = match count(Kind::Passed) {
            0.0 => (0.0, count(Kind::Wrong) + blank),
            passed => (passed + blank, count(Kind::Wrong)),
        };
        let value = if all_or_nothing { f64::from(passed == total) } else { passed / total };
        let score = Score::new(value)
            .metric("passed", passed)
            .metric("total", total)
            .metric("wrong", wrong)
            .metric("timeouts", count(Kind::TimedOut))
            .metric("out_of_memory", count(Kind::OutOfMemory))
            .metric("errors", count(Kind::Error));
        match self.first {
            Some(first) => score.note(first),
            None => score,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn output(ending: Ending) -> Output {
        Output { ending, stdout: b"4\n".to_vec(), stderr: b"Traceback\nValueError: no\n".to_vec(), cpu_us: 1 }
    }

    #[test]
    fn a_child_s_end_says_what_became_of_its_case() {
        let four = Expected::Printed("4".into());
        for (ending, kind, note) in [
            (Ending::Exited(0), Kind::Passed, ""),
            (Ending::Exited(1), Kind::Error, "ValueError: no"),
            (Ending::OutOfBudget("cpu".into()), Kind::TimedOut, "time"),
            (Ending::OutOfBudget("memory".into()), Kind::OutOfMemory, "memory"),
            (Ending::OutOfBudget("log".into()), Kind::Error, "log"),
            (Ending::Trapped("unreachable".into()), Kind::Error, "unreachable"),
        ] {
            let verdict = judge(&output(ending), &four).unwrap();
            assert_eq!(verdict.kind, kind);
            assert!(verdict.note.contains(note), "{}", verdict.note);
        }
        let wrong = judge(&output(Ending::Exited(0)), &Expected::Printed("5".into())).unwrap();
        assert_eq!((wrong.kind, wrong.note.as_str()), (Kind::Wrong, r#"expected "5", not "4""#));
        let cut = judge(&output(Ending::OutOfBudget("log".into())), &Expected::Printed("4\n".repeat(20)));
        assert_eq!(cut.err(), Some(27));
    }

    #[test]
    fn what_the_interpreter_lacks_leaves_the_score_open() {
        let verdict = |kinds: &[Kind], all_or_nothing| {
            let mut tally = Tally::new(kinds.len());
            for (number, kind) in kinds.iter().enumerate() {
                let lacking = (*kind == Kind::Unknown).then(|| "32 bits".to_owned());
                let kind = if lacking.is_some() { Kind::Wrong } else { *kind };
                tally.add(number, Verdict::new(kind, "no").lacking(lacking));
            }
            match tally.verdict(all_or_nothing) {
                gavel_sdk::Verdict::Scored(score) => Ok(score.value),
                gavel_sdk::Verdict::Abstained(why) => Err(why),
            }
        };
        let open = Err("case 2: 32 bits".to_owned());
        assert_eq!(verdict(&[Kind::Passed, Kind::Unknown], false), open);
        assert_eq!(verdict(&[Kind::Wrong, Kind::Unknown], false), open);
        assert_eq!(verdict(&[Kind::Passed, Kind::Unknown], true), open);
        assert_eq!(verdict(&[Kind::Wrong, Kind::Unknown], true), Ok(0.0));
        assert_eq!(verdict(&[Kind::Passed, Kind::Wrong], false), Ok(0.5));
        let passed = Verdict::new(Kind::Passed, "").lacking(Some("32 bits".into()));
        assert_eq!(passed.kind, Kind::Passed);
    }

    #[test]
    fn the_score_is_the_share_or_all() {
        let tally = || {
            let mut tally = Tally::new(4);
            for (number, kind) in [Kind::Passed, Kind::Wrong, Kind::Passed, Kind::TimedOut].into_iter().enumerate() {
                tally.add(number, Verdict { kind, note: format!("{kind:?}") });
            }
            tally
        };
        let share = tally().score(false);
        assert_eq!((share.value, share.note.as_deref()), (0.5, Some("case 2: Wrong")));
        assert_eq!(tally().score(true).value, 0.0);
    }

    #[test]
    fn blank_answers_count_beside_another() {
        let score = |kinds: &[Kind]| {
            let mut tally = Tally::new(kinds.len());
            for (number, kind) in kinds.iter().enumerate() {
                tally.add(number, Verdict { kind: *kind, note: format!("{kind:?}") });
            }
            let score = tally.score(false);
            let metric = |name| score.metrics.iter().find(|metric| metric.name == name).unwrap().value;
            (score.value, metric("passed"), metric("wrong"), score.note.clone())
        };
        assert_eq!(score(&[Kind::Blank, Kind::Passed, Kind::Blank]), (1.0, 3.0, 0.0, None));
        assert_eq!(score(&[Kind::Blank, Kind::Wrong]), (0.0, 0.0, 2.0, Some("case 2: Wrong".into())));
        assert_eq!(score(&[Kind::Blank, Kind::Error]), (0.0, 0.0, 1.0, Some("case 2: Error".into())));
    }
}
