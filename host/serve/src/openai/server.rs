//! The state that the endpoints share.

use super::error::ApiError;
use super::grammar::{AskedGrammar, AskedKind};
use super::settings::Settings;
use crate::metrics::Metrics;
use crate::versions::Versions;
use gavel_data::SharedConstraint;
use gavel_data::seed::{Purpose, derive};
use gavel_http::Lost;
use gavel_policy::Sampling;
use gavel_rollout::{AsyncEngine, Completion, GenerateRequest, default_sampling};
use gavel_text::GrammarCompiler;
use serde_json::{Value, json};
use std::num::NonZero;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};
use std::thread::available_parallelism;
use std::time::{SystemTime, UNIX_EPOCH};
use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;

/// The grammars that are compiled at once. One may take some seconds and some hundred megabytes.
static COMPILING: LazyLock<Semaphore> =
    LazyLock::new(|| Semaphore::new((available_parallelism().map_or(1, NonZero::get) / 4).clamp(1, 4)));

/// The state that all requests share.
#[derive(Clone)]
pub(super) struct Server {
    pub(super) engine: AsyncEngine,
    pub(super) metrics: Arc<Metrics>,
    /// The model's name.
    pub(super) name: Arc<str>,
    /// The names of the versions of its weights.
    pub(super) versions: Arc<Versions>,
    /// Differs at each start, so that ids and draws without a seed differ too.
    pub(super) salt: u64,
    pub(super) answered: Arc<AtomicU64>,
    grammars: Arc<GrammarCompiler>,
}

impl Server {
    pub(super) fn new(engine: AsyncEngine, metrics: Arc<Metrics>, name: &str, versions: Arc<Versions>) -> Self {
        let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let salt = since_1970.as_nanos() as u64 ^ u64::from(std::process::id()).rotate_left(48);
        let grammars = Arc::new(GrammarCompiler::new(engine.text().tokenizer.clone()));
        Self { engine, metrics, name: name.into(), versions, salt, answered: Arc::default(), grammars }
    }

    /// A number for the next answer, and its id.
    pub(super) fn next_id(&self, prefix: &str) -> (u64, String) {
        let number = self.answered.fetch_add(1, Ordering::Relaxed);
        (number, format!("{prefix}-{:016x}{number:08x}", self.salt))
    }

    /// Refuses a prompt of so many tokens that no response has room after it.
    pub(super) fn check_room(&self, tokens: usize, settings: &Settings) -> Result<(), ApiError> {
        let (all, drawn) = (self.engine.room(0), usize::from(settings.max_tokens() != Some(0)));
        match tokens + drawn > all {
            true => {
                let what = format!("the prompt has {tokens} tokens, and there is room for {all} with the response");
                Err(ApiError::invalid(what))
            }
            false => Ok(()),
        }
    }

    /// Refuses a prompt that the engine would refuse, where the engine is not asked.
    fn check_prompt(&self, prompt: &[u32]) -> Result<(), ApiError> {
        let size = self.engine.text().tokenizer.vocab_size();
        match prompt.iter().find(|token| **token as usize >= size) {
            Some(token) => Err(ApiError::invalid(format!("the prompt has the token {token}, and there are {size}"))),
            None if prompt.is_empty() => Err(ApiError::invalid("the prompt is empty")),
            None => Ok(()),
        }
    }

    /// Compiles the grammar that a request asks for.
    pub(super) async fn constraint(&self, asked: Option<AskedGrammar>) -> Result<Option<SharedConstraint>, ApiError> {
        let Some(AskedGrammar { field, kind }) = asked else { return Ok(None) };
        let format = self.engine.text().template.tool_call_format();
        // The semaphore is never closed.
        let turn = COMPILING.acquire().await.ok();
        let grammars = self.grammars.clone();
        let compile = move || {
            // Also if the client is gone before it is compiled.
            let _until_done = turn;
            match (kind, format) {
                (AskedKind::Text(source), _) => grammars.compile(&source).map_err(|error| error.to_string()),
                (AskedKind::Calls { tools, name }, Some(format)) => {
                    let compiled = grammars.compile_tool_calls(format, &tools, name.as_deref());
                    compiled.map_err(|error| error.to_string())
                }
                (AskedKind::Calls { .. }, None) => Err("the model's chat template shows no form of calls".to_owned()),
            }
        };
        let compiled = spawn_blocking(compile).await.map_err(Lost::from)?;
        let grammar = compiled.map_err(|what| ApiError::field(field, format!("`{field}`: {what}")))?;
        Ok(Some(SharedConstraint::new(grammar)))
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
        constraint: Option<SharedConstraint>,
    ) -> Result<Vec<Completion>, ApiError> {
        let mut requests = self.requests(number, prompts, continues_prompt, settings, top_logprobs)?;
        if constraint.is_some() {
            bind(&mut requests, &constraint);
        }
        match settings.max_tokens() {
            Some(0) => {
                self.engine.check()?;
                requests.iter().try_for_each(|request| self.check_prompt(&request.prompt))?;
                Ok(requests.iter().map(|_| Completion::empty()).collect())
            }
            _ => Ok(self.engine.stream(requests).await?),
        }
    }

    /// The requests for these responses. They share what they have in common.
    pub(super) fn requests(
        &self,
        number: u64,
        prompts: Vec<Vec<u32>>,
        continues_prompt: bool,
        settings: &Settings,
        top_logprobs: usize,
    ) -> Result<Vec<GenerateRequest>, ApiError> {
        let choices = settings.choices(prompts.len())? as u64;
        let default = default_sampling(&self.engine.text().tokenizer, usize::MAX);
        let (common, stop) = (Arc::new(settings.sampling(default)?), settings.stop());
        let mut requests = Vec::new();
        for (prompt, index) in prompts.into_iter().zip(0..) {
            self.check_room(prompt.len(), settings)?;
            let room = self.engine.room(prompt.len());
            let prompt: Arc<[u32]> = prompt.into();
            let sampling = match settings.max_tokens() {
                None if common.max_tokens > room => Arc::new(Sampling { max_tokens: room, ..Sampling::clone(&common) }),
                _ => common.clone(),
            };
            // Equal prompts with a given seed have equal responses.
            let seed = settings.seed().unwrap_or_else(|| derive(self.salt, number, index, Purpose::Rollout));
            requests.extend((0..choices).map(|choice| GenerateRequest {
                prompt: prompt.clone(),
                continues_prompt,
                sampling: sampling.clone(),
                stop: stop.clone(),
                seed: derive(seed, 0, choice, Purpose::Rollout),
                top_logprobs,
                conversation: None,
            }));
        }
        Ok(requests)
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

    /// The model, as `/v1/models` lists it.
    pub(super) fn describe(&self) -> Value {
        json!({"id": &*self.name, "object": "model", "created": 0, "owned_by": "gavel",
               "max_model_len": self.engine.room(0)})
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

/// Binds the responses to these requests, which then still share how they are drawn where they did before.
fn bind(requests: &mut [GenerateRequest], constraint: &Option<SharedConstraint>) {
    let mut before: Option<(Arc<Sampling>, Arc<Sampling>)> = None;
    for request in requests {
        let bound = match &before {
            Some((unbound, bound)) if Arc::ptr_eq(unbound, &request.sampling) => bound.clone(),
            _ => Arc::new(Sampling { constraint: constraint.clone(), ..Sampling::clone(&request.sampling) }),
        };
        before = Some((std::mem::replace(&mut request.sampling, bound.clone()), bound));
    }
}

/// Seconds since 1970.
pub fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}

/// `prompt` and what was drawn, as the API counts them.
pub(crate) fn usage(prompt: usize, completion: usize) -> Value {
    json!({"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion})
}
