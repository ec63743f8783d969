//! `/predict`, as text-embeddings-inference has it.

use super::activation::activate;
use super::pairs::pair;
use super::server::{Classifier, Input};
use crate::openai::body::Body;
use crate::openai::error::ApiError;
use axum::Json;
use axum::extract::State;
use gavel_rollout::Labels;
use serde::Deserialize;
use serde_json::{Value, json};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PredictRequest {
    inputs: Inputs,
    /// Whether the answer has the scores instead of probabilities.
    #[serde(default)]
    raw_scores: bool,
    /// Only `false` is accepted: a text that is too long is refused, and never
    /// cut.
    #[serde(default)]
    truncate: bool,
}

/// A text, a pair, or a batch of lists of one or two texts.
#[derive(Deserialize)]
#[serde(untagged, expecting = "`inputs` must be a text, a pair of texts, or a list of lists of one or two texts")]
enum Inputs {
    Text(String),
    Pair([String; 2]),
    Batch(Vec<Vec<String>>),
}

fn input(texts: Vec<String>) -> Result<Input, ApiError> {
    match <[String; 1]>::try_from(texts) {
        Ok([text]) => Ok(Input::Text(text, true)),
        Err(texts) => match <[String; 2]>::try_from(texts) {
            Ok([query, text]) => Ok(pair(&query, &text)),
            Err(texts) => Err(ApiError::field("inputs", format!("an input has one or two texts, not {}", texts.len()))),
        },
    }
}

pub(super) async fn answer(
    State(classifier): State<Classifier>,
    Body(asked, size): Body<PredictRequest>,
) -> Result<Json<Value>, ApiError> {
    let PredictRequest { inputs, raw_scores, truncate } = asked;
    if truncate {
        return Err(ApiError::field("truncate", "`truncate`: true is not supported: a text is never cut"));
    }
    let (is_batch, inputs) = match inputs {
        Inputs::Text(text) => (false, vec![Input::Text(text, true)]),
        Inputs::Pair([query, text]) => (false, vec![pair(&query, &text)]),
        Inputs::Batch(batch) => (true, batch.into_iter().map(input).collect::<Result<_, _>>()?),
    };
    let predict = |Labels { scores, .. }: Labels| {
        let scores = activate(&scores, !raw_scores);
        let mut labels: Vec<(f64, &String)> = scores.into_iter().zip(&*classifier.labels).collect();
        labels.sort_by(|a, b| b.0.total_cmp(&a.0));
        labels.into_iter().map(|(score, label)| json!({"score": score, "label": label})).collect::<Value>()
    };
    let mut predictions: Vec<Value> = classifier.classify(inputs, size).await?.into_iter().map(predict).collect();
    Ok(Json(if is_batch { predictions.into() } else { predictions.pop().unwrap_or_default() }))
}
