//! Rows to imitate as token ids: a prompt, and the whole turn that answers it.

use crate::episode_kind::EpisodeKinds;
use crate::error::{PipelineError, Result};
use crate::rows::dataset::DatasetRows;
use crate::rows::drawable::Drawable;
use crate::rows::learned_turn::LearnedTurn;
use crate::rows::prompts::{PromptLimit, prompt_options};
use crate::rows::stored_rows::{LongValues, StoredRow, put_bytes, put_row, take_bytes, take_row};
use gavel_agent::PromptOptions;
use gavel_config::{Overlong, Turns};
use gavel_data::{Message, Role, Row, Sample, last_turn};
use gavel_text::TextModel;
use gavel_train::SftRow;
use std::cell::RefCell;
use std::path::Path;
use std::sync::Arc;

/// A row to imitate, with its place.
#[derive(Debug, Clone)]
pub(crate) struct PlacedRow {
    pub(crate) row: SftRow,
    /// Its file, and its line or row there.
    pub(crate) place: Arc<str>,
}

impl StoredRow for PlacedRow {
    type Context = ();

    fn write(&self, into: &mut Vec<u8>, _: &mut LongValues) -> Result<()> {
        put_row(into, &self.row);
        put_bytes(into, self.place.as_bytes());
        Ok(())
    }

    fn read(mut bytes: &[u8], _: &LongValues, (): &()) -> Option<Self> {
        let row = take_row(&mut bytes)?;
        let place = str::from_utf8(take_bytes(&mut bytes)?).ok()?;
        Some(Self { row, place: place.into() })
    }
}

/// The rows to imitate, and what is known of all of them.
pub(crate) struct SftRows {
    pub(crate) drawable: Drawable<PlacedRow>,
    /// Tokens of the prompt and of the response of the longest row.
    pub(crate) longest: (usize, usize),
    /// The largest share of a row's tokens that is its response.
    pub(crate) learned: f64,
}

/// The rows to imitate from datasets: each message of the assistant that is learned, with all messages before it.
pub(crate) fn sft_rows<'d>(
    datasets: impl IntoIterator<Item = Result<DatasetRows<'d>>>,
    text: &TextModel,
    limit: PromptLimit,
    episode_kinds: &EpisodeKinds,
    turns: Turns,
) -> Result<SftRows> {
    let parted = Parted::default();
    let (mut longest, mut learned) = ((0, 0), 0.0_f64);
    let read = |row: Row, path: &Path| {
        let place: Arc<str> = format!("{}, {}", path.display(), row.place).into();
        let rows = sft_rows_of(row, path, text, limit, episode_kinds, turns, &parted)?;
        Ok(rows.into_iter().map(move |row| PlacedRow { row, place: place.clone() }))
    };
    let drawable = Drawable::read(datasets, read, |PlacedRow { row, .. }| {
        let (prompt, response) = (row.prompt.len(), row.response.len());
        if prompt + response >= longest.0 + longest.1 {
            longest = (prompt, response);
        }
        learned = learned.max(response as f64 / (prompt + response) as f64);
    })?;
    parted.warn();
    Ok(SftRows { drawable, longest, learned })
}

/// The rows to imitate from one row of a dataset.
pub(crate) fn sft_rows_of(
    row: Row,
    path: &Path,
    text: &TextModel,
    limit: PromptLimit,
    episode_kinds: &EpisodeKinds,
    turns: Turns,
    parted: &Parted,
) -> Result<Vec<SftRow>> {
    let place = row.place.clone();
    let bad = |what: String| PipelineError::BadRow { path: path.to_owned(), place: place.clone(), what };
    let answered = Answered::read(row, episode_kinds, turns).map_err(bad)?;
    let most = limit.tokenised(limit.positions, &text.tokenizer);
    let mut rows = Vec::new();
    for at in answered.learned() {
        let (prompt, answer) = (&answered.messages[..at], &answered.messages[at]);
        let turn = LearnedTurn::new(prompt, &answered.options, answer, text, most);
        let Some(turn) = limit.usable(turn).map_err(bad)? else { continue };
        let row = parted.note(turn, path, &place);
        rows.extend(apply_limit(limit, row, path, &place)?);
    }
    Ok(rows)
}

/// The answers before which the chat template does not write the end of the prompt that asks for them.
#[derive(Default)]
pub(crate) struct Parted(RefCell<(usize, Option<String>)>);

impl Parted {
    /// Notes whether the turn is such an answer, and gives its row.
    pub(crate) fn note(&self, LearnedTurn { row, unread }: LearnedTurn, path: &Path, place: &str) -> SftRow {
        if let Some(unread) = unread {
            let (count, first) = &mut *self.0.borrow_mut();
            *count += 1;
            first.get_or_insert_with(|| format!("{}, {place}: {unread:?}", path.display()));
        }
        row
    }

    /// Warns of such answers, if there are any.
    pub(crate) fn warn(self) {
        if let (count, Some(first)) = self.0.into_inner() {
            tracing::warn!(
                "answers learned without the end of the prompt that asks for them: {count}; the chat template does not write it before them; the first: {first}\nhint: see them with --show; give answers the thought that their prompt opens, or set chat_template_kwargs to what the answers are"
            );
        }
    }
}

/// The conversation of a row.
struct Answered {
    messages: Vec<Message>,
    options: PromptOptions,
    /// The first message to imitate: the one after the prompt or, in a whole conversation, the first of the last turn or
    /// of all turns.
    start: usize,
}

impl Answered {
    fn read(row: Row, episode_kinds: &EpisodeKinds, turns: Turns) -> std::result::Result<Self, String> {
        let has_prompt = row.columns.present("prompt").is_some();
        let Sample { task, trajectories, .. } =
            gavel_scoring::completion(row, "train").map_err(|error| error.to_string())?;
        if task.prompt.is_empty() {
            return Err("the row has no prompt before the response".into());
        }
        let mut messages = task.prompt.clone();
        messages.extend(trajectories.into_iter().flat_map(|trajectory| trajectory.messages));
        // The prompt of a whole conversation ends before the first answer.
        let start = if has_prompt || turns == Turns::All { task.prompt.len() } else { last_turn(&messages) };
        if start == messages.len() {
            return Err("`messages` does not end with a message of the assistant: there is no answer to learn".into());
        }
        let options = prompt_options(&task, &episode_kinds.of(&task)?)?;
        Ok(Self { messages, options, start })
    }

    /// The messages to imitate, by their numbers.
    fn learned(&self) -> impl Iterator<Item = usize> + '_ {
        (self.start..self.messages.len()).filter(|at| self.messages[*at].role == Role::Assistant)
    }
}

/// Applies the limit to a row to imitate, which needs positions for its response too. The response is never cut: its
/// end must be learned.
pub(crate) fn apply_limit(limit: PromptLimit, row: SftRow, path: &Path, place: &str) -> Result<Option<SftRow>> {
    let SftRow { prompt, response } = row;
    let Some(mut prompt) = limit.apply(prompt, path, place)? else { return Ok(None) };
    let excess = (prompt.len() + response.len()).saturating_sub(limit.positions);
    if excess == 0 {
        return Ok(Some(SftRow { prompt, response }));
    }
    match limit.overlong {
        Overlong::Drop => Ok(None),
        Overlong::Truncate if excess < prompt.len() => Ok(Some(SftRow { prompt: prompt.split_off(excess), response })),
        Overlong::Truncate | Overlong::Error => Err(PipelineError::BadRow {
            path: path.to_owned(),
            place: place.to_owned(),
            what: format!(
                "the prompt has {} tokens and its response {}, at most {} fit together\nhint: set data.overlong_prompts to \"drop\"{}",
                prompt.len(),
                response.len(),
                limit.positions,
                if excess < prompt.len() { " or \"truncate\"" } else { "" }
            ),
        }),
    }
}

#[cfg(test)]
mod tests;
