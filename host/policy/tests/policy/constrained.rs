//! Rows whose tokens a constraint restricts.

use crate::engine::{assert_same, run};
use crate::sampling::{DRAWS, expected, model_with_logits};
use crate::{config, model, tokens};
use gavel_data::{Constraint, ConstraintState, FinishReason, SamplingMask, SharedConstraint};
use gavel_policy::{Engine, EngineConfig, Lookup, Model, ModelConfig, PolicyError, Proposals, Request, Sampling};
use std::collections::BTreeMap;

const STOP: u32 = 2;

/// Allows a token after another if the sum of both is a multiple of `step`, the stop token after `length` tokens, and
/// fails after `most`.
#[derive(Debug, Clone)]
struct Sums {
    vocab: u32,
    step: u32,
    length: usize,
    most: usize,
    drawn: Vec<u32>,
}

impl Sums {
    fn new(vocab: u32, step: u32) -> Self {
        Self { vocab, step, length: usize::MAX, most: usize::MAX, drawn: Vec::new() }
    }

    fn allows(&self, token: u32) -> bool {
        if token == STOP || self.drawn.len() >= self.length {
            return token == STOP && self.drawn.len() >= self.length;
        }
        (self.drawn.last().copied().unwrap_or(0) + token).is_multiple_of(self.step)
    }
}

impl Constraint for Sums {
    fn begin(&self) -> Box<dyn ConstraintState> {
        Box::new(self.clone())
    }
}

impl ConstraintState for Sums {
    fn allowed(&mut self) -> Result<Vec<u32>, String> {
        if self.drawn.len() >= self.most {
            return Err("it is too long".into());
        }
        // More tokens than the model has: only the model's count.
        let mut words = vec![0; self.vocab.div_ceil(32) as usize + 1];
        let all = (0..self.vocab + 20).filter(|token| *token >= self.vocab || self.allows(*token));
        all.for_each(|token| words[token as usize / 32] |= 1 << (token % 32));
        Ok(words)
    }

    fn advance(&mut self, token: u32) {
        self.drawn.push(token);
    }
}

fn bound(sums: Sums, sampling: Sampling) -> Sampling {
    Sampling { constraint: Some(SharedConstraint::new(sums)), ..sampling }
}

fn finish(engine: &mut Engine, model: &Model) -> BTreeMap<u64, gavel_policy::Finished> {
    let mut finished = BTreeMap::new();
    while !engine.is_idle() {
        finished.extend(engine.step(model).unwrap().finished.into_iter().map(|done| (done.id, done)));
    }
    finished
}

#[test]
fn draws_follow_the_distribution_among_the_allowed_tokens() {
    let logits = [1.2, 0.4, -0.3, 0.9, -1.1, 0.0, 0.7, -0.6];
    let prompt = [5, 4, 3];
    let model = model_with_logits(ModelConfig { vocab_size: 8, ..config() }, &prompt, &logits);
    let plain = Sampling { masked: true, ..Sampling::new(1, vec![]) };
    // Tokens 0, 3 and 6; or 0, 4.
    for (step, sampling) in [
        (3, plain.clone()),
        (3, Sampling { temperature: 0.7, ..plain.clone() }),
        (3, Sampling { top_k: Some(2), ..plain.clone() }),
        (3, Sampling { top_p: 0.6, min_p: 0.1, ..plain.clone() }),
        (4, Sampling { temperature: 2.0, min_p: 0.05, logit_bias: vec![(4, 1.0), (1, 50.0)], ..plain.clone() }),
        (3, Sampling { masked: false, ..plain }),
    ] {
        let mut changed = logits.to_vec();
        sampling.logit_bias.iter().for_each(|&(token, bias)| changed[token as usize] += f64::from(bias));
        let sums = Sums::new(8, step);
        let excluded = (0..8).filter(|token| !sums.allows(*token));
        excluded.for_each(|token| changed[token as usize] = f64::NEG_INFINITY);
        let probs = expected(&changed, &sampling);
        let sampling = bound(sums, sampling);
        let requests: Vec<Request> =
            (0..DRAWS).map(|seed| Request::new(seed, prompt, sampling.clone(), seed)).collect();
        let mut counts = [0.0; 8];
        let mut logprobs = BTreeMap::new();
        for done in run(&model, 512, &requests) {
            let token = done.response[0];
            counts[token as usize] += 1.0 / DRAWS as f64;
            logprobs.insert(token, f64::from(done.logprobs[0]));
            let right = probs[token as usize].ln();
            assert!((f64::from(done.logprobs[0]) - right).abs() < 1e-4, "{sampling:?}: {token}");
            if sampling.masked {
                let kept: Vec<u32> = (0..8).filter(|token| probs[*token as usize] > 0.0).collect();
                assert_eq!(done.masks.get(0), SamplingMask::of(&kept, 8), "{sampling:?}");
            }
        }
        let total: f64 = logprobs.values().map(|logprob| logprob.exp()).sum();
        assert!((total - 1.0).abs() < 2e-6, "{sampling:?}: {total}");
        for (count, prob) in counts.iter().zip(&probs) {
            assert!((count - prob).abs() < 0.04, "{sampling:?}: {counts:?} are not {probs:?}");
        }
    }
}

/// Rows with and without a constraint, drawn in every way.
fn requests(constrains: bool) -> Vec<Request> {
    let sampling = |id: u64| {
        let plain = Sampling { temperature: 2.0, ..Sampling::new(6 + id as usize, vec![STOP]) };
        let plain = match id / 2 % 5 {
            0 => plain,
            1 => Sampling { top_k: Some(4), ..plain },
            2 => Sampling { temperature: 0.0, ..plain },
            3 => Sampling { repetition_penalty: 1.4, top_p: 0.9, ..plain },
            _ => Sampling { logit_bias: vec![(9, 2.0)], masked: true, ..plain },
        };
        // Without a stop token, a response is as long beside a constraint as without one.
        match id % 2 {
            0 => Sampling { stop_ids: vec![], ..plain },
            _ if constrains => bound(Sums { length: 5, ..Sums::new(31, 3) }, plain),
            _ => plain,
        }
    };
    (0..20).map(|id| Request::new(id, tokens(id / 4, 3 + id as usize % 3), sampling(id), 70 + id)).collect()
}

#[test]
fn rows_without_a_constraint_are_as_they_are_without_one_beside_them() {
    let model = model(config());
    let only_free = |constrains: bool| {
        // No row ends before the others have as many tokens, so that each step computes the same rows.
        let mut requests = requests(constrains);
        for request in &mut requests {
            let sampling = Sampling { max_tokens: 5, stop_ids: vec![], ..Sampling::clone(&request.sampling) };
            request.sampling = sampling.into();
        }
        let done = run(&model, 20, &requests);
        done.into_iter().filter(|done| done.id % 2 == 0).collect::<Vec<_>>()
    };
    assert_eq!(only_free(true), only_free(false));
}

#[test]
fn each_token_is_allowed_and_the_response_ends_where_it_may() {
    let model = model(config());
    let requests = requests(true);
    let together = run(&model, 20, &requests);
    for (request, done) in requests.iter().zip(&together) {
        assert_same(done, &run(&model, 1, std::slice::from_ref(request))[0]);
        if request.sampling.constraint.is_none() {
            continue;
        }
        let mut sums = Sums { length: 5, ..Sums::new(31, 3) };
        for (position, token) in done.response.iter().enumerate() {
            assert!(sums.allows(*token), "{done:?}");
            if request.sampling.masked {
                let mask = done.masks.get(position);
                assert!((0..31).all(|token| mask.contains(token) == sums.allows(token)), "{mask:?}");
            }
            sums.advance(*token);
        }
        assert_eq!((done.response.len(), done.finish_reason), (6, FinishReason::Stop), "{done:?}");
    }
}

#[test]
fn a_row_that_is_put_back_goes_on_where_it_was() {
    let model = model(config());
    let requests = requests(true);
    let expected = run(&model, 20, &requests);
    let mut engine = Engine::new(&model, EngineConfig { max_batch: 20, ..EngineConfig::default() }).unwrap();
    requests.iter().for_each(|request| engine.submit(request.clone()).unwrap());
    for _ in 0..3 {
        assert!(engine.step(&model).unwrap().finished.is_empty());
    }
    engine.release_cache().unwrap();
    let finished = finish(&mut engine, &model);
    expected.iter().for_each(|expected| assert_same(&finished[&expected.id], expected));
}

#[test]
fn a_row_whose_constraint_fails_ends_and_the_others_go_on() {
    let model = model(config());
    let mut requests = requests(true);
    let expected = run(&model, 20, &requests);
    let sampling = |sums: Sums| bound(sums, Sampling::new(9, vec![STOP]));
    requests.push(Request::new(20, tokens(3, 4), sampling(Sums { most: 3, ..Sums::new(31, 3) }), 1));
    // No token has such a sum.
    requests.push(Request::new(
        21,
        tokens(4, 4),
        sampling(Sums { vocab: 31, drawn: vec![1], ..Sums::new(31, 1000) }),
        1,
    ));
    let mut engine = Engine::new(&model, EngineConfig { max_batch: 22, ..EngineConfig::default() }).unwrap();
    requests.iter().for_each(|request| engine.submit(request.clone()).unwrap());
    let mut failures = Vec::new();
    let mut finished = BTreeMap::new();
    while !engine.is_idle() {
        match engine.step(&model) {
            Ok(step) => finished.extend(step.finished.into_iter().map(|done| (done.id, done))),
            Err(PolicyError::Constraint { request, position, what }) => {
                let ended = engine.finish(request).unwrap().unwrap();
                assert_eq!(ended.response.len(), position);
                failures.push((request, position, what));
            }
            Err(error) => panic!("{error}"),
        }
    }
    failures.sort();
    let nothing = "no token of the model's vocabulary may follow".to_owned();
    assert_eq!(failures, [(20, 3, "it is too long".to_owned()), (21, 0, nothing)]);
    expected.iter().for_each(|expected| assert_same(&finished[&expected.id], expected));
}

#[test]
fn nothing_is_proposed_for_constrained_rows_beside_others() {
    let model = model(config());
    let repeated = |request: Request| Request { prompt: request.prompt.repeat(3).into(), ..request };
    let requests: Vec<Request> = requests(true).into_iter().map(repeated).collect();
    let lookup = Lookup { prompt_lookup_min: 1, disable_by_batch_size: usize::MAX, ..Lookup::default() };
    let draw = |requests: &[Request]| {
        let config = EngineConfig { max_batch: 6, lookup: Some(lookup.clone()), ..EngineConfig::default() };
        let mut engine = Engine::new(&model, config).unwrap();
        requests.iter().for_each(|request| engine.submit(request.clone()).unwrap());
        (finish(&mut engine, &model), engine.proposals())
    };
    let (found, proposals) = draw(&requests);
    assert!(proposals.proposed > proposals.accepted && proposals.accepted > 0, "{proposals:?}");
    for request in &requests {
        let alone = &run(&model, 1, std::slice::from_ref(request))[0];
        assert_same(alone, &found[&request.id]);
        assert_eq!(alone.masks, found[&request.id].masks);
    }
    let constrained: Vec<Request> = requests.into_iter().filter(|of| of.sampling.constraint.is_some()).collect();
    assert_eq!(draw(&constrained).1, Proposals::default());
}
