use crate::{config, device, model, row, tokens};
use gavel_data::{FinishReason, seed};
use gavel_policy::{Device, Engine, EngineConfig, EngineStep, Finished, Model, ModelConfig, Request, Sampling, Tensor};
use std::sync::Arc;

pub(crate) fn run(model: &Model, max_batch: usize, requests: &[Request]) -> Vec<Finished> {
    let mut engine = Engine::new(
        model,
        EngineConfig { max_batch, prefill_tokens: 24, cache_bytes: None, ..EngineConfig::default() },
    )
    .unwrap();
    requests.iter().for_each(|request| engine.submit(request.clone()).unwrap());
    let mut finished = Vec::new();
    while !engine.is_idle() {
        assert!(engine.active() <= max_batch);
        finished.extend(engine.step(model).unwrap().finished);
    }
    finished.sort_by_key(|response| response.id);
    finished
}

/// The same tokens, with the same log-probabilities except for rounding.
pub(crate) fn assert_same(one: &Finished, other: &Finished) {
    assert_eq!((one.id, &one.response, one.finish_reason), (other.id, &other.response, other.finish_reason));
    assert!(one.logprobs.iter().zip(&other.logprobs).all(|(a, b)| (a - b).abs() < 3e-5), "{one:?} {other:?}");
}

/// Three groups of four with prompts of 1, 6 and 11 tokens, and temperatures
/// and lengths that differ.
fn requests() -> Vec<Request> {
    (0..12)
        .map(|id| Request {
            id,
            prompt: tokens(id / 4, 1 + 5 * (id as usize / 4)).into(),
            sampling: Arc::new(Sampling {
                temperature: [0.7, 1.0, 1.5, 0.0][id as usize % 4],
                ..Sampling::new(5 + 3 * id as usize, vec![2, 17])
            }),
            seed: 100 + id,
            top_logprobs: 0,
            conversation: None,
        })
        .collect()
}

/// `log softmax(logits / temperature)` before each response token, `[time, vocab]`,
/// by the forward pass that training uses.
fn training_logprobs(model: &Model, request: &Request, response: &[u32]) -> Tensor {
    let ids = [&request.prompt[..], response].concat();
    let logits = model.logits(&model.hidden(&row(&ids)).unwrap()).unwrap().squeeze_dim(0);
    let first = request.prompt.len() as i64 - 1;
    let temperature = if request.sampling.temperature == 0.0 { 1.0 } else { f64::from(request.sampling.temperature) };
    (logits.narrow(0, first, response.len() as i64).to_kind(tch::Kind::Double) / temperature).log_softmax(-1, None)
}

#[test]
fn every_token_is_the_one_that_the_training_forward_pass_gives() {
    for config in [config(), ModelConfig { tie_word_embeddings: false, num_key_value_heads: 4, ..config() }] {
        let model = model(config);
        let requests = requests();
        for max_batch in [1, 3, 12] {
            let finished = run(&model, max_batch, &requests);
            assert_eq!(finished.len(), requests.len());
            for (request, done) in requests.iter().zip(&finished) {
                let expected = training_logprobs(&model, request, &done.response);
                for (i, (&token, &logprob)) in done.response.iter().zip(&done.logprobs).enumerate() {
                    let here = Vec::<f64>::try_from(expected.get(i as i64).detach()).unwrap();
                    let place = format!("batch {max_batch}, request {}, token {i}", request.id);
                    assert!((here[token as usize] - f64::from(logprob)).abs() < 1e-4, "{place}");
                    // The uniform number falls into the token's part of the distribution.
                    let below: f64 = here[..token as usize].iter().map(|l| l.exp()).sum();
                    let uniform = seed::uniform(request.seed, i as u64);
                    if request.sampling.temperature > 0.0 {
                        assert!(
                            below - 1e-5 < uniform && uniform < below + here[token as usize].exp() + 1e-5,
                            "{place}"
                        );
                    } else {
                        assert!(here.iter().all(|&other| other < here[token as usize] + 1e-5), "{place}");
                    }
                }
            }
        }
    }
}

#[test]
fn in_16_bits_log_probs_are_those_of_training_but_for_rounding() {
    let sizes =
        ModelConfig { hidden_size: 64, intermediate_size: 96, head_dim: 32, initializer_range: 0.2, ..config() };
    let model = model(sizes);
    // Scores of some hundreds, which 16 bits represent to about one.
    for (name, mut weight) in model.named_weights().unwrap() {
        if name.ends_with("q_proj.weight") || name.ends_with("k_proj.weight") {
            let larger = &weight * 4.0;
            weight.copy_(&larger);
        }
    }
    let model = model.to_kind(tch::Kind::BFloat16).unwrap();
    let requests: Vec<Request> =
        (0..6).map(|id| Request::new(id, tokens(id, 4 + id as usize), Sampling::new(100, vec![]), id)).collect();
    let mut differences = Vec::new();
    for (request, done) in requests.iter().zip(run(&model, 6, &requests)) {
        let expected = training_logprobs(&model, request, &done.response);
        for (i, (&token, &logprob)) in done.response.iter().zip(&done.logprobs).enumerate() {
            differences.push((expected.double_value(&[i as i64, i64::from(token)]) - f64::from(logprob)).abs());
        }
    }
    let mean = differences.iter().sum::<f64>() / differences.len() as f64;
    // For such models PyTorch gives 0.018 to 0.020 with scores in 32 bits, and 0.053 to 0.062 with scores in 16.
    assert!(mean < 0.033, "log-probabilities differ by {mean} on average");
}

#[test]
fn a_response_does_not_depend_on_its_neighbours() {
    let model = model(config());
    let requests = requests();
    let together = run(&model, 12, &requests);
    assert_eq!(together, run(&model, 12, &requests), "the same run twice is bit for bit the same");
    for (request, crowd) in requests.iter().zip(&together) {
        let alone = run(&model, 1, std::slice::from_ref(request)).remove(0);
        assert_same(&alone, crowd);
    }
    assert!(together.iter().any(|done| done.finish_reason == FinishReason::Stop));
    assert!(together.iter().any(|done| done.finish_reason == FinishReason::Length));
}

#[test]
fn responses_end_at_a_stop_token_or_at_their_length() {
    let model = model(config());
    for (request, done) in requests().iter().zip(run(&model, 5, &requests())) {
        let last = done.response.last().unwrap();
        let stops = |token: &u32| request.sampling.stop_ids.contains(token);
        assert!(!done.response[..done.response.len() - 1].iter().any(stops));
        match done.finish_reason {
            FinishReason::Stop => assert!(stops(last)),
            reason => assert_eq!((reason, done.response.len()), (FinishReason::Length, request.sampling.max_tokens)),
        }
        assert_eq!([done.logprobs.len(), done.versions.len()], [done.response.len(); 2]);
    }
}

#[test]
fn long_responses_outgrow_the_first_cache() {
    let model = model(config());
    let requests: Vec<Request> = (0..3)
        .map(|id| Request {
            id,
            prompt: tokens(id, 2 + id as usize).into(),
            sampling: Sampling::new(100 + id as usize, vec![]).into(),
            seed: id,
            top_logprobs: 0,
            conversation: None,
        })
        .collect();
    for (request, done) in requests.iter().zip(run(&model, 2, &requests)) {
        assert_eq!(done.response.len(), request.sampling.max_tokens);
        let expected = training_logprobs(&model, request, &done.response);
        for (i, (&token, &logprob)) in done.response.iter().zip(&done.logprobs).enumerate() {
            let difference = expected.double_value(&[i as i64, i64::from(token)]) - f64::from(logprob);
            assert!(difference.abs() < 1e-4, "request {}, token {i}: {difference}", request.id);
        }
    }
}

#[test]
fn each_token_says_which_version_drew_it() {
    let (model, changed) = (model(config()), Model::random(config(), 9, device()).unwrap());
    let mut engine = Engine::new(
        &model,
        EngineConfig { max_batch: 3, prefill_tokens: 64, cache_bytes: None, ..EngineConfig::default() },
    )
    .unwrap();
    let request = |id| Request::new(id, tokens(1, 8), Sampling::greedy(4, vec![]), id);
    engine.set_version(7);
    engine.submit(request(0)).unwrap();
    engine.step(&model).unwrap();
    engine.set_version(8);
    // The same prompt under new weights must not reuse the old keys.
    engine.submit(request(1)).unwrap();
    let mut finished = Vec::new();
    while !engine.is_idle() {
        finished.extend(engine.step(&changed).unwrap().finished);
    }
    assert_eq!(finished[0].versions, [7, 8, 8, 8]);
    assert_eq!(finished[1].versions, [8; 4]);
    assert_eq!(finished[1].response, run(&changed, 1, &[request(1)])[0].response);
}

#[test]
fn keys_and_values_are_computed_anew_under_new_weights_where_that_is_asked_for() {
    let (model, changed) = (model(config()), Model::random(config(), 9, device()).unwrap());
    let requests: Vec<Request> =
        (0..3).map(|id| Request::new(id, tokens(id, 5 + id as usize), Sampling::greedy(6, vec![]), id)).collect();
    let respond = |recompute_cache| {
        let config = EngineConfig { max_batch: 3, recompute_cache, ..EngineConfig::default() };
        let mut engine = Engine::new(&model, config).unwrap();
        requests.iter().for_each(|request| engine.submit(request.clone()).unwrap());
        engine.step(&model).unwrap();
        engine.step(&model).unwrap();
        engine.set_version(1);
        let mut finished = Vec::new();
        while !engine.is_idle() {
            finished.extend(engine.step(&changed).unwrap().finished);
        }
        assert_eq!(engine.preemptions(), 0);
        finished.sort_by_key(|finished| finished.id);
        finished
    };
    let anew = respond(true);
    for (request, finished) in requests.iter().zip(&anew) {
        assert_eq!(finished.versions, [0, 0, 1, 1, 1, 1]);
        // As if what was drawn before belonged to the prompt.
        let prompt = [&request.prompt[..], &finished.response[..2]].concat();
        let rest = Request::new(9, prompt, Sampling::greedy(4, vec![]), request.seed);
        let expected = &run(&changed, 1, &[rest])[0];
        assert_eq!(finished.response[2..], expected.response);
        for (found, expected) in finished.logprobs[2..].iter().zip(&expected.logprobs) {
            assert!((found - expected).abs() < 1e-4, "{found} {expected}");
        }
    }
    let kept = respond(false);
    assert!(kept.iter().zip(&anew).any(|(kept, anew)| kept.logprobs[2..] != anew.logprobs[2..]));
}

#[test]
fn bad_requests_and_broken_weights_are_errors_that_name_the_request() {
    let model = model(config());
    let mut engine = Engine::new(&model, EngineConfig::default()).unwrap();
    let fine = Request {
        id: 4,
        prompt: [3].into(),
        sampling: Sampling::new(8, vec![2]).into(),
        seed: 0,
        top_logprobs: 0,
        conversation: None,
    };
    let sampling = Sampling::new(8, vec![2]);
    for (request, says) in [
        (Request { prompt: [].into(), ..fine.clone() }, "request 4: the prompt has no tokens"),
        (Request { prompt: [31].into(), ..fine.clone() }, "request 4: token 31 of the prompt is outside"),
        (Request { prompt: [3; 121].into(), ..fine.clone() }, "exceed the model's 128 positions"),
        (
            Request { sampling: Sampling { top_p: 2.0, ..sampling.clone() }.into(), ..fine.clone() },
            "request 4: `top_p`",
        ),
    ] {
        let error = engine.submit(request).unwrap_err().to_string();
        assert!(error.contains(says), "{error}");
    }
    assert!(engine.is_idle());
    for temperature in [0.0, 1.0] {
        let mut engine = Engine::new(&model, EngineConfig::default()).unwrap();
        let sampling = Sampling { temperature, ..sampling.clone() }.into();
        engine.submit(Request { sampling, ..fine.clone() }).unwrap();
        let broken = model.try_clone().unwrap();
        let _ = broken.parameters().pop().unwrap().1.fill_(f64::NAN);
        let error = engine.step(&broken).unwrap_err().to_string();
        assert!(error.starts_with("the logits of request 4 at response token 0 are not finite"), "{error}");
        // Without it the engine continues.
        assert!(engine.cancel(4).unwrap());
        engine.submit(Request { id: 5, ..fine.clone() }).unwrap();
        assert_eq!(engine.step(&model).unwrap().drawn.len(), 1);
    }
}

#[test]
fn a_row_that_breaks_changes_no_neighbour() {
    let model = model(ModelConfig { tie_word_embeddings: false, ..config() });
    let embedding = model.parameters().into_iter().find(|(name, _)| name == "model.embed_tokens.weight").unwrap().1;
    let _ = tch::no_grad(|| embedding.get(30).fill_(f64::NAN));
    // What a row has drawn is very unlikely to come again.
    let penalised = Sampling { repetition_penalty: 100.0, ..Sampling::greedy(8, vec![]) };
    let neighbour = || Request::new(1, vec![3, 4], penalised.clone(), 0);
    let expected = run(&model, 1, &[neighbour()]).remove(0);
    let mut engine = Engine::new(&model, EngineConfig::default()).unwrap();
    engine.submit(neighbour()).unwrap();
    engine.submit(Request::new(2, vec![30], Sampling::greedy(8, vec![]), 0)).unwrap();
    let error = engine.step(&model).unwrap_err();
    assert!(matches!(error, gavel_policy::PolicyError::NonFinite { request: 2, .. }), "{error}");
    assert!(engine.cancel(2).unwrap());
    let mut finished = Vec::new();
    while !engine.is_idle() {
        finished.extend(engine.step(&model).unwrap().finished);
    }
    assert_same(&finished.remove(0), &expected);
}

#[test]
fn a_full_cache_puts_rows_back_and_loses_nothing() {
    let model = model(config());
    // Two layers, keys and values, two heads of four, four bytes: 128 a token.
    let requests = requests();
    let roomy = run(&model, 12, &requests);
    for tokens in [64, 128, 256] {
        let config = EngineConfig {
            max_batch: 12,
            prefill_tokens: 24,
            cache_bytes: Some(128 * tokens),
            ..EngineConfig::default()
        };
        let mut engine = Engine::new(&model, config).unwrap();
        requests.iter().for_each(|request| engine.submit(request.clone()).unwrap());
        let mut finished = Vec::new();
        while !engine.is_idle() {
            assert!(engine.active() * 64 <= tokens, "{} rows in room for {tokens} tokens", engine.active());
            finished.extend(engine.step(&model).unwrap().finished);
        }
        finished.sort_by_key(|response| response.id);
        assert_eq!(finished.len(), roomy.len());
        finished.iter().zip(&roomy).for_each(|(tight, roomy)| assert_same(tight, roomy));
    }
    let long = |id| Request::new(id, tokens(id, 3), Sampling::new(100, vec![]), id);
    let mut engine =
        Engine::new(&model, EngineConfig { cache_bytes: Some(128 * 192), ..EngineConfig::default() }).unwrap();
    (0..3).for_each(|id| engine.submit(long(id)).unwrap());
    let mut finished = Vec::new();
    while !engine.is_idle() {
        finished.extend(engine.step(&model).unwrap().finished);
    }
    // Three rows fit as long as they are short, one when it is long.
    assert!(engine.preemptions() >= 2, "{}", engine.preemptions());
    finished.sort_by_key(|response| response.id);
    let roomy = run(&model, 3, &[0, 1, 2].map(long));
    finished.iter().zip(&roomy).for_each(|(tight, roomy)| assert_same(tight, roomy));
    let tight = EngineConfig { cache_bytes: Some(128 * 64), ..EngineConfig::default() };
    let error = Engine::new(&model, tight).unwrap().submit(long(7)).unwrap_err().to_string();
    assert_eq!(
        error,
        "request 7: a prompt of 3 tokens and `max_tokens` 100 need more than the cache's 8192 bytes, which are 64 tokens\nhint: ask for fewer tokens, or give the cache more memory"
    );
}

#[test]
fn rows_that_are_put_back_keep_their_settings() {
    let model = model(config());
    let requests: Vec<Request> = (0..3)
        .map(|id| {
            let sampling = Sampling {
                repetition_penalty: [1.5, 1.0, 0.8][id as usize],
                logit_bias: vec![(5, 2.0), (9 + id as u32, -3.0)],
                ..Sampling::new(100, vec![])
            };
            Request { top_logprobs: 1 + id as usize, ..Request::new(id, tokens(id, 3), sampling, id) }
        })
        .collect();
    let draw = |cache_bytes| {
        let mut engine = Engine::new(&model, EngineConfig { cache_bytes, ..EngineConfig::default() }).unwrap();
        requests.iter().for_each(|request| engine.submit(request.clone()).unwrap());
        let mut drawn = Vec::new();
        while !engine.is_idle() {
            drawn.extend(engine.step(&model).unwrap().drawn);
        }
        // The tokens of one request stay in their order.
        drawn.sort_by_key(|drawn| drawn.id);
        (drawn, engine.preemptions())
    };
    let (roomy, none) = draw(None);
    // Three rows of 64 tokens, or one of more.
    let (tight, some) = draw(Some(128 * 192));
    assert!(none == 0 && some >= 2, "{none} and {some}");
    assert_eq!((roomy.len(), tight.len()), (300, 300));
    for (roomy, tight) in roomy.iter().zip(&tight) {
        assert_eq!((roomy.id, roomy.token), (tight.id, tight.token));
        assert_eq!((roomy.top.len(), tight.top.len()), (1 + roomy.id as usize, 1 + roomy.id as usize));
        assert!((roomy.logprob - tight.logprob).abs() < 3e-5, "{roomy:?} {tight:?}");
        let same = |(a, b): (&(u32, f32), &(u32, f32))| a.0 == b.0 && (a.1 - b.1).abs() < 3e-5;
        assert!(roomy.top.iter().zip(&tight.top).all(same), "{roomy:?} {tight:?}");
    }
}

#[test]
fn a_prompt_in_parts_is_the_prompt() {
    for config in [config(), ModelConfig { windows: vec![Some(5), None], ..config() }] {
        let model = model(config);
        let request = Request::new(0, tokens(3, 60), Sampling::new(20, vec![]), 1);
        let with = |prefill_tokens| {
            let config = EngineConfig { max_batch: 1, prefill_tokens, cache_bytes: None, ..EngineConfig::default() };
            let mut engine = Engine::new(&model, config).unwrap();
            engine.submit(request.clone()).unwrap();
            let mut finished = Vec::new();
            while !engine.is_idle() {
                finished.extend(engine.step(&model).unwrap().finished);
            }
            finished.remove(0)
        };
        let (whole, parts) = (with(64), with(7));
        assert_same(&whole, &parts);
        let expected = training_logprobs(&model, &request, &parts.response);
        for (i, (&token, &logprob)) in parts.response.iter().zip(&parts.logprobs).enumerate() {
            assert!((expected.double_value(&[i as i64, i64::from(token)]) - f64::from(logprob)).abs() < 1e-4);
        }
    }
}

#[test]
fn many_rows_of_different_lengths_attend_in_shares() {
    for config in [config(), ModelConfig { windows: vec![Some(40), None], ..config() }] {
        let model = model(config);
        // Long rows that stay and short ones that come and go, so that slots change.
        let request = |id: u64| match id {
            0..40 => Request::new(id, tokens(id / 20, 90), Sampling::new(20 + id as usize / 4, vec![]), id),
            _ => Request::new(id, tokens(id, 3), Sampling::new(3 + id as usize % 9, vec![]), id),
        };
        let requests: Vec<Request> = (0..120).map(request).collect();
        let (many, few) = (run(&model, 80, &requests), run(&model, 7, &requests));
        assert_eq!(many.len(), requests.len());
        many.iter().zip(&few).for_each(|(many, few)| assert_same(many, few));
    }
}

#[test]
fn a_request_may_go_before_those_that_wait() {
    let model = model(config());
    let requests = requests();
    let mut engine = Engine::new(&model, EngineConfig { max_batch: 1, ..EngineConfig::default() }).unwrap();
    (0..3).for_each(|number| engine.submit(requests[number].clone()).unwrap());
    let mut finished = engine.step(&model).unwrap().finished;
    engine.submit_first(requests[3].clone()).unwrap();
    while !engine.is_idle() {
        finished.extend(engine.step(&model).unwrap().finished);
    }
    assert_eq!(finished.iter().map(|response| response.id).collect::<Vec<_>>(), [0, 3, 1, 2]);
}

#[test]
fn a_request_can_be_taken_back() {
    let model = model(config());
    let requests = requests();
    let mut engine = Engine::new(&model, EngineConfig { max_batch: 4, ..EngineConfig::default() }).unwrap();
    requests.iter().for_each(|request| engine.submit(request.clone()).unwrap());
    let mut finished = engine.step(&model).unwrap().finished;
    // A request under way, one that waits, and one that never came.
    assert!(engine.cancel(1).unwrap() && engine.cancel(9).unwrap() && !engine.cancel(99).unwrap());
    while !engine.is_idle() {
        finished.extend(engine.step(&model).unwrap().finished);
    }
    finished.sort_by_key(|response| response.id);
    let ids: Vec<u64> = finished.iter().map(|response| response.id).collect();
    assert_eq!(ids, [0, 2, 3, 4, 5, 6, 7, 8, 10, 11]);
    let all = run(&model, 12, &requests);
    assert!(finished.iter().all(|response| response.response == all[response.id as usize].response));
}

#[test]
fn a_response_can_be_ended_from_outside() {
    let model = model(config());
    let requests: Vec<Request> =
        (0..6).map(|id| Request::new(id, tokens(1, 8), Sampling::new(12, vec![]), id)).collect();
    let all = run(&model, 6, &requests);
    let mut engine = Engine::new(
        &model,
        EngineConfig { max_batch: 3, prefill_tokens: 24, cache_bytes: None, ..EngineConfig::default() },
    )
    .unwrap();
    engine.set_version(4);
    requests.iter().for_each(|request| engine.submit(request.clone()).unwrap());
    (0..5).for_each(|_| assert!(engine.step(&model).unwrap().finished.is_empty()));
    assert_eq!((engine.active(), engine.waiting()), (3, 3));

    let ended = engine.finish(1).unwrap().unwrap();
    assert_eq!((ended.id, ended.finish_reason), (1, FinishReason::Stop));
    assert_eq!(ended.response, &all[1].response[..5]);
    assert_eq!(ended.versions, [4; 5]);
    assert_eq!(ended.logprobs.len(), 5);
    assert!(ended.logprobs.iter().zip(&all[1].logprobs).all(|(a, b)| (a - b).abs() < 3e-5));
    assert!(engine.finish(1).unwrap().is_none() && engine.finish(99).unwrap().is_none());
    // A waiting request has drawn nothing yet.
    assert!(engine.finish(5).unwrap().unwrap().response.is_empty());
    assert_eq!((engine.active(), engine.waiting()), (2, 2));

    let drew = |step: &EngineStep| {
        let mut drew: Vec<u64> = step.drawn.iter().map(|drawn| drawn.id).collect();
        drew.sort_unstable();
        drew
    };
    if model.device() != Device::Cpu {
        // A GPU has begun this step before the response was ended.
        assert_eq!(drew(&engine.step(&model).unwrap()), [0, 2]);
    }
    // The next request gets its place, with the prompt that the group has computed.
    let step = engine.step(&model).unwrap();
    assert_eq!(drew(&step), [0, 2, 3]);
    let mut finished = step.finished;
    while !engine.is_idle() {
        finished.extend(engine.step(&model).unwrap().finished);
    }
    finished.sort_by_key(|response| response.id);
    assert_eq!(finished.iter().map(|response| response.id).collect::<Vec<_>>(), [0, 2, 3, 4]);
    finished.iter().for_each(|response| assert_same(&all[response.id as usize], response));
}

#[test]
fn each_token_comes_with_the_most_probable_ones() {
    let model = model(config());
    let mut request = Request::new(3, tokens(1, 4), Sampling::new(6, vec![]), 2);
    request.top_logprobs = 5;
    let plain = Request::new(4, tokens(2, 3), Sampling::new(6, vec![]), 2);
    let mut engine = Engine::new(&model, EngineConfig::default()).unwrap();
    engine.submit(request.clone()).unwrap();
    engine.submit(plain).unwrap();
    let (mut drawn, mut finished) = (Vec::new(), Vec::new());
    while !engine.is_idle() {
        let step = engine.step(&model).unwrap();
        drawn.extend(step.drawn);
        finished.extend(step.finished);
    }
    assert!(drawn.iter().filter(|drawn| drawn.id == 4).all(|drawn| drawn.top.is_empty()));
    drawn.retain(|drawn| drawn.id == 3);
    let whole = finished.iter().find(|response| response.id == 3).unwrap();
    assert_eq!(drawn.iter().map(|drawn| drawn.token).collect::<Vec<_>>(), whole.response);
    assert_eq!(drawn.iter().map(|drawn| drawn.logprob).collect::<Vec<_>>(), whole.logprobs);
    let expected = training_logprobs(&model, &request, &whole.response);
    for (i, drawn) in drawn.iter().enumerate() {
        let mut here: Vec<(usize, f64)> =
            Vec::<f64>::try_from(expected.get(i as i64).detach()).unwrap().into_iter().enumerate().collect();
        here.sort_by(|a, b| b.1.total_cmp(&a.1));
        assert_eq!(drawn.top.len(), 5);
        for ((token, logprob), (right, value)) in drawn.top.iter().zip(here) {
            assert_eq!(*token as usize, right);
            assert!((f64::from(*logprob) - value).abs() < 1e-4);
        }
    }
}

#[test]
fn a_cache_that_is_let_go_changes_no_response() {
    for config in [config(), ModelConfig { windows: vec![Some(5), None], ..config() }] {
        let model = model(config);
        let requests = requests();
        let expected = run(&model, 4, &requests);
        // With few tokens a step, rows are computed in parts, and let go in the middle of one once.
        for (prefill_tokens, releases) in [(4096, usize::MAX), (24, 3), (4, 1)] {
            let config = EngineConfig { max_batch: 4, prefill_tokens, ..EngineConfig::default() };
            let mut engine = Engine::new(&model, config).unwrap();
            requests.iter().for_each(|request| engine.submit(request.clone()).unwrap());
            let (mut finished, mut released, mut steps) = (Vec::new(), 0, 0);
            while !engine.is_idle() {
                finished.extend(engine.step(&model).unwrap().finished);
                steps += 1;
                if steps % 5 == 0 && steps / 5 <= releases || releases == usize::MAX {
                    let (under_way, waiting) = (engine.active(), engine.waiting());
                    engine.release_cache().unwrap();
                    assert_eq!((engine.active(), engine.waiting()), (0, under_way + waiting));
                    released += under_way;
                }
            }
            finished.sort_by_key(|response| response.id);
            assert!(released > 0 && engine.preemptions() == 0 && finished.len() == expected.len());
            expected.iter().zip(&finished).for_each(|(one, other)| assert_same(one, other));
        }
    }
}
