//! The input of a call: a sample, and the verdicts of other rewards on it.

use crate::evaluation::Evaluation;
use crate::evaluation_record::EvaluationRecord;
use crate::outcome::{Metric, Outcome, OutcomeKind, Score};
use crate::sample::Sample;
use serde::Serialize;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Another reward's verdict on a sample. It has no reason of a failed call: that contains times, and a replay must give
/// the same input.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum PriorVerdict {
    /// It gave a score.
    Scored(Score),
    /// It declined, for this reason.
    Abstained(String),
    /// It was not called: its gate is shut, or it is for other data sources.
    NotCalled,
    /// The call gave no verdict: a fault, out of budget, or unavailable.
    NoVerdict,
}

/// The verdicts of other rewards on a sample, by their names in the run.
pub type PriorVerdicts = BTreeMap<String, PriorVerdict>;

impl From<f64> for PriorVerdict {
    fn from(value: f64) -> Self {
        Self::Scored(Score { value, ..Score::default() })
    }
}

impl From<&Evaluation> for PriorVerdict {
    fn from(evaluation: &Evaluation) -> Self {
        match &evaluation.outcome {
            Outcome::Scored(score) => Self::Scored(score.clone()),
            Outcome::Abstained(reason) => Self::Abstained(reason.clone()),
            Outcome::Fault { .. } | Outcome::OutOfBudget { .. } | Outcome::Unavailable(_) => Self::NoVerdict,
        }
    }
}

impl PriorVerdict {
    /// The verdict of a recorded call; `None` if the record has a score without its value.
    pub fn recorded(record: &EvaluationRecord) -> Option<Self> {
        Some(match record.outcome {
            OutcomeKind::Scored => {
                let metrics = record.metrics.iter().map(|(name, value)| Metric { name: name.clone(), value: *value });
                let (metrics, credit) = (metrics.collect(), record.credit.clone());
                let (note, payload) = (record.reason.clone(), record.payload.clone());
                Self::Scored(Score { value: record.score?, metrics, credit, note, payload })
            }
            OutcomeKind::Abstained => Self::Abstained(record.reason.clone().unwrap_or_default()),
            OutcomeKind::Fault | OutcomeKind::OutOfBudget | OutcomeKind::Unavailable => Self::NoVerdict,
        })
    }
}

/// The input of a call.
#[derive(Debug, Clone, PartialEq)]
pub struct SampleInput {
    /// The sample.
    pub sample: Arc<Sample>,
    /// The verdicts of the rewards in `after`.
    pub verdicts: Arc<PriorVerdicts>,
}

impl SampleInput {
    /// BLAKE3 of everything that a plugin can see of it, in hexadecimal; [`Sample::hash`] where there are no verdicts.
    pub fn hash(&self) -> String {
        let sample = self.sample.hash();
        if self.verdicts.is_empty() {
            return sample;
        }
        let mut hasher = blake3::Hasher::new();
        hasher.update(sample.as_bytes());
        // Cannot fail: a hasher takes every byte, and the map has only string keys.
        let _ = serde_json::to_writer(&mut hasher, &*self.verdicts);
        hasher.finalize().to_hex().to_string()
    }
}

impl From<Arc<Sample>> for SampleInput {
    fn from(sample: Arc<Sample>) -> Self {
        Self { sample, verdicts: Arc::default() }
    }
}

impl From<Sample> for SampleInput {
    fn from(sample: Sample) -> Self {
        Arc::new(sample).into()
    }
}

impl From<&Arc<Sample>> for SampleInput {
    fn from(sample: &Arc<Sample>) -> Self {
        sample.clone().into()
    }
}

impl From<&SampleInput> for SampleInput {
    fn from(input: &SampleInput) -> Self {
        input.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::Columns;
    use crate::outcome::{Blame, Budget, Credit};
    use crate::task::Task;

    fn sample() -> Sample {
        let task = Task::with_prompt(Default::default(), Vec::new(), 0, "test");
        Sample::new(task.into(), 0, Vec::new())
    }

    fn with(verdicts: &[(&str, PriorVerdict)]) -> String {
        let verdicts = verdicts.iter().map(|(name, verdict)| ((*name).to_owned(), verdict.clone())).collect();
        SampleInput { sample: sample().into(), verdicts: Arc::new(verdicts) }.hash()
    }

    #[test]
    fn every_verdict_changes_the_hash_and_none_leaves_that_of_the_sample() {
        assert_eq!(with(&[]), sample().hash());
        assert_eq!(SampleInput::from(sample()).hash(), sample().hash());
        let noted = Score { value: 1.0, note: Some("why".into()), ..Score::default() };
        let mut payload = Columns::default();
        payload.insert("by", "line");
        let with_payload = Score { value: 1.0, payload: Some(Box::new(payload)), ..Score::default() };
        let hashes = [
            with(&[]),
            with(&[("a", 1.0.into())]),
            with(&[("b", 1.0.into())]),
            with(&[("a", f64::from_bits(1.0f64.to_bits() + 1).into())]),
            with(&[("a", PriorVerdict::Scored(noted))]),
            with(&[("a", PriorVerdict::Scored(with_payload))]),
            with(&[("a", PriorVerdict::Abstained("1".into()))]),
            with(&[("a", PriorVerdict::NotCalled)]),
            with(&[("a", PriorVerdict::NoVerdict)]),
            with(&[("a", PriorVerdict::NoVerdict), ("b", PriorVerdict::NoVerdict)]),
        ];
        for (at, hash) in hashes.iter().enumerate() {
            assert!(!hashes[..at].contains(hash), "{at}");
        }
    }

    #[test]
    fn a_recorded_verdict_is_what_was_seen() {
        let metrics = vec![Metric { name: "m".into(), value: 5e-324 }, Metric { name: "n".into(), value: -1e300 }];
        let credit = vec![Credit { trajectory: 0, message: 1, start: 2, end: 3, value: -0.1 }];
        let payload = Some(serde_json::from_str(r#"{"steps": [4.50, {"a": null}]}"#).unwrap());
        let score = Score { value: 0.1 + 0.2, metrics, credit, note: Some("why".into()), payload };
        for outcome in [
            Outcome::Scored(score),
            Outcome::Scored(Score::default()),
            Outcome::Abstained("not mine".into()),
            Outcome::Fault { whose: Blame::Plugin, what: "trap".into() },
            Outcome::OutOfBudget { which: Budget::Cpu, what: "2.1 s".into() },
            Outcome::Unavailable("busy".into()),
        ] {
            let evaluation = Evaluation::without_call(outcome);
            let text = serde_json::to_string(&evaluation).unwrap();
            let record: EvaluationRecord = serde_json::from_str(&text).unwrap();
            assert_eq!(PriorVerdict::recorded(&record), Some(PriorVerdict::from(&evaluation)), "{text}");
        }
    }
}
