//! The state that the paths of a classifier share.

use crate::openai::error::ApiError;
use futures::future::{BoxFuture, try_join_all};
use gavel_data::Message;
use gavel_http::{Size, aside};
use gavel_rollout::{Labels, RewardModel, RewardModelError};
use serde_json::{Map, Value, json};
use std::sync::Arc;

/// The most texts of a request.
const MOST_TEXTS: usize = 4096;

/// Refuses a request of more texts.
pub(super) fn check_texts(count: usize) -> Result<(), ApiError> {
    match count {
        0..=MOST_TEXTS => Ok(()),
        _ => Err(ApiError::invalid(format!("a request may have {MOST_TEXTS} texts, not {count}"))),
    }
}

/// The state that all requests share.
#[derive(Clone)]
pub(super) struct Classifier {
    pub(super) model: RewardModel,
    pub(super) name: Arc<str>,
    /// The names of the labels.
    pub(super) labels: Arc<[String]>,
}

/// What is classified.
pub(super) enum Input {
    /// A text, and whether the tokenizer adds its special tokens.
    Text(String, bool),
    /// A conversation, with further variables of the chat template.
    Conversation(Vec<Message>, Map<String, Value>),
}

impl Classifier {
    /// The scores of all labels for each input. The inputs are batched with the inputs of other requests.
    pub(super) async fn classify(&self, inputs: Vec<Input>, size: Size) -> Result<Vec<Labels>, ApiError> {
        check_texts(inputs.len())?;
        let model = self.model.clone();
        let asked = aside(size, move || -> Vec<_> {
            let ask = |input: Input| {
                let answer: BoxFuture<'static, Result<Labels, RewardModelError>> = match input {
                    Input::Text(text, add_special) => Box::pin(model.labels_of_text(&text, add_special)),
                    Input::Conversation(messages, variables) => Box::pin(model.labels(&messages, &variables)),
                };
                answer
            };
            inputs.into_iter().map(ask).collect()
        });
        Ok(try_join_all(asked.await?).await?)
    }

    /// The model, as `/v1/models` lists it.
    pub(super) fn describe(&self) -> Value {
        json!({"id": &*self.name, "object": "model", "created": 0, "owned_by": "gavel"})
    }

    /// Refuses a model that is not this one.
    pub(super) fn check_model(&self, asked: Option<&str>) -> Result<(), ApiError> {
        match asked {
            Some(name) if name != &*self.name => {
                Err(ApiError::not_found(format!("the model `{name}` is not served here; `{}` is", self.name)))
            }
            _ => Ok(()),
        }
    }
}
