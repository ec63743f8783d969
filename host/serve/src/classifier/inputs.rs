//! The inputs of `/classify` and `/v1/embeddings`: texts, or a conversation.

use super::request::Common;
use super::server::Input;
use crate::openai::error::ApiError;
use crate::openai::settings::OneOrMany;
use gavel_data::{Message, check_template_kwargs};
use serde::Deserialize;
use serde_json::{Map, Value};

/// A request with texts or a conversation.
#[derive(Deserialize)]
pub(super) struct AskedInputs {
    /// Texts, or else messages.
    input: Option<OneOrMany>,
    /// A conversation, which the chat template renders.
    messages: Option<Vec<Message>>,
    /// Variables of the chat template.
    #[serde(default)]
    chat_template_kwargs: Option<Map<String, Value>>,
    /// Whether a text gets the special tokens that the tokenizer puts around texts. A conversation gets its special
    /// tokens from the template.
    add_special_tokens: Option<bool>,
    #[serde(flatten)]
    pub(super) common: Common,
}

impl AskedInputs {
    /// What is classified.
    pub(super) fn inputs(self) -> Result<Vec<Input>, ApiError> {
        let add_special = self.add_special_tokens != Some(false);
        match (self.input, self.messages) {
            (Some(_), None) if self.chat_template_kwargs.is_some() => Err(ApiError::field(
                "chat_template_kwargs",
                "`chat_template_kwargs` is for `messages`: a text has no chat template",
            )),
            (Some(texts), None) => {
                Ok(texts.into_vec().into_iter().map(|text| Input::Text(text, add_special)).collect())
            }
            (None, Some(_)) if self.add_special_tokens == Some(true) => Err(ApiError::field(
                "add_special_tokens",
                "`add_special_tokens` is for `input`: the special tokens of messages are those of the chat template",
            )),
            (None, Some(messages)) => {
                let variables = self.chat_template_kwargs.unwrap_or_default();
                check_template_kwargs(&variables).map_err(|what| ApiError::field("chat_template_kwargs", what))?;
                Ok(vec![Input::Conversation(messages, variables)])
            }
            _ => Err(ApiError::field("input", "give either `input` or `messages`")),
        }
    }
}
