//! How a response is drawn, by the names of the OpenAI API and those that vLLM
//! adds.

use super::error::ApiError;
use super::grammar::{AskedGrammar, GrammarFields};
use gavel_policy::Sampling;
use gavel_text::check_stop_texts;
use serde::de::Error;
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The most alternatives of a token in an answer.
pub(super) const MOST_LOGPROBS: usize = 20;
/// The most responses to one prompt.
const MOST_CHOICES: usize = 128;
/// The most responses to one request.
const MOST_RESPONSES: usize = 4096;
/// The most `stop_token_ids`, as in vLLM.
const MOST_STOP_IDS: usize = 128;
/// The most tokens of `logit_bias`, as in vLLM.
const MOST_BIASES: usize = 1024;
/// Fields that are accepted and have no effect.
const HARMLESS: [&str; 6] = ["user", "store", "metadata", "service_tier", "safety_identifier", "prompt_cache_key"];
/// Whether the server does this anyway, so that the field need not be refused.
fn is_so(name: &str, value: &Value) -> bool {
    match name {
        "parallel_tool_calls" | "skip_special_tokens" | "spaces_between_special_tokens" | "add_generation_prompt" => {
            *value == true
        }
        "include_stop_str_in_output" | "use_beam_search" | "include_obfuscation" | "continuous_usage_stats" => {
            *value == false
        }
        "best_of" => *value == 1,
        "min_tokens" => *value == 0,
        "suffix" => *value == "",
        _ => false,
    }
}

/// What chat and plain completions share.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Settings {
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
    #[serde(deserialize_with = "stop")]
    stop: Option<OneOrMany>,
    stop_token_ids: Option<Vec<u32>>,
    ignore_eos: Option<bool>,
    seed: Option<i64>,
    #[serde(flatten)]
    grammar: GrammarFields,
    /// All other fields.
    #[serde(flatten)]
    rest: Map<String, Value>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct StreamOptions {
    include_usage: Option<bool>,
    #[serde(flatten)]
    rest: Map<String, Value>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(untagged, expecting = "it must be a text or a list of texts")]
pub(crate) enum OneOrMany {
    One(String),
    Many(Vec<String>),
}

/// The stop texts, with an error that names their field.
fn stop<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<OneOrMany>, D::Error> {
    Option::deserialize(deserializer).map_err(|error| D::Error::custom(format!("`stop`: {error}")))
}

impl OneOrMany {
    fn as_slice(&self) -> &[String] {
        match self {
            Self::One(text) => std::slice::from_ref(text),
            Self::Many(texts) => texts,
        }
    }

    pub(crate) fn into_vec(self) -> Vec<String> {
        match self {
            Self::One(text) => vec![text],
            Self::Many(texts) => texts,
        }
    }
}

impl Settings {
    /// The model that is asked for.
    pub fn model(&self) -> Option<&str> {
        self.model.as_deref()
    }

    /// Whether the answer is streamed.
    pub fn is_streamed(&self) -> bool {
        self.stream == Some(true)
    }

    /// How many responses each of `prompts` prompts gets.
    ///
    /// # Errors
    /// They are none or too many.
    pub fn choices(&self, prompts: usize) -> Result<usize, ApiError> {
        let n = self.n.unwrap_or(1);
        if !(1..=MOST_CHOICES).contains(&n) {
            return Err(ApiError::field("n", format!("`n` must be from 1 to {MOST_CHOICES}, not {n}")));
        }
        match prompts * n {
            0..=MOST_RESPONSES => Ok(n),
            all => Err(ApiError::field("n", format!("{all} responses to one request are more than {MOST_RESPONSES}"))),
        }
    }

    /// Refuses fields that would be ignored, and lists that are too long: each response looks through them at each
    /// token.
    ///
    /// # Errors
    /// The first of them.
    pub fn check(&self) -> Result<(), ApiError> {
        let stops = self.stop.as_ref().map(OneOrMany::as_slice).unwrap_or_default();
        check_stop_texts(stops).map_err(|error| ApiError::field("stop", format!("`stop`: {error}")))?;
        let ids = self.stop_token_ids.as_ref().map_or(0, Vec::len);
        let biases = self.logit_bias.as_ref().map_or(0, BTreeMap::len);
        for (name, count, most) in [("stop_token_ids", ids, MOST_STOP_IDS), ("logit_bias", biases, MOST_BIASES)] {
            if count > most {
                return Err(ApiError::field(name, format!("`{name}` has {count} tokens; at most {most} are allowed")));
            }
        }
        let known = |name: &str, value: &Value| value.is_null() || HARMLESS.contains(&name) || is_so(name, value);
        let of_stream = self.stream_options.iter().flat_map(|options| &options.rest);
        match self.rest.iter().chain(of_stream).find(|(name, value)| !known(name, value)) {
            Some((name, value)) => Err(ApiError::invalid(format!("`{name}`: {value} is not supported"))),
            None => Ok(()),
        }
    }

    /// The grammar that responses are bound to, if there is one.
    pub(super) fn grammar(&self) -> Result<Option<AskedGrammar>, ApiError> {
        self.grammar.grammar()
    }

    /// Refuses settings that do not go together with a grammar.
    pub(super) fn check_beside(&self, grammar: &AskedGrammar) -> Result<(), ApiError> {
        if self.ignore_eos == Some(true) {
            let what =
                format!("`ignore_eos` and `{}` do not go together: a response ends with its grammar", grammar.field);
            return Err(ApiError::field("ignore_eos", what));
        }
        Ok(())
    }

    pub(super) fn seed(&self) -> Option<u64> {
        self.seed.map(|seed| seed as u64)
    }

    /// Whether a streamed answer ends with its tokens' numbers.
    pub fn include_usage(&self) -> bool {
        self.stream_options.as_ref().is_some_and(|options| options.include_usage == Some(true))
    }

    /// The stop texts, which all responses share.
    pub fn stop(&self) -> Arc<[String]> {
        self.stop.as_ref().map(OneOrMany::as_slice).unwrap_or_default().into()
    }

    /// The most tokens of a response, if it is set; 0 draws nothing.
    pub fn max_tokens(&self) -> Option<usize> {
        self.max_completion_tokens.or(self.max_tokens)
    }

    /// The sampling of responses that draw something; `default` has the values of fields that are not set.
    pub(super) fn sampling(&self, default: Sampling) -> Result<Sampling, ApiError> {
        let mut stop_ids = if self.ignore_eos == Some(true) { Vec::new() } else { default.stop_ids };
        stop_ids.extend(self.stop_token_ids.iter().flatten());
        let bias = |(token, bias): (&String, &f32)| match token.parse() {
            Ok(token) => Ok((token, *bias)),
            Err(_) => Err(ApiError::field("logit_bias", format!("{token:?} is not a token id"))),
        };
        let sampling = Sampling {
            temperature: self.temperature.unwrap_or(default.temperature),
            top_k: match self.top_k {
                None => default.top_k,
                // As in vLLM, -1 and 0 are no limit.
                Some(k) => usize::try_from(k).ok().filter(|k| *k > 0),
            },
            top_p: self.top_p.unwrap_or(default.top_p),
            min_p: self.min_p.unwrap_or(default.min_p),
            repetition_penalty: self.repetition_penalty.unwrap_or(default.repetition_penalty),
            presence_penalty: self.presence_penalty.unwrap_or(0.0),
            frequency_penalty: self.frequency_penalty.unwrap_or(0.0),
            logit_bias: self.logit_bias.iter().flatten().map(bias).collect::<Result<_, _>>()?,
            max_tokens: self.max_tokens().map_or(default.max_tokens, |most| most.max(1)),
            stop_ids,
            masked: false,
            constraint: None,
        };
        sampling.validate().map_err(|error| ApiError::invalid(error.to_string()))?;
        Ok(sampling)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn default() -> Sampling {
        Sampling { temperature: 0.7, top_k: Some(20), ..Sampling::new(50, vec![2]) }
    }

    fn sampling(settings: Value) -> Result<Sampling, ApiError> {
        let settings: Settings = serde_json::from_value(settings).unwrap();
        settings.check().and_then(|()| settings.sampling(default()))
    }

    #[test]
    fn each_field_is_its_own_and_what_is_not_said_is_the_models() {
        assert_eq!(sampling(json!({})).unwrap(), default());
        let all = json!({
            "temperature": 0.5, "top_p": 0.9, "top_k": 7, "min_p": 0.1, "repetition_penalty": 1.2,
            "presence_penalty": 0.25, "frequency_penalty": -0.5, "logit_bias": {"5": -3.0}, "max_tokens": 11, "stop_token_ids": [9, 8],
        });
        let asked = Sampling {
            temperature: 0.5,
            top_k: Some(7),
            top_p: 0.9,
            min_p: 0.1,
            repetition_penalty: 1.2,
            presence_penalty: 0.25,
            frequency_penalty: -0.5,
            logit_bias: vec![(5, -3.0)],
            max_tokens: 11,
            stop_ids: vec![2, 9, 8],
            masked: false,
            constraint: None,
        };
        assert_eq!(sampling(all).unwrap(), asked);
        let settings = json!({"top_k": -1, "ignore_eos": true, "max_completion_tokens": 4, "max_tokens": 5});
        let asked = Sampling { top_k: None, max_tokens: 4, stop_ids: vec![], ..default() };
        assert_eq!(sampling(settings).unwrap(), asked);
    }

    #[test]
    fn what_is_so_anyway_may_be_asked_for_and_else_it_is_refused() {
        let biases = |count: u32| (0..count).map(|token| (token.to_string(), 1.0)).collect::<BTreeMap<_, _>>();
        let most =
            json!({"stop": vec!["a".repeat(1024); 16], "stop_token_ids": vec![3; 128], "logit_bias": biases(1024)});
        assert_eq!(sampling(most).unwrap().logit_bias.len(), 1024);
        let so = json!({"add_generation_prompt": true, "best_of": 1, "min_tokens": 0, "use_beam_search": false, "suffix": "", "user": "me",
                        "skip_special_tokens": true, "logprobs_of": null, "presence_penalty": 0});
        assert_eq!(sampling(so).unwrap(), default());
        for (settings, says) in [
            (json!({"best_of": 2}), "`best_of`: 2 is not supported"),
            (json!({"min_tokens": 5}), "`min_tokens`: 5 is not supported"),
            (json!({"stream_options": {"continuous_usage_stats": true}}), "`continuous_usage_stats`: true is not"),
            (json!({"presence_penalty": 2.5}), "`presence_penalty` must be from -2 to 2"),
            (json!({"logit_bias": {"x": 1.0}}), "\"x\" is not a token id"),
            (json!({"top_p": 0.0}), "`top_p`"),
            (json!({"stop": vec!["a"; 17]}), "`stop`: 17 stop texts are more than 16"),
            (json!({"stop": "a".repeat(1 << 20)}), "`stop`: a stop text of 1048576 bytes is longer than 1024"),
            (json!({"stop_token_ids": vec![3; 129]}), "`stop_token_ids` has 129 tokens; at most 128 are allowed"),
            (json!({"logit_bias": biases(1025)}), "`logit_bias` has 1025 tokens; at most 1024 are allowed"),
        ] {
            let error = sampling(settings).unwrap_err().body().to_string();
            assert!(error.contains(&says.replace('"', "\\\"")), "{error}");
        }
    }
}
