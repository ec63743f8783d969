//! What NeMo-Gym asks a resources server: `/verify`, and what it asks around it.

use crate::error::ServiceError;
use crate::responses::messages;
use crate::score::VALUES;
use crate::server::Server;
use axum::Json;
use axum::extract::{Request, State};
use gavel_data::{Columns, Json as JsonText, OutcomeKind, SampleOutcome};
use gavel_http::read_json;
use gavel_scoring::RowOutcome;
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;

#[derive(Deserialize)]
struct CreateParams {
    input: JsonText,
}

#[derive(Deserialize)]
struct Response {
    output: JsonText,
}

/// Rewards have no sessions. An environment server chooses the id of its session and reads it back; an agent sends none.
pub(crate) async fn session(request: Request) -> Result<Json<Columns>, ServiceError> {
    let (asked, _size): (Columns, _) = read_json(request, VALUES).await?;
    let mut answer = Columns::default();
    if let Some(id) = asked.get("resources_session_id") {
        answer.insert("resources_session_id", id.clone());
    }
    Ok(Json(answer))
}

/// A response may be verified again.
pub(crate) async fn reverify_mode() -> Json<Value> {
    Json(json!("stateless"))
}

pub(crate) async fn verify(State(server): State<Server>, request: Request) -> Result<Json<Columns>, ServiceError> {
    server.check_no_judgers()?;
    let (mut body, size): (Columns, _) = read_json(request, VALUES).await?;
    let row = row(&body).map_err(ServiceError::invalid)?;
    let mut scored = server.score(vec![server.named(row)], size.into_bytes()).await?;
    let Some(RowOutcome { outcome, .. }) = scored.pop() else {
        return Err(ServiceError::internal("the row was lost"));
    };
    let instance_config = body.get("instance_config").and_then(JsonText::fields);
    for (name, value) in verdict(&outcome, instance_config) {
        body.insert(name, value);
    }
    Ok(Json(body))
}

/// The row of a request: its other keys are columns.
fn row(body: &Columns) -> Result<Columns, String> {
    let mut row = body.clone();
    let mut take = |name: &str| row.remove(name).ok_or_else(|| format!("the body has no `{name}`"));
    let (params, response) = (take("responses_create_params")?, take("response")?);
    let wrong = |name: &str, error: serde_json::Error| format!("`{name}`: {error}");
    let params: CreateParams = params.parse().map_err(|error| wrong("responses_create_params", error))?;
    let response: Response = response.parse().map_err(|error| wrong("response", error))?;
    let prompt = messages(&params.input).map_err(|what| format!("`responses_create_params.input`: {what}"))?;
    let mut completion = messages(&response.output).map_err(|what| format!("`response.output`: {what}"))?;
    // A response without a word is an answer too.
    if !completion.iter().any(|message| message["role"] == "assistant") {
        completion.push(json!({"role": "assistant", "content": ""}));
    }
    row.insert("prompt", Value::Array(prompt));
    row.insert("completion", Value::Array(completion));
    Ok(row)
}

/// The fields of an outcome for NeMo-Gym. Only a sample with a score is trained on.
fn verdict(outcome: &SampleOutcome, instance_config: Option<Columns>) -> Vec<(&'static str, JsonText)> {
    let scores: BTreeMap<&str, f64> =
        outcome.plugins.iter().filter_map(|(name, evaluation)| Some((&**name, evaluation.outcome.score()?))).collect();
    let is_masked = outcome.reward.is_none();
    let mut verdict = vec![
        ("reward", json!(outcome.reward.unwrap_or(0.0)).into()),
        ("mask_sample", json!(is_masked).into()),
        ("reward_components", json!(scores).into()),
    ];
    if is_masked {
        let reason = outcome.reason.as_deref().unwrap_or_default();
        verdict.push(("failure_kind", failure_kind(outcome.outcome).into()));
        verdict.push(("failure_reason", reason.into()));
        // Where earlier versions of NeMo-RL look.
        let mut instance_config = instance_config.unwrap_or_default();
        instance_config.insert("mask_sample", json!(true));
        verdict.push(("instance_config", instance_config.into()));
        // The rollout is repeated, which changes nothing for the other kinds.
        if outcome.outcome == OutcomeKind::Unavailable {
            verdict.push(("_ng_failure_class", "judge_failed".into()));
            verdict.push(("_ng_failure_judge_error", reason.into()));
        }
    }
    verdict
}

/// The name of a failure in `nemo_gym.failure_kinds`, or one of this server's own.
fn failure_kind(outcome: OutcomeKind) -> &'static str {
    match outcome {
        OutcomeKind::Unavailable => "judge_failed",
        OutcomeKind::Fault => "verifier_error",
        OutcomeKind::OutOfBudget => "gavel:out_of_budget",
        OutcomeKind::Abstained => "gavel:abstained",
        // Every reward that scored has a weight of 0, or was not for the row.
        OutcomeKind::Scored => "gavel:no_reward",
    }
}
