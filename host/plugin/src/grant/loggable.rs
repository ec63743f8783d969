//! Outcomes and diagnoses for logs, without the values of granted variables.

use super::granted::Granted;
use super::http::Refusals;
use gavel_data::{Blame, Columns, Diagnosis, Outcome, Score};

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
                match score.payload.map(|payload| self.redact_object(*payload).map(Box::new)).transpose() {
                    Ok(payload) => Outcome::Scored(Score { note, payload, ..score }),
                    Err(what) => Outcome::Fault { whose: Blame::Plugin, what },
                }
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

    /// An object that the plugin wrote, without the values of granted variables.
    fn redact_object(&self, object: Columns) -> Result<Columns, String> {
        let text = serde_json::to_string(&object).map_err(|error| error.to_string())?;
        let clean = self.redact(text.clone());
        if clean == text {
            return Ok(object);
        }
        serde_json::from_str(&clean).map_err(|_| "the payload has the value of a granted variable as a number".into())
    }

    /// A text that the plugin wrote, without the values of granted variables.
    pub(crate) fn redact(&self, text: String) -> String {
        self.env.redact(text)
    }
}
