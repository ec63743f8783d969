//! Rows to imitate as token ids: a prompt, and the whole turn that answers it.

use crate::config::{Overlong, Turns};
use crate::dataset::DatasetRows;
use crate::error::{PipelineError, Result};
use crate::logic::Logic;
use crate::prompts::{Drawable, PromptLimit, prompt_options, usable};
use gavel_agent::PromptOptions;
use gavel_data::{Message, Role, Row, Sample, last_turn};
use gavel_text::{RenderOptions, TextModel, Tokenizer};
use gavel_train::SftRow;
use std::path::Path;

/// The rows to imitate from datasets: each message of the assistant that is learned, with all messages before it.
pub(crate) fn sft_rows(
    datasets: Vec<DatasetRows<'_>>,
    text: &TextModel,
    limit: PromptLimit,
    logic: &Logic,
    turns: Turns,
) -> Result<Drawable<SftRow>> {
    usable(datasets, |row, path| {
        let place = row.place.clone();
        let bad = |what: String| PipelineError::BadRow { path: path.to_owned(), place: place.clone(), what };
        let answered = Answered::read(row, logic, turns).map_err(bad)?;
        let mut rows = Vec::new();
        for at in answered.learned() {
            let row =
                sft_row(&answered.messages[..at], &answered.options, &answered.messages[at], text).map_err(bad)?;
            rows.extend(apply_limit(limit, row, path, &place)?);
        }
        Ok(rows)
    })
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
    fn read(row: Row, logic: &Logic, turns: Turns) -> std::result::Result<Self, String> {
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
        let options = prompt_options(&task, logic)?;
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

/// A prompt, and the answer to it as the chat template writes it, up to the end of the turn.
pub(crate) fn sft_row(
    prompt: &[Message],
    options: &PromptOptions,
    answer: &Message,
    text: &TextModel,
) -> std::result::Result<SftRow, String> {
    let asking = options.asking();
    let telling = RenderOptions { add_generation_prompt: false, ..asking.clone() };
    let render = |messages: &[Message], options: &RenderOptions<'_>| {
        text.template.render(messages, options).map_err(|error| error.to_string())
    };
    let encode = |part: &str| text.tokenizer.encode(part).map_err(|error| error.to_string());

    let asked = render(prompt, &asking)?;
    let whole = [prompt, std::slice::from_ref(answer)].concat();
    let turn = render(&whole, &telling).and_then(|whole| {
        let start = match whole.starts_with(&asked) {
            true => asked,
            // Some templates write more after a prompt than before an answer, such as an open `<think>`.
            false => render(prompt, &telling)?,
        };
        let wrong = match whole.strip_prefix(&start) {
            Some(turn) if !start.is_empty() => left_out(answer, turn),
            _ => Some("writes the prompt differently if an answer follows"),
        };
        match wrong {
            None => Ok((start, whole)),
            Some(what) => Err(format!(
                "the chat template {what}\nhint: use another template (chat_template.jinja in the model's folder), or rows whose answer is text alone"
            )),
        }
    });
    let only_text = answer.tool_calls.is_empty() && answer.reasoning.as_deref().is_none_or(str::is_empty);
    let (prompt, mut response) = match turn {
        Ok((start, whole)) => {
            let prompt = encode(&start)?;
            // Some tokenizers encode the beginning of a text differently. So the turn is encoded alone only if a token
            // would lie across its beginning.
            let response = match encode(&whole)?.strip_prefix(prompt.as_slice()) {
                Some(response) => response.to_vec(),
                None => encode(&whole[start.len()..])?,
            };
            (prompt, response)
        }
        // A text is learned as it is, whatever the template makes of it in a longer conversation.
        Err(_) if only_text => {
            let prompt = text.prompt_ids_with(prompt, &asking).map_err(|error| error.to_string())?;
            (prompt, encode(&answer.text())?)
        }
        Err(what) => return Err(what),
    };
    end_turn(&mut response, &text.tokenizer);
    Ok(SftRow { prompt, response })
}

/// Which part of an answer the chat template leaves out of its turn, if any.
fn left_out(answer: &Message, turn: &str) -> Option<&'static str> {
    // Templates may change white space.
    let packed = |text: &str| text.split_whitespace().collect::<String>();
    let turn = packed(turn);
    let has = |text: &str| turn.contains(&packed(text));
    if answer.tool_calls.iter().any(|call| !has(&call.name)) {
        Some("leaves out the answer's tool calls")
    } else if answer.reasoning.as_deref().is_some_and(|reasoning| !has(reasoning)) {
        Some("leaves out the answer's reasoning")
    } else if !has(&answer.text()) {
        Some("leaves out the answer's text")
    } else {
        None
    }
}

/// Ends a response where the model stops: at the first end token after the whole answer. If there is none, adds one.
fn end_turn(response: &mut Vec<u32>, tokenizer: &Tokenizer) {
    let ends = |id: &u32| tokenizer.stop_ids().contains(id);
    // Templates may also write a line break after the end of the turn, and an end of text after that.
    let closes = |id: &u32| ends(id) || tokenizer.token_to_text(*id).text.trim().is_empty();
    let closing = response.iter().rposition(|id| !closes(id)).map_or(0, |last| last + 1);
    let end = response[closing..].iter().position(ends);
    match end {
        Some(end) => response.truncate(closing + end + 1),
        None => response.push(tokenizer.eos()),
    }
}

#[cfg(test)]
mod tests;
