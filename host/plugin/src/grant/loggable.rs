//! Outcomes and diagnoses for logs, without the values of granted variables.

use super::granted::Granted;
use super::http::Refusals;
use gavel_data::{Diagnosis, Outcome, Score};

impl Granted {
    /// An outcome for logs, without the values of granted variables. Where it is
    /// not a score, the refused requests of the call are added.
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

    /// A diagnosis for logs, without the values of granted variables.
    pub(crate) fn loggable_diagnosis(&self, diagnosis: Diagnosis) -> Diagnosis {
        Diagnosis { stderr: self.redact(diagnosis.stderr), ..diagnosis }
    }

    /// A text that the plugin wrote, without the values of granted variables.
    pub(crate) fn redact(&self, text: String) -> String {
        self.env.redact(text)
    }
}
