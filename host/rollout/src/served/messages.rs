//! Requests for responses, and the answers, in vLLM's form of tokens in and tokens out.

use super::config::ServerKind;
use super::failure::Failure;
use super::probe::{DRAWS, Probe, TEMPERATURE};
use crate::request::GenerateRequest;
use gavel_data::FinishReason;
use gavel_endpoint::excerpt;
use gavel_policy::{Finished, Sampling};
use serde::Deserialize;
use serde_json::{Value, json};

#[derive(Deserialize)]
struct Answer {
    choices: Vec<Choice>,
}

#[derive(Deserialize)]
struct Choice {
    token_ids: Vec<u32>,
    finish_reason: Option<String>,
    logprobs: Option<Logprobs>,
    #[serde(default)]
    weight_versions: Vec<Span>,
}

#[derive(Deserialize)]
struct Logprobs {
    content: Vec<Logprob>,
}

#[derive(Deserialize)]
struct Logprob {
    token_id: Option<u32>,
    logprob: f64,
}

#[derive(Deserialize)]
struct Span {
    version: String,
    start: usize,
    end: usize,
}

/// The body of a request.
pub(super) fn body(request: &GenerateRequest, kind: ServerKind) -> Vec<u8> {
    let sampling = &request.sampling;
    let mut params = params(sampling);
    params["seed"] = (request.seed as i64).into();
    if !request.stop.is_empty() {
        params["stop"] = request.stop.iter().map(String::as_str).collect();
        // vLLM looks for stop texts in the text.
        params["detokenize"] = true.into();
    }
    let prompt: &[u32] = &request.prompt;
    let mut body = json!({"token_ids": prompt, "sampling_params": params});
    if let Some(conversation) = request.conversation.filter(|_| kind == ServerKind::Gavel) {
        body["conversation"] = conversation.into();
    }
    body.to_string().into_bytes()
}

/// The body of the request of a probe: before the requests that wait, with `first`, and with nothing that was kept without
/// this `salt`.
pub(super) fn probe_body(probe: &Probe, first: bool, salt: Option<&str>) -> Vec<u8> {
    let sampling = Sampling { temperature: TEMPERATURE as f32, ..Sampling::new(1, Vec::new()) };
    let mut params = params(&sampling);
    (params["seed"], params["n"]) = (1.into(), DRAWS.into());
    let prompt: &[u32] = &probe.prompt;
    let mut body = json!({"token_ids": prompt, "sampling_params": params});
    if first {
        body["priority"] = (-1).into();
    }
    if let Some(salt) = salt {
        body["cache_salt"] = salt.into();
    }
    body.to_string().into_bytes()
}

/// How to draw. Each setting is set: the defaults of a server are those of its model.
fn params(sampling: &Sampling) -> Value {
    let mut params = json!({
        "max_tokens": sampling.max_tokens,
        "temperature": sampling.temperature,
        "top_k": sampling.top_k.map_or(-1, |k| k as i64),
        "top_p": sampling.top_p,
        "min_p": sampling.min_p,
        "repetition_penalty": sampling.repetition_penalty,
        "logprobs": 0,
        "ignore_eos": true,
        "stop_token_ids": sampling.stop_ids,
        "detokenize": false,
    });
    if !sampling.logit_bias.is_empty() {
        params["logit_bias"] = sampling.logit_bias.iter().map(|(token, bias)| (token.to_string(), *bias)).collect();
    }
    params
}

/// The response in an answer. `version` gives the number of a version by its name.
pub(super) fn response(bytes: &[u8], version: impl Fn(&str) -> Option<u64>) -> Result<Finished, Failure> {
    let choice = choices(bytes)?.into_iter().next();
    let choice = choice.ok_or_else(|| Failure::Refused("its answer has no choices".into()))?;
    let finish_reason = match choice.finish_reason.as_deref() {
        Some("stop") => FinishReason::Stop,
        Some("length") => FinishReason::Length,
        other => {
            let why = other.unwrap_or("no reason");
            return Err(Failure::Lost(format!("a response ended with the reason {why:?}")));
        }
    };
    let mut versions = Vec::with_capacity(choice.token_ids.len());
    for Span { version: name, start, end } in &choice.weight_versions {
        let number = version(name).ok_or_else(|| {
            Failure::Foreign(format!("it drew with weights of the version {name:?}, which this run did not give it"))
        })?;
        if *start != versions.len() || *end < *start || *end > choice.token_ids.len() {
            return Err(Failure::Refused("the spans in its `weight_versions` do not follow each other".into()));
        }
        versions.resize(*end, number);
    }
    let tokens = choice.token_ids.len();
    if versions.len() != tokens {
        let what = format!("its answer has {tokens} tokens, and `weight_versions` of {}", versions.len());
        return Err(Failure::Refused(what));
    }
    let logprobs = choice.drawn()?.into_iter().map(|(_, logprob)| logprob).collect();
    Ok(Finished { id: 0, response: choice.token_ids, logprobs, versions, masks: Default::default(), finish_reason })
}

/// The tokens that were drawn for a probe, with their log-probabilities.
pub(super) fn probed(bytes: &[u8]) -> Result<Vec<(u32, f32)>, Failure> {
    let drawn: Vec<Vec<(u32, f32)>> = choices(bytes)?.iter().map(Choice::drawn).collect::<Result<_, _>>()?;
    let drawn = drawn.concat();
    if drawn.is_empty() {
        return Err(Failure::Refused("its answer to a probe has no tokens".into()));
    }
    Ok(drawn)
}

fn choices(bytes: &[u8]) -> Result<Vec<Choice>, Failure> {
    let wrong = |error| Failure::Refused(format!("its answer is no response ({error}): {}", excerpt(bytes)));
    Ok(serde_json::from_slice::<Answer>(bytes).map_err(wrong)?.choices)
}

impl Choice {
    /// Its tokens with their log-probabilities.
    fn drawn(&self) -> Result<Vec<(u32, f32)>, Failure> {
        let content = self.logprobs.as_ref().map(|logprobs| logprobs.content.as_slice()).unwrap_or_default();
        if content.len() != self.token_ids.len() {
            let (tokens, found) = (self.token_ids.len(), content.len());
            return Err(Failure::Refused(format!(
                "its answer has {tokens} tokens, and the log-probabilities of {found}"
            )));
        }
        let one = |(token, found): (&u32, &Logprob)| match found.token_id {
            Some(other) if other != *token => {
                Err(Failure::Refused(format!("its answer has the log-probability of token {other} for token {token}")))
            }
            _ if !found.logprob.is_finite() || found.logprob > 1e-3 => {
                Err(Failure::Refused(format!("its answer has the log-probability {} of token {token}", found.logprob)))
            }
            _ => Ok((*token, found.logprob as f32)),
        };
        self.token_ids.iter().zip(content).map(one).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_run(name: &str) -> Option<u64> {
        name.strip_prefix("run-")?.parse().ok()
    }

    /// As vLLM 0.32 answers.
    fn answer(tokens: usize, reason: &str, spans: Value) -> Vec<u8> {
        let content = |token| json!({"token": format!("token_id:{token}"), "token_id": token, "logprob": -0.5, "bytes": null, "top_logprobs": []});
        let content: Vec<Value> = (0..tokens).map(content).collect();
        let choice = json!({"index": 0, "token_ids": (0..tokens).collect::<Vec<_>>(), "finish_reason": reason,
                            "stop_reason": null, "logprobs": {"content": content}, "weight_versions": spans});
        json!({"request_id": "generate-tokens-1", "choices": [choice], "prompt_logprobs": null}).to_string().into()
    }

    #[test]
    fn a_response_has_the_version_of_each_token() {
        let spans = json!([{"version": "run-2", "start": 0, "end": 2}, {"version": "run-3", "start": 2, "end": 5}]);
        let found = response(&answer(5, "length", spans), of_run).unwrap();
        assert_eq!((found.response, found.logprobs), (vec![0, 1, 2, 3, 4], vec![-0.5; 5]));
        assert_eq!((found.versions, found.finish_reason), (vec![2, 2, 3, 3, 3], FinishReason::Length));
    }

    #[test]
    fn an_answer_that_is_not_of_this_run_is_foreign_and_a_wrong_one_is_refused() {
        let whole = |name: &str| json!([{"version": name, "start": 0, "end": 3}]);
        let lost = |bytes: Vec<u8>, says: &str| match response(&bytes, of_run) {
            Err(Failure::Lost(what)) if what.contains(says) => {}
            other => panic!("{says}: {other:?}"),
        };
        match response(&answer(3, "stop", whole("default")), of_run) {
            Err(Failure::Foreign(what)) if what.contains("the version \"default\", which this run did not give it") => {
            }
            other => panic!("{other:?}"),
        }
        lost(answer(3, "abort", whole("run-1")), "ended with the reason \"abort\"");
        let refused = |bytes: Vec<u8>, says: &str| match response(&bytes, of_run) {
            Err(Failure::Refused(what)) if what.contains(says) => {}
            other => panic!("{says}: {other:?}"),
        };
        refused(answer(4, "stop", whole("run-1")), "4 tokens, and `weight_versions` of 3");
        refused(answer(3, "stop", json!([{"version": "run-1", "start": 1, "end": 3}])), "do not follow each other");
        refused(b"{}".to_vec(), "its answer is no response (missing field `choices`");
        refused(br#"{"choices": []}"#.to_vec(), "no choices");
        let changed = |from: &str, to: &str| {
            String::from_utf8(answer(3, "stop", whole("run-1"))).unwrap().replacen(from, to, 1).into_bytes()
        };
        refused(changed("\"token_id\":1", "\"token_id\":2"), "the log-probability of token 2 for token 1");
        refused(changed("-0.5", "0.5"), "the log-probability 0.5 of token 0");
        refused(changed("\"token_ids\":[0,1,2]", "\"token_ids\":[0,1,2,3]"), "4 tokens, and `weight_versions` of 3");
    }

    #[test]
    fn a_request_sets_each_setting() {
        let sampling = Sampling { temperature: 0.5, logit_bias: vec![(5, -1.5)], ..Sampling::new(7, vec![2, 9]) };
        let request = GenerateRequest {
            prompt: [3, 4].into(),
            continues_prompt: false,
            sampling: sampling.into(),
            stop: ["x".to_owned()].into(),
            seed: u64::MAX,
            top_logprobs: 0,
            conversation: Some(6),
        };
        let asked = |kind| serde_json::from_slice::<Value>(&body(&request, kind)).unwrap();
        let params = json!({"max_tokens": 7, "temperature": 0.5, "top_k": -1, "top_p": 1.0, "min_p": 0.0,
                            "repetition_penalty": 1.0, "logprobs": 0, "ignore_eos": true, "stop_token_ids": [2, 9],
                            "detokenize": true, "logit_bias": {"5": -1.5}, "seed": -1, "stop": ["x"]});
        assert_eq!(
            asked(ServerKind::Gavel),
            json!({"token_ids": [3, 4], "sampling_params": params, "conversation": 6})
        );
        assert_eq!(asked(ServerKind::Vllm)["conversation"], Value::Null);
    }
}
