//! The state that the endpoints share.

use super::error::ApiError;
use super::settings::Settings;
use crate::metrics::Metrics;
use gavel_data::seed::{Purpose, derive};
use gavel_rollout::{AsyncEngine, Completion, GenerateRequest, default_sampling};
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

/// The state that all requests share.
#[derive(Clone)]
pub(super) struct Server {
    pub(super) engine: AsyncEngine,
    pub(super) metrics: Arc<Metrics>,
    /// The model's name.
    pub(super) name: Arc<str>,
    /// Differs at each start, so that ids and draws without a seed differ too.
    pub(super) salt: u64,
    pub(super) answered: Arc<AtomicU64>,
}

impl Server {
    /// A number for the next answer, and its id.
    pub(super) fn next_id(&self, prefix: &str) -> (u64, String) {
        let number = self.answered.fetch_add(1, Ordering::Relaxed);
        (number, format!("{prefix}-{:016x}{number:08x}", self.salt))
    }

    /// Requests the responses that the settings ask for to each of `prompts`. Those to one prompt follow each other.
    /// `number` is the number of the answer.
    pub(super) async fn generate(
        &self,
        number: u64,
        prompts: Vec<Vec<u32>>,
        continues_prompt: bool,
        settings: &Settings,
        top_logprobs: usize,
    ) -> Result<Vec<Completion>, ApiError> {
        let choices = settings.choices(prompts.len())? as u64;
        let mut requests = Vec::new();
        for (prompt, index) in prompts.into_iter().zip(0..) {
            let room = self.engine.room(prompt.len());
            if room == 0 {
                let (tokens, all) = (prompt.len(), self.engine.room(0));
                let what = format!("the prompt has {tokens} tokens, and there is room for {all} with the response");
                return Err(ApiError::invalid(what));
            }
            let sampling = settings.sampling(default_sampling(&self.engine.text().tokenizer, room))?;
            // Equal prompts with a given seed have equal responses.
            let seed = settings.seed().unwrap_or_else(|| derive(self.salt, number, index, Purpose::Rollout));
            requests.extend((0..choices).map(|choice| GenerateRequest {
                prompt: prompt.clone(),
                continues_prompt,
                sampling: sampling.clone(),
                stop: settings.stop(),
                seed: derive(seed, 0, choice, Purpose::Rollout),
                top_logprobs,
                conversation: None,
            }));
        }
        Ok(self.engine.stream(requests).await?)
    }

    /// The log-probability of each token of a prompt, as vLLM reports it.
    pub(super) async fn of_prompt(&self, prompt: Vec<u32>) -> Result<Value, ApiError> {
        let tokens = prompt.clone();
        let found = self.engine.run(move |model| model.token_logprobs(&tokens)).await?;
        let found = found.map_err(|error| ApiError::invalid(error.to_string()))?;
        let tokenizer = &self.engine.text().tokenizer;
        let of_token = |(token, logprob): (&u32, f32)| {
            let text = tokenizer.token_to_text(*token).text;
            json!({token.to_string(): {"logprob": logprob, "rank": Value::Null, "decoded_token": text}})
        };
        let first = std::iter::once(Value::Null).take(prompt.len());
        Ok(first.chain(prompt.iter().skip(1).zip(found).map(of_token)).collect())
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

/// Does work that takes long for long texts, such as tokenization, away from the thread that answers all requests.
pub(crate) async fn aside<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, ApiError> {
    tokio::task::spawn_blocking(work).await.map_err(|error| ApiError::internal(error.to_string()))
}

/// Seconds since 1970.
pub(crate) fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}

/// `prompt` and what was drawn, as the API counts them.
pub(crate) fn usage(prompt: usize, completion: usize) -> Value {
    json!({"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion})
}
