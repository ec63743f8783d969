//! Prompts as token ids: every row is checked and tokenised before anything heavy starts.

use crate::episode_kind::{EpisodeKind, EpisodeKinds};
use crate::error::{PipelineError, Result};
use crate::rows::dataset::DatasetRows;
use crate::rows::drawable::{UsableDataset, usable};
use crate::rows::stored_rows::{
    LongValues, MOST_IN_MEMORY, StoredRow, StoredRows, put_bytes, put_ids, take_bytes, take_ids,
};
use gavel_agent::PromptOptions;
use gavel_config::{DataTable, Overlong};
use gavel_data::{Columns, Json, Reference, Row, RowSources, Task, TaskError};
use gavel_text::{TextError, TextModel, Tokenizer};
use serde_json::{Map, Value};
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

/// A task whose prompt the policy can read.
#[derive(Clone)]
pub(crate) struct Prompt {
    pub(crate) task: Arc<Task>,
    pub(crate) ids: Vec<u32>,
    /// What makes a sample of it, with the tools that its row may call.
    pub(crate) episode_kind: EpisodeKind,
}

/// How the prompt of a task is rendered.
///
/// # Errors
/// A column of the row has a form that is not supported; the error says so.
pub(crate) fn prompt_options(task: &Task, episode_kind: &EpisodeKind) -> std::result::Result<PromptOptions, String> {
    Ok(PromptOptions { functions: episode_kind.offered(task)?, template_kwargs: template_kwargs(task)?.into() })
}

/// Texts of so many bytes are tokenised whatever fits, so that an error has their number of tokens.
const COUNTED_BYTES: usize = 1 << 20;

/// Why a row has no tokens.
#[derive(Debug)]
pub(crate) enum NoTokens {
    /// Its text has too many bytes.
    TooLong(String),
    /// Anything else.
    Wrong(String),
}

impl From<String> for NoTokens {
    fn from(what: String) -> Self {
        Self::Wrong(what)
    }
}

impl From<TextError> for NoTokens {
    fn from(error: TextError) -> Self {
        match error {
            TextError::TooManyBytes { .. } => Self::TooLong(error.to_string()),
            other => Self::Wrong(other.to_string()),
        }
    }
}

/// The limit of prompts, and what to do with longer ones.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PromptLimit {
    tokens: usize,
    /// What a user can change to make it higher.
    remedy: &'static str,
    /// The limit of the model: the most tokens of a prompt together with a response to imitate.
    pub(crate) positions: usize,
    pub(crate) overlong: Overlong,
    /// `data.max_prompt_tokens`
    max_prompt_tokens: Option<usize>,
}

impl PromptLimit {
    /// The limit is `max_prompt_tokens`, but at most what the model's positions leave beside a response.
    pub(crate) fn new(data: &DataTable, positions: i64, max_tokens: usize) -> Result<Self> {
        let (positions, max_prompt_tokens) = (positions.max(0) as usize, data.max_prompt_tokens);
        let limit = Self { tokens: 0, remedy: "", positions, overlong: data.overlong_prompts, max_prompt_tokens };
        limit.with_room_for(max_tokens, "rollout.max_tokens", ", or lower rollout.max_tokens to make room")
    }

    /// The limit of prompts that are answered in validation, with at most `max_tokens` tokens.
    pub(crate) fn of_validation(self, max_tokens: usize) -> Result<Self> {
        self.with_room_for(max_tokens, "validation.max_tokens", ", or lower validation.max_tokens to make room")
    }

    fn with_room_for(self, max_tokens: usize, key: &str, lower: &'static str) -> Result<Self> {
        let positions = self.positions;
        let room = positions.saturating_sub(max_tokens);
        if room == 0 {
            return Err(PipelineError::Stopped(format!(
                "{key} must be below the model's {positions} positions, not {max_tokens}"
            )));
        }
        let tokens = self.beside(max_tokens);
        let remedy = match (tokens < room, max_tokens) {
            (true, _) => ", or raise data.max_prompt_tokens",
            // A model that answers nothing needs room for one token.
            (false, 0 | 1) => "",
            (false, _) => lower,
        };
        Ok(Self { tokens, remedy, ..self })
    }

    /// The most tokens of a prompt whose response may have `max_tokens`.
    pub(crate) fn beside(&self, max_tokens: usize) -> usize {
        let room = self.positions.saturating_sub(max_tokens);
        self.max_prompt_tokens.unwrap_or(room).min(room)
    }

    /// The most tokens of a prompt.
    pub(crate) fn tokens(&self) -> usize {
        self.tokens
    }

    /// The limit of `tokens` tokens for a text that is tokenised. One with more bytes than they can have is not: to
    /// tokenise it takes about 150 times its memory. A prompt that is cut needs its end.
    pub(crate) fn tokenised(self, tokens: usize, tokenizer: &Tokenizer) -> usize {
        match self.overlong {
            Overlong::Truncate => usize::MAX,
            Overlong::Drop | Overlong::Error => tokens.max(tokenizer.fewest_tokens(COUNTED_BYTES)),
        }
    }

    /// The tokens of a row; nothing if the row is left out because its text is too long.
    pub(crate) fn usable<T>(self, tokens: std::result::Result<T, NoTokens>) -> std::result::Result<Option<T>, String> {
        match tokens {
            Ok(tokens) => Ok(Some(tokens)),
            Err(NoTokens::TooLong(_)) if self.overlong == Overlong::Drop => Ok(None),
            Err(NoTokens::TooLong(what)) => {
                let remedy = self.remedy;
                Err(format!("{what}\nhint: set data.overlong_prompts to \"drop\" or \"truncate\"{remedy}"))
            }
            Err(NoTokens::Wrong(what)) => Err(what),
        }
    }

    /// The prompt to use; nothing if the row is left out.
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
                    "the prompt has {} tokens, at most {} fit\nhint: set data.overlong_prompts to \"drop\" or \"truncate\"{}",
                    ids.len(),
                    self.tokens,
                    self.remedy
                ),
            }),
        }
    }
}

impl StoredRow for Prompt {
    type Context = EpisodeKinds;

    fn write(&self, into: &mut Vec<u8>, values: &mut LongValues) -> Result<()> {
        let Reference { columns, .. } = &self.task.reference;
        put_bytes(into, self.task.id.as_bytes());
        put_ids(into, &self.ids);
        for name in columns.names() {
            put_bytes(into, name.as_bytes());
            values.put(into, columns.get(name).map_or("null", Json::as_text).as_bytes())?;
        }
        Ok(())
    }

    fn read(mut bytes: &[u8], values: &LongValues, episode_kinds: &EpisodeKinds) -> Option<Self> {
        let id = str::from_utf8(take_bytes(&mut bytes)?).ok()?.to_owned();
        let ids = take_ids(&mut bytes)?;
        let mut columns = Columns::default();
        while !bytes.is_empty() {
            let name = str::from_utf8(take_bytes(&mut bytes)?).ok()?;
            columns.insert(name, serde_json::from_slice::<Json>(&values.take(&mut bytes)?).ok()?);
        }
        // All else follows from the columns. The id may also follow from the place of the row.
        let task = Arc::new(Task { id, ..Task::from_row(columns, 0, "").ok()? });
        let episode_kind = episode_kinds.of(&task).ok()?;
        Some(Self { task, ids, episode_kind })
    }
}

/// The prompts of a run, and what is known of all of them.
pub(crate) struct Prompts {
    pub(crate) rows: StoredRows<Prompt>,
    /// Their datasets, one after another.
    pub(crate) datasets: Vec<UsableDataset>,
    /// The data sources of the prompts.
    pub(crate) sources: RowSources,
    /// Tokens of the shortest prompt, and of the longest one.
    pub(crate) lengths: (usize, usize),
    /// The first task of each agent.
    pub(crate) first_tasks: Vec<Arc<Task>>,
}

/// The prompts of the rows of datasets.
pub(crate) fn prompts<'d>(
    datasets: impl IntoIterator<Item = Result<DatasetRows<'d>>>,
    split: &str,
    text: &TextModel,
    limit: PromptLimit,
    episode_kinds: &EpisodeKinds,
) -> Result<Prompts> {
    prompts_within(MOST_IN_MEMORY, datasets, split, text, limit, episode_kinds)
}

/// The same, of which so many bytes are in memory.
fn prompts_within<'d>(
    most_in_memory: usize,
    datasets: impl IntoIterator<Item = Result<DatasetRows<'d>>>,
    split: &str,
    text: &TextModel,
    limit: PromptLimit,
    episode_kinds: &EpisodeKinds,
) -> Result<Prompts> {
    let mut rows = StoredRows::within(most_in_memory, episode_kinds.clone());
    let (mut sources, mut first_tasks, mut agents) = (RowSources::default(), Vec::new(), BTreeSet::new());
    let (mut shortest, mut longest) = (usize::MAX, 0);
    let read = |row: Row, path: &Path| prompt(row, path, split, text, limit, episode_kinds);
    let datasets = usable(datasets, read, |prompt: Prompt| {
        let length = prompt.ids.len();
        (shortest, longest) = (length.min(shortest), length.max(longest));
        sources.push(prompt.task.data_source.as_deref());
        if agents.insert(episode_kinds.number_of(&prompt.task)) {
            first_tasks.push(prompt.task.clone());
        }
        rows.push(prompt)
    })?;
    Ok(Prompts { rows: rows.finish(), datasets, sources, lengths: (shortest, longest), first_tasks })
}

/// The prompt of a row; nothing if the row is left out.
pub(crate) fn prompt(
    row: Row,
    path: &Path,
    split: &str,
    text: &TextModel,
    limit: PromptLimit,
    episode_kinds: &EpisodeKinds,
) -> Result<Option<Prompt>> {
    let place = row.place.clone();
    let bad = |what: String| PipelineError::BadRow { path: path.to_owned(), place: place.clone(), what };
    let task = task(row, path, split)?;
    let episode_kind = episode_kinds.of(&task).map_err(bad)?;
    let options = prompt_options(&task, &episode_kind).map_err(bad)?;
    let most = limit.tokenised(limit.tokens, &text.tokenizer);
    let ids = text.prompt_ids_within(&task.prompt, &options.asking(), most).map_err(NoTokens::from);
    let Some(ids) = limit.usable(ids).map_err(bad)? else { return Ok(None) };
    let task = Arc::new(task);
    Ok(limit.apply(ids, path, &place)?.map(|ids| Prompt { task, ids, episode_kind }))
}

/// The task of a row.
pub(crate) fn task(row: Row, path: &Path, split: &str) -> Result<Task> {
    let place = row.place;
    Task::from_row(row.columns, row.position, split).map_err(|error| PipelineError::BadRow {
        path: path.to_owned(),
        place,
        what: match error {
            TaskError::NoPrompt(_) => {
                format!("{error}\nhint: say which column it is, such as --set 'data.columns.prompt=\"question\"'")
            }
            error => error.to_string(),
        },
    })
}

/// The functions that a task's own column offers.
pub(crate) fn tools(task: &Task) -> std::result::Result<Vec<Value>, String> {
    task.reference.tools().map_err(|error| error.to_string())
}

/// The variables of the chat template that a task's own column sets.
pub(crate) fn template_kwargs(task: &Task) -> std::result::Result<Map<String, Value>, String> {
    task.reference.template_kwargs().map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests;
