//! The thread that owns a device, asked as training, serving and evaluation ask it.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use futures::future::{join, join4, try_join_all};
use gavel_data::FinishReason;
use gavel_policy::{Device, EngineConfig, Lookup, Model, ModelConfig, PolicyError, Sampling};
use gavel_rollout::{AsyncEngine, CacheDuring, Completion, GenerateRequest, Observer, RolloutError, Weights};
use gavel_text::TextModel;
use serde_json::json;
use std::collections::HashSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};

fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
}

const LENGTH: usize = 24;

fn engine_with(observer: Arc<dyn Observer>) -> AsyncEngine {
    engine_of(EngineConfig::default(), observer)
}

fn engine_of(decoding: EngineConfig, observer: Arc<dyn Observer>) -> AsyncEngine {
    let text = TextModel::byte_level();
    let sizes = json!({"vocab_size": text.tokenizer.vocab_size(), "hidden_size": 16, "intermediate_size": 16,
                       "num_hidden_layers": 2, "num_attention_heads": 2});
    let config: ModelConfig = serde_json::from_value(sizes).unwrap();
    let model = Model::random(config, 3, Device::Cpu).unwrap();
    AsyncEngine::start(model, text, decoding, observer).unwrap()
}

fn engine() -> AsyncEngine {
    engine_with(Arc::new(()))
}

/// A request that draws letters only, so that every token is one character.
fn request(seed: u64, stop: &[&str]) -> GenerateRequest {
    let text = TextModel::byte_level();
    let letters = text.tokenizer.encode("abcdefgh").unwrap();
    let sampling = Sampling {
        logit_bias: letters.into_iter().map(|token| (token, 100.0)).collect(),
        ..Sampling::new(LENGTH, text.tokenizer.stop_ids().to_vec())
    };
    let sampling = Arc::new(sampling);
    let stop = stop.iter().map(ToString::to_string).collect();
    let prompt = text.tokenizer.encode("2+2=").unwrap().into();
    GenerateRequest { prompt, continues_prompt: false, sampling, stop, seed, top_logprobs: 0, conversation: None }
}

fn whole(engine: &AsyncEngine, requests: Vec<GenerateRequest>) -> Vec<(Vec<u32>, Vec<f32>, FinishReason)> {
    let finished = block_on(async { try_join_all(engine.generate(requests).await?).await }).unwrap();
    finished.into_iter().map(|finished| (finished.response, finished.logprobs, finished.finish_reason)).collect()
}

#[test]
fn a_stop_text_ends_a_response_at_its_token_whole_or_streamed() {
    let engine = engine();
    let decode = |ids: &[u32]| engine.text().tokenizer.decode(ids).unwrap();
    let (free, ..) = whole(&engine, vec![request(1, &[])]).remove(0);
    let text = decode(&free);
    // Two letters in the middle of the response.
    let stop = &text[9..11];
    let end = text.find(stop).unwrap() + 2;
    let (ended, logprobs, reason) = whole(&engine, vec![request(1, &[stop])]).remove(0);
    // The stop text is part of what is learned from…
    assert_eq!((decode(&ended), logprobs.len(), reason), (text[..end].to_owned(), end, FinishReason::Stop));
    // … and not to what is shown.
    let completions = block_on(engine.stream(vec![request(1, &[stop])])).unwrap();
    let shown = block_on(completions.into_iter().next().unwrap().whole()).unwrap();
    assert_eq!((shown.text.as_str(), shown.count), (&text[..end - 2], end));
    assert_eq!(shown.finish_reason, FinishReason::Stop);
    let ids: Vec<u32> = shown.tokens.iter().map(|drawn| drawn.token).collect();
    assert_eq!(ids, ended);
}

#[test]
fn a_stop_text_ends_a_response_within_the_tokens_of_a_step() {
    let lookup = Lookup { prompt_lookup_min: 1, ..Lookup::default() };
    let proposing = engine_of(EngineConfig { lookup: Some(lookup), ..EngineConfig::default() }, Arc::new(()));
    let plain = engine();
    // So many letters of one kind that most proposed tokens are drawn.
    let often = |stop: &[&str], seed| {
        let request = request(seed, stop);
        let mut sampling = Sampling::clone(&request.sampling);
        sampling.logit_bias[0].1 = 99.0;
        sampling.logit_bias[1..].iter_mut().for_each(|(_, bias)| *bias = 97.0);
        GenerateRequest { sampling: Arc::new(sampling), ..request }
    };
    let mut lengths = HashSet::new();
    for stop in ["b", "aab", "aaaa", "ca", "aaaaaaa"] {
        let requests = || (0..12).map(|seed| often(&[stop], seed)).collect();
        let (found, expected) = (whole(&proposing, requests()), whole(&plain, requests()));
        for ((ids, logprobs, reason), (of_plain, _, reason_of_plain)) in found.iter().zip(&expected) {
            assert_eq!((ids, logprobs.len(), reason), (of_plain, of_plain.len(), reason_of_plain), "{stop:?}");
            lengths.insert(ids.len());
        }
        let shown = |engine: &AsyncEngine| -> Vec<(String, usize)> {
            let whole = |completion: Completion| async { completion.whole().await };
            let all = block_on(async { try_join_all(engine.stream(requests()).await?.into_iter().map(whole)).await });
            all.unwrap().into_iter().map(|shown| (shown.text, shown.count)).collect()
        };
        assert_eq!(shown(&proposing), shown(&plain), "{stop:?}");
    }
    assert!(lengths.len() > 8, "{lengths:?}");
}

#[test]
fn a_response_that_a_stop_text_ends_has_a_mask_for_each_token() {
    let engine = engine();
    let drawn = |stop: &[&str]| {
        let plain = request(1, stop);
        let sampling = Arc::new(Sampling { top_k: Some(3), masked: true, ..Sampling::clone(&plain.sampling) });
        let request = GenerateRequest { sampling, ..plain };
        block_on(async { engine.generate(vec![request]).await?.remove(0).await }).unwrap()
    };
    let free = drawn(&[]);
    let text = engine.text().tokenizer.decode(&free.response).unwrap();
    let ended = drawn(&[&text[9..11]]);
    assert!(ended.response.len() < free.response.len());
    let mut masks = free.masks;
    assert_eq!(masks.len(), free.response.len());
    masks.truncate(ended.response.len());
    assert!(masks.cuts() && masks == ended.masks, "{masks:?} {:?}", ended.masks);
}

#[test]
fn what_is_submitted_together_is_decoded_together() {
    let requests = || (0..6).map(|seed| request(seed, if seed % 2 == 0 { &["ab", "c"] } else { &[] })).collect();
    let first = whole(&engine(), requests());
    for _ in 0..3 {
        // To the last bit of each log-prob, however threads are scheduled.
        assert_eq!(whole(&engine(), requests()), first);
    }
}

#[test]
fn a_request_that_cannot_be_served_cancels_those_beside_it() {
    let engine = engine();
    let empty = GenerateRequest { prompt: [].into(), ..request(0, &[]) };
    let error = block_on(engine.generate(vec![request(1, &[]), empty])).unwrap_err();
    let RolloutError::Policy(PolicyError::Input(what)) = error else { panic!("{error}") };
    assert!(what.ends_with("the prompt has no tokens"), "{what}");
    assert_eq!(whole(&engine, vec![request(1, &[])])[0].2, FinishReason::Length);
}

#[derive(Default)]
struct Cancelled(AtomicUsize);

impl Observer for Cancelled {
    fn cancelled(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

#[test]
fn a_response_that_nobody_waits_for_is_cancelled() {
    let cancelled = Arc::new(Cancelled::default());
    let engine = engine_with(cancelled.clone());
    // The thread is held before it takes the requests, and again until both responses are dropped.
    let (take, taking) = mpsc::channel();
    let (resume, resumed) = mpsc::channel();
    let held = engine.run(move |_| taking.recv().unwrap());
    let dropped = async {
        drop(engine.generate(vec![request(1, &[]), request(2, &[])]).await.unwrap());
        resume.send(()).unwrap();
    };
    let paused = engine.run(move |_| resumed.recv().unwrap());
    let (held, (), paused, ()) = block_on(join4(held, dropped, paused, async { take.send(()).unwrap() }));
    assert!(held.is_ok() && paused.is_ok());
    whole(&engine, vec![request(3, &[])]);
    assert_eq!(cancelled.0.load(Ordering::Relaxed), 2);
}

/// Stops the thread after its third step until it may continue.
struct Pause {
    steps: AtomicUsize,
    reached: mpsc::Sender<()>,
    resume: Mutex<mpsc::Receiver<()>>,
}

impl Observer for Pause {
    fn stepped(&self, _: usize, _: u64) {
        if self.steps.fetch_add(1, Ordering::Relaxed) == 2 {
            self.reached.send(()).unwrap();
            self.resume.lock().unwrap().recv().unwrap();
        }
    }
}

#[test]
fn work_in_place_of_keys_and_values_changes_no_response() {
    let requests = || (0..6).map(|seed| request(seed, if seed % 2 == 0 { &["ab", "c"] } else { &[] })).collect();
    let expected = whole(&engine(), requests());
    let ((reached, reaches), (resume, resumed)) = (mpsc::channel(), mpsc::channel());
    let pause = Arc::new(Pause { steps: AtomicUsize::new(0), reached, resume: Mutex::new(resumed) });
    let engine = engine_with(pause.clone());
    block_on(async {
        let responses = engine.generate(requests()).await.unwrap();
        reaches.recv().unwrap();
        let work = move |_: &Model| pause.steps.load(Ordering::Relaxed);
        let released = engine.run_with(CacheDuring::Released, work);
        let (steps, ()) = join(released, async { resume.send(()).unwrap() }).await;
        assert_eq!(steps.unwrap(), 3);
        for (response, (ids, logprobs, reason)) in responses.into_iter().zip(&expected) {
            let found = response.await.unwrap();
            assert_eq!((&found.response, found.finish_reason), (ids, *reason));
            assert!(found.logprobs.iter().zip(logprobs).all(|(one, other)| (one - other).abs() < 3e-5));
        }
    });
}

#[test]
fn a_thread_that_ends_is_noticed_by_all() {
    let engine = engine();
    assert!(engine.check().is_ok());
    let ended = block_on(async {
        let stopped = engine.run(|_| panic!("a fault of the host")).await;
        assert!(matches!(stopped, Err(RolloutError::Stopped)), "{stopped:?}");
        engine.ended().await
    });
    assert!(matches!(ended, RolloutError::Stopped), "{ended}");
    assert!(matches!(engine.check(), Err(RolloutError::Stopped)));
    let later = block_on(engine.generate(vec![request(1, &[])])).unwrap_err();
    assert_eq!(later.to_string(), "the model was stopped");
}

#[test]
fn tokens_carry_the_version_that_drew_them() {
    let engine = engine();
    let versions = |version| {
        engine.set_version(version).unwrap();
        block_on(async { engine.generate(vec![request(1, &[])]).await?.remove(0).await }).unwrap().versions
    };
    assert_eq!((versions(4), versions(5)), (vec![4; LENGTH], vec![5; LENGTH]));
}

#[test]
fn no_token_is_drawn_between_a_change_of_weights_and_its_version() {
    for (after, version) in [(Weights::OfVersion(4), 4), (Weights::Changed, 0)] {
        let ((reached, reaches), (resume, resumed)) = (mpsc::channel(), mpsc::channel());
        let pause = Arc::new(Pause { steps: AtomicUsize::new(0), reached, resume: Mutex::new(resumed) });
        let engine = engine_of(EngineConfig { recompute_cache: true, ..EngineConfig::default() }, pause);
        let any = Arc::new(Sampling::new(LENGTH, Vec::new()));
        let request = GenerateRequest { sampling: any, ..request(1, &[]) };
        let prompt = request.prompt.clone();
        let (found, under_new) = block_on(async {
            let response = engine.generate(vec![request]).await.unwrap().remove(0);
            reaches.recv().unwrap();
            let change = |model: &Model| {
                tch::no_grad(|| {
                    model.parameters().into_iter().for_each(|(_, mut weight)| _ = weight.g_mul_scalar_(3.0))
                });
            };
            let changed = engine.change(CacheDuring::Kept, after, change);
            let (changed, ()) = join(changed, async { resume.send(()).unwrap() }).await;
            changed.unwrap();
            let found = response.await.unwrap();
            let tokens = [&prompt[..], &found.response].concat();
            let under_new = engine.run(move |model| model.token_logprobs(&tokens)).await.unwrap().unwrap();
            (found, under_new)
        });
        // The pause is after the third token.
        assert_eq!(found.versions, [vec![0; 3], vec![version; LENGTH - 3]].concat());
        let under_new = &under_new[under_new.len() - LENGTH..];
        let is_of_new = |at: usize| (found.logprobs[at] - under_new[at]).abs() < 1e-4;
        // Also the keys and values of the tokens before the change come from the new weights.
        assert!((3..LENGTH).all(is_of_new) && !(0..3).all(is_of_new), "{:?} {under_new:?}", found.logprobs);
    }
}
