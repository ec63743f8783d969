//! A request for tasks, as a golden case writes it for a sampler.

use crate::batch::{read, state_bytes};
use crate::golden::fields::one_of;
use gavel_data::{OutcomeKind, Shown};
use gavel_plugin::sampler::{Answer, Dataset, EndedGroup, EndedSample, Metric, Request, Task};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// The columns of a case.
const COLUMNS: [&str; 7] = ["datasets", "step", "seed", "ended", "wanted", "next_draw", "state"];

/// Their values.
#[derive(Deserialize)]
struct WrittenRequest {
    datasets: Vec<Value>,
    #[serde(default = "first_step")]
    step: u64,
    #[serde(default)]
    seed: u64,
    #[serde(default)]
    ended: Vec<Value>,
    #[serde(default)]
    wanted: u32,
    /// By default the draw after those of the groups that ended.
    next_draw: Option<u64>,
    state: Option<Value>,
}

/// A dataset that is more than its number of rows.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenDataset {
    rows: u64,
    weight: Option<f64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenGroup {
    task: Value,
    /// By default its number among the groups.
    draw: Option<u64>,
    task_id: Option<String>,
    data_source: Option<String>,
    /// By default the version that learns.
    version: Option<u64>,
    samples: Vec<Value>,
    dropped: Option<String>,
}

/// A sample that is more than its reward.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenSample {
    reward: Option<f64>,
    outcome: Option<Value>,
    #[serde(default)]
    metrics: BTreeMap<String, f64>,
}

fn first_step() -> u64 {
    1
}

/// Reads the columns of a case. The error names the column and the group.
pub(crate) fn request(columns: Map<String, Value>) -> Result<Request, String> {
    if let Some(other) = columns.keys().find(|name| !COLUMNS.contains(&name.as_str())) {
        return Err(format!(
            "`{}` does not go with `datasets`\nhint: a case of a sampler has `datasets`, `step`, `seed`, `ended`, `wanted`, `next_draw` and `state`",
            Shown(other)
        ));
    }
    let written: WrittenRequest = serde_json::from_value(columns.into()).map_err(|error| error.to_string())?;
    let WrittenRequest { datasets, step, seed, ended, wanted, next_draw, state } = written;
    let datasets = datasets.into_iter().enumerate().map(|(number, written)| {
        let dataset = match written.as_u64() {
            Some(rows) => Ok(WrittenDataset { rows, weight: None }),
            None => read(written, "a number of rows, or an object with `rows`"),
        };
        let found = dataset.and_then(|WrittenDataset { rows, weight }| match rows {
            0 => Err(" has no row".to_owned()),
            _ => Ok(Dataset { rows, weight }),
        });
        found.map_err(|what| format!("`datasets[{number}]`{what}"))
    });
    let datasets = datasets.collect::<Result<Vec<_>, _>>()?;
    if datasets.is_empty() {
        return Err("`datasets` must be a list of numbers of rows, such as [100], not []".to_owned());
    }
    let ended = (0..).zip(ended).map(|(number, written)| {
        group(number, written, step, &datasets).map_err(|what| format!("`ended[{number}]`{what}"))
    });
    let ended = ended.collect::<Result<Vec<_>, _>>()?;
    let after = ended.iter().map(|group| group.draw + 1).max().unwrap_or_default();
    let state = match state {
        None => Vec::new(),
        Some(state) => {
            state_bytes(&state).ok_or_else(|| format!("`state` must be a text or a list of bytes, not {state}"))?
        }
    };
    Ok(Request { step, seed, datasets, ended, wanted, next_draw: next_draw.unwrap_or(after), state })
}

/// Messages go on after the group.
fn group(number: u64, written: Value, step: u64, datasets: &[Dataset]) -> Result<EndedGroup, String> {
    let WrittenGroup { task, draw, task_id, data_source, version, samples, dropped } =
        read(written, "an object with `task` and `samples`")?;
    let of_datasets = |task: &Task| datasets.get(task.dataset as usize).is_some_and(|found| task.row < found.rows);
    let task = read_task(&task)
        .filter(of_datasets)
        .ok_or_else(|| format!(": `task` must be a row of `datasets`, such as 3 or [0, 3], not {task}"))?;
    let draw = draw.unwrap_or(number);
    if draw == u64::MAX {
        return Err(format!(": `draw` must be below {draw}: another draw follows it"));
    }
    let task_id = task_id.unwrap_or_else(|| written_task(&task).to_string());
    let samples = samples
        .into_iter()
        .enumerate()
        .map(|(index, written)| sample(written).map_err(|what| format!(": `samples[{index}]`{what}")));
    Ok(EndedGroup {
        draw,
        task,
        task_id,
        data_source,
        version: version.unwrap_or(step.saturating_sub(1)),
        samples: samples.collect::<Result<_, _>>()?,
        dropped,
    })
}

fn sample(written: Value) -> Result<EndedSample, String> {
    let WrittenSample { reward, outcome, metrics } = match (&written, written.as_f64()) {
        (Value::Null, _) => WrittenSample { reward: None, outcome: None, metrics: BTreeMap::new() },
        (_, Some(reward)) => WrittenSample { reward: Some(reward), outcome: None, metrics: BTreeMap::new() },
        _ => read(written, "a reward, null, or an object with `reward`")?,
    };
    let kinds = OutcomeKind::ALL.map(OutcomeKind::as_str).join(", ");
    let outcome = outcome.map(|outcome| one_of::<OutcomeKind>("outcome", &kinds, &outcome)).transpose();
    let outcome = outcome.map_err(|what| format!(": {what}"))?;
    let by_reward = if reward.is_some() { OutcomeKind::Scored } else { OutcomeKind::Abstained };
    Ok(EndedSample {
        outcome: outcome.unwrap_or(by_reward).into(),
        reward,
        metrics: metrics.into_iter().map(|(name, value)| Metric { name, value }).collect(),
    })
}

/// A task as a case writes it: the row of the first dataset, or the dataset and the row.
pub(crate) fn read_task(written: &Value) -> Option<Task> {
    if let Some(row) = written.as_u64() {
        return Some(Task { dataset: 0, row });
    }
    let [dataset, row] = &written.as_array()?[..] else { return None };
    Some(Task { dataset: dataset.as_u64()?.try_into().ok()?, row: row.as_u64()? })
}

/// The same, from a task.
fn written_task(task: &Task) -> Value {
    if task.dataset == 0 { json!(task.row) } else { json!([task.dataset, task.row]) }
}

/// The tasks of an answer as a case writes them.
pub(crate) fn written_draws(answer: &Answer) -> Value {
    answer.draws.iter().map(written_task).collect()
}

/// The reasons of its refusals, by the numbers of the draws.
pub(crate) fn written_refusals(answer: &Answer) -> Map<String, Value> {
    answer.refusals.iter().map(|refusal| (refusal.draw.to_string(), refusal.reason.as_str().into())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use gavel_plugin::sampler::SampleOutcome;

    fn read(written: Value) -> Result<Request, String> {
        request(written.as_object().unwrap().clone())
    }

    #[test]
    fn a_request_has_datasets_and_groups() {
        let written = json!({
            "datasets": [10, {"rows": 4, "weight": 0.5}],
            "step": 3,
            "seed": 7,
            "wanted": 2,
            "state": "x",
            "ended": [
                {"task": 9, "samples": [1, null]},
                {"task": [1, 3], "draw": 8, "task_id": "t", "data_source": "math", "version": 1, "dropped": "equal-rewards",
                 "samples": [{"reward": 0.5, "metrics": {"m": 2}}, {"outcome": "fault"}]},
            ],
        });
        let found = read(written).unwrap();
        assert_eq!((found.step, found.seed, found.wanted, found.next_draw), (3, 7, 2, 9));
        assert_eq!(
            (found.datasets[1].rows, found.datasets[1].weight, found.state.as_slice()),
            (4, Some(0.5), &b"x"[..])
        );
        let [first, second] = &found.ended[..] else { panic!("two groups") };
        assert_eq!((first.draw, first.task.row, first.task_id.as_str(), first.version), (0, 9, "9", 2));
        assert_eq!(first.samples[1].outcome, SampleOutcome::Abstained);
        assert_eq!((second.draw, second.task.dataset, second.dropped.as_deref()), (8, 1, Some("equal-rewards")));
        assert_eq!((second.samples[0].metrics[0].value, second.samples[1].outcome), (2.0, SampleOutcome::Fault));
    }

    #[test]
    fn what_is_wrong_is_named() {
        let error = |written| read(written).unwrap_err();
        let unknown = error(json!({"datasets": [1], "want": 2}));
        assert!(unknown.starts_with("`want` does not go with `datasets`\nhint: a case of a sampler has"), "{unknown}");
        assert_eq!(error(json!({"datasets": [0]})), "`datasets[0]` has no row");
        assert!(error(json!({"datasets": []})).starts_with("`datasets` must be a list of numbers of rows"));
        assert_eq!(
            error(json!({"datasets": ["a"]})),
            "`datasets[0]` must be a number of rows, or an object with `rows`, not \"a\""
        );
        let group = |group: Value| error(json!({"datasets": [4], "ended": [group]}));
        assert_eq!(
            group(json!({"task": 4, "samples": []})),
            "`ended[0]`: `task` must be a row of `datasets`, such as 3 or [0, 3], not 4"
        );
        assert_eq!(
            group(json!({"task": 1, "samples": ["x"]})),
            "`ended[0]`: `samples[0]` must be a reward, null, or an object with `reward`, not \"x\""
        );
        assert_eq!(
            group(json!({"task": 1, "draw": u64::MAX, "samples": []})),
            "`ended[0]`: `draw` must be below 18446744073709551615: another draw follows it"
        );
        let outcome = group(json!({"task": 1, "samples": [{"outcome": "late"}]}));
        assert!(outcome.starts_with("`ended[0]`: `samples[0]`: `outcome` must be one of scored"), "{outcome}");
    }
}
