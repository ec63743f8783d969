//! The rows of a dataset, from a file or from a plugin.

use crate::config::{Config, Dataset, RewardTable, Taskset};
use crate::error::{PipelineError, Result};
use futures::pin_mut;
use futures::stream::{self, StreamExt, TryStreamExt};
use gavel_data::{Row, RowReader};
use gavel_plugin::{Limits, Plugin, PluginSpec, Sandbox};
use std::path::Path;

/// Rows that are asked for at once.
const AT_ONCE: usize = 64;

/// A taskset that has more rows is drawn from only where the configuration says
/// how many: all of them are kept, and a plugin can name any number.
const MOST_ROWS: u64 = 1_000_000;

/// All rows, in order. A taskset runs in `sandbox`, that of the rewards, with the endpoints and programs granted to it.
pub(crate) fn rows<T>(config: &Config<T>, dataset: &Dataset, sandbox: &Sandbox) -> Result<Vec<Row>> {
    match dataset {
        Dataset::File(path) => Ok(RowReader::open(path)?.collect::<std::result::Result<_, _>>()?),
        Dataset::Taskset(taskset) => draw(config, dataset, taskset, sandbox),
    }
}

fn draw<T>(config: &Config<T>, dataset: &Dataset, taskset: &Taskset, sandbox: &Sandbox) -> Result<Vec<Row>> {
    let stopped = |what: String| PipelineError::Stopped(format!("dataset {dataset}: {what}"));
    // What a plugin makes the host keep is bounded like what it keeps itself.
    let memory = config.resources.sandbox().memory;
    let spec = spec(config, taskset).map_err(stopped)?;
    sandbox.handle().block_on(async {
        let plugin = Plugin::load(sandbox, spec).await.map_err(|error| stopped(error.to_string()))?;
        if !plugin.is_taskset() {
            return Err(stopped("the component does not export `taskset`".into()));
        }
        let length = plugin.rows().await.map_err(|error| stopped(error.to_string()))?;
        let rows = match (length, taskset.rows) {
            (Some(length), None) if length > MOST_ROWS => {
                return Err(stopped(format!(
                    "it has {length} rows, and more than {MOST_ROWS} are drawn only where it is set how many\nhint: set the number, such as &rows=10000"
                )));
            }
            (Some(length), wanted) => wanted.unwrap_or(length).min(length),
            (None, Some(wanted)) => wanted,
            (None, None) => {
                return Err(stopped(
                    "it has no end\nhint: say how many rows are drawn from it, such as &rows=10000".into(),
                ));
            }
        };
        let seed = taskset.seed.unwrap_or(config.seed);
        let drawn = stream::iter(0..rows)
            .map(|index| {
                let row = plugin.row(index, seed);
                async move {
                    let columns = row.await.map_err(|error| stopped(error.to_string()))?;
                    Ok::<_, PipelineError>(Row { position: index as usize, place: format!("row {index}"), columns })
                }
            })
            .buffered(AT_ONCE);
        pin_mut!(drawn);
        let (mut kept, mut bytes) = (Vec::new(), 0);
        while let Some(row) = drawn.try_next().await? {
            bytes += row.columns.bytes();
            if bytes > memory {
                return Err(stopped(format!(
                    "its rows up to {} take more than the {} of all plugins\nhint: draw fewer with &rows=N, or raise resources.plugin_memory",
                    row.position, config.resources.plugin_memory
                )));
            }
            kept.push(row);
        }
        Ok(kept)
    })
}

/// The plugin that a taskset names: a reward's component with that reward's
/// limits and grants, or a file.
fn spec<T>(config: &Config<T>, taskset: &Taskset) -> std::result::Result<PluginSpec, String> {
    let params = taskset.params.clone();
    if let Some(reward) = config.reward.iter().find(|reward| reward.name == taskset.plugin) {
        return Ok(PluginSpec { params, reuse: None, ..reward.plugin(&config.limits).spec });
    }
    let path = Path::new(&taskset.plugin);
    if !path.exists() {
        let names: Vec<&str> = config.reward.iter().map(|RewardTable { name, .. }| name.as_str()).collect();
        return Err(format!(
            "`{}` is neither a file nor the name of a [[reward]] (those are: {})",
            taskset.plugin,
            if names.is_empty() { "none".to_owned() } else { names.join(", ") }
        ));
    }
    let name = path.file_stem().unwrap_or_default().to_string_lossy();
    let limits: Limits = config.limits.over(&Default::default());
    Ok(PluginSpec { params, limits, ..PluginSpec::new(name, path) })
}
