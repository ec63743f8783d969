//! What is kept of the tokens that could be drawn.

use crate::engine::{assert_same, run};
use crate::reference::softmax;
use crate::sampling::{DRAWS, expected, model_with_logits};
use crate::{config, model, row, tokens};
use gavel_data::{SamplingMask, SamplingMasks};
use gavel_policy::{Engine, EngineConfig, Finished, Model, ModelConfig, Request, Sampling};
use std::collections::BTreeMap;

/// The logits of all tokens after [`PROMPT`].
const LOGITS: [f64; 8] = [1.2, 0.4, -0.3, 0.9, -1.1, 0.0, 0.7, -0.6];
const PROMPT: [u32; 3] = [5, 4, 3];

fn tiny(logits: &[f64]) -> Model {
    model_with_logits(ModelConfig { vocab_size: logits.len() as i64, ..config() }, &PROMPT, logits)
}

fn masked() -> Sampling {
    Sampling { masked: true, ..Sampling::new(1, vec![]) }
}

/// Each cut, what changes the logits before it, and all of them.
fn settings() -> Vec<Sampling> {
    let logit_bias = vec![(1, 1.5), (6, -2.0), (1, -0.25)];
    let biased = Sampling { logit_bias, ..masked() };
    let all = Sampling { temperature: 1.3, top_k: Some(6), top_p: 0.9, min_p: 0.1, ..biased.clone() };
    vec![
        masked(),
        Sampling { temperature: 0.7, ..masked() },
        Sampling { top_k: Some(3), ..masked() },
        Sampling { top_p: 0.6, ..masked() },
        Sampling { min_p: 0.2, ..masked() },
        biased,
        Sampling { repetition_penalty: 1.7, ..masked() },
        Sampling { repetition_penalty: 1.7, ..all },
    ]
}

/// Responses to [`PROMPT`] with each of the seeds.
fn responses(model: &Model, sampling: &Sampling, seeds: u64) -> Vec<Finished> {
    let requests: Vec<Request> = (0..seeds).map(|seed| Request::new(seed, PROMPT, sampling.clone(), seed)).collect();
    run(model, 512, &requests)
}

/// The distribution that is drawn from, by definition.
fn drawn_from(logits: &[f64], sampling: &Sampling) -> Vec<f64> {
    let mut logits = logits.to_vec();
    sampling.logit_bias.iter().for_each(|&(token, bias)| logits[token as usize] += f64::from(bias));
    for token in PROMPT {
        let (logit, penalty) = (&mut logits[token as usize], f64::from(sampling.repetition_penalty));
        *logit = if *logit > 0.0 { *logit / penalty } else { *logit * penalty };
    }
    expected(&logits, sampling)
}

#[test]
fn the_probabilities_of_what_could_be_drawn_sum_to_1() {
    let model = tiny(&LOGITS);
    let mut forms = [0; 3];
    for sampling in settings() {
        let probs = drawn_from(&LOGITS, &sampling);
        let kept: Vec<u32> = (0..8).filter(|token| probs[*token as usize] > 0.0).collect();
        let mask = SamplingMask::of(&kept, 8);
        let form = match mask {
            SamplingMask::All => 0,
            SamplingMask::Only(_) => 1,
            SamplingMask::Except(_) => 2,
        };
        forms[form] += 1;
        let mut logprobs = BTreeMap::new();
        for done in responses(&model, &sampling, DRAWS) {
            let (token, logprob) = (done.response[0], f64::from(done.logprobs[0]));
            assert_eq!((done.masks.len(), done.masks.get(0)), (1, mask.clone()), "{sampling:?}");
            let right = probs[token as usize].ln();
            assert!((logprob - right).abs() < 1e-4, "{sampling:?}: {logprob} of {token} is not {right}");
            logprobs.insert(token, logprob);
        }
        // All of them were drawn, so that each has its log-probability.
        assert_eq!(logprobs.keys().copied().collect::<Vec<_>>(), kept, "{sampling:?}");
        let total: f64 = logprobs.values().map(|logprob| logprob.exp()).sum();
        assert!((total - 1.0).abs() < 2e-6, "{sampling:?}: {total}");
    }
    assert_eq!(forms, [4, 2, 2]);
}

#[test]
fn keeping_them_changes_no_draw() {
    let model = tiny(&LOGITS);
    for sampling in settings() {
        let kept = responses(&model, &sampling, 300);
        let plain = responses(&model, &Sampling { masked: false, ..sampling.clone() }, 300);
        for (kept, plain) in kept.iter().zip(&plain) {
            assert_eq!(kept.response, plain.response, "{sampling:?}");
            assert_eq!(plain.masks, SamplingMasks::new());
            if sampling.is_truncated() {
                assert!(kept.logprobs[0] > plain.logprobs[0], "{sampling:?}");
            } else {
                assert_eq!(kept.logprobs, plain.logprobs, "{sampling:?}");
            }
        }
    }
}

#[test]
fn tokens_as_probable_as_the_last_that_stays_are_kept() {
    let model = tiny(&[2.0, 1.0, 0.5, 1.0, 0.0, 1.0, -1.0, -2.0]);
    for done in responses(&model, &Sampling { top_k: Some(2), ..masked() }, 100) {
        assert_eq!(done.masks.get(0), SamplingMask::Only(vec![0, 1, 3, 5]));
        let right = (if done.response == [0] { 2.0f64 } else { 1.0 }) - (2f64.exp() + 3.0 * 1f64.exp()).ln();
        assert!((f64::from(done.logprobs[0]) - right).abs() < 1e-4, "{done:?}");
    }
}

/// Rows that keep what they could draw, with and without a cut, beside rows that do not and the most probable tokens.
fn mixed() -> Vec<Request> {
    let of = |id: u64| {
        let plain = Sampling { temperature: 2.0, ..Sampling::new(5 + id as usize, vec![]) };
        match id % 6 {
            0 => Sampling { masked: true, ..plain },
            1 => Sampling { masked: true, top_k: Some(5), ..plain },
            2 => Sampling { top_k: Some(5), ..plain },
            3 => Sampling { masked: true, top_p: 0.9, repetition_penalty: 1.3, ..plain },
            4 => Sampling { masked: true, top_k: Some(5), temperature: 0.0, ..plain },
            _ => Sampling { masked: true, min_p: 0.3, logit_bias: vec![(7, 2.0)], ..plain },
        }
    };
    (0..18).map(|id| Request::new(id, tokens(id / 3, 4), of(id), 50 + id)).collect()
}

fn assert_aligned(request: &Request, done: &Finished) {
    let (sampling, length) = (&request.sampling, done.response.len());
    assert_eq!(done.masks.len(), if sampling.masked { length } else { 0 });
    let is_cut = sampling.masked && sampling.is_truncated() && !sampling.is_greedy();
    assert_eq!(done.masks.cuts(), is_cut, "{request:?}");
    for (position, token) in done.response.iter().enumerate() {
        let mask = done.masks.get(position);
        assert!(mask.contains(*token), "{token} is not in {mask:?}");
        if is_cut && let Some(most) = sampling.top_k {
            assert!(matches!(&mask, SamplingMask::Only(ids) if ids.len() == most), "{mask:?}");
        }
    }
}

#[test]
fn each_row_keeps_what_it_could_draw_whatever_is_beside_it() {
    let model = model(config());
    let requests = mixed();
    let together = run(&model, 18, &requests);
    for (request, done) in requests.iter().zip(&together) {
        assert_aligned(request, done);
        let alone = &run(&model, 1, std::slice::from_ref(request))[0];
        assert_same(done, alone);
        assert_eq!(done.masks, alone.masks);
    }
}

#[test]
fn a_row_that_is_put_back_or_ended_keeps_its_masks() {
    let model = model(config());
    let requests = mixed();
    let expected = run(&model, 18, &requests);
    let mut engine = Engine::new(&model, EngineConfig { max_batch: 18, ..EngineConfig::default() }).unwrap();
    requests.iter().for_each(|request| engine.submit(request.clone()).unwrap());
    let mut finished = Vec::new();
    for step in 0.. {
        if step == 3 {
            engine.release_cache().unwrap();
        }
        if step == 7 {
            finished.extend(engine.finish(15).unwrap());
        }
        finished.extend(engine.step(&model).unwrap().finished);
        if engine.is_idle() {
            break;
        }
    }
    finished.sort_by_key(|done| done.id);
    for ((request, done), expected) in requests.iter().zip(&finished).zip(&expected) {
        assert_aligned(request, done);
        let mut masks = expected.masks.clone();
        masks.truncate(done.response.len());
        assert_eq!((&done.response[..], &done.masks), (&expected.response[..done.response.len()], &masks));
    }
    assert!(finished[15].response.len() < expected[15].response.len());
}

/// The vocabulary is larger than the tokens that truncations sort first, of which some settings keep more.
#[test]
fn of_a_large_vocabulary_what_could_be_drawn_is_kept() {
    let model = model(ModelConfig { vocab_size: 3000, ..config() });
    let logits = model.logits(&model.hidden(&row(&PROMPT)).unwrap()).unwrap().get(0).get(2).detach();
    let logits = Vec::<f64>::try_from(logits.to_kind(tch::Kind::Double)).unwrap();
    let flat = Sampling { temperature: 8.0, ..masked() };
    let mut sorted = logits.clone();
    sorted.sort_by(f64::total_cmp);
    // What two thirds of the tokens have.
    let two_thirds = ((sorted[1000] - sorted[2999]) / 8.0).exp() as f32;
    for (sampling, is_most) in [
        (Sampling { temperature: 0.2, top_p: 0.9, ..masked() }, false),
        (Sampling { top_p: 0.97, ..flat.clone() }, true),
        (Sampling { top_k: Some(2000), top_p: 0.3, ..flat.clone() }, false),
        (Sampling { min_p: two_thirds, ..flat.clone() }, true),
    ] {
        // What a cut keeps at least and at most, where logits are rounded to 32 bits.
        let cut = |more: f32| {
            let sampling = Sampling {
                top_p: (sampling.top_p + more).min(1.0),
                min_p: sampling.min_p * (1.0 - more),
                ..sampling.clone()
            };
            expected(&logits, &sampling)
        };
        let (least, most) = (cut(-1e-4), cut(1e-4));
        let all = softmax(&logits.iter().map(|logit| logit / f64::from(sampling.temperature)).collect::<Vec<_>>());
        for done in responses(&model, &sampling, 20) {
            let mask = done.masks.get(0);
            assert_eq!(matches!(mask, SamplingMask::Except(_)), is_most, "{sampling:?}");
            let kept: Vec<usize> = (0..3000).filter(|token| mask.contains(*token as u32)).collect();
            let (token, is_kept) = (done.response[0] as usize, |token: usize| mask.contains(token as u32));
            assert!(is_kept(token) && (0..3000).all(|token| least[token] == 0.0 || is_kept(token)), "{sampling:?}");
            assert!(kept.iter().all(|token| most[*token] > 0.0), "{sampling:?}");
            let right = (all[token] / kept.iter().map(|token| all[*token]).sum::<f64>()).ln();
            assert!((f64::from(done.logprobs[0]) - right).abs() < 1e-4, "{sampling:?}: {right} {}", done.logprobs[0]);
        }
    }
}
