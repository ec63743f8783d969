//! Trajectories: a row a line of `trajectories/`, with two columns for each plugin. Messages and what else has a structure
//! is JSON.

use super::table::{Cell, Column, Kind};
use crate::damage::DamagedLine;
use crate::error::{Result, RunError};
use crate::layout;
use crate::plugin_sets::read_plugin_sets;
use crate::step_files::step_files;
use gavel_data::files::{open_regular, read_line};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use std::collections::{BTreeMap, BTreeSet};
use std::io::BufReader;
use std::path::Path;

/// The columns before the columns of plugins. The first one is the step whose file has the line.
const COLUMNS: [(&str, Kind); 20] = [
    ("recorded_step", Kind::Count),
    ("id", Kind::Text),
    ("step", Kind::Count),
    ("trained_step", Kind::Count),
    ("group", Kind::Count),
    ("sample", Kind::Count),
    ("trajectory", Kind::Count),
    ("task_id", Kind::Text),
    ("data_source", Kind::Text),
    ("outcome", Kind::Text),
    ("reward", Kind::Number),
    ("reason", Kind::Text),
    ("advantage", Kind::Number),
    ("finish_reason", Kind::Text),
    ("prompt_length", Kind::Count),
    ("response_length", Kind::Count),
    ("ground_truth", Kind::Text),
    ("messages", Kind::Text),
    ("response", Kind::Text),
    ("prompt", Kind::Text),
];

/// A line, of which older recordings lack some fields.
#[derive(Deserialize)]
struct Line<'a> {
    id: String,
    step: Option<u64>,
    trained_step: Option<u64>,
    group: Option<u64>,
    sample: Option<u64>,
    trajectory: Option<u64>,
    task_id: Option<String>,
    data_source: Option<String>,
    outcome: Option<String>,
    reward: Option<f64>,
    reason: Option<String>,
    advantage: Option<f64>,
    finish_reason: Option<String>,
    prompt_length: Option<u64>,
    response_length: Option<u64>,
    ground_truth: Option<String>,
    #[serde(borrow)]
    prompt: Option<&'a RawValue>,
    #[serde(borrow)]
    messages: Option<&'a RawValue>,
    response: Option<String>,
    #[serde(default)]
    plugins: BTreeMap<String, Verdict>,
}

#[derive(Deserialize)]
struct Verdict {
    outcome: Option<String>,
    score: Option<f64>,
}

pub(super) fn columns(run: &Path) -> Result<Vec<Column>> {
    let sets: Vec<Value> = read_plugin_sets(run)?;
    let plugins = sets.iter().filter_map(|set| set.get("plugins")?.as_array()).flatten();
    let names: BTreeSet<&str> = plugins.filter_map(|plugin| plugin.get("name")?.as_str()).collect();
    let of_plugins = names.into_iter().flat_map(|name| {
        let column = |of: &str, kind| Column::new(format!("plugin/{name}/{of}"), kind);
        [column("outcome", Kind::Text), column("score", Kind::Number)]
    });
    let fixed = COLUMNS.into_iter().map(|(name, kind)| Column::new(name, kind));
    Ok(fixed.chain(of_plugins).collect())
}

pub(super) fn rows(
    run: &Path,
    step: Option<u64>,
    columns: &[Column],
    add: &mut impl FnMut(Vec<Cell>) -> Result<()>,
) -> Result<Vec<DamagedLine>> {
    let files = step_files(&layout::trajectories(run))?;
    let (mut damaged, mut text) = (Vec::new(), Vec::new());
    for (at, path) in files.iter().flat_map(|(at, paths)| paths.iter().map(move |path| (*at, path))) {
        if step.is_some_and(|step| step != at) {
            continue;
        }
        let io = || RunError::io("read", path);
        let mut file = BufReader::new(open_regular(path).map_err(io())?);
        for number in 1.. {
            if read_line(&mut file, &mut text).map_err(io())? == 0 {
                break;
            }
            match serde_json::from_slice(&text) {
                Ok(line) => add(cells(at, line, columns))?,
                Err(error) => damaged.push(DamagedLine { path: path.clone(), line: number, what: error.to_string() }),
            }
        }
    }
    Ok(damaged)
}

fn cells(recorded: u64, line: Line<'_>, columns: &[Column]) -> Vec<Cell> {
    let json = |value: Option<&RawValue>| Cell::from(value.map(|value| value.get().to_owned()));
    let mut cells: Vec<Cell> = vec![
        Cell::Count(recorded),
        Cell::Text(line.id),
        line.step.into(),
        line.trained_step.into(),
        line.group.into(),
        line.sample.into(),
        line.trajectory.into(),
        line.task_id.into(),
        line.data_source.into(),
        line.outcome.into(),
        line.reward.into(),
        line.reason.into(),
        line.advantage.into(),
        line.finish_reason.into(),
        line.prompt_length.into(),
        line.response_length.into(),
        line.ground_truth.into(),
        json(line.messages),
        line.response.into(),
        json(line.prompt),
    ];
    let mut plugins = line.plugins;
    for column in columns.iter().skip(cells.len()) {
        let named = column.name.strip_prefix("plugin/").and_then(|name| name.rsplit_once('/'));
        cells.push(match named {
            Some((plugin, "score")) => plugins.get(plugin).and_then(|verdict| verdict.score).into(),
            Some((plugin, _)) => plugins.get_mut(plugin).and_then(|verdict| verdict.outcome.take()).into(),
            None => Cell::Absent,
        });
    }
    cells
}
