//! A run's servers, where they answer as vLLM 0.32 on the CPU did: its answers to these requests were recorded.
//!
//! `a` and `b` are two checkpoints of the demo's warm-up with an output head of its own. `t1` and `t2` are two of the demo's
//! own, whose head is its embedding of tokens. `m` has the head of `a` and all else of `t1`. Their log-probabilities after
//! the prompt are transformers'. The answers `without_scale_out` and `priority_refused` are from vLLM's source. So are the
//! masks in `probe_a_masked` and `masked`, with log-probabilities that follow from them, and `cuts_nothing`: the wheel for
//! the CPU has no Model Runner V2.

use crate::fleet::{Running, request, servers, servers_with_masks};
use axum::Router;
use axum::body::to_bytes;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response as Answer};
use gavel_data::{FinishReason, SamplingMask};
use gavel_policy::{Dtype, Finished, Sampling};
use gavel_rollout::{GenerateRequest, Probe, PublishedWeights, ServedEngine, ServerKind};
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock, Mutex};

/// The names of versions in the recorded answers begin with this.
const RUN: &str = "gavel-0000000000000007-";

#[derive(Deserialize)]
struct Recorded {
    prompt: Vec<u32>,
    logprobs: BTreeMap<String, Vec<f32>>,
    answers: BTreeMap<String, RecordedAnswer>,
}

#[derive(Deserialize)]
struct RecordedAnswer {
    status: u16,
    body: Value,
}

static RECORDED: LazyLock<Recorded> = LazyLock::new(|| serde_json::from_str(include_str!("vllm-0.32.json")).unwrap());

/// A server with recorded answers.
#[derive(Default)]
struct Wire {
    /// The name of the next answer by what is asked. The last one stays.
    next: BTreeMap<&'static str, Vec<&'static str>>,
    /// What the names of the run's versions begin with, and the newest of them.
    run: String,
    version: String,
    is_paused: bool,
    /// What probes asked: whether with a priority, and whether with a salt.
    probes: Vec<(bool, bool)>,
    /// The last body of a request for responses.
    asked: Value,
}

/// What is asked.
fn kind(path: &str, body: &Value) -> &'static str {
    match path {
        "/health" => "health",
        "/pause" => "pause",
        "/resume" => "resume",
        "/collective_rpc" => "reload",
        "/reset_prefix_cache" => "reset",
        "/update_weight_version" => "version",
        "/weight_info" => "info",
        "/is_paused" => "is_paused",
        "/inference/v1/generate" if body["sampling_params"]["n"] != 8 => "generate",
        "/inference/v1/generate" if body["cache_salt"].is_string() => "salted",
        "/inference/v1/generate" if body["priority"].is_i64() => "first",
        "/inference/v1/generate" => "probe",
        other => panic!("{other} is not asked"),
    }
}

async fn answer(State(wire): State<Arc<Mutex<Wire>>>, request: Request) -> Answer {
    let path = request.uri().path().to_owned();
    let bytes = to_bytes(request.into_body(), 1 << 20).await.unwrap();
    let body: Value = serde_json::from_slice(&bytes).unwrap_or_default();
    let mut wire = wire.lock().unwrap();
    let kind = kind(&path, &body);
    if path == "/inference/v1/generate" {
        wire.asked = body.clone();
    }
    match kind {
        "pause" => wire.is_paused = true,
        "resume" => wire.is_paused = false,
        "version" => {
            wire.version = body["new_version"].as_str().unwrap().to_owned();
            wire.run = wire.version.rsplit_once('-').unwrap().0.to_owned() + "-";
        }
        "salted" | "first" | "probe" => {
            wire.probes.push((body["priority"].is_i64(), body["cache_salt"].is_string()));
        }
        _ => {}
    }
    let usual = if kind == "is_paused" && !wire.is_paused { "is_not_paused" } else { kind };
    let name = match wire.next.get_mut(kind) {
        Some(names) if names.len() > 1 => names.remove(0),
        Some(names) => names[0],
        None => usual,
    };
    let RecordedAnswer { status, body } = RECORDED.answers.get(name).unwrap_or_else(|| panic!("no answer {name}"));
    let mut text = match body {
        Value::String(text) => text.clone(),
        json => json.to_string(),
    };
    if kind == "info" {
        text = text.replace(&format!("{RUN}1"), &wire.version);
    }
    (StatusCode::from_u16(*status).unwrap(), text.replace(RUN, &wire.run)).into_response()
}

/// A server that answers so, and the handle of a run that draws with it.
fn start(next: &[(&'static str, &[&'static str])]) -> (Arc<Mutex<Wire>>, Running, ServedEngine) {
    let (wire, running) = start_server(next);
    let servers = servers(&[&running.url], ServerKind::Vllm);
    (wire, running, servers)
}

/// The server alone.
fn start_server(next: &[(&'static str, &[&'static str])]) -> (Arc<Mutex<Wire>>, Running) {
    let next = next.iter().map(|(kind, names)| (*kind, names.to_vec())).collect();
    let wire = Arc::new(Mutex::new(Wire { next, ..Wire::default() }));
    let running = Running::start(Router::new().fallback(answer).with_state(wire.clone()));
    (wire, running)
}

/// The weights of a checkpoint as a version.
fn weights(version: u64, of: &str) -> PublishedWeights {
    let probe = Probe { prompt: RECORDED.prompt.as_slice().into(), logprobs: RECORDED.logprobs[of].as_slice().into() };
    let (folder, checksums) = (format!("/weights/{of}").into(), BTreeMap::new());
    PublishedWeights { version, folder, dtype: Dtype::Float32, ties_embeddings: of.starts_with('t'), checksums, probe }
}

async fn drawn(servers: &ServedEngine) -> Finished {
    servers.generate(vec![request(1)]).remove(0).await.unwrap()
}

/// Checks that a response is the one of two versions.
fn assert_partial(found: &Finished) {
    let of_first = found.versions.iter().filter(|version| **version == 1).count();
    assert!((1..60).contains(&of_first), "{:?}", found.versions);
    assert_eq!(found.versions, [vec![1; of_first], vec![2; 60 - of_first]].concat());
    assert_eq!((found.response.len(), found.logprobs.len(), found.finish_reason), (60, 60, FinishReason::Length));
}

#[tokio::test]
async fn weights_and_responses_are_what_a_run_reads() {
    let (wire, _running, servers) =
        start(&[("first", &["priority_refused"]), ("probe", &["probe_a", "probe_b"]), ("generate", &["partial"])]);
    for (version, of) in [(1, "a"), (2, "b")] {
        let mismatch = servers.publish(weights(version, of)).await.unwrap().unwrap();
        assert!(mismatch < 1e-5, "{mismatch}");
    }
    assert_partial(&drawn(&servers).await);
    // It is asked with a priority until it refuses one.
    assert_eq!(wire.lock().unwrap().probes, [(true, false), (false, false), (false, false)]);
    assert_eq!((servers.take_counts().up, servers.take_counts().redrawn), (1, 0));
}

#[tokio::test]
async fn vllm_reports_what_could_be_drawn_where_it_is_started_so() {
    let (wire, running) = start_server(&[("first", &["probe_a_masked"]), ("generate", &["masked"])]);
    let servers = servers_with_masks(&[&running.url], ServerKind::Vllm);
    let mismatch = servers.publish(weights(1, "a")).await.unwrap().unwrap();
    assert!(mismatch < 1e-5, "{mismatch}");
    let asked = wire.lock().unwrap().asked.take();
    assert_eq!((&asked["sampling_params"]["top_k"], &asked["return_sampling_mask"]), (&64.into(), &Value::Null));
    let cutting = Sampling { top_k: Some(3), top_p: 0.9, masked: true, ..Sampling::new(3, vec![]) };
    let drawn = servers.generate(vec![GenerateRequest { sampling: cutting.into(), ..request(1) }]).remove(0);
    let drawn = drawn.await.unwrap();
    let masks: Vec<SamplingMask> = (0..3).map(|position| drawn.masks.get(position)).collect();
    let only = [&[35, 60][..], &[2, 35, 60], &[2]].map(|ids| SamplingMask::Only(ids.to_vec()));
    assert_eq!((drawn.response, masks), (vec![35, 60, 2], only.to_vec()));
    // Validation may be greedy, for which vLLM that reports masks draws from one token.
    let greedy = Sampling { top_k: Some(3), ..Sampling::greedy(3, vec![]) };
    let greedy = servers.generate(vec![GenerateRequest { sampling: greedy.into(), ..request(1) }]).remove(0);
    assert!(greedy.await.unwrap().masks.is_empty());
    let asked = wire.lock().unwrap().asked["sampling_params"].take();
    assert_eq!((&asked["top_k"], &asked["temperature"]), (&1.into(), &1.0.into()));
}

#[tokio::test]
async fn a_server_with_masks_or_without_them_is_told_how_to_start() {
    // As it is without the options.
    let (_wire, running) = start_server(&[("first", &["probe_a"])]);
    let error = servers_with_masks(&[&running.url], ServerKind::Vllm).publish(weights(1, "a")).await.unwrap_err();
    let (error, options) = (error.to_string(), "--return-sampling-mask and --logprobs-mode processed_logprobs");
    assert!(error.contains("its answer has no `sampling_mask`") && error.contains(options), "{error}");
    assert!(error.contains(&running.url), "{error}");
    // A run that asks for no masks cuts nothing off.
    let (_wire, _running, servers) = start(&[("first", &["cuts_nothing"])]);
    let error = servers.publish(weights(1, "a")).await.unwrap_err().to_string();
    assert!(error.contains("top_k > 0 to bound") && error.contains("without --return-sampling-mask"), "{error}");
    // Of a grammar or of masks that it was not asked for, nothing is drawn.
    let masked = Sampling { top_k: Some(3), masked: true, ..Sampling::new(3, vec![]) };
    let drawn = servers.generate(vec![GenerateRequest { sampling: masked.into(), ..request(1) }]).remove(0);
    let error = drawn.await.unwrap_err().to_string();
    assert!(error.contains("were not asked to report which tokens could be drawn"), "{error}");
}

#[tokio::test]
async fn what_is_aborted_is_drawn_again() {
    let (_wire, _running, servers) =
        start(&[("first", &["probe_a"]), ("generate", &["aborted", "aborted", "partial"])]);
    servers.publish(weights(1, "a")).await.unwrap();
    assert_partial(&drawn(&servers).await);
    let counts = servers.take_counts();
    assert_eq!((counts.up, counts.redrawn), (1, 2));
}

#[tokio::test]
async fn each_trap_stops_a_run_and_is_named() {
    for (of, probes, salted, says) in [
        (
            ["t1", "t2"],
            ["probe_t1", "probe_t2"],
            "probe_t2",
            "the model's embeddings are tied, and vLLM on the CPU then keeps the output head",
        ),
        (
            ["b", "a"],
            ["probe_b", "probe_b"],
            "probe_b",
            "this is what the version before gives\nhint: the server did not load the weights",
        ),
    ] {
        let (_wire, _running, servers) = start(&[("first", &probes), ("salted", &[salted])]);
        servers.publish(weights(1, of[0])).await.unwrap();
        let error = servers.publish(weights(2, of[1])).await.unwrap_err().to_string();
        assert!(error.contains(says) && error.contains("after the weights of version 2"), "{says}: {error}");
    }
    // It had the weights of another checkpoint, and drew with them after the same prompt.
    let (_wire, _running, servers) = start(&[("first", &["probe_m_kept_cache"]), ("salted", &["probe_m_salted"])]);
    let error = servers.publish(weights(1, "m")).await.unwrap_err().to_string();
    assert!(error.contains("it is right: the server kept the cache of the version before"), "{error}");
    let (_wire, _running, servers) = start(&[("first", &["probe_a_raw"])]);
    let error = servers.publish(weights(1, "a")).await.unwrap_err().to_string();
    assert!(error.contains("temperature 1 gives\nhint: start vLLM with --logprobs-mode processed_logprobs"), "{error}");
}

#[tokio::test]
async fn a_server_that_cannot_be_used_is_named_with_a_hint() {
    for (next, says) in [
        (("reset", "reset_while_running"), "it could not clear its cache of prompts"),
        (("first", "without_scale_out"), "the probe: it answered 403 Forbidden"),
        (("first", "without_scale_out"), "start it with VLLM_SERVER_DEV_MODE=1 and --enable-scale-out"),
        (("pause", "without_dev_mode"), "pause: it answered 404 Not Found"),
        (("pause", "without_dev_mode"), "start it with VLLM_SERVER_DEV_MODE=1 and --enable-scale-out"),
        (("first", "too_long"), "--max-model-len of at least 256"),
    ] {
        let (_wire, _running, servers) = start(&[(next.0, &[next.1])]);
        let error = servers.publish(weights(1, "a")).await.unwrap_err().to_string();
        assert!(error.contains(says), "{says}: {error}");
    }
}
