//! Requests for responses, and the answers, in vLLM's form of tokens in and tokens out.

use super::config::ServerKind;
use super::failure::Failure;
use super::masks::AskedMasks;
use super::probe::{DRAWS, Drawn, Probe, TEMPERATURE, TOP_K};
use crate::request::GenerateRequest;
use gavel_data::{FinishReason, SamplingMasks};
use gavel_endpoint::excerpt;
use gavel_policy::{Finished, Sampling};
use serde::Deserialize;
use serde_json::{Value, json};

/// The field of a request that asks `gavel serve` for masks. vLLM is started so that it reports them to all requests.
pub(super) const MASK_FIELD: &str = "return_sampling_mask";

#[derive(Deserialize)]
struct Answer {
    choices: Vec<Choice>,
}

#[derive(Deserialize)]
struct Choice {
    token_ids: Vec<u32>,
    finish_reason: Option<String>,
    logprobs: Option<Logprobs>,
    sampling_mask: Option<Vec<Vec<u32>>>,
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

/// The body of a request to a server of a run that asks for masks, or for none.
pub(super) fn body(request: &GenerateRequest, kind: ServerKind, has_masks: bool) -> Vec<u8> {
    let sampling = &request.sampling;
    let mut params = params(sampling);
    if has_masks && kind == ServerKind::Vllm && sampling.is_greedy() {
        // vLLM that reports masks takes no temperature of 0, which validation may have.
        (params["temperature"], params["top_k"]) = (1.0.into(), 1.into());
    }
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
    if sampling.masked && kind == ServerKind::Gavel {
        body[MASK_FIELD] = true.into();
    }
    body.to_string().into_bytes()
}

/// The body of the request of a probe: before the requests that wait, with `first`, and with nothing that was kept without
/// this `salt`; for masks, with `masks`.
pub(super) fn probe_body(probe: &Probe, kind: ServerKind, first: bool, salt: Option<&str>, masks: bool) -> Vec<u8> {
    let top_k = masks.then_some(TOP_K);
    let sampling = Sampling { temperature: TEMPERATURE as f32, top_k, ..Sampling::new(1, Vec::new()) };
    let mut params = params(&sampling);
    (params["seed"], params["n"]) = (1.into(), DRAWS.into());
    let prompt: &[u32] = &probe.prompt;
    let mut body = json!({"token_ids": prompt, "sampling_params": params});
    if first {
        body["priority"] = (-1).into();
    }
    if masks && kind == ServerKind::Gavel {
        body[MASK_FIELD] = true.into();
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

/// The response in an answer, with its `masks`. `version` gives the number of a version by its name.
pub(super) fn response(
    bytes: &[u8],
    version: impl Fn(&str) -> Option<u64>,
    masks: Option<AskedMasks>,
) -> Result<Finished, Failure> {
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
    let masks = masks.map(|masks| masks.read(choice.sampling_mask, &choice.token_ids)).transpose()?.unwrap_or_default();
    Ok(Finished { id: 0, response: choice.token_ids, logprobs, versions, masks, finish_reason })
}

/// The tokens that were drawn for a probe, with their log-probabilities, and with their `masks`.
pub(super) fn probed(bytes: &[u8], masks: Option<AskedMasks>) -> Result<Drawn, Failure> {
    let mut drawn = Drawn { tokens: Vec::new(), masks: SamplingMasks::new() };
    for choice in choices(bytes)? {
        drawn.tokens.extend(choice.drawn()?);
        if let Some(masks) = masks {
            drawn.masks.append(&masks.read(choice.sampling_mask, &choice.token_ids)?);
        }
    }
    if drawn.tokens.is_empty() {
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
    use gavel_data::SamplingMask;

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
        let found = response(&answer(5, "length", spans), of_run, None).unwrap();
        assert_eq!((found.response, found.logprobs), (vec![0, 1, 2, 3, 4], vec![-0.5; 5]));
        assert_eq!((found.versions, found.finish_reason), (vec![2, 2, 3, 3, 3], FinishReason::Length));
    }

    #[test]
    fn an_answer_that_is_not_of_this_run_is_foreign_and_a_wrong_one_is_refused() {
        let whole = |name: &str| json!([{"version": name, "start": 0, "end": 3}]);
        let lost = |bytes: Vec<u8>, says: &str| match response(&bytes, of_run, None) {
            Err(Failure::Lost(what)) if what.contains(says) => {}
            other => panic!("{says}: {other:?}"),
        };
        match response(&answer(3, "stop", whole("default")), of_run, None) {
            Err(Failure::Foreign(what)) if what.contains("the version \"default\", which this run did not give it") => {
            }
            other => panic!("{other:?}"),
        }
        lost(answer(3, "abort", whole("run-1")), "ended with the reason \"abort\"");
        let refused = |bytes: Vec<u8>, says: &str| match response(&bytes, of_run, None) {
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
    fn masks_are_checked_and_kept_as_an_engine_keeps_them() {
        let asked = AskedMasks { kind: ServerKind::Vllm, vocabulary: 6 };
        let with = |masks: Value| {
            let spans = json!([{"version": "run-1", "start": 0, "end": 3}]);
            let mut body: Value = serde_json::from_slice(&answer(3, "stop", spans)).unwrap();
            body["choices"][0]["sampling_mask"] = masks;
            body.to_string().into_bytes()
        };
        let mixed = json!([[0, 4], [5, 1, 2, 0, 3, 4], [1, 2, 3, 5]]);
        let found = response(&with(mixed.clone()), of_run, Some(asked)).unwrap();
        let masks: Vec<SamplingMask> = (0..3).map(|position| found.masks.get(position)).collect();
        let kept = [SamplingMask::Only(vec![0, 4]), SamplingMask::All, SamplingMask::Except(vec![0, 4])];
        assert_eq!((found.masks.len(), masks), (3, kept.to_vec()));
        assert_eq!(probed(&with(mixed), Some(asked)).unwrap().masks, found.masks);
        // What was not asked for is not read.
        assert!(response(&with(json!([[9]])), of_run, None).unwrap().masks.is_empty());
        for (masks, says) in [
            (Value::Null, "no `sampling_mask`, which says which tokens could be drawn\nhint: start vLLM with"),
            (json!([[0], [1]]), "3 tokens, and the `sampling_mask` of 2"),
            (json!([[0], [1], [2], [3]]), "3 tokens, and the `sampling_mask` of 4"),
            (json!([[0], [2, 3], [2]]), "its `sampling_mask` of the token 1 has 2 tokens without it"),
            (json!([[], [1], [2]]), "its `sampling_mask` of the token 0 has 0 tokens without it"),
            (json!([[0], [1, 6], [2]]), "of the token 1 has the token 6, and the model has 6"),
            (json!([[0], [1], [2, 1, 2]]), "of the token 2 has the token 2 twice"),
            (json!([[0], [1], [-2]]), "its answer is no response"),
            (json!("x"), "its answer is no response"),
        ] {
            let bytes = with(masks);
            for failure in [response(&bytes, of_run, Some(asked)).err(), probed(&bytes, Some(asked)).err()] {
                match failure {
                    Some(Failure::Refused(what)) if what.contains(says) => {}
                    other => panic!("{says}: {other:?}"),
                }
            }
        }
    }

    #[test]
    fn masks_are_asked_for_as_each_server_has_them() {
        let cutting = Sampling { top_k: Some(5), masked: true, ..Sampling::new(7, vec![]) };
        let asked = |sampling: &Sampling, kind, has_masks| {
            let request = GenerateRequest {
                prompt: [3].into(),
                continues_prompt: false,
                sampling: sampling.clone().into(),
                stop: [].into(),
                seed: 1,
                top_logprobs: 0,
                conversation: None,
            };
            serde_json::from_slice::<Value>(&body(&request, kind, has_masks)).unwrap()
        };
        assert_eq!(asked(&cutting, ServerKind::Gavel, true)[MASK_FIELD], true);
        assert_eq!(asked(&cutting, ServerKind::Vllm, true)[MASK_FIELD], Value::Null);
        // Validation: of the two, only vLLM takes no temperature of 0.
        let greedy = Sampling { masked: false, temperature: 0.0, ..cutting };
        for (kind, has_masks, temperature, top_k) in
            [(ServerKind::Gavel, true, 0.0, 5), (ServerKind::Vllm, true, 1.0, 1), (ServerKind::Vllm, false, 0.0, 5)]
        {
            let body = asked(&greedy, kind, has_masks);
            let params = &body["sampling_params"];
            assert_eq!((&params["temperature"], &params["top_k"]), (&json!(temperature), &json!(top_k)), "{kind:?}");
            assert_eq!(body[MASK_FIELD], Value::Null);
        }
        let probe = Probe { prompt: [3].into(), logprobs: [0.0].into() };
        for (kind, masks, asks, top_k) in [
            (ServerKind::Gavel, true, json!(true), 64),
            (ServerKind::Gavel, false, Value::Null, -1),
            (ServerKind::Vllm, true, Value::Null, 64),
        ] {
            let body: Value = serde_json::from_slice(&probe_body(&probe, kind, false, None, masks)).unwrap();
            assert_eq!((&body[MASK_FIELD], &body["sampling_params"]["top_k"]), (&asks, &json!(top_k)), "{kind:?}");
        }
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
        let asked = |kind| serde_json::from_slice::<Value>(&body(&request, kind, false)).unwrap();
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
