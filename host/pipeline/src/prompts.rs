//! Datasets as token ids: every row is read, checked and tokenised before
//! anything heavy starts.

use crate::config::{Config, DataTable, Dataset, Overlong};
use crate::dataset::rows;
use crate::error::{PipelineError, Result};
use gavel_data::{Row, Task};
use gavel_text::{RenderOptions, TextModel};
use gavel_train::SftRow;
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
    overlong: Overlong,
}

impl PromptLimit {
    /// At most what is configured, and what the model's positions leave beside
    /// a response.
    pub(crate) fn new(data: &DataTable, positions: i64, max_tokens: usize) -> Result<Self> {
        let room = (positions.max(0) as usize).saturating_sub(max_tokens);
        if room == 0 {
            return Err(PipelineError::Stopped(format!(
                "rollout.max_tokens must be below the model's {positions} positions, not {max_tokens}"
            )));
        }
        Ok(Self { tokens: data.max_prompt_tokens.unwrap_or(room).min(room), overlong: data.overlong_prompts })
    }

    /// The prompt to use, if the row is to be used.
    fn apply(&self, mut ids: Vec<u32>, path: &Path, place: &str) -> Result<Option<Vec<u32>>> {
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

/// All prompts of a dataset.
pub(crate) fn prompts<T>(
    config: &Config<T>,
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
    collect(config, dataset, read)
}

/// All rows of a dataset to imitate: `prompt` with `response`, or `messages`.
pub(crate) fn sft_rows<T>(config: &Config<T>, text: &TextModel, limit: PromptLimit) -> Result<Vec<SftRow>> {
    let dataset = &config.data.train;
    let path = dataset.path();
    let read = |row: Row| {
        let place = row.place.clone();
        let bad = |what: String| PipelineError::BadRow { path: path.to_owned(), place: place.clone(), what };
        let sample = gavel_scoring::completion(row, "train").map_err(|error| bad(error.to_string()))?;
        if sample.task.prompt.is_empty() {
            return Err(bad("the row has no prompt before the response".into()));
        }
        if sample.trajectories.iter().any(|trajectory| trajectory.messages.len() != 1) {
            return Err(bad(
                "only one response is learned from, and this row has several messages after its prompt".into()
            ));
        }
        let prompt = prompt_ids(&sample.task, text).map_err(bad)?;
        let mut response = text.tokenizer.encode(&sample.response()).map_err(|error| bad(error.to_string()))?;
        response.push(text.tokenizer.eos());
        Ok(limit.apply(prompt, path, &place)?.map(|prompt| SftRow { prompt, response }))
    };
    collect(config, dataset, read)
}

/// The tokens of a prompt, with the tools that its row offers.
fn prompt_ids(task: &Task, text: &TextModel) -> std::result::Result<Vec<u32>, String> {
    let tools = task.reference.tools().map_err(|error| error.to_string())?;
    text.prompt_ids_with(&task.prompt, &RenderOptions::prompt(&tools)).map_err(|error| error.to_string())
}

fn collect<T, R>(config: &Config<T>, dataset: &Dataset, read: impl Fn(Row) -> Result<Option<R>>) -> Result<Vec<R>> {
    let mut used = Vec::new();
    for row in rows(config, dataset)? {
        used.extend(read(row)?);
    }
    if used.is_empty() {
        return Err(PipelineError::Stopped(format!("dataset {dataset} has no row that can be used")));
    }
    Ok(used)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const TEMPLATE: &str =
        "{% for tool in tools or [] %}<{{ tool.function.name }}>{% endfor %}{{ messages[0].content }}:";

    /// What the template makes of each row, for `gavel train` and `gavel sft`.
    fn rendered(rows: &[serde_json::Value]) -> Result<[Vec<String>; 2]> {
        let folder = tempfile::tempdir().unwrap();
        TextModel::byte_level().save(folder.path()).unwrap();
        std::fs::write(folder.path().join("chat_template.jinja"), TEMPLATE).unwrap();
        let text = TextModel::load(folder.path()).unwrap();
        let data = folder.path().join("rows.jsonl");
        std::fs::write(&data, rows.iter().map(|row| format!("{row}\n")).collect::<String>()).unwrap();
        let config =
            json!({"model": {"path": "m"}, "data": {"train": data}, "rollout": {"max_tokens": 8}, "train": {}});
        let config: Config<toml::Table> = serde_json::from_value(config).unwrap();
        let limit = PromptLimit::new(&config.data, 512, 8).unwrap();
        let prompts = prompts(&config, &config.data.train, "train", &text, limit)?;
        let rows = sft_rows(&config, &text, limit)?;
        let decode = |ids: &[u32]| text.tokenizer.decode(ids).unwrap();
        Ok([
            prompts.iter().map(|prompt| decode(&prompt.ids)).collect(),
            rows.iter().map(|row| decode(&row.prompt)).collect(),
        ])
    }

    #[test]
    fn the_template_sees_the_tools_of_the_row() {
        let tools = json!([{"type": "function", "function": {"name": "add", "parameters": {}}}]);
        let row = |tools| json!({"prompt": "2+2", "response": "4", "tools": tools});
        let [prompts, sft] = rendered(&[row(tools.clone()), row(tools.to_string().into()), row(json!(null))]).unwrap();
        assert_eq!(prompts, ["<add>2+2:", "<add>2+2:", "2+2:"]);
        assert_eq!(sft, prompts);
    }

    #[test]
    fn malformed_tools_name_the_file_and_the_line() {
        let row = |tools| json!({"prompt": "2+2", "response": "4", "tools": tools});
        let error = rendered(&[row(json!([])), row(json!([{"tool": "add"}]))]).unwrap_err().to_string();
        assert!(error.contains("rows.jsonl, line 2: `tools` must be a list of"), "{error}");
    }
}
