//! The rows of datasets, from files or from plugins.

use crate::error::{PipelineError, Result};
use futures::pin_mut;
use futures::stream::{self, StreamExt, TryStreamExt};
use gavel_config::{Config, Dataset, DatasetTable, Datasets, RewardTable, Taskset};
use gavel_data::{DatasetReader, DatasetRow, Row};
use gavel_plugin::{Limits, Plugin, PluginSpec, Sandbox};
use std::cell::Cell;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;

/// How many rows are requested at once.
const AT_ONCE: usize = 64;

/// The most rows of a taskset for which the configuration need not set a number of rows: all rows are kept, and a
/// plugin can report any number.
const MOST_ROWS: u64 = 1_000_000;

/// The rows of one dataset, in order, each of which is read when it is asked for.
pub(crate) struct DatasetRows<'a> {
    /// Where they are from.
    pub(crate) dataset: &'a Dataset,
    /// Its share of the draws, where it has one.
    pub(crate) weight: Option<f64>,
    /// Their positions count over all datasets.
    pub(crate) rows: Box<dyn Iterator<Item = Result<DatasetRow>> + 'a>,
}

/// All rows, their columns under Gavel's names; the rows of a dataset must be taken before the next dataset. Tasksets
/// run in `sandbox`, the sandbox of the rewards, with the endpoints and programs granted to it.
pub(crate) fn dataset_rows<'a, T>(
    config: &'a Config<T>,
    datasets: &'a Datasets,
    sandbox: &'a Sandbox,
) -> impl Iterator<Item = Result<DatasetRows<'a>>> {
    let next = Rc::new(Cell::new(0));
    datasets.0.iter().map(move |table| {
        let (dataset, next) = (&table.path, next.clone());
        let read: Box<dyn Iterator<Item = Result<DatasetRow>>> = match dataset {
            Dataset::File(path) => Box::new(DatasetReader::open(path)?.refusing_changes().map(|row| Ok(row?))),
            Dataset::Taskset(taskset) => Box::new(draw(config, dataset, taskset, sandbox)?.into_iter().map(Ok)),
        };
        let rows = read.map(move |row| {
            let mut row = row?;
            row.row.position = next.replace(next.get() + 1);
            rename(config, table, &mut row)?;
            Ok(row)
        });
        Ok(DatasetRows { dataset, weight: table.weight, rows: Box::new(rows) })
    })
}

/// Gives a row the columns that the configuration names.
fn rename<T>(config: &Config<T>, table: &DatasetTable, DatasetRow { path, row }: &mut DatasetRow) -> Result<()> {
    let names = table.columns.as_ref().unwrap_or(&config.data.columns);
    names.apply(&mut row.columns).map_err(|error| PipelineError::BadRow {
        path: path.to_path_buf(),
        place: row.place.clone(),
        what: format!("{error}\nhint: set the names of its columns in `columns` of the dataset, or in [data.columns]"),
    })?;
    if let Some(source) = &table.data_source
        && row.columns.present("data_source").is_none()
    {
        row.columns.insert("data_source", source.as_str());
    }
    Ok(())
}

fn draw<T>(config: &Config<T>, dataset: &Dataset, taskset: &Taskset, sandbox: &Sandbox) -> Result<Vec<DatasetRow>> {
    let stopped = |what: String| PipelineError::Stopped(format!("dataset {dataset}: {what}"));
    // The host keeps the rows of the plugin, so they have the limit of the plugin's own memory.
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
                    "it has {length} rows, more than the {MOST_ROWS} that are drawn without a set number\nhint: set the number, such as &rows=10000"
                )));
            }
            (Some(length), wanted) => wanted.unwrap_or(length).min(length),
            (None, Some(wanted)) => wanted,
            (None, None) => {
                return Err(stopped(
                    "it has no end\nhint: set how many rows are drawn from it, such as &rows=10000".into(),
                ));
            }
        };
        let seed = taskset.seed.unwrap_or(config.seed);
        let path: Arc<Path> = dataset.path().into();
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
                    "its rows up to row {} take more than the {} of all plugins\nhint: draw fewer with &rows=N, or raise resources.plugin_memory",
                    row.position, config.resources.plugin_memory
                )));
            }
            kept.push(DatasetRow { path: path.clone(), row });
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
