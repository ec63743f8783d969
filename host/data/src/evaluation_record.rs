//! An [`Evaluation`] as a line of a log. It can be read again and compared.

use crate::evaluation::{Diagnosis, Evaluation, Provenance, Usage};
use crate::json::Columns;
use crate::outcome::{Blame, Budget, CausedBy, Credit, Metric, Outcome, OutcomeKind, Score};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::collections::BTreeMap;

/// The recorded form of an [`Evaluation`]. Numbers are read back to the last
/// bit.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EvaluationRecord {
    /// The outcome of the call.
    pub outcome: OutcomeKind,
    /// The score, where there is one.
    pub score: Option<f64>,
    /// Named numbers beside it.
    pub metrics: BTreeMap<String, f64>,
    /// Credit for parts of the sample; older records have none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub credit: Vec<Credit>,
    /// Why, in words.
    pub reason: Option<String>,
    /// The JSON object that the plugin gave with its score.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payload: Option<Box<Columns>>,
    /// The limit that was exceeded, where one was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<Budget>,
    /// Whose fault it was, where it was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub whose: Option<Blame>,
    /// Who caused the failure or abstention; absent in older records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub caused_by: Option<CausedBy>,
    /// What the call used.
    #[serde(flatten)]
    pub usage: Usage,
    /// Output that helps to find why it failed; empty if only the reason is known.
    #[serde(flatten)]
    pub diagnosis: Diagnosis,
    /// The inputs of the call; absent if there was no call.
    #[serde(flatten)]
    pub provenance: Option<Provenance>,
}

impl Outcome {
    /// The limit that was exceeded, or whose fault it was.
    fn budget_or_blame(&self) -> (Option<Budget>, Option<Blame>) {
        match self {
            Self::OutOfBudget { which, .. } => (Some(*which), None),
            Self::Fault { whose, .. } => (None, Some(*whose)),
            _ => (None, None),
        }
    }
}

impl From<&Evaluation> for EvaluationRecord {
    fn from(evaluation: &Evaluation) -> Self {
        let outcome = &evaluation.outcome;
        let (metrics, credit, payload) = match outcome {
            Outcome::Scored(Score { metrics, credit, payload, .. }) => {
                (metrics.iter().map(|m| (m.name.clone(), m.value)).collect(), credit.clone(), payload.clone())
            }
            _ => Default::default(),
        };
        let (budget, whose) = outcome.budget_or_blame();
        Self {
            outcome: outcome.kind(),
            score: outcome.score(),
            metrics,
            credit,
            reason: outcome.reason(),
            payload,
            budget,
            whose,
            caused_by: evaluation.caused_by,
            usage: evaluation.usage,
            diagnosis: evaluation.diagnosis.clone().unwrap_or_default(),
            provenance: evaluation.provenance.clone(),
        }
    }
}

/// An [`EvaluationRecord`] of borrowed parts, since every row of `gavel score` has one for each plugin.
#[derive(Serialize)]
struct BorrowedRecord<'a> {
    outcome: OutcomeKind,
    score: Option<f64>,
    metrics: BTreeMap<&'a str, f64>,
    #[serde(skip_serializing_if = "<[Credit]>::is_empty")]
    credit: &'a [Credit],
    reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    payload: Option<&'a Columns>,
    #[serde(skip_serializing_if = "Option::is_none")]
    budget: Option<Budget>,
    #[serde(skip_serializing_if = "Option::is_none")]
    whose: Option<Blame>,
    #[serde(skip_serializing_if = "Option::is_none")]
    caused_by: Option<CausedBy>,
    #[serde(flatten)]
    usage: &'a Usage,
    #[serde(flatten)]
    diagnosis: Option<&'a Diagnosis>,
    #[serde(flatten)]
    provenance: Option<&'a Provenance>,
}

impl Serialize for Evaluation {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { outcome, usage, provenance, diagnosis, caused_by } = self;
        let (metrics, credit, payload) = match outcome {
            Outcome::Scored(Score { metrics, credit, payload, .. }) => {
                (metrics.iter().map(|m| (m.name.as_str(), m.value)).collect(), &credit[..], payload.as_deref())
            }
            _ => Default::default(),
        };
        let (budget, whose) = outcome.budget_or_blame();
        let record = BorrowedRecord {
            outcome: outcome.kind(),
            score: outcome.score(),
            metrics,
            credit,
            reason: outcome.reason(),
            payload,
            budget,
            whose,
            caused_by: *caused_by,
            usage,
            diagnosis: diagnosis.as_ref(),
            provenance: provenance.as_ref(),
        };
        record.serialize(serializer)
    }
}

impl From<EvaluationRecord> for Evaluation {
    /// An evaluation that has this record.
    fn from(record: EvaluationRecord) -> Self {
        let EvaluationRecord {
            outcome,
            score,
            metrics,
            credit,
            reason,
            payload,
            budget,
            whose,
            caused_by,
            usage,
            diagnosis,
            provenance,
        } = record;
        let what = |prefix: &str| {
            let reason = reason.clone().unwrap_or_default();
            reason.strip_prefix(prefix).map(str::to_owned).unwrap_or(reason)
        };
        let outcome = match outcome {
            OutcomeKind::Scored => Outcome::Scored(Score {
                value: score.unwrap_or_default(),
                metrics: metrics.into_iter().map(|(name, value)| Metric { name, value }).collect(),
                credit,
                note: reason,
                payload,
            }),
            OutcomeKind::Abstained => Outcome::Abstained(what("")),
            OutcomeKind::Unavailable => Outcome::Unavailable(what("")),
            OutcomeKind::Fault => {
                let whose = whose.unwrap_or(Blame::Plugin);
                Outcome::Fault { whose, what: what(whose.introduction()) }
            }
            OutcomeKind::OutOfBudget => {
                let which = budget.unwrap_or(Budget::Deadline);
                Outcome::OutOfBudget { which, what: what(&format!("{which}: ")) }
            }
        };
        let diagnosis = (diagnosis != Diagnosis::default()).then_some(diagnosis);
        Self { outcome, usage, provenance, diagnosis, caused_by }
    }
}

impl<'de> Deserialize<'de> for Evaluation {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        EvaluationRecord::deserialize(deserializer).map(Self::from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evaluation::JudgeId;

    fn provenance() -> Provenance {
        let hash = |letter: &str| letter.repeat(64);
        Provenance {
            judge: JudgeId::Component(hash("a")),
            params: hash("b"),
            contract: "gavel:plugin@0.1.0".into(),
            seed: u64::MAX,
            input: hash("c"),
        }
    }

    fn assert_comes_back(evaluation: &Evaluation) {
        let text = serde_json::to_string(evaluation).unwrap();
        assert_eq!(text, serde_json::to_string(&EvaluationRecord::from(evaluation)).unwrap());
        let back: EvaluationRecord = serde_json::from_str(&text).unwrap();
        assert_eq!(back, EvaluationRecord::from(evaluation), "{text}");
        assert_eq!(&Evaluation::from(back), evaluation, "{text}");
    }

    #[test]
    fn a_score_comes_back_to_the_last_bit() {
        let metrics = vec![Metric { name: "m".into(), value: 5e-324 }, Metric { name: "n".into(), value: -1e300 }];
        let credit = vec![Credit { trajectory: 0, message: 1, start: 2, end: 3, value: -0.1 }];
        let payload = Some(serde_json::from_str(r#"{"steps": [4.50, {"a": null}]}"#).unwrap());
        let score = Score { value: 0.1 + 0.2, metrics, credit, note: Some("why".into()), payload };
        let usage = Usage { elapsed_us: 7, cpu_us: 5, fuel: Some(3), peak_memory: 1 << 20 };
        let outcome = Outcome::Scored(score);
        assert_comes_back(&Evaluation {
            outcome,
            usage,
            provenance: Some(provenance()),
            diagnosis: None,
            caused_by: None,
        });
    }

    #[test]
    fn a_failure_comes_back_with_its_diagnosis_and_without_a_call() {
        let diagnosis = Diagnosis { backtrace: vec!["score".into()], stderr: "no".into() };
        let outcome = Outcome::Fault { whose: Blame::Plugin, what: "trap".into() };
        let provenance = Some(provenance());
        let (usage, diagnosis) = (Usage::default(), Some(diagnosis));
        assert_comes_back(&Evaluation { outcome, usage, provenance, diagnosis, caused_by: None });
        let outcome = Outcome::OutOfBudget { which: Budget::Cpu, what: "2 s".into() };
        assert_comes_back(&Evaluation::without_call(outcome.clone()));
        for caused_by in CausedBy::ALL {
            let blamed = Evaluation { caused_by: Some(caused_by), ..Evaluation::without_call(outcome.clone()) };
            assert_comes_back(&blamed);
            let text = serde_json::to_string(&blamed).unwrap();
            assert!(text.contains(&format!(r#""caused_by":"{}""#, caused_by.as_str())), "{text}");
        }
    }

    #[test]
    fn the_judge_stands_first_among_what_a_call_was_made_of() {
        let evaluation = |judge| Evaluation {
            provenance: Some(Provenance { judge, seed: 7, ..provenance() }),
            ..Evaluation::without_call(Outcome::Abstained("no".into()))
        };
        for (judge, written) in [
            (JudgeId::Component("a".repeat(64)), format!(r#""component":"{}""#, "a".repeat(64))),
            (JudgeId::Model("rm-7b".into()), r#""model":"rm-7b""#.to_owned()),
        ] {
            let text = serde_json::to_string(&evaluation(judge.clone())).unwrap();
            let made_of = format!(
                r#""peak_memory":0,{written},"params":"{}","contract":"gavel:plugin@0.1.0","seed":7,"input":"{}"}}"#,
                "b".repeat(64),
                "c".repeat(64)
            );
            assert!(text.ends_with(&made_of), "{text}");
            assert_comes_back(&evaluation(judge));
        }
    }
}
