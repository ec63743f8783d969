//! Requests with one conversation, and the score in their answers.

use super::super::wrong::Wrong;
use gavel_config::{RewardEndpointConfig, RewardModelTable, RewardProtocol};
use gavel_data::Message;
use gavel_endpoint::excerpt;
use gavel_plugin::ChatError;
use gavel_text::{ChatTemplate, RenderOptions};
use serde::Deserialize;
use serde_json::{Map, Value, json};

/// Requests with one conversation each.
pub(super) struct Conversations {
    protocol: RewardProtocol,
    model: Option<String>,
    /// Without it, the server renders conversations.
    template: Option<ChatTemplate>,
    /// The variables of the server's template.
    variables: Map<String, Value>,
}

/// vLLM's answer.
#[derive(Deserialize)]
struct Classified {
    data: Vec<Class>,
}

#[derive(Deserialize)]
struct Class {
    probs: Vec<f64>,
}

/// A label in the answer of text-embeddings-inference.
#[derive(Deserialize)]
struct Predicted {
    score: f64,
}

/// An answer with vectors.
#[derive(Deserialize)]
struct Embedded {
    data: Vec<Embedding>,
}

#[derive(Deserialize)]
struct Embedding {
    embedding: Vec<f64>,
}

impl Conversations {
    /// Reads the template.
    pub(super) fn new(config: &RewardEndpointConfig, table: &RewardModelTable) -> Result<Self, Wrong> {
        let (template, variables) = (table.chat_template.as_deref(), table.chat_template_kwargs.clone());
        let template = template.map(|path| ChatTemplate::chatml().replaced_by(path)).transpose();
        let mut template = template.map_err(|error| Wrong::new("chat_template", error))?;
        if let Some(template) = &mut template {
            template.set_variables(variables.clone());
            if let Some(token) = template.unknown_token() {
                let what = format!(
                    "the template writes `{token}`, which has no value here\nhint: set chat_template_kwargs = {{ {token} = \"…\" }} to that of the model's tokenizer_config.json"
                );
                return Err(Wrong::new("chat_template", what));
            }
        }
        Ok(Self { protocol: config.protocol, model: config.model.clone(), template, variables })
    }

    /// Whether the answers have vectors.
    pub(super) fn is_vector(&self) -> bool {
        self.protocol == RewardProtocol::Embeddings
    }

    pub(super) fn body(&self, conversation: &[Message]) -> Result<Vec<u8>, ChatError> {
        let refused = |error: &dyn ToString| ChatError::Refused(error.to_string());
        let rendered = match &self.template {
            None => None,
            Some(template) => {
                let text = template.render(conversation, &RenderOptions::default());
                Some(text.map_err(|error| refused(&error))?)
            }
        };
        let mut fields = match rendered {
            // The validation of this protocol requires a template.
            text if self.protocol == RewardProtocol::Tei => {
                let body = json!({"inputs": text.unwrap_or_default(), "raw_scores": true});
                return serde_json::to_vec(&body).map_err(|error| refused(&error));
            }
            Some(text) => Map::from_iter([("input".to_owned(), text.into())]),
            None => {
                let messages = serde_json::to_value(conversation).map_err(|error| refused(&error))?;
                let mut fields = Map::from_iter([("messages".to_owned(), messages)]);
                if !self.variables.is_empty() {
                    fields.insert("chat_template_kwargs".to_owned(), self.variables.clone().into());
                }
                fields
            }
        };
        // The template writes them.
        fields.insert("add_special_tokens".to_owned(), false.into());
        // The score itself, not a sigmoid of it; `activation` is the name in older versions.
        let mut without = vec!["use_activation", "activation"];
        if self.is_vector() {
            without.push("normalize");
            fields.insert("encoding_format".to_owned(), "float".into());
        }
        fields.extend(without.into_iter().map(|name| (name.to_owned(), false.into())));
        fields.extend(self.model.clone().map(|model| ("model".to_owned(), model.into())));
        serde_json::to_vec(&fields).map_err(|error| refused(&error))
    }

    /// The only score in an answer.
    pub(super) fn read(&self, body: &[u8]) -> Result<f64, String> {
        let form = if self.is_vector() { "a list of vectors" } else { "a classification" };
        let broken = |error| format!("its answer is not {form} ({error}): {}", excerpt(body));
        let scores: Vec<f64> = match self.protocol {
            RewardProtocol::Tei => {
                let predicted: Vec<Predicted> = serde_json::from_slice(body).map_err(broken)?;
                predicted.into_iter().map(|label| label.score).collect()
            }
            RewardProtocol::Embeddings => {
                let Embedded { data } = serde_json::from_slice(body).map_err(broken)?;
                data.into_iter().flat_map(|each| each.embedding).collect()
            }
            RewardProtocol::Vllm | RewardProtocol::Rerank => {
                let Classified { data } = serde_json::from_slice(body).map_err(broken)?;
                data.into_iter().flat_map(|class| class.probs).collect()
            }
        };
        match *scores {
            [score] if score.is_finite() => Ok(score),
            [score] => Err(format!("its score is {score}")),
            _ => Err(format!("its answer has {} scores, and a reward model has one label", scores.len())),
        }
    }
}
