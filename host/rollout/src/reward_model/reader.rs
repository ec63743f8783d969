//! From a conversation to the tokens that a reward model reads, and the places where its values are.

use super::config::Output;
use super::error::{Part, RewardModelError};
use super::steps::{Divided, Each, StepsConfig, divide};
use gavel_data::{ContentPart, Message, Role};
use gavel_policy::{ModelConfig, score_place};
use gavel_text::{RenderOptions, TextModel};
use serde_json::{Map, Value};
use std::ops::Range;

/// Few tokens have this many bytes, and to tokenise megabytes takes seconds.
const BYTES_PER_TOKEN: usize = 64;

/// From a conversation to tokens.
pub(super) struct Reader {
    text: TextModel,
    add_generation_prompt: bool,
    /// The most tokens.
    positions: usize,
    /// The token that no score of a sequence is read at.
    pad: Option<u32>,
    steps: Option<StepsConfig>,
    /// What the template writes after the last message.
    ending: String,
}

/// The input for a conversation.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ReadConversation {
    pub(super) tokens: Vec<u32>,
    /// The tokens whose values are read, from 0.
    pub(super) places: Vec<usize>,
    /// The bytes of the steps in the last message; empty if the only value is the value of the whole conversation.
    pub(super) steps: Vec<Range<usize>>,
}

impl Reader {
    /// The reader of a model of these sizes.
    ///
    /// # Errors
    /// The chat template does not fit the tokenizer, or cannot render a conversation.
    pub(super) fn new(
        text: TextModel,
        output: Output,
        sizes: &ModelConfig,
        steps: Option<StepsConfig>,
    ) -> Result<Self, RewardModelError> {
        // A judge writes its answer after the conversation.
        let add_generation_prompt = matches!(output, Output::YesNo(_)) && steps.is_none();
        let positions = usize::try_from(sizes.positions()).unwrap_or_default();
        let pad = sizes.pad_token_id.filter(|_| output == Output::Scores);
        let mut reader = Self { text, add_generation_prompt, positions, pad, steps: None, ending: String::new() };
        let probe = |answer: &str| [Message::new(Role::User, "a"), Message::new(Role::Assistant, answer)];
        // A reader of labels may have no template.
        if reader.text.template.source().is_none() && output == Output::Scores && steps.is_none() {
            return Ok(reader);
        }
        let tokens = reader.tokens(&probe("b"), &Map::new())?;
        if tokens.is_empty() {
            return Err(unfit(Part::Template, "it makes an empty text of a conversation"));
        }
        reader.check_marks(&probe("b"))?;
        if steps.is_some() {
            const ANSWER: &str = "7307";
            let (whole, _) = reader.text.tokenizer.pieces(&reader.tokens(&probe(ANSWER), &Map::new())?, false);
            let Some(end) = whole.rfind(ANSWER) else {
                return Err(unfit(Part::Template, "it leaves out the message whose steps are scored"));
            };
            reader.ending = whole[end + ANSWER.len()..].to_owned();
            reader.steps = steps;
        }
        Ok(reader)
    }

    /// Refuses a template whose marks (`<|im_start|>`) are all unknown to a tokenizer that has others.
    fn check_marks(&self, conversation: &[Message]) -> Result<(), RewardModelError> {
        let rendered = self.text.template.render(conversation, &self.options(&Map::new()))?;
        let known = |mark: &&str| self.text.tokenizer.token_id(mark).is_some();
        let written: Vec<&str> = marks(&rendered).collect();
        let Some(first) = written.first().filter(|_| !written.iter().any(known)) else { return Ok(()) };
        match self.text.tokenizer.special_tokens().into_iter().find(|token| marks(token).next().is_some()) {
            None => Ok(()),
            Some(other) => Err(unfit(
                Part::Template,
                &format!(
                    "it writes `{first}`, which is not a token of tokenizer.json, whose tokens are like `{other}`\nhint: name the template that belongs to the tokenizer in chat_template"
                ),
            )),
        }
    }

    /// The tokens of a conversation, and where its values are. `variables` are additional variables of the chat
    /// template.
    pub(super) fn read(
        &self,
        conversation: &[Message],
        variables: &Map<String, Value>,
    ) -> Result<ReadConversation, RewardModelError> {
        let bytes: usize = conversation.iter().map(|message| message.text().len()).sum();
        self.check_bytes(bytes)?;
        match &self.steps {
            None => self.whole(self.tokens(conversation, variables)?),
            Some(steps) => self.read_steps(conversation, variables, &steps.each),
        }
    }

    /// The tokens of a text. With `add_special`, the tokenizer adds its special tokens.
    pub(super) fn read_text(&self, text: &str, add_special: bool) -> Result<ReadConversation, RewardModelError> {
        self.check_bytes(text.len())?;
        let tokenizer = &self.text.tokenizer;
        self.whole(if add_special { tokenizer.encode_whole(text) } else { tokenizer.encode(text) }?)
    }

    fn check_bytes(&self, bytes: usize) -> Result<(), RewardModelError> {
        match bytes / BYTES_PER_TOKEN > self.positions {
            true => Err(RewardModelError::TooManyBytes { bytes, positions: self.positions }),
            false => Ok(()),
        }
    }

    fn whole(&self, tokens: Vec<u32>) -> Result<ReadConversation, RewardModelError> {
        let place = score_place(&tokens, self.pad).ok_or(RewardModelError::Empty)?;
        self.fits(ReadConversation { tokens, places: vec![place], steps: Vec::new() })
    }

    fn fits(&self, read: ReadConversation) -> Result<ReadConversation, RewardModelError> {
        match read.tokens.len() > self.positions {
            true => Err(RewardModelError::TooLong { tokens: read.tokens.len(), positions: self.positions }),
            false => Ok(read),
        }
    }

    fn options(&self, variables: &Map<String, Value>) -> RenderOptions<'static> {
        let (add_generation_prompt, variables) = (self.add_generation_prompt, variables.clone());
        RenderOptions { add_generation_prompt, variables, ..RenderOptions::default() }
    }

    fn tokens(&self, conversation: &[Message], variables: &Map<String, Value>) -> Result<Vec<u32>, RewardModelError> {
        Ok(self.text.prompt_ids_with(conversation, &self.options(variables))?)
    }

    fn read_steps(
        &self,
        conversation: &[Message],
        variables: &Map<String, Value>,
        each: &Each,
    ) -> Result<ReadConversation, RewardModelError> {
        let lost = |what: &str| RewardModelError::Steps(what.to_owned());
        let (last, before) = conversation.split_last().ok_or(RewardModelError::Empty)?;
        let response = last.text();
        let divided = match each {
            Each::Token => Divided { text: response.clone(), steps: Vec::new(), read: Vec::new() },
            Each::Part { separator, mark } => {
                let mark = mark.as_deref();
                let is_token = |mark: &&str| self.text.tokenizer.token_id(mark).is_some();
                if mark.filter(is_token).is_some_and(|mark| response.contains(mark)) {
                    return Err(lost("the response has the mark of their ends"));
                }
                divide(&response, separator, mark)
            }
        };
        let shown = Message { content: vec![ContentPart::Text(divided.text.clone())], ..last.clone() };
        let tokens = self.tokens(&[before, &[shown]].concat(), variables)?;
        let (whole, pieces) = self.text.tokenizer.pieces(&tokens, false);
        // Templates trim the text of a message, or write white space after it.
        let core = divided.text.trim();
        let body = whole.strip_suffix(&self.ending).map(str::trim_end).unwrap_or_default();
        let Some(at) = body.strip_suffix(core).map(str::len) else {
            return Err(lost("the chat template or the tokenizer changes the text of the response"));
        };
        let trimmed = divided.text.len() - divided.text.trim_start().len();
        let end = tokens.len().saturating_sub(1);
        let in_tokens = |bytes: &Range<usize>| {
            let place = |byte: usize| (at + byte).saturating_sub(trimmed);
            let (start, end) = (place(bytes.start), place(bytes.end));
            pieces.iter().rposition(|piece| piece.start < end && piece.end > start)
        };
        let read = match each {
            Each::Part { .. } => {
                // A response of white space has no token of its own.
                let places = divided.read.iter().map(|bytes| in_tokens(bytes).unwrap_or(end)).collect();
                ReadConversation { tokens, places, steps: divided.steps }
            }
            Each::Token => {
                let of = |(place, piece): (usize, &Range<usize>)| {
                    let (start, end) = (piece.start.max(at), piece.end.min(at + core.len()));
                    (start < end).then(|| (place, start - at + trimmed..end - at + trimmed))
                };
                let mut found: Vec<(usize, Range<usize>)> = pieces.iter().enumerate().filter_map(of).collect();
                if found.is_empty() {
                    found.push((end, 0..response.len()));
                }
                let (places, steps) = found.into_iter().unzip();
                ReadConversation { tokens, places, steps }
            }
        };
        self.fits(read)
    }
}

fn unfit(part: Part, what: &str) -> RewardModelError {
    RewardModelError::Unfit { part, what: what.to_owned() }
}

/// The texts of the form `<|im_start|>` in a text.
fn marks(text: &str) -> impl Iterator<Item = &str> {
    text.match_indices("<|").filter_map(|(start, _)| {
        let inside = &text[start + 2..];
        let end = inside.find("|>")?;
        let is_name = end > 0 && inside[..end].chars().all(|char| char.is_ascii_alphanumeric() || "_-".contains(char));
        is_name.then(|| &text[start..start + end + 4])
    })
}
