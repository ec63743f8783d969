//! A server whose model a trainer trains.

use crate::asked::{
    Requests, ask_from, drawn, engine, engine_with, get, logprobs, model, post, refused, sizes, succeed, tokens,
};
use axum::Router;
use gavel_policy::{Device, Model, ModelConfig, Sampling};
use gavel_serve::{Metrics, Versions, openai, trainable};
use serde_json::{Value, json};
use std::path::Path;
use std::sync::Arc;
use tempfile::TempDir;
use tokio::task::JoinHandle;

/// A server of the model of `seed`, which loads weights from folders in the folder beside it.
fn server(seed: u64) -> (Router, Arc<Requests>, TempDir) {
    let (requests, versions) = (Arc::new(Requests::default()), Arc::new(Versions::default()));
    let (engine, folder) = (engine_with(seed, requests.clone()), tempfile::tempdir().unwrap());
    let router = openai::router_with(engine.clone(), Arc::new(Metrics::default()), "a", versions.clone());
    (trainable::router(router, engine, versions, folder.path()).unwrap(), requests, folder)
}

fn reload(path: &Path) -> Value {
    json!({"method": "reload_weights", "kwargs": {"weights_path": path}})
}

fn asked(tokens: usize) -> Value {
    json!({"token_ids": [5, 6, 7],
           "sampling_params": {"max_tokens": tokens, "seed": 8, "temperature": 0.7, "logprobs": 0, "ignore_eos": true}})
}

fn sampling(tokens: usize) -> Sampling {
    Sampling { temperature: 0.7, ..Sampling::new(tokens, Vec::new()) }
}

/// Asks for a response, which is under way or waits once this returns.
async fn under_way(router: &Router, requests: &Requests, tokens: usize) -> JoinHandle<(u16, Value)> {
    let (asking, body) = (router.clone(), asked(tokens));
    let answer = tokio::spawn(async move { post(&asking, "/inference/v1/generate", body).await });
    requests.next().await;
    answer
}

#[tokio::test]
async fn a_response_that_waited_is_drawn_with_the_new_weights_and_names_them() {
    let (router, requests, folder) = server(3);
    let step = folder.path().join("step-1");
    model(4).save(&step).unwrap();
    assert_eq!(get(&router, "/weight_info").await, (200, json!({"weight_version": "default"})));
    assert_eq!(succeed(&router, "/pause?mode=keep", json!({})).await, json!({"status": "paused"}));
    assert_eq!(get(&router, "/is_paused").await, (200, json!({"is_paused": true})));
    let waiting = under_way(&router, &requests, 9).await;
    assert_eq!(succeed(&router, "/collective_rpc", reload(&step)).await, json!({"results": [null]}));
    assert_eq!(succeed(&router, "/reset_prefix_cache", json!({})).await, json!({"success": true}));
    let renamed = succeed(&router, "/update_weight_version", json!({"new_version": "run-1"})).await;
    assert_eq!(renamed, json!({"success": true, "new_version": "run-1"}));
    let baseline = model(4).checksums().unwrap();
    let found = succeed(&router, "/weight_checker", json!({"action": "checksum"})).await;
    assert_eq!(found, json!({"checksums": baseline, "dtype": "float32"}));
    let compared = succeed(&router, "/weight_checker", json!({"action": "compare", "baseline": baseline})).await;
    assert_eq!(compared, json!({"match": true, "mismatches": []}));
    assert!(!waiting.is_finished());
    assert_eq!(succeed(&router, "/resume", json!({})).await, json!({"status": "resumed"}));
    let (status, answer) = waiting.await.unwrap();
    let (choice, expected) = (&answer["choices"][0], drawn(&engine(4), &[5, 6, 7], sampling(9), 8).await);
    assert_eq!((status, tokens(choice), logprobs(choice)), (200, expected.response, expected.logprobs));
    assert_eq!(choice["weight_versions"], json!([{"version": "run-1", "start": 0, "end": 9}]));
    assert_eq!(get(&router, "/weight_info").await, (200, json!({"weight_version": "run-1"})));
    assert_eq!(get(&router, "/is_paused").await, (200, json!({"is_paused": false})));
}

#[tokio::test]
async fn a_pause_may_end_what_is_under_way_and_refuses_other_requests() {
    let (router, requests, _folder) = server(3);
    succeed(&router, "/pause?mode=keep", json!({})).await;
    let waiting = under_way(&router, &requests, 9).await;
    succeed(&router, "/pause?mode=abort", json!({})).await;
    let (status, answer) = waiting.await.unwrap();
    let choice = &answer["choices"][0];
    assert_eq!((status, tokens(choice), &choice["finish_reason"]), (200, vec![], &json!("abort")));
    let (status, answer) = post(&router, "/inference/v1/generate", asked(9)).await;
    assert_eq!(
        (status, &answer["error"]["message"]),
        (503, &json!("the server is paused\nhint: ask again after /resume"))
    );
    // What changes nothing is answered.
    assert_eq!(get(&router, "/health").await.0, 200);
    succeed(&router, "/resume", json!({})).await;
    assert_eq!(tokens(&succeed(&router, "/inference/v1/generate", asked(9)).await["choices"][0]).len(), 9);
    assert!(refused(&router, "/pause?mode=never", json!({})).await.contains("`mode` must be abort, wait or keep"));
}

#[tokio::test]
async fn a_pause_may_wait_for_what_is_under_way() {
    let (router, requests, _folder) = server(3);
    let waiting = under_way(&router, &requests, 30).await;
    succeed(&router, "/pause?mode=wait", json!({})).await;
    let (_, answer) = waiting.await.unwrap();
    let choice = &answer["choices"][0];
    assert_eq!((tokens(choice).len(), &choice["finish_reason"]), (30, &json!("length")));
    assert_eq!(post(&router, "/inference/v1/generate", asked(9)).await.0, 503);
    succeed(&router, "/resume", json!({})).await;
}

#[tokio::test]
async fn only_weights_of_the_same_model_in_the_folder_are_loaded() {
    let (router, _, folder) = server(3);
    let elsewhere = tempfile::tempdir().unwrap();
    model(4).save(elsewhere.path()).unwrap();
    let wider = ModelConfig { intermediate_size: 32, ..sizes() };
    Model::random(wider, 4, Device::Cpu).unwrap().save(&folder.path().join("wider")).unwrap();
    std::fs::create_dir(folder.path().join("empty")).unwrap();
    std::os::unix::fs::symlink(elsewhere.path(), folder.path().join("link")).unwrap();
    let outside = folder.path().join("wider/../..").join(elsewhere.path().file_name().unwrap());
    for (path, says) in [
        (elsewhere.path().to_owned(), "from which this server loads weights\nhint: write them to a folder there"),
        (folder.path().join("link"), "from which this server loads weights"),
        (outside, "from which this server loads weights"),
        (folder.path().join("none"), "from which this server loads weights"),
        (folder.path().join("empty"), "cannot load the weights in"),
        (folder.path().join("wider"), "cannot load the weights in"),
    ] {
        let message = refused(&router, "/collective_rpc", reload(&path)).await;
        assert!(message.contains(says), "{path:?}: no {says:?} in {message}");
    }
    let baseline = model(3).checksums().unwrap();
    let compared = succeed(&router, "/weight_checker", json!({"action": "compare", "baseline": baseline})).await;
    assert_eq!(compared["match"], json!(true));
    let mut other = baseline.clone();
    let _ = other.remove("model.norm.weight");
    other.insert("lm_head.weight".into(), "0".into());
    let compared = succeed(&router, "/weight_checker", json!({"action": "compare", "baseline": other})).await;
    assert_eq!(compared, json!({"match": false, "mismatches": ["lm_head.weight", "model.norm.weight"]}));
    for (path, body, says) in [
        ("/collective_rpc", json!({"method": "shutdown"}), "`method` must be reload_weights"),
        ("/collective_rpc", json!({"method": "reload_weights"}), "`kwargs` needs `weights_path`"),
        ("/weight_checker", json!({"action": "reset"}), "`action` must be checksum or compare"),
        ("/weight_checker", json!({"action": "compare"}), "`action` compare needs `baseline`"),
        ("/update_weight_version", json!({"new_version": "x".repeat(257)}), "`new_version` has more than 256 bytes"),
    ] {
        let message = refused(&router, path, body).await;
        assert!(message.contains(says), "{path}: no {says:?} in {message}");
    }
}

#[tokio::test]
async fn a_page_in_a_browser_cannot_change_the_server() {
    let (router, _, folder) = server(3);
    model(4).save(&folder.path().join("step-1")).unwrap();
    let reload = reload(&folder.path().join("step-1")).to_string();
    for (path, body) in [
        ("/pause?mode=keep", ""),
        ("/resume", ""),
        ("/collective_rpc", reload.as_str()),
        ("/reset_prefix_cache", ""),
        ("/update_weight_version", r#"{"new_version": "x"}"#),
        ("/weight_checker", r#"{"action": "checksum"}"#),
    ] {
        let (status, answer) = ask_from(&router, "http://example.org", path, body.to_owned()).await;
        assert_eq!(status, 403, "{path}: {answer}");
        assert!(answer["error"]["message"].as_str().unwrap().contains("a page in a browser"), "{path}: {answer}");
    }
    assert_eq!(get(&router, "/is_paused").await.1, json!({"is_paused": false}));
    assert_eq!(get(&router, "/weight_info").await.1, json!({"weight_version": "default"}));
    let baseline = model(3).checksums().unwrap();
    let compared = succeed(&router, "/weight_checker", json!({"action": "compare", "baseline": baseline})).await;
    assert_eq!(compared["match"], json!(true));
}
