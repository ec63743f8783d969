//! `/inference/v1/generate`

use crate::asked::{assert_close, drawn, engine, logprobs, post, refused, succeed, tokens};
use gavel_policy::Sampling;
use gavel_serve::{Metrics, openai};
use serde_json::{Value, json};
use std::sync::Arc;

const PATH: &str = "/inference/v1/generate";

#[tokio::test]
async fn a_seed_draws_what_the_engine_draws_alone() {
    let engine = engine(3);
    let router = openai::router(engine.clone(), Arc::new(Metrics::default()), "a");
    let sampling = Sampling { temperature: 0.7, ..Sampling::new(12, vec![40, 41, 42]) };
    for seed in [1, u64::MAX - 5] {
        let alone = drawn(&engine, &[5, 6, 7], sampling.clone(), seed).await;
        let asked = json!({
            "request_id": "r", "model": "a", "token_ids": [5, 6, 7], "cache_salt": "s", "conversation": 9,
            "sampling_params": {"max_tokens": 12, "temperature": 0.7, "seed": seed as i64, "logprobs": 0, "n": 2,
                                "ignore_eos": true, "stop_token_ids": [40, 41, 42], "skip_special_tokens": false,
                                "detokenize": false},
        });
        let answer = succeed(&router, PATH, asked).await;
        assert_eq!((&answer["request_id"], answer["choices"].as_array().unwrap().len()), (&json!("r"), 2));
        let choice = &answer["choices"][0];
        assert_eq!(tokens(choice), alone.response);
        assert_close(&logprobs(choice), &alone.logprobs);
        assert_eq!(choice["finish_reason"], alone.finish_reason.as_str());
        let span = json!([{"version": "default", "start": 0, "end": alone.response.len()}]);
        assert_eq!(choice["weight_versions"], span);
        assert_eq!(choice["logprobs"]["content"][0]["token_id"], alone.response[0]);
        assert_ne!(tokens(&answer["choices"][1]), alone.response, "another choice has another seed");
    }
}

#[tokio::test]
async fn what_could_be_drawn_is_answered_where_it_is_asked_for() {
    let engine = engine(3);
    let router = openai::router(engine.clone(), Arc::new(Metrics::default()), "a");
    for (top_k, top_p) in [(4, 1.0), (200, 1.0), (300, 1.0), (50, 0.6)] {
        let sampling = Sampling { top_k: Some(top_k), top_p, masked: true, ..Sampling::new(9, vec![]) };
        let alone = drawn(&engine, &[5, 6, 7], sampling, 8).await;
        let params = json!({"max_tokens": 9, "top_k": top_k, "top_p": top_p, "seed": 8, "logprobs": 0,
                            "ignore_eos": true});
        let mut asked = json!({"token_ids": [5, 6, 7], "sampling_params": params, "return_sampling_mask": true});
        let choice = succeed(&router, PATH, asked.clone()).await["choices"][0].take();
        assert_eq!(tokens(&choice), alone.response);
        assert_close(&logprobs(&choice), &alone.logprobs);
        let masks: Vec<Vec<u32>> = serde_json::from_value(choice["sampling_mask"].clone()).unwrap();
        let of = |position| {
            let mask = alone.masks.get(position);
            (0..259).filter(|token| mask.contains(*token)).collect::<Vec<u32>>()
        };
        assert_eq!(masks, (0..9).map(of).collect::<Vec<_>>());
        asked["return_sampling_mask"] = false.into();
        let choice = succeed(&router, PATH, asked).await["choices"][0].take();
        assert_eq!((tokens(&choice), &choice["sampling_mask"]), (alone.response, &Value::Null));
    }
    let masked = |params: Value| json!({"token_ids": [5], "sampling_params": params, "return_sampling_mask": true});
    for (params, says) in [
        (json!({"max_tokens": 9, "top_p": 0.9}), "`return_sampling_mask` needs a `top_k` above 0"),
        (json!({"max_tokens": 9, "top_k": -1}), "`return_sampling_mask` needs a `top_k` above 0"),
        (json!({"max_tokens": 9, "top_k": 4, "temperature": 0}), "needs a `temperature` above 0"),
        (json!({"max_tokens": 900, "top_k": 9999999, "n": 128}), "could report 29836800 tokens"),
    ] {
        let message = refused(&router, PATH, masked(params)).await;
        assert!(message.contains(says), "no {says:?} in {message}");
    }
}

#[tokio::test]
async fn a_response_ends_at_its_tokens_and_texts() {
    let router = openai::router(engine(3), Arc::new(Metrics::default()), "a");
    let asked = |more: Value| {
        let mut params = json!({"max_tokens": 20, "seed": 4, "ignore_eos": true});
        params.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        json!({"token_ids": [5, 6, 7], "sampling_params": params})
    };
    let whole = succeed(&router, PATH, asked(json!({}))).await["choices"][0].take();
    let all = tokens(&whole);
    assert_eq!((all.len(), &whole["finish_reason"], &whole["logprobs"]), (20, &json!("length"), &Value::Null));
    let stop = all[3];
    let first = all.iter().position(|token| *token == stop).unwrap();
    let ended = succeed(&router, PATH, asked(json!({"stop_token_ids": [stop]}))).await["choices"][0].take();
    assert_eq!(tokens(&ended), all[..=first]);
    assert_eq!((&ended["finish_reason"], &ended["stop_reason"]), (&json!("stop"), &json!(stop)));
    // Without `ignore_eos`, the tokenizer's token ends it too.
    let params = json!({"max_tokens": 40, "seed": 4, "logit_bias": {"2": 100.0}});
    let ended = succeed(&router, PATH, json!({"token_ids": [5], "sampling_params": params})).await;
    assert_eq!((tokens(&ended["choices"][0]), &ended["choices"][0]["finish_reason"]), (vec![2], &json!("stop")));
}

#[tokio::test]
async fn what_would_be_ignored_is_refused() {
    let router = openai::router(engine(3), Arc::new(Metrics::default()), "a");
    let asked = |params: Value| json!({"token_ids": [5], "sampling_params": params});
    for (body, says) in [
        (json!({"token_ids": [5], "model": "b", "sampling_params": {}}), "the model `b` is not served here"),
        (json!({"token_ids": [5], "features": "x", "sampling_params": {}}), "`features`: \"x\" is not supported"),
        (json!({"token_ids": [5], "stream": true, "sampling_params": {}}), "`stream` is not supported here"),
        (json!({"token_ids": [], "sampling_params": {"max_tokens": 3}}), "the prompt has no tokens"),
        (json!({"token_ids": [999], "sampling_params": {"max_tokens": 3}}), "token 999 of the prompt is outside"),
        (json!({"token_ids": vec![5; 64], "sampling_params": {}}), "the prompt has 64 tokens, and there is room"),
        (asked(json!({"max_tokens": 0})), "`max_tokens` must be at least 1"),
        (asked(json!({"logprobs": 5})), "`logprobs` must be 0 or 1, not 5"),
        (asked(json!({"return_sampling_mask": true})), "`return_sampling_mask`: true is not supported"),
        (asked(json!({"n": 200})), "`n` must be from 1 to 128"),
    ] {
        let message = refused(&router, PATH, body).await;
        assert!(message.contains(says), "no {says:?} in {message}");
    }
    // A server without --trainable has none of the routes that change something.
    for path in ["/pause", "/resume", "/collective_rpc", "/update_weight_version", "/weight_checker"] {
        assert_eq!(post(&router, path, json!({})).await.0, 404, "{path}");
    }
}
