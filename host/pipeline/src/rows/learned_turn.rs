//! What is learned of an answer: the tokens of its turn, after the tokens of the prompt that asks for it.

use crate::rows::prompts::NoTokens;
use gavel_agent::PromptOptions;
use gavel_data::{Message, Role};
use gavel_text::{RenderOptions, TextModel, Tokenizer};
use gavel_train::SftRow;

/// A prompt and the turn that answers it, as token ids.
pub(crate) struct LearnedTurn {
    pub(crate) row: SftRow,
    /// The end of the prompt that is not read before the turn, because the chat template does not write it before this
    /// answer.
    pub(crate) unread: Option<String>,
}

impl LearnedTurn {
    /// The turn as the chat template writes it, up to its end. A conversation for which `most` tokens are too few by its
    /// bytes is not tokenised. Where the template does not, an answer of text alone is
    /// learned as it is, after the prompt that asks for it.
    ///
    /// # Errors
    /// The template leaves out a part of the answer, or writes the prompt differently if an answer follows; the error
    /// says so.
    pub(crate) fn new(
        prompt: &[Message],
        options: &PromptOptions,
        answer: &Message,
        text: &TextModel,
        most: usize,
    ) -> Result<Self, NoTokens> {
        let asked = AskedPrompt::new(prompt, options, text, most)?;
        let only_text = answer.tool_calls.is_empty() && answer.reasoning.as_deref().is_none_or(str::is_empty);
        let said = answer.text();
        let mut turn = match (asked.turn(answer), only_text) {
            (Ok(Turn::After(turn)), _) => Self { row: turn, unread: None },
            (Ok(Turn::Parted { turn, unread }), is_text) => match asked.opened(&said).filter(|_| is_text) {
                Some(rest) => asked.text_alone(rest)?,
                None => Self { row: turn, unread: Some(unread) },
            },
            (Err(NoTokens::Wrong(_)), true) => asked.text_alone(asked.opened(&said).unwrap_or(&said))?,
            (Err(what), _) => return Err(what),
        };
        end_turn(&mut turn.row.response, &text.tokenizer);
        Ok(turn)
    }
}

/// The turn of an answer in the template's text of the conversation.
enum Turn {
    /// It follows the prompt that asks for it.
    After(SftRow),
    /// The conversation and the prompt part before the prompt ends, such as before an open `<think>`.
    Parted { turn: SftRow, unread: String },
}

/// A prompt as the template writes it.
struct AskedPrompt<'a> {
    prompt: &'a [Message],
    asking: RenderOptions<'a>,
    text: &'a TextModel,
    /// The text that asks for an answer.
    asked: String,
    /// The most tokens of a text that is tokenised.
    most: usize,
}

impl<'a> AskedPrompt<'a> {
    fn new(
        prompt: &'a [Message],
        options: &'a PromptOptions,
        text: &'a TextModel,
        most: usize,
    ) -> Result<Self, String> {
        let asking = options.asking();
        let asked = text.template.render(prompt, &asking).map_err(|error| error.to_string())?;
        Ok(Self { prompt, asking, text, asked, most })
    }

    /// The text of messages that asks for nothing.
    fn told(&self, messages: &[Message]) -> Result<String, String> {
        let telling = RenderOptions { add_generation_prompt: false, ..self.asking.clone() };
        self.text.template.render(messages, &telling).map_err(|error| error.to_string())
    }

    fn encode(&self, part: &str) -> Result<Vec<u32>, NoTokens> {
        self.text.tokenizer.check_bytes(part.len(), self.most)?;
        Ok(self.text.tokenizer.encode(part)?)
    }

    /// The text with which the template asks, after the prompt's last message.
    fn asking_text(&self) -> &str {
        let told = self.told(self.prompt).ok();
        told.and_then(|told| self.asked.strip_prefix(told.as_str())).unwrap_or_default()
    }

    fn turn(&self, answer: &Message) -> Result<Turn, NoTokens> {
        let whole = self.told(&[self.prompt, std::slice::from_ref(answer)].concat())?;
        let wrong = |what: &str| {
            Err(NoTokens::Wrong(format!(
                "the chat template {what}\nhint: use another template (chat_template.jinja in the model's folder), or rows whose answer is text alone"
            )))
        };
        if let Some(turn) = whole.strip_prefix(&self.asked).filter(|_| !self.asked.is_empty()) {
            // An answer may begin with what the prompt already has, such as `<think>`.
            let left_out = left_out(answer, "", turn).and_then(|_| left_out(answer, self.asking_text(), turn));
            return match left_out {
                Some(what) => wrong(what),
                None => self.split(&whole, self.asked.len()).map(Turn::After),
            };
        }
        let told = self.told(self.prompt)?;
        let Some(turn) = whole.strip_prefix(&told).filter(|_| !told.is_empty()) else {
            return wrong("writes the prompt differently if an answer follows");
        };
        if let Some(what) = left_out(answer, "", turn) {
            return wrong(what);
        }
        if !self.asked.starts_with(&told) {
            let unread = self.asked.clone();
            return self.split(&whole, told.len()).map(|turn| Turn::Parted { turn, unread });
        }
        let (asked, mut prompt) = (self.encode(&self.asked)?, self.encode(&whole)?);
        let shared = asked.iter().zip(&prompt).take_while(|(asked, whole)| asked == whole).count();
        let response = prompt.split_off(shared);
        let unread = self.text.tokenizer.decode_with(&asked[shared..], false)?;
        Ok(Turn::Parted { turn: SftRow { prompt, response }, unread })
    }

    /// The tokens of a text before and after the byte `at`. The second part is encoded alone only if a token would lie
    /// across its beginning: some tokenizers encode the beginning of a text differently.
    fn split(&self, whole: &str, at: usize) -> Result<SftRow, NoTokens> {
        let prompt = self.encode(&whole[..at])?;
        let response = match self.encode(whole)?.strip_prefix(prompt.as_slice()) {
            Some(response) => response.to_vec(),
            None => self.encode(&whole[at..])?,
        };
        Ok(SftRow { prompt, response })
    }

    /// A text after the prompt, whatever the template makes of it in a longer conversation.
    fn text_alone(&self, said: &str) -> Result<LearnedTurn, NoTokens> {
        let prompt = self.text.prompt_ids_within(self.prompt, &self.asking, self.most)?;
        let whole = format!("{}{said}{}", self.asked, self.closing().unwrap_or_default());
        let SftRow { response, .. } = self.split(&whole, self.asked.len())?;
        Ok(LearnedTurn { row: SftRow { prompt, response }, unread: None })
    }

    /// The text that ends a turn after a text, if it has a token at which the model stops.
    fn closing(&self) -> Option<String> {
        const SAID: &str = "said7407";
        let whole = self.told(&[self.prompt, &[Message::new(Role::Assistant, SAID)]].concat()).ok()?;
        let (_, closing) = whole.rsplit_once(SAID)?;
        let stops = |id| self.text.tokenizer.stop_ids().contains(id);
        self.encode(closing).ok()?.iter().any(stops).then(|| closing.to_owned())
    }

    /// What follows the prompt of an answer that continues the prompt's open tag, such as `<think>`: the answer closes
    /// the tag. A tag at the answer's own beginning is the prompt's.
    fn opened<'t>(&self, said: &'t str) -> Option<&'t str> {
        let asking = self.asking_text();
        let tag = open_tag(asking)?;
        let closing = format!("{}/{}", &tag[..1], &tag[1..]);
        match said.trim_start().strip_prefix(tag) {
            Some(rest) => {
                // The white space after the prompt's tag is in the prompt.
                let space = &asking[asking.trim_end().len()..];
                Some(
                    rest.strip_prefix(space).unwrap_or_else(|| if space.is_empty() { rest } else { rest.trim_start() }),
                )
            }
            None => said.contains(&closing).then_some(said),
        }
    }
}

/// The tag that opens at the end of a text, such as `<think>` or `[THINK]`.
fn open_tag(text: &str) -> Option<&str> {
    let text = text.trim_end();
    let open = match text.chars().last()? {
        '>' => '<',
        ']' => '[',
        _ => return None,
    };
    let tag = &text[text.rfind(open)?..];
    let is_name = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | ':');
    (tag.len() > 2 && tag[1..tag.len() - 1].chars().all(is_name)).then_some(tag)
}

/// Which part of an answer the chat template leaves out of its turn, if any. The turn follows the text `asking`, in
/// which an answer may begin.
fn left_out(answer: &Message, asking: &str, turn: &str) -> Option<&'static str> {
    // Templates may change white space.
    let packed = |text: &str| text.split_whitespace().collect::<String>();
    let asking = packed(asking);
    let written = format!("{asking}{}", packed(turn));
    let has = |text: &str| {
        let text = packed(text);
        text.is_empty() || written.rfind(&text).is_some_and(|at| at + text.len() > asking.len())
    };
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
