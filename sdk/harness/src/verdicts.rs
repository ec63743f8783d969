//! The verdicts of other rewards on a sample, as written in a golden case.

use gavel_data::{Metric, PriorVerdict, PriorVerdicts, Score};
use serde::Deserialize;
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// A verdict as it is written.
#[derive(Deserialize)]
#[serde(untagged)]
enum Written {
    Value(f64),
    Score(WrittenScore),
    Abstained(WrittenAbstention),
    Without(Without),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenScore {
    score: f64,
    #[serde(default)]
    metrics: BTreeMap<String, f64>,
    note: Option<String>,
    payload: Option<Map<String, Value>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenAbstention {
    abstained: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Without {
    NotCalled,
    NoVerdict,
}

impl From<Written> for PriorVerdict {
    fn from(written: Written) -> Self {
        match written {
            Written::Value(value) => value.into(),
            Written::Score(WrittenScore { score: value, metrics, note, payload }) => {
                let payload = payload.map(|fields| Box::new(fields.into()));
                let metrics = metrics.into_iter().map(|(name, value)| Metric { name, value }).collect();
                Self::Scored(Score { value, metrics, credit: Vec::new(), note, payload })
            }
            Written::Abstained(WrittenAbstention { abstained }) => Self::Abstained(abstained),
            Written::Without(Without::NotCalled) => Self::NotCalled,
            Written::Without(Without::NoVerdict) => Self::NoVerdict,
        }
    }
}

/// Reads the column `verdicts` of a case. The error names the reward.
pub(crate) fn verdicts(column: Value) -> Result<PriorVerdicts, String> {
    let Value::Object(given) = column else {
        return Err(format!("`verdicts` must be an object such as {{\"quality\": 0.5}}, not {column}"));
    };
    let verdict = |(name, given): (String, Value)| {
        let shown = given.to_string();
        match serde_json::from_value::<Written>(given) {
            Ok(written) => Ok((name, written.into())),
            Err(_) => Err(format!(
                "`verdicts.{name}` must be a score, {{\"score\", \"metrics\", \"note\", \"payload\"}}, {{\"abstained\"}}, \"not-called\" or \"no-verdict\", not {shown}"
            )),
        }
    };
    given.into_iter().map(verdict).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_verdict_is_a_number_an_object_or_a_word() {
        let metrics = vec![Metric { name: "m".into(), value: 2.0 }];
        let payload = serde_json::from_str(r#"{"p": [1.5]}"#).unwrap();
        let score = Score { value: 1.0, metrics, credit: Vec::new(), note: Some("n".into()), payload };
        let read = verdicts(json!({
            "a": 0.5, "b": {"score": 1, "metrics": {"m": 2}, "note": "n", "payload": {"p": [1.5]}}, "c": {"abstained": "x"},
            "d": "not-called", "e": "no-verdict",
        }));
        let expected = [
            ("a", 0.5.into()),
            ("b", PriorVerdict::Scored(score)),
            ("c", PriorVerdict::Abstained("x".into())),
            ("d", PriorVerdict::NotCalled),
            ("e", PriorVerdict::NoVerdict),
        ];
        assert_eq!(read, Ok(expected.map(|(name, verdict)| (name.to_owned(), verdict)).into()));
        for (wrong, what) in [
            (json!([1]), "`verdicts` must be an object"),
            (json!({"a": "fault"}), "`verdicts.a` must be a score"),
            (json!({"a": {"score": 1, "scores": 2}}), "`verdicts.a` must be a score"),
            (json!({"a": null}), "not null"),
        ] {
            let error = verdicts(wrong).unwrap_err();
            assert!(error.contains(what), "{error}");
        }
    }
}
