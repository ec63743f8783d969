//! Outcomes and diagnoses as they may be logged: without what a grant keeps secret.

use super::granted::Granted;
use super::http::Refusals;
use gavel_data::{Diagnosis, Outcome, Score};

impl Granted {
    /// An outcome as it may be logged: where it is no score, with the requests
    /// that were refused in the call, and in any case without the values of
    /// granted variables.
    pub(crate) fn loggable(&self, outcome: Outcome, refusals: &Refusals) -> Outcome {
        let tell = |text: String| {
            self.redact(match refusals.text() {
                Some(refusals) => format!("{text}; {refusals}"),
                None => text,
            })
        };
        match outcome {
            Outcome::Scored(score) => {
                let note = score.note.map(|note| self.redact(note));
                Outcome::Scored(Score { note, ..score })
            }
            Outcome::Abstained(reason) => Outcome::Abstained(tell(reason)),
            Outcome::Fault { whose, what } => Outcome::Fault { whose, what: tell(what) },
            Outcome::OutOfBudget { which, what } => Outcome::OutOfBudget { which, what: tell(what) },
            Outcome::Unavailable(what) => Outcome::Unavailable(tell(what)),
        }
    }

    /// What helps to mend a plugin, without the values of granted variables.
    pub(crate) fn loggable_diagnosis(&self, diagnosis: Diagnosis) -> Diagnosis {
        Diagnosis { stderr: self.redact(diagnosis.stderr), ..diagnosis }
    }

    /// A text that the plugin wrote, without the values of granted variables.
    pub(crate) fn redact(&self, text: String) -> String {
        self.env.redact(text)
    }
}
