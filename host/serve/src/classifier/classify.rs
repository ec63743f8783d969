//! `/classify`, as vLLM has it.

use super::activation::activate;
use super::request::Common;
use super::server::{Classifier, Input};
use crate::openai::body::Body;
use crate::openai::error::ApiError;
use crate::openai::server::{now, usage};
use crate::openai::settings::OneOrMany;
use axum::Json;
use axum::extract::State;
use gavel_data::Message;
use gavel_rollout::Labels;
use serde::Deserialize;
use serde_json::{Map, Value, json};

#[derive(Deserialize)]
pub(super) struct Asked {
    /// Texts, or else messages.
    input: Option<OneOrMany>,
    /// A conversation, which the chat template renders.
    messages: Option<Vec<Message>>,
    /// Variables of the chat template.
    #[serde(default)]
    chat_template_kwargs: Option<Map<String, Value>>,
    /// Whether a text gets the special tokens that the tokenizer puts around texts. Those of a conversation are the
    /// template's.
    add_special_tokens: Option<bool>,
    #[serde(flatten)]
    common: Common,
}

impl Asked {
    fn inputs(self) -> Result<Vec<Input>, ApiError> {
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
                Ok(vec![Input::Conversation(messages, self.chat_template_kwargs.unwrap_or_default())])
            }
            _ => Err(ApiError::field("input", "give either `input` or `messages`")),
        }
    }
}

pub(super) async fn answer(
    State(classifier): State<Classifier>,
    Body(asked): Body<Asked>,
) -> Result<Json<Value>, ApiError> {
    classifier.check_model(asked.common.model.as_deref())?;
    asked.common.check()?;
    let is_activated = asked.common.is_activated();
    let found = classifier.classify(asked.inputs()?).await?;
    let tokens = found.iter().map(|labels| labels.tokens).sum();
    let class = |(index, Labels { scores, .. }): (usize, &Labels)| {
        let best = scores.iter().enumerate().max_by(|a, b| a.1.total_cmp(b.1)).map(|(label, _)| label);
        let label = best.and_then(|label| classifier.labels.get(label));
        json!({"index": index, "label": label, "probs": activate(scores, is_activated), "num_classes": scores.len()})
    };
    let data: Vec<Value> = found.iter().enumerate().map(class).collect();
    let (model, created) = (&*classifier.name, now());
    Ok(Json(json!({"id": format!("classify-{created:x}"), "object": "list", "created": created, "model": model,
                   "data": data, "usage": usage(tokens, 0)})))
}
