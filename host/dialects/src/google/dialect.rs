//! How the dialect answers.

use super::answer;
use super::form::Form;
use super::stream::Stream;
use crate::deltas::Delta;
use crate::dialect::Dialect;
use crate::refused::Refused;
use crate::reply::Reply;
use serde_json::Value;

/// A request under way.
#[derive(Debug, Default)]
pub(crate) struct Google {
    pub(crate) form: Form,
    /// Thoughts are shown. Where not, they come back sealed.
    pub(crate) shows_thoughts: bool,
    pub(super) stream: Stream,
}

impl Dialect for Google {
    const NAMES: &[(&str, &str)] = &[
        ("max_tokens", "generationConfig.maxOutputTokens"),
        ("temperature", "generationConfig.temperature"),
        ("top_p", "generationConfig.topP"),
        ("top_k", "generationConfig.topK"),
        ("stop", "generationConfig.stopSequences"),
        ("n", "generationConfig.candidateCount"),
        ("seed", "generationConfig.seed"),
        ("presence_penalty", "generationConfig.presencePenalty"),
        ("frequency_penalty", "generationConfig.frequencyPenalty"),
        ("top_logprobs", "generationConfig.logprobs"),
        ("logprobs", "generationConfig.responseLogprobs"),
        ("response_format", "generationConfig.responseSchema"),
        ("reasoning_effort", "generationConfig.thinkingConfig.thinkingLevel"),
        ("tool_choice", "toolConfig.functionCallingConfig"),
        ("messages", "contents"),
    ];
    // The maker's client takes a comment for data.
    const ALIVE: &str = "\n";

    fn stream_type(&self) -> &'static str {
        if self.form == Form::List { "application/json" } else { "text/event-stream" }
    }

    fn is_streamed(&self) -> bool {
        self.form != Form::Whole
    }

    fn answer(&self, reply: Reply) -> Value {
        answer::whole(reply, self.shows_thoughts)
    }

    fn write(&mut self, delta: Delta, out: &mut String) {
        self.stream.write(delta, self.form, self.shows_thoughts, out);
    }

    fn end(&mut self, out: &mut String) {
        self.stream.end(self.form, out);
    }

    fn error(refused: &Refused) -> Value {
        answer::error(refused)
    }
}
