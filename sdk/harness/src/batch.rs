//! Groups of scored samples, as a golden case writes them for an advantage.

use crate::golden::fields::as_written;
use gavel_plugin::advantage::{
    Batch, Group, Metric, Part, SampleAdvantage, ScoredSample, Span, TokenCredit, Trajectory,
};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// A group that is more than a list of samples.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenGroup {
    samples: Vec<Value>,
    task_id: Option<String>,
    data_source: Option<String>,
    #[serde(default)]
    speaker: String,
}

/// A sample that is more than its reward.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenSample {
    reward: Option<f64>,
    #[serde(default)]
    parts: BTreeMap<String, Value>,
    /// Of its only trajectory.
    tokens: Option<u32>,
    trajectories: Option<Vec<WrittenTrajectory>>,
}

/// A part that is more than its score.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenPart {
    score: Option<f64>,
    #[serde(default = "one")]
    weight: f64,
    counted: Option<f64>,
    #[serde(default)]
    metrics: BTreeMap<String, f64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenTrajectory {
    tokens: u32,
    /// All of them by default.
    learned: Option<Vec<(u32, u32)>>,
    #[serde(default)]
    credit: Vec<(u32, u32, f64)>,
    #[serde(default)]
    prompt_tokens: u32,
    finish_reason: Option<gavel_data::FinishReason>,
    #[serde(default)]
    penalty: f64,
    #[serde(default)]
    logprob: f64,
    /// The oldest and the newest.
    versions: Option<(u64, u64)>,
}

fn one() -> f64 {
    1.0
}

/// Reads the column `groups` of a case, at this step and with this state. The error names the group and the sample.
pub(crate) fn batch(groups: Value, step: u64, state: Vec<u8>) -> Result<Batch, String> {
    let Value::Array(groups) = groups else {
        return Err(format!("`groups` must be a list of groups, such as [[1, 0, 0.5]], not {groups}"));
    };
    let groups = groups.into_iter().enumerate();
    let groups =
        groups.map(|(number, written)| group(number, written).map_err(|what| format!("`groups[{number}]{what}")));
    Ok(Batch { step, groups: groups.collect::<Result<_, _>>()?, state })
}

/// Messages go on after the number of the group.
fn group(number: usize, written: Value) -> Result<Group, String> {
    let WrittenGroup { samples, task_id, data_source, speaker } = match written {
        Value::Array(samples) => WrittenGroup { samples, task_id: None, data_source: None, speaker: String::new() },
        other => read(other, "a list of rewards, or an object with `samples`").map_err(|what| format!("`{what}"))?,
    };
    let samples = (0..)
        .zip(samples)
        .map(|(index, written)| sample(index, written).map_err(|what| format!(".samples[{index}]`{what}")));
    let task_id = task_id.unwrap_or_else(|| number.to_string());
    Ok(Group { task_id, data_source, speaker, samples: samples.collect::<Result<_, _>>()? })
}

fn sample(index: u32, written: Value) -> Result<ScoredSample, String> {
    let WrittenSample { reward, parts, tokens, trajectories } = match written.as_f64() {
        Some(reward) => {
            WrittenSample { reward: Some(reward), parts: BTreeMap::new(), tokens: None, trajectories: None }
        }
        None => read(written, "a reward, or an object with `reward` or `parts`")?,
    };
    let parts = parts.into_iter().map(|(name, written)| part(name, written)).collect::<Result<Vec<Part>, _>>()?;
    if reward.is_none() && parts.is_empty() {
        return Err(" has neither `reward` nor `parts`".to_owned());
    }
    let trajectories = match (tokens, trajectories) {
        (Some(_), Some(_)) => return Err(" has `tokens` and `trajectories`, which say the same twice".to_owned()),
        (tokens, None) => vec![plain(tokens.unwrap_or(1))],
        (None, Some(trajectories)) => trajectories,
    };
    let trajectories = (0..).zip(trajectories).map(|(index, written)| trajectory(index, written));
    Ok(ScoredSample {
        index,
        reward: reward.unwrap_or_else(|| parts.iter().map(|part| part.weight * part.counted).sum()),
        parts,
        trajectories: trajectories.collect::<Result<_, _>>()?,
    })
}

fn part(name: String, written: Value) -> Result<Part, String> {
    let WrittenPart { score, weight, counted, metrics } = match written {
        Value::Null => WrittenPart { score: None, weight: one(), counted: None, metrics: BTreeMap::new() },
        Value::Number(number) => {
            WrittenPart { score: number.as_f64(), weight: one(), counted: None, metrics: BTreeMap::new() }
        }
        other => read(other, &format!("a score, null, or an object with `score`, as the part `{name}`"))?,
    };
    Ok(Part {
        reward: name,
        weight,
        score,
        counted: counted.or(score).unwrap_or_default(),
        metrics: metrics.into_iter().map(|(name, value)| Metric { name, value }).collect(),
    })
}

/// A trajectory of so many tokens, all of which are learned from.
fn plain(tokens: u32) -> WrittenTrajectory {
    WrittenTrajectory {
        tokens,
        learned: None,
        credit: Vec::new(),
        prompt_tokens: 0,
        finish_reason: None,
        penalty: 0.0,
        logprob: 0.0,
        versions: None,
    }
}

fn trajectory(index: u32, written: WrittenTrajectory) -> Result<Trajectory, String> {
    let tokens = written.tokens;
    let span = |what: &str, start: u32, end: u32| match start <= end && end <= tokens {
        true => Ok(Span { start, end }),
        false => Err(format!(": `{what}` [{start}, {end}] is not within the {tokens} tokens of trajectory {index}")),
    };
    let all = || if tokens == 0 { Vec::new() } else { vec![(0, tokens)] };
    let learned = written.learned.unwrap_or_else(all).into_iter().map(|(start, end)| span("learned", start, end));
    let credit = written
        .credit
        .into_iter()
        .map(|(start, end, value)| Ok::<_, String>(TokenCredit { tokens: span("credit", start, end)?, value }));
    let versions = written.versions.unzip();
    Ok(Trajectory {
        index,
        finish_reason: written.finish_reason.unwrap_or(gavel_data::FinishReason::Stop).into(),
        prompt_tokens: written.prompt_tokens,
        response_tokens: tokens,
        learned: learned.collect::<Result<_, _>>()?,
        credit: credit.collect::<Result<_, _>>()?,
        penalty: written.penalty,
        logprob: written.logprob,
        oldest_version: versions.0,
        newest_version: versions.1,
    })
}

/// Reads an object; the error goes on after the name of what it is.
pub(crate) fn read<T: DeserializeOwned>(written: Value, must: &str) -> Result<T, String> {
    match written {
        Value::Object(fields) => from_fields(fields).map_err(|error| format!(": {error}")),
        other => Err(format!(" must be {must}, not {other}")),
    }
}

fn from_fields<T: DeserializeOwned>(fields: Map<String, Value>) -> serde_json::Result<T> {
    serde_json::from_value(Value::Object(fields))
}

/// A state as a case writes it: its text, or a list of bytes.
pub(crate) fn state_bytes(written: &Value) -> Option<Vec<u8>> {
    match written {
        Value::String(text) => Some(text.clone().into_bytes()),
        Value::Array(bytes) => bytes.iter().map(|byte| u8::try_from(byte.as_u64()?).ok()).collect(),
        _ => None,
    }
}

/// The same, from a state.
pub(crate) fn written_state(state: &[u8]) -> Value {
    std::str::from_utf8(state).map_or_else(|_| json!(state), Value::from)
}

/// An advantage as a case writes it.
pub(crate) fn written_advantage(advantage: &SampleAdvantage) -> Value {
    let list = |values: &Vec<f64>| values.iter().copied().map(as_written).collect::<Value>();
    match advantage {
        SampleAdvantage::Sample(value) => as_written(*value),
        SampleAdvantage::Trajectories(values) => list(values),
        SampleAdvantage::Tokens(all) => all.iter().map(list).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_is_a_list_of_rewards_or_more() {
        let written = json!([
            [1, 0.5],
            {"task_id": "t", "data_source": "math", "samples": [
                {"parts": {"right": {"score": 1, "weight": 2, "metrics": {"m": 3}}, "short": null}, "tokens": 3},
                {"reward": 0, "trajectories": [
                    {"tokens": 4, "learned": [[0, 2], [3, 4]], "credit": [[0, 1, 0.5]], "versions": [1, 2],
                     "finish_reason": "length", "logprob": -2.5},
                    {"tokens": 0}
                ]},
            ]},
        ]);
        let Batch { step, groups, state } = batch(written, 7, vec![1]).unwrap();
        assert_eq!((step, state, groups.len()), (7, vec![1], 2));
        let [first, second] = &groups[..] else { panic!("two groups") };
        assert_eq!((first.task_id.as_str(), first.samples[1].reward), ("0", 0.5));
        assert_eq!(first.samples[1].trajectories[0].response_tokens, 1);
        assert_eq!((second.task_id.as_str(), second.data_source.as_deref()), ("t", Some("math")));
        let [one, other] = &second.samples[..] else { panic!("two samples") };
        assert_eq!((one.reward, one.parts[0].counted, one.parts[1].score), (2.0, 1.0, None));
        assert_eq!(one.trajectories[0].learned.len(), 1);
        let [long, empty] = &other.trajectories[..] else { panic!("two trajectories") };
        assert_eq!((long.learned[1].start, long.credit[0].value, long.newest_version), (3, 0.5, Some(2)));
        assert_eq!((empty.learned.len(), empty.index, empty.oldest_version), (0, 1, None));
    }

    #[test]
    fn what_is_wrong_is_named() {
        let error = |groups| batch(groups, 1, Vec::new()).unwrap_err();
        assert_eq!(error(json!(3)), "`groups` must be a list of groups, such as [[1, 0, 0.5]], not 3");
        assert_eq!(error(json!([[1], 3])), "`groups[1]` must be a list of rewards, or an object with `samples`, not 3");
        assert_eq!(
            error(json!([[1, "x"]])),
            "`groups[0].samples[1]` must be a reward, or an object with `reward` or `parts`, not \"x\""
        );
        assert_eq!(error(json!([[{}]])), "`groups[0].samples[0]` has neither `reward` nor `parts`");
        let unknown = error(json!([[{"rewards": 1}]]));
        assert!(unknown.starts_with("`groups[0].samples[0]`: unknown field `rewards`"), "{unknown}");
        assert_eq!(
            error(json!([[{"reward": 1, "trajectories": [{"tokens": 2, "learned": [[1, 3]]}]}]])),
            "`groups[0].samples[0]`: `learned` [1, 3] is not within the 2 tokens of trajectory 0"
        );
    }

    #[test]
    fn a_state_is_a_text_or_bytes() {
        for (written, state) in [(json!("né"), "né".as_bytes()), (json!([255, 0]), &[255, 0])] {
            assert_eq!((state_bytes(&written).as_deref(), written_state(state)), (Some(state), written));
        }
        assert_eq!((state_bytes(&json!([256])), state_bytes(&json!(1))), (None, None));
    }
}
