//! Servers that draw for a run, over the network of this machine.

use crate::asked::{Requests, assert_close, drawn, engine, engine_with, get, model, succeed};
use axum::body::to_bytes;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::middleware::{Next, from_fn, from_fn_with_state};
use axum::response::{IntoResponse, Response as Answer};
use axum::{Json, Router};
use gavel_endpoint::BaseUrls;
use gavel_policy::{Dtype, Finished, Sampling};
use gavel_rollout::{
    AsyncEngine, GenerateRequest, Observer, Probe, PublishedWeights, Response, ServedConfig, ServedEngine, ServerKind,
    UnderWay, probe_prompt,
};
use gavel_serve::{Metrics, Versions, openai, trainable};
use gavel_text::TextModel;
use serde_json::{Value, json};
use std::convert::Infallible;
use std::net::TcpListener;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

/// A server in a thread of its own.
pub struct Running {
    pub url: String,
    lives: Option<UnboundedSender<Option<Router>>>,
    thread: Option<JoinHandle<()>>,
}

impl Running {
    /// Serves at a free port.
    pub fn start(router: Router) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let (lives, mut next) = unbounded_channel();
        let answer = move || {
            let mut life = Some(Some(router));
            while let Some(router) = life {
                // All its connections end with it, as when a process is killed.
                let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
                life = runtime.block_on(async {
                    let listener = tokio::net::TcpListener::from_std(listener.try_clone().unwrap()).unwrap();
                    tokio::select! {
                        never = serve(listener, router) => match never {},
                        life = next.recv() => life,
                    }
                });
            }
        };
        Self { url, lives: Some(lives), thread: Some(std::thread::spawn(answer)) }
    }

    /// Ends all its connections. From now on these routes answer, or connections end as soon as they come: the port stays
    /// its own.
    fn restart(&self, router: Option<Router>) {
        self.lives.as_ref().unwrap().send(router).unwrap();
    }
}

/// Serves these routes; without them, ends each connection.
async fn serve(listener: tokio::net::TcpListener, router: Option<Router>) -> Infallible {
    match router {
        Some(router) => gavel_http::serve(listener, router).await,
        None => loop {
            drop(listener.accept().await);
        },
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.lives = None;
        self.thread.take().unwrap().join().unwrap();
    }
}

/// The routes of `gavel serve --trainable` over an engine.
fn routes(engine: &AsyncEngine, folder: &Path) -> Router {
    let versions = Arc::new(Versions::default());
    let router = openai::router_with(engine.clone(), Arc::new(Metrics::default()), "a", versions.clone());
    trainable::router(router, engine.clone(), versions, folder).unwrap()
}

/// The handle of a run that draws with these.
pub fn servers(urls: &[&str], kind: ServerKind) -> ServedEngine {
    servers_of(urls, kind, None)
}

/// The same, where they report which of the tokens of [`model`] could be drawn.
pub fn servers_with_masks(urls: &[&str], kind: ServerKind) -> ServedEngine {
    servers_of(urls, kind, Some(259))
}

fn servers_of(urls: &[&str], kind: ServerKind, mask_vocabulary: Option<usize>) -> ServedEngine {
    let config = ServedConfig {
        url: BaseUrls::Several(urls.iter().map(|url| (*url).to_owned()).collect()),
        kind,
        tolerance: 1e-4,
        load_timeout: Duration::from_secs(100),
        recompute_cache: false,
        mask_vocabulary,
        max_pause: Some(Duration::from_secs(100)),
    };
    ServedEngine::new(config, Arc::new(TextModel::byte_level())).unwrap()
}

/// The weights of the model of `seed` as a version, written to `folder`.
fn weights(folder: &Path, version: u64, seed: u64) -> PublishedWeights {
    let (model, folder) = (model(seed), folder.join(format!("step-{version}")));
    model.save(&folder).unwrap();
    let prompt = probe_prompt(259, 64);
    let logprobs = model.next_logprobs(&prompt).unwrap().into();
    let (checksums, probe) = (model.checksums().unwrap(), Probe { prompt, logprobs });
    let ties_embeddings = model.config().tie_word_embeddings;
    PublishedWeights { version, folder, dtype: Dtype::Float32, ties_embeddings, checksums, probe }
}

fn sampling() -> Sampling {
    Sampling { temperature: 0.7, ..Sampling::new(20, vec![2]) }
}

pub fn request(seed: u64) -> GenerateRequest {
    GenerateRequest {
        prompt: [5, 6, 7].into(),
        continues_prompt: false,
        sampling: sampling().into(),
        stop: [].into(),
        seed,
        top_logprobs: 0,
        conversation: None,
    }
}

fn ask(servers: &ServedEngine, seeds: std::ops::Range<u64>) -> Vec<Response> {
    servers.generate(seeds.map(request).collect())
}

/// Checks that a response is the one of an engine with the weights of the model of a seed.
async fn assert_drawn(found: &Finished, seed: u64, of: &AsyncEngine, version: u64) {
    let expected = drawn(of, &[5, 6, 7], sampling(), seed).await;
    assert_eq!((&found.response, found.finish_reason), (&expected.response, expected.finish_reason));
    assert_close(&found.logprobs, &expected.logprobs);
    assert_eq!(found.versions, vec![version; expected.response.len()]);
}

#[tokio::test]
async fn servers_draw_what_an_engine_with_the_weights_draws() {
    let folder = tempfile::tempdir().unwrap();
    let engines = [3, 8].map(engine);
    let running = engines.each_ref().map(|engine| Running::start(routes(engine, folder.path())));
    let servers = servers(&[&running[0].url, &format!("{}/", running[1].url)], ServerKind::Gavel);
    assert_eq!(servers.version().await, None);
    for (version, seed) in [(0, 4), (1, 5)] {
        let mismatch = servers.publish(weights(folder.path(), version, seed)).await.unwrap().unwrap();
        assert!(mismatch < 1e-5, "{mismatch}");
        assert_eq!(servers.version().await, Some(version));
        let own = engine(seed);
        for (seed, response) in (0..).zip(ask(&servers, 0..6)) {
            assert_drawn(&response.await.unwrap(), seed, &own, version).await;
        }
        for engine in &engines {
            let checksums = engine.run(|model| model.checksums()).await.unwrap().unwrap();
            assert_eq!(checksums, model(seed).checksums().unwrap());
        }
    }
    assert_eq!((servers.take_counts().up, servers.take_counts().redrawn), (2, 0));
}

#[tokio::test]
async fn what_could_be_drawn_is_what_an_engine_keeps() {
    let folder = tempfile::tempdir().unwrap();
    let running = Running::start(routes(&engine(3), folder.path()));
    let servers = servers_with_masks(&[&running.url], ServerKind::Gavel);
    let mismatch = servers.publish(weights(folder.path(), 1, 4)).await.unwrap().unwrap();
    assert!(mismatch < 1e-5, "{mismatch}");
    let (own, model) = (engine(4), model(4));
    // Few tokens, most of them, and the fewest of several cuts.
    for (top_k, top_p, min_p) in [(5, 1.0, 0.0), (200, 1.0, 0.0), (259, 1.0, 0.0), (40, 0.8, 0.01)] {
        let cutting = Sampling { top_k: Some(top_k), top_p, min_p, masked: true, ..sampling() };
        let request = GenerateRequest { sampling: cutting.clone().into(), ..request(9) };
        let found = servers.generate(vec![request.clone()]).remove(0).await.unwrap();
        let expected = drawn(&own, &[5, 6, 7], cutting, 9).await;
        assert_eq!((&found.response, &found.masks), (&expected.response, &expected.masks), "{top_k}");
        assert_close(&found.logprobs, &expected.logprobs);
        assert_eq!(found.masks.cuts(), top_k < 259);
        // Log-probabilities are among these tokens.
        let mut tokens = vec![5, 6, 7];
        for (position, (token, logprob)) in found.response.iter().zip(&found.logprobs).enumerate() {
            let mask = found.masks.get(position);
            let next = model.next_logprobs(&tokens).unwrap();
            let weight = |token: usize| (next[token] / 0.7).exp();
            let sum: f32 = (0..259).filter(|token| mask.contains(*token as u32)).map(weight).sum();
            assert!(((weight(*token as usize) / sum).ln() - logprob).abs() < 1e-4, "{top_k} at {position}");
            tokens.push(*token);
        }
        // A stop text ends the masks too: the first token that is a printable character. The token of a byte is its number
        // and 3 more.
        let printable = |token: &u32| (3 + 33..3 + 127).contains(token);
        let end = found.response.iter().position(printable).expect("a printable character");
        let text = char::from((found.response[end] - 3) as u8).to_string();
        let stopped =
            servers.generate(vec![GenerateRequest { stop: [text].into(), ..request }]).remove(0).await.unwrap();
        assert_eq!((&stopped.response[..], stopped.masks.len()), (&found.response[..=end], end + 1));
        assert!((0..=end).all(|position| stopped.masks.get(position) == found.masks.get(position)));
    }
}

/// Takes `sampling_mask` out of the answers, or leaves the last id of each mask out.
async fn damage_masks(State(removes): State<bool>, request: Request, next: Next) -> Answer {
    let answer = next.run(request).await;
    let (head, body) = answer.into_parts();
    let bytes = to_bytes(body, 1 << 24).await.unwrap();
    let Ok(mut body) = serde_json::from_slice::<Value>(&bytes) else { return (head.status, bytes).into_response() };
    for choice in body["choices"].as_array_mut().into_iter().flatten() {
        match removes {
            true => choice["sampling_mask"] = Value::Null,
            false => drop(choice["sampling_mask"].as_array_mut().unwrap().pop()),
        }
    }
    (head.status, Json(body)).into_response()
}

#[tokio::test]
async fn servers_whose_masks_are_missing_or_broken_are_found_before_the_first_request() {
    let folder = tempfile::tempdir().unwrap();
    for (removes, says) in [
        (
            true,
            "its answer has no `sampling_mask`, which says which tokens could be drawn\nhint: start a `gavel serve`",
        ),
        (false, "its answer has 1 tokens, and the `sampling_mask` of 0"),
    ] {
        let router = routes(&engine(3), folder.path()).layer(from_fn_with_state(removes, damage_masks));
        let running = Running::start(router);
        let servers = servers_with_masks(&[&running.url], ServerKind::Gavel);
        let error = servers.publish(weights(folder.path(), 1, 4)).await.unwrap_err().to_string();
        assert!(error.contains(&running.url) && error.contains(says), "{error}");
    }
}

#[tokio::test]
async fn what_a_killed_server_had_is_drawn_elsewhere_and_it_comes_back_with_the_current_weights() {
    let folder = tempfile::tempdir().unwrap();
    let requests = Arc::new(Requests::default());
    let (first, second) = (engine_with(3, requests.clone()), engine(3));
    let killed = Running::start(routes(&first, folder.path()));
    let kept = Running::start(routes(&second, folder.path()));
    let servers = servers(&[&killed.url, &kept.url], ServerKind::Gavel);
    servers.publish(weights(folder.path(), 7, 4)).await.unwrap();
    // The probe was a request of eight responses.
    for _ in 0..8 {
        requests.next().await;
    }
    // It has half of the requests when it is killed.
    first.pause(UnderWay::Kept).await.unwrap();
    let responses = ask(&servers, 0..6);
    for _ in 0..3 {
        requests.next().await;
    }
    killed.restart(None);
    let own = engine(4);
    for (seed, response) in (0..).zip(responses) {
        assert_drawn(&response.await.unwrap(), seed, &own, 7).await;
    }
    let counts = servers.take_counts();
    assert_eq!((counts.up, counts.redrawn), (1, 3));
    // It gets what was published while it was away.
    servers.publish(weights(folder.path(), 8, 5)).await.unwrap();
    let again = engine(3);
    killed.restart(Some(routes(&again, folder.path())));
    while servers.take_counts().up < 2 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let checksums = again.run(|model| model.checksums()).await.unwrap().unwrap();
    assert_eq!(checksums, model(5).checksums().unwrap());
    let own = engine(5);
    for (seed, response) in (0..).zip(ask(&servers, 0..4)) {
        assert_drawn(&response.await.unwrap(), seed, &own, 8).await;
    }
}

/// Holds the thread of a device after so many tokens, until it is released, and counts requests that nobody waits for.
struct Held {
    after: Mutex<usize>,
    reached: Semaphore,
    release: Mutex<mpsc::Receiver<()>>,
    accepted: Semaphore,
    cancelled: Semaphore,
}

impl Held {
    fn new(after: usize) -> (Arc<Self>, mpsc::Sender<()>) {
        let (sender, release) = mpsc::channel();
        let none = || Semaphore::new(0);
        let (after, release) = (Mutex::new(after), Mutex::new(release));
        (Arc::new(Self { after, reached: none(), release, accepted: none(), cancelled: none() }), sender)
    }
}

impl Observer for Held {
    fn stepped(&self, tokens: usize, _: u64) {
        let mut after = self.after.lock().unwrap();
        if *after > 0 && tokens > 0 {
            *after = after.saturating_sub(tokens);
            if *after == 0 {
                self.reached.add_permits(1);
                self.release.lock().unwrap().recv().unwrap();
            }
        }
    }

    fn accepted(&self, _: usize) {
        self.accepted.add_permits(1);
    }

    fn cancelled(&self) {
        self.cancelled.add_permits(1);
    }
}

/// A response of 40 tokens of the version 1, whose server had the weights of version 2 loaded when it had drawn five. The
/// server's routes go through `layer`.
async fn drawn_during_a_load(layer: impl FnOnce(Router) -> Router) -> (Finished, ServedEngine) {
    let folder = tempfile::tempdir().unwrap();
    // The probe draws eight tokens.
    let (held, release) = Held::new(8 + 5);
    let drawing = engine_with(3, held.clone());
    let router = layer(routes(&drawing, folder.path()));
    let running = Running::start(router.clone());
    // Dropped first, also after a failure: the thread of the device ends only once it is released.
    let release = release;
    let servers = servers(&[&running.url], ServerKind::Gavel);
    servers.publish(weights(folder.path(), 1, 4)).await.unwrap();
    let long = Sampling { temperature: 0.7, ..Sampling::new(40, Vec::new()) };
    let response = servers.generate(vec![GenerateRequest { sampling: long.into(), ..request(1) }]).remove(0);
    held.reached.acquire().await.unwrap().forget();
    let publishing = tokio::spawn({
        let (servers, weights) = (servers.clone(), weights(folder.path(), 2, 5));
        async move { servers.publish(weights).await }
    });
    // Once the server says so, its device has the order to pause.
    while get(&router, "/is_paused").await.1 != json!({"is_paused": true}) {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    release.send(()).unwrap();
    publishing.await.unwrap().unwrap();
    (response.await.unwrap(), servers)
}

#[tokio::test]
async fn a_response_under_way_goes_on_with_new_weights() {
    let (whole, servers) = drawn_during_a_load(|routes| routes).await;
    let expected: Vec<u64> = [vec![1; 5], vec![2; 35]].concat();
    assert_eq!((whole.versions, servers.take_counts().redrawn), (expected, 0));
}

/// Fails the second time that a version is named: the weights are then loaded already.
async fn fail_second_name(State(named): State<Arc<AtomicU64>>, request: Request, next: Next) -> Answer {
    match request.uri().path() {
        "/update_weight_version" if named.fetch_add(1, Ordering::SeqCst) == 1 => {
            StatusCode::INTERNAL_SERVER_ERROR.into_response()
        }
        _ => next.run(request).await,
    }
}

#[tokio::test]
async fn what_a_server_draws_with_new_weights_under_the_old_name_is_not_read() {
    let failing = from_fn_with_state(Arc::new(AtomicU64::new(0)), fail_second_name);
    let (whole, servers) = drawn_during_a_load(|routes| routes.layer(failing)).await;
    // The server has come back with the weights, and has drawn it anew.
    assert_eq!((whole.versions, servers.take_counts().redrawn), (vec![2; 40], 1));
    let long = Sampling { temperature: 0.7, ..Sampling::new(40, Vec::new()) };
    let expected = drawn(&engine(5), &[5, 6, 7], long, 1).await;
    assert_eq!(whole.response, expected.response);
    assert_close(&whole.logprobs, &expected.logprobs);
}

#[tokio::test]
async fn a_server_that_lost_the_weights_gets_them_again() {
    let folder = tempfile::tempdir().unwrap();
    let drawing = engine(3);
    let running = Running::start(routes(&drawing, folder.path()));
    let servers = servers(&[&running.url], ServerKind::Gavel);
    servers.publish(weights(folder.path(), 1, 4)).await.unwrap();
    // It still names the version of the run, and draws with another one.
    drawing.set_version(0).unwrap();
    let response = ask(&servers, 3..4).remove(0).await.unwrap();
    assert_drawn(&response, 3, &engine(4), 1).await;
    let counts = servers.take_counts();
    assert_eq!((counts.up, counts.redrawn), (1, 1));
}

#[tokio::test]
async fn a_server_that_somebody_else_paused_draws_again() {
    let folder = tempfile::tempdir().unwrap();
    let router = routes(&engine(3), folder.path());
    let running = Running::start(router.clone());
    let servers = servers(&[&running.url], ServerKind::Gavel);
    servers.publish(weights(folder.path(), 1, 4)).await.unwrap();
    succeed(&router, "/pause?mode=keep", json!({})).await;
    let response = ask(&servers, 3..4).remove(0).await.unwrap();
    assert_drawn(&response, 3, &engine(4), 1).await;
}

/// Says that there is a load, which never ends.
async fn never_load(State(begun): State<Arc<Semaphore>>, request: Request, next: Next) -> Answer {
    if request.uri().path() == "/collective_rpc" {
        begun.add_permits(1);
        std::future::pending::<()>().await;
    }
    next.run(request).await
}

#[tokio::test]
async fn a_run_that_ends_while_it_publishes_leaves_no_server_paused() {
    let folder = tempfile::tempdir().unwrap();
    let (router, begun) = (routes(&engine(3), folder.path()), Arc::new(Semaphore::new(0)));
    let running = Running::start(router.clone().layer(from_fn_with_state(begun.clone(), never_load)));
    let servers = servers(&[&running.url], ServerKind::Gavel);
    let publishing = tokio::spawn({
        let weights = weights(folder.path(), 1, 4);
        async move { servers.publish(weights).await }
    });
    begun.acquire().await.unwrap().forget();
    assert_eq!(get(&router, "/is_paused").await.1, json!({"is_paused": true}));
    publishing.abort();
    assert!(publishing.await.unwrap_err().is_cancelled());
    assert_eq!(get(&router, "/is_paused").await.1, json!({"is_paused": false}));
}

/// Reports whether a request had its answer.
struct Answered {
    is_whole: bool,
    report: UnboundedSender<bool>,
}

impl Drop for Answered {
    fn drop(&mut self) {
        // The test may be over.
        let _ = self.report.send(self.is_whole);
    }
}

#[tokio::test]
async fn a_response_that_is_dropped_ends_at_its_server() {
    let folder = tempfile::tempdir().unwrap();
    let (held, _release) = Held::new(0);
    let drawing = engine_with(3, held.clone());
    let (report, mut ends) = unbounded_channel();
    let watched = from_fn(move |request: Request, next: Next| {
        let answered = Answered { is_whole: false, report: report.clone() };
        async move {
            let mut answered = answered;
            let answer = next.run(request).await;
            answered.is_whole = true;
            answer
        }
    });
    let running = Running::start(routes(&drawing, folder.path()).layer(watched));
    let servers = servers(&[&running.url], ServerKind::Gavel);
    servers.publish(weights(folder.path(), 1, 4)).await.unwrap();
    drawing.pause(UnderWay::Kept).await.unwrap();
    let asked = held.accepted.available_permits();
    let mut responses = ask(&servers, 0..2);
    let _both = held.accepted.acquire_many(asked as u32 + 2).await.unwrap();
    drop(responses.remove(0));
    while ends.recv().await.unwrap() {}
    drawing.resume().unwrap();
    held.cancelled.acquire().await.unwrap().forget();
    assert!(responses.remove(0).await.is_ok());
    assert_eq!(servers.take_counts().redrawn, 0);
}

#[tokio::test]
async fn a_stop_text_ends_a_response_as_in_an_engine() {
    let folder = tempfile::tempdir().unwrap();
    let running = Running::start(routes(&engine(3), folder.path()));
    let servers = servers(&[&running.url], ServerKind::Gavel);
    servers.publish(weights(folder.path(), 1, 4)).await.unwrap();
    let text = TextModel::byte_level();
    let own = engine(4);
    let whole = drawn(&own, &[5, 6, 7], sampling(), 3).await;
    let decoded = text.tokenizer.decode(&whole.response).unwrap();
    let stop: String = decoded.chars().skip(2).take(2).collect();
    let asked = GenerateRequest { stop: [stop.clone()].into(), ..request(3) };
    let found = servers.generate(vec![asked.clone()]).remove(0).await.unwrap();
    let expected = own.generate(vec![asked]).await.unwrap().remove(0).await.unwrap();
    assert_eq!((found.response, found.finish_reason), (expected.response, expected.finish_reason), "{stop:?}");
}

/// A server that says it has loaded weights, and has not.
async fn pretend(request: Request, next: Next) -> Answer {
    match request.uri().path() {
        "/collective_rpc" => Json(json!({"results": [null]})).into_response(),
        _ => next.run(request).await,
    }
}

#[tokio::test]
async fn weights_that_a_server_did_not_load_are_found() {
    let folder = tempfile::tempdir().unwrap();
    for (kind, says) in [
        (ServerKind::Gavel, "weights are not those that were written, the first: "),
        (ServerKind::Vllm, "this is what the version before gives\nhint: the server did not load the weights"),
    ] {
        let router = routes(&engine(4), folder.path()).layer(from_fn(pretend));
        let running = Running::start(router);
        let servers = servers(&[&running.url], kind);
        // It has these.
        servers.publish(weights(folder.path(), 1, 4)).await.unwrap();
        let error = servers.publish(weights(folder.path(), 2, 5)).await.unwrap_err().to_string();
        assert!(error.contains(says) && error.contains("after the weights of version 2"), "{kind:?}: {error}");
    }
}

#[tokio::test]
async fn a_server_that_does_not_take_weights_is_left_out_where_another_takes_them() {
    let folder = tempfile::tempdir().unwrap();
    let engines = [3, 8].map(engine);
    // The first one answers that it has loaded weights, and has the first ones.
    let first = Running::start(routes(&engine(4), folder.path()).layer(from_fn(pretend)));
    let [second, third] = engines.each_ref().map(|engine| Running::start(routes(engine, folder.path())));
    // The checksums of weights are for the kind gavel alone.
    let servers = servers(&[&first.url, &second.url, &third.url], ServerKind::Vllm);
    servers.publish(weights(folder.path(), 1, 4)).await.unwrap();
    assert_eq!(servers.take_counts().up, 3);
    let mismatch = servers.publish(weights(folder.path(), 2, 5)).await.unwrap().unwrap();
    assert!(mismatch < 1e-5, "{mismatch}");
    assert_eq!(servers.take_counts().up, 2);
    let own = engine(5);
    for (seed, response) in (0..).zip(ask(&servers, 0..6)) {
        assert_drawn(&response.await.unwrap(), seed, &own, 2).await;
    }
    assert_eq!(servers.take_counts().redrawn, 0);
}

/// Holds a probe that comes after the first one, until it is released, and forgets the loads after the first one.
#[derive(Default)]
struct LateProbe {
    loads: AtomicU64,
    probes: AtomicU64,
    answered: AtomicU64,
    release: Option<Arc<Semaphore>>,
}

async fn hold_second_probe(State(late): State<Arc<LateProbe>>, request: Request, next: Next) -> Answer {
    match request.uri().path() {
        "/collective_rpc" if late.loads.fetch_add(1, Ordering::SeqCst) > 0 => {
            Json(json!({"results": [null]})).into_response()
        }
        "/inference/v1/generate" => {
            let (head, body) = request.into_parts();
            let bytes = to_bytes(body, 1 << 20).await.unwrap();
            let asked: Value = serde_json::from_slice(&bytes).unwrap();
            let is_probe = asked["sampling_params"]["n"] == 8;
            if is_probe && late.probes.fetch_add(1, Ordering::SeqCst) > 0 {
                late.release.as_ref().unwrap().acquire().await.unwrap().forget();
            }
            let answer = next.run(Request::from_parts(head, bytes.into())).await;
            if !is_probe {
                late.answered.fetch_add(1, Ordering::SeqCst);
            }
            answer
        }
        _ => next.run(request).await,
    }
}

#[tokio::test]
async fn what_a_server_draws_before_its_weights_are_checked_is_not_read_if_they_are_wrong() {
    let folder = tempfile::tempdir().unwrap();
    let release = Arc::new(Semaphore::new(0));
    let late = Arc::new(LateProbe { release: Some(release.clone()), ..LateProbe::default() });
    let layer = from_fn_with_state(late.clone(), hold_second_probe);
    let wrong = Running::start(routes(&engine(4), folder.path()).layer(layer));
    let right = Running::start(routes(&engine(3), folder.path()));
    let servers = servers(&[&wrong.url, &right.url], ServerKind::Vllm);
    servers.publish(weights(folder.path(), 1, 4)).await.unwrap();
    let publishing = tokio::spawn({
        let (servers, weights) = (servers.clone(), weights(folder.path(), 2, 5));
        async move { servers.publish(weights).await }
    });
    while late.probes.load(Ordering::SeqCst) < 2 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    // One of them is drawn there, by the weights of version 1 under the name of version 2.
    let responses = ask(&servers, 0..2);
    while late.answered.load(Ordering::SeqCst) < 1 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    // The probe, and the second one, which asks for the likely reason.
    release.add_permits(2);
    publishing.await.unwrap().unwrap();
    let own = engine(5);
    for (seed, response) in (0..).zip(responses) {
        assert_drawn(&response.await.unwrap(), seed, &own, 2).await;
    }
    let counts = servers.take_counts();
    assert_eq!((counts.up, counts.redrawn), (1, 1));
}

#[tokio::test]
async fn a_server_of_which_another_run_takes_possession_is_given_up() {
    let folder = tempfile::tempdir().unwrap();
    let (folders, shared) = ([1, 2].map(|run| folder.path().join(run.to_string())), engine(3));
    folders.iter().for_each(|folder| std::fs::create_dir(folder).unwrap());
    let shared = Running::start(routes(&shared, folder.path()));
    let alone = Running::start(routes(&engine(3), folder.path()));
    let of_both = servers(&[&shared.url], ServerKind::Gavel);
    let with_another = servers(&[&shared.url, &alone.url], ServerKind::Gavel);
    let second = servers(&[&shared.url], ServerKind::Gavel);
    for run in [&of_both, &with_another] {
        run.publish(weights(&folders[0], 1, 4)).await.unwrap();
    }
    second.publish(weights(&folders[1], 1, 5)).await.unwrap();
    let says = "another run has given it weights, of the version \"gavel-";
    // A run that has no other server stops, with its next request or with its next weights.
    let error = ask(&of_both, 0..1).remove(0).await.unwrap_err().to_string();
    assert!(error.contains(&shared.url) && error.contains(says), "{error}");
    let error = of_both.publish(weights(&folders[0], 2, 4)).await.unwrap_err().to_string();
    assert!(error.contains(says), "{error}");
    // Another one goes on without it.
    with_another.publish(weights(&folders[0], 2, 4)).await.unwrap();
    let own = engine(4);
    for (seed, response) in (0..).zip(ask(&with_another, 0..3)) {
        assert_drawn(&response.await.unwrap(), seed, &own, 2).await;
    }
    assert_eq!(with_another.take_counts().up, 1);
    let own = engine(5);
    assert_drawn(&ask(&second, 3..4).remove(0).await.unwrap(), 3, &own, 1).await;
}

#[tokio::test]
async fn a_run_without_a_server_does_not_start() {
    let folder = tempfile::tempdir().unwrap();
    let plain = openai::router(engine(4), Arc::new(Metrics::default()), "a");
    let running = Running::start(plain);
    let gone = servers(&["http://127.0.0.1:1"], ServerKind::Gavel);
    let error = gone.publish(weights(folder.path(), 1, 4)).await.unwrap_err().to_string();
    assert!(error.starts_with("rollout.engine: no server can be used: http://127.0.0.1:1: "), "{error}");
    // A server without --trainable refuses.
    let servers = servers(&[&running.url, "http://127.0.0.1:1"], ServerKind::Gavel);
    let error = servers.publish(weights(folder.path(), 1, 4)).await.unwrap_err().to_string();
    assert!(error.contains(&running.url) && error.contains("pause: it answered 404"), "{error}");
}
