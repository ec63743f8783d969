//! `/v1/embeddings`, as the OpenAI API has it: the vector of a text is its scores.

use super::activation::activate;
use super::inputs::AskedInputs;
use super::server::Classifier;
use crate::openai::body::Body;
use crate::openai::error::ApiError;
use crate::openai::server::usage;
use axum::Json;
use axum::extract::State;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use gavel_rollout::Labels;
use serde::Deserialize;
use serde_json::{Value, json};

#[derive(Deserialize)]
pub(super) struct EmbeddingsRequest {
    #[serde(default)]
    encoding_format: Encoding,
    #[serde(flatten)]
    inputs: AskedInputs,
}

/// The form of a vector.
#[derive(Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Encoding {
    #[default]
    Float,
    /// The bytes of 32-bit numbers, the lowest first. OpenAI's client asks for it.
    Base64,
}

impl Encoding {
    fn of(self, scores: Vec<f64>) -> Value {
        match self {
            Self::Float => scores.into(),
            Self::Base64 => {
                let bytes: Vec<u8> = scores.into_iter().flat_map(|score| (score as f32).to_le_bytes()).collect();
                STANDARD.encode(bytes).into()
            }
        }
    }
}

pub(super) async fn answer(
    State(classifier): State<Classifier>,
    Body(asked, size): Body<EmbeddingsRequest>,
) -> Result<Json<Value>, ApiError> {
    let EmbeddingsRequest { encoding_format, inputs } = asked;
    classifier.check_model(inputs.common.model.as_deref())?;
    inputs.common.check()?;
    let is_activated = inputs.common.is_activated(false);
    let found = classifier.classify(inputs.inputs()?, size).await?;
    let tokens = found.iter().map(|labels| labels.tokens).sum();
    let vector = |(index, Labels { scores, .. }): (usize, Labels)| json!({"object": "embedding", "index": index, "embedding": encoding_format.of(activate(&scores, is_activated))});
    let data: Vec<Value> = found.into_iter().enumerate().map(vector).collect();
    Ok(Json(json!({"object": "list", "data": data, "model": &*classifier.name, "usage": usage(tokens, 0)})))
}
