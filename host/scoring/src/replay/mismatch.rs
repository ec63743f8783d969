//! The differences between two verdicts, to the last bit.

use gavel_data::{Budget, CausedBy, Credit, EvaluationRecord};

/// A difference: the recorded value and the value now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mismatch {
    /// What differs: `score`, `reason`, `input`, …
    pub what: &'static str,
    /// The recorded value.
    pub recorded: String,
    /// The value now.
    pub replayed: String,
}

/// All differences but the differences of the clock: times, and how much of a
/// time budget was used.
pub fn mismatches(recorded: &EvaluationRecord, replayed: &EvaluationRecord) -> Vec<Mismatch> {
    let mut found = Vec::new();
    let mut compare = |what, recorded: String, replayed: String| {
        if recorded != replayed {
            found.push(Mismatch { what, recorded, replayed });
        }
    };
    if let (Some(recorded), Some(replayed)) = (&recorded.provenance, &replayed.provenance) {
        compare(recorded.judge.kind(), recorded.judge.as_str().into(), replayed.judge.as_str().into());
        compare("parameters", recorded.params.clone(), replayed.params.clone());
        compare("contract", recorded.contract.clone(), replayed.contract.clone());
        compare("input", recorded.input.clone(), replayed.input.clone());
    }
    compare("outcome", recorded.outcome.as_str().into(), replayed.outcome.as_str().into());
    compare("score", number(recorded.score), number(replayed.score));
    compare("metrics", metrics(recorded), metrics(replayed));
    // Older records have no credit.
    if !recorded.credit.is_empty() {
        compare("credit", credit(recorded), credit(replayed));
    }
    // Older records have no payload.
    if recorded.payload.is_some() {
        compare("payload", payload(recorded), payload(replayed));
    }
    compare("budget", text(&recorded.budget), text(&replayed.budget));
    compare(
        "whose",
        text(&recorded.whose.map(|whose| format!("{whose:?}"))),
        text(&replayed.whose.map(|whose| format!("{whose:?}"))),
    );
    // Older records have no cause.
    if recorded.caused_by.is_some() {
        let cause = |record: &EvaluationRecord| text(&record.caused_by.map(CausedBy::as_str));
        compare("caused by", cause(recorded), cause(replayed));
    }
    let by_the_clock = |record: &EvaluationRecord| matches!(record.budget, Some(Budget::Deadline | Budget::Cpu));
    if !(by_the_clock(recorded) && by_the_clock(replayed)) {
        compare("reason", text(&recorded.reason), text(&replayed.reason));
    }
    found
}

/// A number with enough digits to be unique: two numbers have the same text only
/// if they have the same bits.
pub(super) fn number(value: Option<f64>) -> String {
    text(&value)
}

fn metrics(record: &EvaluationRecord) -> String {
    record.metrics.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join(" ")
}

fn credit(record: &EvaluationRecord) -> String {
    let text = |credit: &Credit| {
        let Credit { trajectory, message, start, end, value } = credit;
        format!("{trajectory}.{message}[{start}..{end}]={value}")
    };
    record.credit.iter().map(text).collect::<Vec<_>>().join(" ")
}

fn payload(record: &EvaluationRecord) -> String {
    let payload = record.payload.as_ref().and_then(|payload| serde_json::to_string(payload).ok());
    text(&payload)
}

fn text(value: &Option<impl ToString>) -> String {
    value.as_ref().map_or_else(|| "none".to_owned(), ToString::to_string)
}

#[cfg(test)]
mod tests {
    use super::*;
    use gavel_data::{Evaluation, Metric, Outcome, Score};

    fn record(outcome: Outcome) -> EvaluationRecord {
        EvaluationRecord::from(&Evaluation::without_call(outcome))
    }

    fn scored(value: f64, metric: f64, note: &str) -> EvaluationRecord {
        let metrics = vec![Metric { name: "m".into(), value: metric }];
        record(Outcome::Scored(Score { value, metrics, note: Some(note.into()), ..Score::default() }))
    }

    fn what(recorded: &EvaluationRecord, replayed: &EvaluationRecord) -> Vec<&'static str> {
        mismatches(recorded, replayed).into_iter().map(|mismatch| mismatch.what).collect()
    }

    #[test]
    fn every_bit_counts() {
        let recorded = scored(0.3, 1.0, "x");
        assert!(what(&recorded, &recorded).is_empty());
        assert_eq!(what(&recorded, &scored(0.1 + 0.2, 1.0, "x")), ["score"]);
        assert_eq!(what(&recorded, &scored(0.3, 1.0000000000000002, "y")), ["metrics", "reason"]);
        assert_eq!(what(&recorded, &record(Outcome::Abstained("x".into()))), ["outcome", "score", "metrics"]);
        // No number in a log is a negative zero, but if one were, it would show.
        assert_eq!(what(&scored(0.0, 0.0, ""), &scored(-0.0, 0.0, "")), ["score"]);
    }

    #[test]
    fn credit_counts_where_it_was_recorded() {
        let credited = |value| {
            let credit = vec![Credit { trajectory: 0, message: 0, start: 1, end: 2, value }];
            record(Outcome::Scored(Score { credit, ..Score::default() }))
        };
        let without = record(Outcome::Scored(Score::default()));
        assert!(what(&credited(0.5), &credited(0.5)).is_empty());
        assert_eq!(what(&credited(0.5), &credited(0.25)), ["credit"]);
        assert_eq!(what(&credited(0.5), &without), ["credit"]);
        assert!(what(&without, &credited(0.5)).is_empty());
    }

    #[test]
    fn a_payload_counts_where_it_was_recorded() {
        let with = |payload: &str| {
            let payload = serde_json::from_str(payload).unwrap();
            record(Outcome::Scored(Score { payload, ..Score::default() }))
        };
        let (recorded, without) = (with(r#"{"steps": [4.50]}"#), with("null"));
        assert!(what(&recorded, &recorded).is_empty());
        assert_eq!(
            mismatches(&recorded, &with(r#"{"steps": [4.5]}"#)),
            [Mismatch {
                what: "payload",
                recorded: r#"{"steps":[4.50]}"#.into(),
                replayed: r#"{"steps":[4.5]}"#.into()
            }]
        );
        assert_eq!(what(&recorded, &without), ["payload"]);
        assert!(what(&without, &recorded).is_empty());
    }

    #[test]
    fn how_long_it_took_does_not_count() {
        let over = |which, what: &str| record(Outcome::OutOfBudget { which, what: what.into() });
        let mut slow = over(Budget::Cpu, "2.103 s used");
        slow.usage.cpu_us = 2_103_000;
        assert!(what(&over(Budget::Cpu, "2.001 s used"), &slow).is_empty());
        assert_eq!(what(&over(Budget::Deadline, "x"), &slow), ["budget"]);
        assert_eq!(what(&over(Budget::Memory, "9 bytes"), &over(Budget::Memory, "8 bytes")), ["reason"]);
    }
}
