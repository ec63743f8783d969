//! Checks a plugin's verdict: one that breaks the rules is a fault, and never a
//! score.

use crate::bindings::gavel::plugin::types;
use crate::call::beside;
use crate::call::credit::credit;
use crate::call::info::Info;
use gavel_data::{Blame, Metric, Outcome, Sample, Score};

/// The most bytes of a plugin's text; the rest is cut.
const TEXT_BYTES: usize = 4096;
/// The most metrics of a verdict, since every metric becomes a curve.
const MAX_METRICS: usize = 64;
/// The most bytes of a name that counts are kept under.
pub(crate) const NAME_BYTES: usize = 64;

/// The outcome of a plugin's verdict on `sample`.
pub(crate) fn outcome(verdict: types::Verdict, info: &Info, sample: &Sample) -> Outcome {
    match verdict {
        types::Verdict::Scored(score) => match check(score, info, sample) {
            Ok(score) => Outcome::Scored(score),
            Err(what) => Outcome::Fault { whose: Blame::Plugin, what },
        },
        types::Verdict::Abstained(reason) => Outcome::Abstained(cut(reason)),
    }
}

/// The outcome of a plugin's failure.
pub(crate) fn failed(failure: types::Failure) -> Outcome {
    match failure {
        types::Failure::InvalidInput(what) => Outcome::Fault { whose: Blame::Input, what: cut(what) },
        types::Failure::Internal(what) => Outcome::Fault { whose: Blame::Plugin, what: cut(what) },
        types::Failure::Unavailable(what) => Outcome::Unavailable(cut(what)),
    }
}

fn check(score: types::Score, info: &Info, sample: &Sample) -> Result<Score, String> {
    // Turns a negative zero into 0, since logs are compared bit by bit.
    let value = score.value + 0.0;
    if !value.is_finite() {
        return Err(format!("the score is {value}"));
    }
    if let Some((min, max)) = info.score_range.filter(|(min, max)| value < *min || value > *max) {
        return Err(format!("the score {value} is outside the declared range [{min}, {max}]"));
    }
    let (metrics, credit) = (metrics(score.metrics)?, credit(score.credit, sample)?);
    let payload = score.payload.map(|payload| beside::object("payload", &payload)).transpose()?.map(Box::new);
    Ok(Score { value, metrics, credit, note: score.note.map(cut), payload })
}

fn metrics(given: Vec<types::Metric>) -> Result<Vec<Metric>, String> {
    if given.len() > MAX_METRICS {
        return Err(format!("{} metrics were given, more than the {MAX_METRICS} allowed", given.len()));
    }
    let mut metrics = Vec::with_capacity(given.len());
    for types::Metric { name, value } in given {
        if !is_name(&name) {
            return Err(format!(
                "the metric name {:?} is not 1 to {NAME_BYTES} letters, digits or one of _ . / -",
                cut(name)
            ));
        }
        if !value.is_finite() {
            return Err(format!("the metric {name} is {value}"));
        }
        metrics.push(Metric { name, value: value + 0.0 });
    }
    metrics.sort_by(|a, b| a.name.cmp(&b.name));
    match metrics.windows(2).find(|pair| pair[0].name == pair[1].name) {
        Some(pair) => Err(format!("the metric {} is given twice", pair[0].name)),
        None => Ok(metrics),
    }
}

/// Whether counts and curves can have this name.
pub(crate) fn is_name(name: &str) -> bool {
    (1..=NAME_BYTES).contains(&name.len())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_./-".contains(&byte))
}

/// The beginning of a text.
pub(crate) fn cut(mut text: String) -> String {
    if text.len() > TEXT_BYTES {
        let all = text.len();
        text.truncate(text.floor_char_boundary(TEXT_BYTES));
        text.push_str(&format!("… ({all} bytes in all)"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use gavel_data::{Message, Role, Task, Trajectory};

    fn info() -> Info {
        Info { name: "x".into(), version: "1".into(), pure: true, score_range: Some((-1.0, 1.0)) }
    }

    fn sample() -> Sample {
        let task = Task::with_prompt(Default::default(), Vec::new(), 0, "test");
        Sample::new(task.into(), 0, Vec::new())
    }

    fn scored(value: f64, metrics: &[(&str, f64)]) -> Outcome {
        let metrics =
            metrics.iter().map(|(name, value)| types::Metric { name: (*name).into(), value: *value }).collect();
        let score = types::Score { value, metrics, credit: Vec::new(), note: None, payload: None };
        outcome(types::Verdict::Scored(score), &info(), &sample())
    }

    fn fault(outcome: &Outcome) -> &str {
        match outcome {
            Outcome::Fault { whose: Blame::Plugin, what } => what,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_score_is_a_number_in_its_range() {
        assert!(fault(&scored(f64::NAN, &[])).contains("NaN"));
        assert!(fault(&scored(f64::INFINITY, &[])).contains("inf"));
        assert!(fault(&scored(1.5, &[])).contains("[-1, 1]"));
        let zero = scored(-0.0, &[]).score().unwrap();
        assert!(zero == 0.0 && zero.is_sign_positive());
    }

    #[test]
    fn credit_is_kept_or_a_fault() {
        let with = |trajectory| {
            let credit = vec![types::Credit { trajectory, message: 0, start: 0, end: 2, value: 0.5 }];
            let score = types::Score { value: 0.0, metrics: Vec::new(), credit, note: None, payload: None };
            let message = Message::new(Role::Assistant, "ab");
            let answer = Trajectory::of(vec![message]);
            outcome(types::Verdict::Scored(score), &info(), &Sample { trajectories: vec![answer], ..sample() })
        };
        assert!(matches!(with(0), Outcome::Scored(score) if score.credit[0].value == 0.5));
        assert!(fault(&with(1)).starts_with("credit 0 is for trajectory 1"));
    }

    #[test]
    fn a_payload_is_kept_or_a_fault() {
        let with = |payload: &str| {
            let (metrics, credit, payload) = (Vec::new(), Vec::new(), Some(payload.to_owned()));
            let score = types::Score { value: 0.0, metrics, credit, note: None, payload };
            outcome(types::Verdict::Scored(score), &info(), &sample())
        };
        let Outcome::Scored(score) = with(r#"{"a": 1.50}"#) else { panic!("not scored") };
        assert_eq!(score.payload.unwrap().get("a").unwrap().as_text(), "1.50");
        assert!(fault(&with("1")).starts_with("the payload is not a JSON object"));
    }

    #[test]
    fn metrics_have_names_once() {
        assert!(fault(&scored(0.0, &[("", 1.0)])).contains("metric name"));
        assert!(fault(&scored(0.0, &[("a b", 1.0)])).contains("metric name"));
        assert!(fault(&scored(0.0, &[("a", 1.0), ("b", 1.0), ("a", 2.0)])).contains("a is given twice"));
        assert!(fault(&scored(0.0, &[("a", f64::NAN)])).contains("a is NaN"));
        assert!(fault(&scored(0.0, &[("a", 1.0); 65])).contains("65 metrics"));
        assert_eq!(scored(0.5, &[("b/x-1", 1.0), ("a.y_2", 2.0)]).score(), Some(0.5));
    }

    #[test]
    fn long_texts_are_cut_between_characters() {
        let Outcome::Abstained(reason) = outcome(types::Verdict::Abstained("ä".repeat(5000)), &info(), &sample())
        else {
            panic!("not abstained")
        };
        assert!(reason.starts_with('ä') && reason.ends_with("(10000 bytes in all)") && reason.len() < 4200);
    }
}
