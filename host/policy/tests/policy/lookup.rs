//! Prompt look-up changes how fast tokens come, and nothing else.

use crate::engine::assert_same;
use crate::{config, model, row, tokens};
use gavel_policy::{Engine, EngineConfig, Finished, Lookup, Model, ModelConfig, Proposals, Request, Sampling};
use std::sync::Arc;

/// Proposes often: after one token that came before.
fn lookup() -> Lookup {
    Lookup { num_speculative_tokens: 3, prompt_lookup_max: 3, prompt_lookup_min: 1, disable_by_batch_size: usize::MAX }
}

fn engine(model: &Model, lookup: Option<Lookup>) -> Engine {
    Engine::new(model, EngineConfig { max_batch: 7, prefill_tokens: 24, lookup, ..EngineConfig::default() }).unwrap()
}

fn run(engine: &mut Engine, model: &Model, requests: &[Request]) -> Vec<Finished> {
    requests.iter().for_each(|request| engine.submit(request.clone()).unwrap());
    let mut finished: Vec<Finished> = Vec::new();
    let mut steps = 0;
    while !engine.is_idle() {
        engine.set_version(steps / 4);
        let step = engine.step(model).unwrap();
        for done in &step.finished {
            // All of its tokens came, in their order.
            let last = step.drawn.iter().rev().find(|drawn| drawn.id == done.id).unwrap();
            assert_eq!(Some(&last.token), done.response.last());
            assert_eq!([done.logprobs.len(), done.versions.len()], [done.response.len(); 2]);
            assert!(done.versions.is_sorted() && done.versions.last() == Some(&(steps / 4)));
        }
        finished.extend(step.finished);
        steps += 1;
    }
    finished.sort_by_key(|done| done.id);
    finished
}

/// Prompts that repeat themselves, drawn in every way, with two conversations.
fn requests() -> Vec<Request> {
    let sampling = |id: u64| {
        let plain = Sampling::new(3 + (17 * id % 60) as usize, vec![]);
        match id % 8 {
            0 => Sampling { temperature: 0.0, ..plain },
            1 => Sampling { temperature: 0.3, ..plain },
            2 => Sampling { repetition_penalty: 1.5, ..plain },
            3 => Sampling { temperature: 0.5, top_k: Some(5), top_p: 0.9, masked: true, ..plain },
            4 => Sampling { temperature: 0.5, logit_bias: vec![(4, 1.0)], ..plain },
            5 => Sampling { temperature: 0.4, stop_ids: (10..13).collect(), ..plain },
            6 => Sampling { temperature: 0.0, stop_ids: vec![7, 11, 19, 23], ..plain },
            _ => plain,
        }
    };
    let request = |id: u64| {
        let part = tokens(id / 3, 4 + id as usize % 5);
        let request = Request::new(id, part.repeat(3), sampling(id), 40 + id);
        let conversation = (id % 5 == 4).then_some(id % 2);
        Request { top_logprobs: id as usize % 3, conversation, ..request }
    };
    (0..40).map(request).collect()
}

#[test]
fn the_same_tokens_are_drawn_as_without_it() {
    for config in [config(), ModelConfig { windows: vec![Some(5), None], ..config() }] {
        let model = model(config);
        let requests = requests();
        let alone = run(&mut engine(&model, None), &model, &requests);
        let mut proposing = engine(&model, Some(lookup()));
        let found = run(&mut proposing, &model, &requests);
        assert_eq!(found.len(), requests.len());
        for (found, alone) in found.iter().zip(&alone) {
            assert_same(found, alone);
            assert_eq!(found.masks, alone.masks);
        }
        let Proposals { proposed, accepted } = proposing.proposals();
        assert!(accepted > 40 && proposed > accepted, "{accepted} of {proposed}");
    }
}

#[test]
fn nothing_is_proposed_while_many_rows_are_under_way() {
    let model = model(config());
    let draw = |rows: u64| {
        let mut engine = engine(&model, Some(Lookup { disable_by_batch_size: 2, ..lookup() }));
        let request = |id| Request::new(id, [3u32, 4, 5, 6].repeat(3), Sampling::greedy(20, vec![]), id);
        run(&mut engine, &model, &(0..rows).map(request).collect::<Vec<_>>());
        engine.proposals()
    };
    assert_eq!(draw(3), Proposals::default());
    assert!(draw(2).proposed > 0);
}

#[test]
fn a_response_can_end_before_the_last_token_of_a_step() {
    let model = model(config());
    let request = Request::new(1, tokens(1, 5).repeat(3), Sampling::greedy(60, vec![]), 1);
    let mut engine = engine(&model, Some(lookup()));
    engine.submit(Request { conversation: Some(1), ..request.clone() }).unwrap();
    let mut drawn: Vec<u32> = Vec::new();
    loop {
        assert!(!engine.is_idle(), "no proposed token was drawn");
        let step = engine.step(&model).unwrap();
        let before = drawn.len();
        drawn.extend(step.drawn.iter().map(|drawn| drawn.token));
        if drawn.len() > before + 1 {
            // The first of several tokens ends it.
            let done = engine.finish_after(1, before + 1).unwrap().unwrap();
            assert_eq!(done.response, drawn[..=before]);
            assert_eq!([done.logprobs.len(), done.versions.len()], [before + 1; 2]);
            // The next turn goes on from there.
            let prompt = [&request.prompt[..], &done.response, &tokens(9, 4)].concat();
            let next = Request::new(2, prompt, Sampling::greedy(10, vec![]), 2);
            let expected = run(&mut self::engine(&model, None), &model, std::slice::from_ref(&next));
            let computed = engine.prefilled();
            let found = run(&mut engine, &model, &[Request { conversation: Some(1), ..next }]);
            // `run` sets another version at first, which is the one that the engine has.
            assert_eq!(engine.prefilled() - computed, 4);
            return assert_same(&found[0], &expected[0]);
        }
    }
}

#[test]
fn a_request_that_was_put_back_can_end_before_its_last_token() {
    let model = model(config());
    let mut engine = engine(&model, Some(lookup()));
    engine.submit(Request::new(1, tokens(1, 5), Sampling::new(60, vec![]), 1)).unwrap();
    let drawn: Vec<u32> = (0..4).flat_map(|_| engine.step(&model).unwrap().drawn).map(|drawn| drawn.token).collect();
    engine.release_cache().unwrap();
    assert_eq!((engine.active(), engine.waiting()), (0, 1));
    let done = engine.finish_after(1, 2).unwrap().unwrap();
    assert_eq!((&done.response[..], done.logprobs.len(), done.versions.len()), (&drawn[..2], 2, 2));
}

/// 10⁶ tokens, in responses of four to one prompt, against the model's own distribution of all responses.
#[test]
fn a_million_draws_have_the_distribution_of_the_model() {
    const RESPONSES: u64 = 250_000;
    const VOCABULARY: usize = 5;
    let config = ModelConfig { vocab_size: VOCABULARY as i64, num_hidden_layers: 1, ..config() };
    let model = model(ModelConfig { bos_token_id: None, eos_token_id: vec![], pad_token_id: None, ..config });
    let prompt: Vec<u32> = vec![0, 1, 2, 3, 4, 0, 1, 2, 3, 4, 0, 1];
    let sampling = Arc::new(Sampling { temperature: 1.5, ..Sampling::new(4, vec![]) });
    let config = EngineConfig { max_batch: 256, lookup: Some(lookup()), ..EngineConfig::default() };
    let mut engine = Engine::new(&model, config).unwrap();
    let mut counts = vec![0u32; VOCABULARY.pow(4)];
    let prompt: Arc<[u32]> = prompt.into();
    let mut submitted = 0;
    while submitted < RESPONSES || !engine.is_idle() {
        while submitted < RESPONSES && engine.active() + engine.waiting() < 256 {
            engine.submit(Request::new(submitted, prompt.clone(), sampling.clone(), submitted)).unwrap();
            submitted += 1;
        }
        for done in engine.step(&model).unwrap().finished {
            let cell = done.response.iter().fold(0, |cell, token| cell * VOCABULARY + *token as usize);
            counts[cell] += 1;
        }
    }
    let Proposals { proposed, accepted } = engine.proposals();
    assert!(proposed > 250_000 && accepted > 50_000, "{accepted} of {proposed}");

    let mut chi_square = 0.0;
    for (cell, &count) in counts.iter().enumerate() {
        let response: Vec<u32> = (0..4).rev().map(|place| (cell / VOCABULARY.pow(place) % VOCABULARY) as u32).collect();
        let ids = [&prompt[..], &response].concat();
        let logits = model.logits(&model.hidden(&row(&ids)).unwrap()).unwrap().squeeze_dim(0);
        let logits = logits.narrow(0, prompt.len() as i64 - 1, 4).to_kind(tch::Kind::Double) / 1.5;
        let logprobs = logits.log_softmax(-1, None);
        let of_token = |at: i64| logprobs.double_value(&[at, i64::from(response[at as usize])]);
        let mean = (0..4).map(of_token).sum::<f64>().exp() * RESPONSES as f64;
        chi_square += (f64::from(count) - mean).powi(2) / mean;
    }
    // 624 degrees of freedom: 738.6 is exceeded once in a thousand times. The draws are the same each time.
    assert!(chi_square < 738.6, "{chi_square}");
}
