//! Where the turns of a request begin: after a recorded conversation, or with a prompt of their own.

use crate::digest;
use crate::limits::SessionLimits;
use crate::recording::{AfterTurn, Continued, Start};
use axum::http::StatusCode;
use blake3::Hash;
use gavel_agent::{Conversation, History, PromptOptions};
use gavel_data::Message;
use gavel_serve::openai::{ApiError, ChatRequest};
use gavel_text::{TextError, TextModel};
use serde_json::{Map, Value};
use std::sync::Arc;

/// Where the turns of a request begin.
pub(crate) struct Located {
    pub(crate) start: Start,
    /// All tokens before them.
    pub(crate) prompt: Vec<u32>,
    /// The functions that the policy may call.
    pub(crate) tools: Vec<Value>,
}

/// Why a request is refused.
pub(crate) enum Refused {
    Wrong(ApiError),
    /// Its conversation has no room.
    TooLong {
        after: Option<AfterTurn>,
        what: String,
    },
}

impl Refused {
    /// The error of the request.
    pub(crate) fn into_error(self) -> ApiError {
        match self {
            Self::Wrong(error) => error,
            // As OpenAI's servers name it.
            Self::TooLong { what, .. } => ApiError::coded(StatusCode::BAD_REQUEST, "context_length_exceeded", what),
        }
    }
}

impl From<ApiError> for Refused {
    fn from(error: ApiError) -> Self {
        Self::Wrong(error)
    }
}

impl From<TextError> for Refused {
    fn from(error: TextError) -> Self {
        match error {
            TextError::TooManyBytes { .. } => Self::TooLong { after: None, what: error.to_string() },
            error => Self::Wrong(error.into()),
        }
    }
}

/// Refuses fields that would be ignored, and gives how many choices a request asks for.
pub(crate) fn check(asked: &ChatRequest) -> Result<usize, ApiError> {
    let settings = asked.settings();
    settings.check()?;
    let choices = settings.choices(1)?;
    let tools = asked.check()?;
    if let Some(field) = asked.grammar_field(&tools)? {
        let what =
            format!("`{field}`: the run decides how tokens are drawn, and binds them to no grammar of a request");
        return Err(ApiError::field(field, what));
    }
    if asked.top_logprobs() > 0 {
        return Err(ApiError::field("top_logprobs", "`top_logprobs` must be 0: only drawn tokens are recorded"));
    }
    if settings.max_tokens() == Some(0) {
        return Err(ApiError::field("max_tokens", "`max_tokens` must be at least 1"));
    }
    Ok(choices)
}

/// Finds where the turns of a request begin. `row_kwargs` are the variables of the chat template that the row sets, and
/// `find` gives the recorded conversation that the request continues, by its digests after each message.
///
/// # Errors
/// It cannot be rendered, or its conversation begins with too many tokens.
pub(crate) fn locate(
    asked: &ChatRequest,
    row_kwargs: &Map<String, Value>,
    limits: &SessionLimits,
    text: &TextModel,
    find: impl FnOnce(&[Hash]) -> Option<Continued>,
) -> Result<Located, Refused> {
    let tools = asked.check()?;
    let messages: Vec<Message> = asked.messages().iter().map(digest::normal).collect();
    let mut variables = row_kwargs.clone();
    variables.extend(asked.template_variables());
    let options = PromptOptions { functions: tools.clone().into(), template_kwargs: Arc::new(variables) };
    let mut digest = digest::beginning(&options);
    let mut digests = vec![digest];
    for message in &messages {
        digest = digest::with(&digest, message);
        digests.push(digest);
    }
    let mut grown_from = None;
    if let Some(Continued { after, messages: recorded, base, prompt_tokens }) = find(&digests) {
        let new = messages.get(recorded..).unwrap_or_default().to_vec();
        // A template that cannot continue a conversation renders it anew.
        if limits.history == History::Exact
            && let Ok(new_ids) = base.continuation(&new, text)
        {
            let prompt = [base.ids(), new_ids.clone()].concat();
            let start = Start { after: Some(after), base, new, new_ids, prompt_tokens, digest };
            return Ok(Located { start, prompt, tools });
        }
        // Turns that are trajectories of their own belong to the conversation that they continue.
        grown_from = Some(prompt_tokens).filter(|_| limits.history == History::Split);
    }
    let most = limits.max_prompt_tokens + grown_from.map_or(0, |_| limits.max_tokens);
    let prompt = text.prompt_ids_within(&messages, &options.asking(), most)?;
    if prompt.len() > most {
        let what = format!("the conversation begins with {} tokens, and at most {most} fit", prompt.len());
        return Err(Refused::TooLong { after: None, what });
    }
    let calls = messages.iter().map(|message| message.tool_calls.len()).sum();
    let base = Conversation::new(messages, prompt.clone(), options).with_calls_before(calls);
    let prompt_tokens = grown_from.unwrap_or(prompt.len());
    let start = Start { after: None, base, new: Vec::new(), new_ids: Vec::new(), prompt_tokens, digest };
    Ok(Located { start, prompt, tools })
}

impl Located {
    /// How many tokens the conversation has left for the turns.
    ///
    /// # Errors
    /// It has none left.
    pub(crate) fn tokens_left(&self, limits: &SessionLimits) -> Result<usize, Refused> {
        let most = limits.max_tokens;
        match most.saturating_sub(self.prompt.len().saturating_sub(self.start.prompt_tokens)) {
            0 => {
                let what = format!("the conversation has used up its {most} tokens (rollout.max_tokens)");
                Err(Refused::TooLong { after: self.start.after, what })
            }
            left => Ok(left),
        }
    }
}
