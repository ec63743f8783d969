//! Scores whether a tool ended in the state that the ground truth states.

use gavel_sdk::{Failure, Info, Reference, Reward, Sample, Score, Verdict};
use serde::Deserialize;
use serde_json::{Map, Value, json};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Params {
    /// The name of the tool in the run.
    tool: String,
}

struct FinalState(Params);

impl Reward for FinalState {
    type Params = Params;

    fn new(params: Params) -> Result<Self, String> {
        Ok(Self(params))
    }

    fn info(&self) -> Info {
        Info::new(env!("CARGO_PKG_NAME"), env!("CARGO_PKG_VERSION")).pure().score_range(0.0, 1.0)
    }

    fn score(&self, sample: &Sample, reference: &Reference) -> Result<Verdict, Failure> {
        let expected = expected(&reference.require_ground_truth()?)?;
        // A tool has one state in a sample, whichever of its conversations called it.
        let first = sample.trajectories().next();
        let state = first.map_or(Ok(None), |trajectory| trajectory.read_state::<Value>(&self.0.tool))?;
        let wrong = wrong_fields(&expected, state.as_ref());
        let right = (expected.len() - wrong.len()) as f64 / expected.len() as f64;
        let score = Score::new(if wrong.is_empty() { 1.0 } else { 0.0 }).metric("right_fields", right);
        let score = score.payload(json!({"wrong": wrong}));
        Ok(match state {
            Some(_) => score,
            None => score.note(format!("the tool `{}` reported no state", self.0.tool)),
        }
        .into())
    }
}

gavel_sdk::export_reward!(FinalState);

/// The fields that the state must have.
fn expected(truth: &str) -> Result<Map<String, Value>, Failure> {
    let fields: Map<String, Value> = serde_json::from_str(truth).map_err(|error| {
        Failure::invalid_input(format!("the ground truth is not an object with fields of the state: {error}"))
    })?;
    match fields.is_empty() {
        true => Err(Failure::invalid_input("the ground truth has no field: every state would be right")),
        false => Ok(fields),
    }
}

/// The names of the fields that the state does not have as they are expected.
fn wrong_fields<'e>(expected: &'e Map<String, Value>, state: Option<&Value>) -> Vec<&'e String> {
    let is_right =
        |name: &str, value: &Value| state.and_then(|state| state.get(name)).is_some_and(|it| same(value, it));
    expected.iter().filter(|(name, value)| !is_right(name, value)).map(|(name, _)| name).collect()
}

/// Whether two values are equal. 2 and 2.0 are: some languages have one type for all numbers.
fn same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => one == other || one.as_f64() == other.as_f64(),
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| same(one, other))
        }
        (Value::Object(one), Value::Object(other)) => {
            let has = |(name, value): (&String, &Value)| other.get(name).is_some_and(|other| same(value, other));
            one.len() == other.len() && one.iter().all(has)
        }
        _ => one == other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_compared_whole() {
        let orders = || json!([{"apple": 2, "pear": 1}]);
        assert!(same(&orders(), &json!([{"pear": 1.0, "apple": 2}])));
        for other in [
            json!([]),
            json!([{"apple": 2}]),
            json!([{"apple": 2, "pear": 2}]),
            json!({"apple": 2}),
            json!([{"apple": 2, "pear": 1, "fig": 1}]),
            json!([{"apple": "2", "pear": 1}]),
        ] {
            assert!(!same(&orders(), &other) && !same(&other, &orders()), "{other}");
        }
        assert!(!same(&json!(1), &json!(true)) && same(&json!(null), &json!(null)));
    }

    #[test]
    fn a_ground_truth_states_a_field() {
        assert_eq!(expected(r#"{"paid": 3}"#).unwrap().len(), 1);
        for truth in ["", "[]", "3", "{}", r#"{"paid": "#] {
            assert!(expected(truth).is_err(), "{truth:?}");
        }
    }
}
