//! Prompts as token ids: every row is checked and tokenised before anything heavy starts.

use crate::config::{DataTable, Dataset, Overlong};
use crate::error::{PipelineError, Result};
use gavel_data::{Row, Task};
use gavel_text::{RenderOptions, TextModel};
use std::path::Path;
use std::sync::Arc;

/// A task whose prompt the policy can read.
#[derive(Debug, Clone)]
pub(crate) struct Prompt {
    pub(crate) task: Arc<Task>,
    pub(crate) ids: Vec<u32>,
}

/// What is done with prompts that are too long.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PromptLimit {
    tokens: usize,
    /// The model's: the most tokens of a prompt together with a response to imitate.
    pub(crate) positions: usize,
    pub(crate) overlong: Overlong,
}

impl PromptLimit {
    /// At most what is configured, and what the model's positions leave beside
    /// a response.
    pub(crate) fn new(data: &DataTable, positions: i64, max_tokens: usize) -> Result<Self> {
        let positions = positions.max(0) as usize;
        let room = positions.saturating_sub(max_tokens);
        if room == 0 {
            return Err(PipelineError::Stopped(format!(
                "rollout.max_tokens must be below the model's {positions} positions, not {max_tokens}"
            )));
        }
        let tokens = data.max_prompt_tokens.unwrap_or(room).min(room);
        Ok(Self { tokens, positions, overlong: data.overlong_prompts })
    }

    /// The prompt to use, if the row is to be used.
    pub(crate) fn apply(&self, mut ids: Vec<u32>, path: &Path, place: &str) -> Result<Option<Vec<u32>>> {
        if ids.len() <= self.tokens {
            return Ok(Some(ids));
        }
        match self.overlong {
            Overlong::Drop => Ok(None),
            Overlong::Truncate => Ok(Some(ids.split_off(ids.len() - self.tokens))),
            Overlong::Error => Err(PipelineError::BadRow {
                path: path.to_owned(),
                place: place.to_owned(),
                what: format!(
                    "the prompt has {} tokens, at most {} fit\nhint: set data.overlong_prompts to \"drop\" or \"truncate\", or make room with data.max_prompt_tokens and rollout.max_tokens",
                    ids.len(),
                    self.tokens
                ),
            }),
        }
    }
}

/// The prompts of the rows of a dataset.
pub(crate) fn prompts(
    rows: Vec<Row>,
    dataset: &Dataset,
    split: &str,
    text: &TextModel,
    limit: PromptLimit,
) -> Result<Vec<Prompt>> {
    let path = dataset.path();
    let read = |row: Row| {
        let place = row.place.clone();
        let bad = |what: String| PipelineError::BadRow { path: path.to_owned(), place: place.clone(), what };
        let task = Task::from_row(row.columns, row.position, split).map_err(|error| bad(error.to_string()))?;
        let ids = prompt_ids(&task, text).map_err(bad)?;
        let task = Arc::new(task);
        Ok(limit.apply(ids, path, &place)?.map(|ids| Prompt { task, ids }))
    };
    usable(rows, dataset, read)
}

/// The tokens of a prompt, with the tools that its row offers.
pub(crate) fn prompt_ids(task: &Task, text: &TextModel) -> std::result::Result<Vec<u32>, String> {
    let tools = task.reference.tools().map_err(|error| error.to_string())?;
    text.prompt_ids_with(&task.prompt, &RenderOptions::prompt(&tools)).map_err(|error| error.to_string())
}

/// What `read` makes of each row, without those that are not to be used.
pub(crate) fn usable<R>(rows: Vec<Row>, dataset: &Dataset, read: impl Fn(Row) -> Result<Option<R>>) -> Result<Vec<R>> {
    let used: Vec<R> = rows.into_iter().filter_map(|row| read(row).transpose()).collect::<Result<_>>()?;
    if used.is_empty() {
        return Err(PipelineError::Stopped(format!("dataset {dataset} has no row that can be used")));
    }
    Ok(used)
}
