//! The log-probabilities that a server's model gives to tokens: `prompt_logprobs` of vLLM's completions, which
//! `gavel serve` answers too.

use super::client::Client;
use super::endpoint::ChatEndpoint;
use super::error::ChatEndpointError;
use super::usage::TokenCost;
use futures::FutureExt;
use futures::future::BoxFuture;
use gavel_plugin::{CallMeter, ChatError, JsonPieces, Sandbox};
use serde::Deserialize;
use serde_json::json;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A server that knows how likely tokens are, with the limits and retries of `[chat.NAME]`.
pub struct LogprobClient {
    client: Client,
    model: String,
}

/// A token as a server reports it.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct TokenLogprob {
    /// Its log-probability, given the tokens before it, at temperature 1.
    pub logprob: f64,
    /// Its text in the server's tokenizer, where the server reports it.
    #[serde(rename = "decoded_token")]
    pub text: Option<String>,
}

#[derive(Deserialize)]
struct Body {
    #[serde(default)]
    choices: Vec<Choice>,
    /// In older versions of vLLM, it is here.
    prompt_logprobs: Option<Logprobs>,
}

#[derive(Deserialize)]
struct Choice {
    prompt_logprobs: Option<Logprobs>,
}

/// For each token, that token and maybe others by their ids; nothing for the first token.
type Logprobs = Vec<Option<BTreeMap<u32, TokenLogprob>>>;

impl LogprobClient {
    /// Reads the key and checks the endpoint `[chat.NAME]` without a request. It shares the limiters of the sandbox.
    ///
    /// # Errors
    /// A field is wrong, or the variable with the key is not set.
    pub fn new(name: &str, endpoint: &ChatEndpoint, sandbox: &Sandbox) -> Result<Self, ChatEndpointError> {
        let client = Client::of_path("completions", name, endpoint, sandbox, Arc::default())?;
        Ok(Self { client, model: endpoint.model.clone() })
    }

    /// Each of `tokens` but the first, as the server's model sees it.
    ///
    /// # Errors
    /// All attempts failed, or the server does not report log-probabilities.
    pub fn ask<'a>(&'a self, tokens: &'a [u32]) -> BoxFuture<'a, Result<Vec<TokenLogprob>, ChatError>> {
        let asked = async move {
            let body = json!({"model": self.model, "prompt": tokens, "max_tokens": 1, "prompt_logprobs": 0});
            let body = JsonPieces::whole(body.to_string());
            // The server also draws one token.
            let expected = TokenCost { prompt: tokens.len() as f64, completion: 1.0 };
            let answer = self.client.ask_servers(&body, &expected, &CallMeter::alone()).await?;
            read(answer.json(), tokens).map_err(|what| self.client.unavailable(&what))
        };
        asked.boxed()
    }
}

/// Parses an answer about `tokens`.
fn read(json: &str, tokens: &[u32]) -> Result<Vec<TokenLogprob>, String> {
    let body: Body = serde_json::from_str(json).map_err(|error| format!("its answer is not a completion: {error}"))?;
    let of_choice = body.choices.into_iter().next().and_then(|choice| choice.prompt_logprobs);
    let Some(found) = of_choice.or(body.prompt_logprobs) else {
        return Err("its answer has no prompt_logprobs\nhint: vLLM and `gavel serve` report them".into());
    };
    if found.len() != tokens.len() {
        return Err(format!("its prompt_logprobs are those of {} tokens, not of {}", found.len(), tokens.len()));
    }
    let own = |(of_place, token): (Option<BTreeMap<u32, TokenLogprob>>, &u32)| {
        let own = of_place.and_then(|mut of_place| of_place.remove(token));
        own.filter(|own| own.logprob.is_finite()).ok_or_else(|| format!("its prompt_logprobs lack token {token}"))
    };
    found.into_iter().zip(tokens).skip(1).map(own).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_read_as_servers_write_it() {
        let own = |logprob: f64, text: &str| TokenLogprob { logprob, text: Some(text.into()) };
        let list = r#"[null, {"5": {"logprob": -0.5, "rank": 1, "decoded_token": "a"}},
                       {"9": {"logprob": -0.1, "rank": 1, "decoded_token": "x"},
                        "7": {"logprob": -2.5, "rank": 8, "decoded_token": "b"}}]"#;
        for json in [
            format!(r#"{{"choices": [{{"text": "", "prompt_logprobs": {list}}}]}}"#),
            format!(r#"{{"choices": [{{"text": ""}}], "prompt_logprobs": {list}}}"#),
        ] {
            assert_eq!(read(&json, &[3, 5, 7]).unwrap(), [own(-0.5, "a"), own(-2.5, "b")]);
        }
    }

    #[test]
    fn what_is_missing_is_named() {
        for (json, says) in [
            ("[]", "is not a completion"),
            (r#"{"choices": [{"text": "a"}]}"#, "has no prompt_logprobs"),
            (r#"{"prompt_logprobs": [null]}"#, "are those of 1 tokens, not of 2"),
            (r#"{"prompt_logprobs": [null, {"4": {"logprob": -1.0}}]}"#, "lack token 5"),
            (r#"{"prompt_logprobs": [null, null]}"#, "lack token 5"),
        ] {
            let error = read(json, &[3, 5]).unwrap_err();
            assert!(error.contains(says), "{json}: {error}");
        }
    }
}
