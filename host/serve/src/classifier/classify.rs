//! `/classify`, as vLLM has it.

use super::activation::activate;
use super::inputs::AskedInputs;
use super::server::Classifier;
use crate::openai::body::Body;
use crate::openai::error::ApiError;
use crate::openai::server::{now, usage};
use axum::Json;
use axum::extract::State;
use gavel_rollout::Labels;
use serde_json::{Value, json};

pub(super) async fn answer(
    State(classifier): State<Classifier>,
    Body(asked, size): Body<AskedInputs>,
) -> Result<Json<Value>, ApiError> {
    classifier.check_model(asked.common.model.as_deref())?;
    asked.common.check()?;
    let is_activated = asked.common.is_activated(true);
    let found = classifier.classify(asked.inputs()?, size).await?;
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
