//! vLLM's `/inference/v1/generate`: tokens in, tokens out.

use super::body::Body;
use super::error::ApiError;
use super::sampling_mask;
use super::server::Server;
use super::settings::Settings;
use axum::Json;
use axum::extract::State;
use gavel_data::seed::{Purpose, derive};
use gavel_data::{FinishReason, SharedConstraint};
use gavel_policy::{Finished, Sampling};
use gavel_rollout::{GenerateRequest, MOST_MASK_IDS};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::sync::Arc;

/// The most values of a body: one prompt.
const VALUES: usize = 2 << 20;

#[derive(Deserialize)]
pub(super) struct Asked {
    request_id: Option<String>,
    model: Option<String>,
    token_ids: Vec<u32>,
    sampling_params: SamplingParams,
    stream: Option<bool>,
    /// Gavel's own: the conversation of the turn, whose keys and values are kept for the next turn, where there is room.
    conversation: Option<u64>,
    /// Requests of an equal prompt may share its keys and values, whoever sent them; no response is another one for it.
    #[serde(rename = "cache_salt")]
    _cache_salt: Option<String>,
    /// Below 0: before the requests that wait.
    priority: Option<i64>,
    /// Gavel's own: vLLM is started with it.
    return_sampling_mask: Option<bool>,
    #[serde(flatten)]
    rest: Map<String, Value>,
}

#[derive(Deserialize)]
struct SamplingParams {
    logprobs: Option<usize>,
    /// Tokens are answered in any case.
    #[serde(rename = "detokenize")]
    _detokenize: Option<bool>,
    #[serde(rename = "skip_special_tokens")]
    _skip_special_tokens: Option<bool>,
    #[serde(rename = "include_stop_str_in_output")]
    _include_stop_str_in_output: Option<bool>,
    #[serde(flatten)]
    settings: Settings,
}

impl Asked {
    /// Refuses what cannot be answered.
    fn check(&self, server: &Server) -> Result<(), ApiError> {
        server.check_model(self.model.as_deref())?;
        let SamplingParams { logprobs, settings, .. } = &self.sampling_params;
        settings.check()?;
        settings.choices(1)?;
        settings.grammar()?.iter().try_for_each(|grammar| settings.check_beside(grammar))?;
        if let Some((name, value)) = self.rest.iter().find(|(_, value)| !value.is_null()) {
            return Err(ApiError::invalid(format!("`{name}`: {value} is not supported")));
        }
        if self.stream == Some(true) || settings.stream == Some(true) {
            return Err(ApiError::field("stream", "`stream` is not supported here: ask /v1/completions"));
        }
        if settings.max_tokens() == Some(0) {
            return Err(ApiError::field("max_tokens", "`max_tokens` must be at least 1"));
        }
        match logprobs {
            Some(more) if *more > 1 => {
                let what = format!("`logprobs` must be 0 or 1, not {more}: only the token that was drawn is reported");
                Err(ApiError::field("logprobs", what))
            }
            _ => server.check_room(self.token_ids.len(), settings),
        }
    }

    /// The requests for its responses. The first has the seed itself, so that it is drawn as by the engine alone.
    fn requests(
        self,
        server: &Server,
        number: u64,
        constraint: Option<SharedConstraint>,
    ) -> Result<Vec<GenerateRequest>, ApiError> {
        let settings = &self.sampling_params.settings;
        let (engine, choices) = (&server.engine, settings.choices(1)? as u64);
        // As in vLLM, the defaults here are not the model's.
        let default = Sampling::new(usize::MAX, engine.text().tokenizer.stop_ids().to_vec());
        let masked = self.return_sampling_mask == Some(true);
        let mut sampling = Sampling { constraint, masked, ..settings.sampling(default)? };
        if settings.max_tokens().is_none() {
            sampling.max_tokens = engine.room(self.token_ids.len());
        }
        if masked {
            sampling_mask::check(&sampling, choices as usize, engine.model().vocab_size as usize)?;
        }
        let seed = settings.seed().unwrap_or_else(|| derive(server.salt, number, 0, Purpose::Rollout));
        let (stop, sampling) = (settings.stop(), Arc::new(sampling));
        let prompt: Arc<[u32]> = self.token_ids.into();
        let request = |choice| GenerateRequest {
            prompt: prompt.clone(),
            continues_prompt: false,
            sampling: sampling.clone(),
            stop: stop.clone(),
            seed: if choice == 0 { seed } else { derive(seed, 0, choice, Purpose::Rollout) },
            top_logprobs: 0,
            conversation: self.conversation,
        };
        Ok((0..choices).map(request).collect())
    }
}

pub(super) async fn answer(
    State(server): State<Server>,
    Body(asked, _): Body<Asked, VALUES>,
) -> Result<Json<Value>, ApiError> {
    asked.check(&server)?;
    let constraint = server.constraint(asked.sampling_params.settings.grammar()?).await?;
    let has_logprobs = asked.sampling_params.logprobs.is_some();
    let has_masks = asked.return_sampling_mask == Some(true);
    let (number, own_id) = server.next_id("generate-tokens");
    let (id, is_first) =
        (asked.request_id.clone().unwrap_or(own_id), asked.priority.is_some_and(|priority| priority < 0));
    let requests = asked.requests(&server, number, constraint)?;
    let sampling = requests.first().map(|request| request.sampling.clone());
    let (mut choices, mut mask_ids) = (Vec::new(), MOST_MASK_IDS);
    let responses = match is_first {
        true => server.engine.generate_first(requests).await?,
        false => server.engine.generate(requests).await?,
    };
    for (index, response) in responses.into_iter().enumerate() {
        let finished = response.await?;
        let mut choice = json!({
            "index": index,
            "token_ids": finished.response,
            "finish_reason": sampling.as_ref().map(|sampling| finish_reason(&finished, sampling)),
            "stop_reason": sampling.as_ref().and_then(|sampling| stop_token(&finished, sampling)),
            "weight_versions": spans(&finished.versions, |version| server.versions.name(version)),
            "logprobs": Value::Null,
            "sampling_mask": Value::Null,
        });
        if has_masks {
            let (tokens, vocabulary) = (finished.response.len(), server.engine.model().vocab_size as usize);
            choice["sampling_mask"] = json!(sampling_mask::of(&finished.masks, tokens, vocabulary, &mut mask_ids)?);
        }
        if has_logprobs {
            let drawn = finished.response.iter().zip(&finished.logprobs);
            let content = drawn.map(|(token, logprob)| {
                json!({"token": format!("token_id:{token}"), "token_id": token, "logprob": logprob, "top_logprobs": []})
            });
            choice["logprobs"] = json!({"content": content.collect::<Vec<_>>()});
        }
        choices.push(choice);
    }
    Ok(Json(json!({"request_id": id, "choices": choices})))
}

/// Why a response ended, by vLLM's names.
fn finish_reason(finished: &Finished, sampling: &Sampling) -> &'static str {
    match finished.finish_reason {
        // A pause has ended it.
        FinishReason::Length if finished.response.len() < sampling.max_tokens => "abort",
        reason => reason.as_str(),
    }
}

/// The token that ended a response.
fn stop_token(finished: &Finished, sampling: &Sampling) -> Option<u32> {
    finished.response.last().copied().filter(|token| sampling.stop_ids.contains(token))
}

/// Which tokens have which version: runs of neighbours.
fn spans(versions: &[u64], name: impl Fn(u64) -> String) -> Vec<Value> {
    let mut end = 0;
    let span = |run: &[u64]| {
        let start = std::mem::replace(&mut end, 0);
        end = start + run.len();
        json!({"version": name(run[0]), "start": start, "end": end})
    };
    versions.chunk_by(|one, next| one == next).map(span).collect()
}
