//! How a response is drawn, by the names of the OpenAI API and those that vLLM
//! adds.

use super::error::ApiError;
use crate::generator::Generator;
use gavel_policy::Sampling;
use serde::Deserialize;
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// The most alternatives of a token that are told.
pub(super) const MOST_LOGPROBS: usize = 20;
/// The most responses to one prompt.
const MOST_CHOICES: usize = 128;
/// The most responses to one request.
const MOST_RESPONSES: usize = 4096;
/// What may be in a request and changes nothing here.
const HARMLESS: [&str; 6] = ["user", "store", "metadata", "service_tier", "safety_identifier", "prompt_cache_key"];
/// What is so anyway: it may be asked for, and not be refused.
const ALWAYS: [&str; 2] = ["parallel_tool_calls", "skip_special_tokens"];

/// What chat and plain completions share.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Settings {
    pub(super) model: Option<String>,
    n: Option<usize>,
    pub(super) stream: Option<bool>,
    stream_options: Option<StreamOptions>,
    max_tokens: Option<usize>,
    /// The newer name.
    max_completion_tokens: Option<usize>,
    temperature: Option<f32>,
    top_p: Option<f32>,
    top_k: Option<i64>,
    min_p: Option<f32>,
    repetition_penalty: Option<f32>,
    presence_penalty: Option<f32>,
    frequency_penalty: Option<f32>,
    logit_bias: Option<BTreeMap<String, f32>>,
    stop: Option<OneOrMany>,
    stop_token_ids: Option<Vec<u32>>,
    ignore_eos: Option<bool>,
    seed: Option<i64>,
    /// Everything that is named nowhere.
    #[serde(flatten)]
    rest: Map<String, Value>,
}

#[derive(Debug, Deserialize)]
struct StreamOptions {
    #[serde(default)]
    include_usage: bool,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(untagged, expecting = "`stop` must be a text or a list of texts")]
pub(super) enum OneOrMany {
    One(String),
    Many(Vec<String>),
}

impl OneOrMany {
    pub(super) fn into_vec(self) -> Vec<String> {
        match self {
            Self::One(text) => vec![text],
            Self::Many(texts) => texts,
        }
    }
}

impl Settings {
    /// How many responses each of `prompts` prompts gets.
    pub(super) fn choices(&self, prompts: usize) -> Result<usize, ApiError> {
        let n = self.n.unwrap_or(1);
        if !(1..=MOST_CHOICES).contains(&n) {
            return Err(ApiError::field("n", format!("`n` must be from 1 to {MOST_CHOICES}, not {n}")));
        }
        match prompts * n {
            0..=MOST_RESPONSES => Ok(n),
            all => Err(ApiError::field("n", format!("{all} responses to one request are more than {MOST_RESPONSES}"))),
        }
    }

    /// Refuses what would be passed over.
    pub(super) fn check(&self) -> Result<(), ApiError> {
        let known = |name: &str, value: &Value| {
            value.is_null() || HARMLESS.contains(&name) || (ALWAYS.contains(&name) && *value == Value::Bool(true))
        };
        match self.rest.iter().find(|(name, value)| !known(name, value)) {
            Some((name, value)) => Err(ApiError::invalid(format!("`{name}`: {value} is not supported"))),
            None => Ok(()),
        }
    }

    pub(super) fn seed(&self) -> Option<u64> {
        self.seed.map(|seed| seed as u64)
    }

    pub(super) fn include_usage(&self) -> bool {
        self.stream_options.as_ref().is_some_and(|options| options.include_usage)
    }

    pub(super) fn stop(&self) -> Vec<String> {
        self.stop.clone().map(OneOrMany::into_vec).unwrap_or_default()
    }

    /// The sampling after a prompt of `prompt` tokens.
    pub(super) fn sampling(&self, generator: &Generator, prompt: usize) -> Result<Sampling, ApiError> {
        for (name, value) in
            [("presence_penalty", self.presence_penalty), ("frequency_penalty", self.frequency_penalty)]
        {
            if value.is_some_and(|value| value != 0.0) {
                return Err(ApiError::field(name, format!("`{name}` is not supported; use `repetition_penalty`")));
            }
        }
        let room = generator.room(prompt);
        let max_tokens = self.max_completion_tokens.or(self.max_tokens);
        if room == 0 {
            let all = generator.room(0);
            let what = format!("the prompt has {prompt} tokens, and there is room for {all} with the response");
            return Err(ApiError::invalid(what));
        }
        let mut stop_ids = match self.ignore_eos {
            Some(true) => Vec::new(),
            _ => generator.text().tokenizer.stop_ids().to_vec(),
        };
        stop_ids.extend(self.stop_token_ids.iter().flatten());
        let bias = |(token, bias): (&String, &f32)| match token.parse() {
            Ok(token) => Ok((token, *bias)),
            Err(_) => Err(ApiError::field("logit_bias", format!("{token:?} is no token id"))),
        };
        let plain = Sampling::new(max_tokens.unwrap_or(room), stop_ids);
        let sampling = Sampling {
            temperature: self.temperature.unwrap_or(plain.temperature),
            // As in vLLM, -1 and 0 are no limit.
            top_k: self.top_k.and_then(|k| usize::try_from(k).ok()).filter(|k| *k > 0),
            top_p: self.top_p.unwrap_or(plain.top_p),
            min_p: self.min_p.unwrap_or(plain.min_p),
            repetition_penalty: self.repetition_penalty.unwrap_or(plain.repetition_penalty),
            logit_bias: self.logit_bias.iter().flatten().map(bias).collect::<Result<_, _>>()?,
            ..plain
        };
        sampling.validate().map_err(|error| ApiError::invalid(error.to_string()))?;
        Ok(sampling)
    }
}
