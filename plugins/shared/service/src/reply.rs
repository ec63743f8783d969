//! The server's answer: a verdict or a failure for each sample, as JSON.

use gavel_sdk::{Credit, Failure, Metric, Score, Verdict};
use serde::Deserialize;
use std::collections::BTreeMap;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Reply {
    verdicts: Vec<Written>,
}

/// A verdict; it has a score, or one of the texts.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    score: Option<f64>,
    #[serde(default)]
    metrics: BTreeMap<String, f64>,
    #[serde(default)]
    credit: Vec<WrittenCredit>,
    note: Option<String>,
    abstained: Option<String>,
    invalid_input: Option<String>,
    unavailable: Option<String>,
    internal: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenCredit {
    #[serde(default)]
    trajectory: u32,
    message: u32,
    start: u32,
    end: u32,
    value: f64,
}

/// The verdicts on `count` samples in the body of an answer. A failure of one sample fails all of them.
///
/// # Errors
/// The server reports a failure, or the body breaks the protocol.
pub(crate) fn verdicts(body: &[u8], count: usize) -> Result<Vec<Verdict>, Failure> {
    let Reply { verdicts } = serde_json::from_slice(body)
        .map_err(|error| Failure::internal(format!("the service answered with no verdicts: {error}")))?;
    if verdicts.len() != count {
        let found = verdicts.len();
        return Err(Failure::internal(format!("the service gave {found} verdicts about {count} samples")));
    }
    verdicts.into_iter().map(Written::read).collect()
}

impl Written {
    fn read(self) -> Result<Verdict, Failure> {
        let Self { score, metrics, credit, note, abstained, invalid_input, unavailable, internal } = self;
        match (score, abstained, invalid_input, unavailable, internal) {
            (Some(value), None, None, None, None) => {
                let metrics = metrics.into_iter().map(|(name, value)| Metric { name, value }).collect();
                let credit = credit.into_iter().map(Credit::from).collect();
                Ok(Verdict::Scored(Score { value, metrics, credit, note, payload: None }))
            }
            (None, Some(reason), None, None, None) => Ok(Verdict::Abstained(reason)),
            (None, None, Some(what), None, None) => Err(Failure::InvalidInput(what)),
            (None, None, None, Some(what), None) => Err(Failure::Unavailable(what)),
            (None, None, None, None, Some(what)) => Err(Failure::Internal(what)),
            _ => Err(Failure::internal(
                "the service answered with no verdict: it must have one of `score`, `abstained`, `invalid_input`, \
                 `unavailable` and `internal`",
            )),
        }
    }
}

impl From<WrittenCredit> for Credit {
    fn from(WrittenCredit { trajectory, message, start, end, value }: WrittenCredit) -> Self {
        Self { trajectory, message, start, end, value }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(verdict: &str) -> Result<Verdict, Failure> {
        verdicts(format!("{{\"verdicts\": [{verdict}]}}").as_bytes(), 1).map(|mut all| all.remove(0))
    }

    #[test]
    fn an_answer_is_a_verdict_or_a_failure() {
        let credit = r#"[{"message": 0, "start": 1, "end": 2, "value": -1}]"#;
        let written = format!(r#"{{"score": 0.5, "metrics": {{"steps": 3}}, "note": "proved", "credit": {credit}}}"#);
        let Ok(Verdict::Scored(score)) = read(&written) else { panic!("no score") };
        assert_eq!((score.value, score.note.as_deref(), score.metrics[0].value), (0.5, Some("proved"), 3.0));
        assert_eq!((score.credit[0].trajectory, score.credit[0].end), (0, 2));
        assert!(matches!(read(r#"{"abstained": "no Lean"}"#), Ok(Verdict::Abstained(why)) if why == "no Lean"));
        assert!(matches!(read(r#"{"unavailable": "busy"}"#), Err(Failure::Unavailable(why)) if why == "busy"));
        assert!(matches!(read(r#"{"invalid_input": "no proof"}"#), Err(Failure::InvalidInput(_))));
        assert!(matches!(read(r#"{"internal": "a bug"}"#), Err(Failure::Internal(_))));
    }

    #[test]
    fn what_is_no_verdict_is_a_failure() {
        let internal = |result: Result<Verdict, Failure>| match result {
            Err(Failure::Internal(what)) => what,
            other => panic!("{other:?}"),
        };
        for wrong in
            ["", "0.5", "{}", r#"{"score": null}"#, r#"{"score": 1, "x": 1}"#, r#"{"score": 1, "abstained": "x"}"#]
        {
            let what = internal(read(wrong));
            assert!(what.starts_with("the service ") && what.contains("verdict"), "{wrong}: {what}");
        }
        let none = verdicts(br#"{"verdicts": []}"#, 2).map(|_| Verdict::Abstained(String::new()));
        assert_eq!(internal(none), "the service gave 0 verdicts about 2 samples");
    }
}
