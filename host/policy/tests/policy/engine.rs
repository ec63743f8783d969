use crate::{config, model, row, tokens};
use gavel_data::{FinishReason, seed};
use gavel_policy::{Engine, EngineConfig, Finished, Model, ModelConfig, Padding, Request, Sampling, Tensor};

fn run(model: &Model, max_batch: usize, requests: &[Request]) -> Vec<Finished> {
    let mut engine = Engine::new(model, EngineConfig { max_batch, prefill_tokens: 24 }).unwrap();
    requests.iter().for_each(|request| engine.submit(request.clone()).unwrap());
    let mut finished = Vec::new();
    while !engine.is_idle() {
        assert!(engine.active() <= max_batch);
        finished.extend(engine.step(model).unwrap());
    }
    finished.sort_by_key(|response| response.id);
    finished
}

/// Three groups of four with prompts of 1, 6 and 11 tokens, and temperatures
/// and lengths that differ.
fn requests() -> Vec<Request> {
    (0..12)
        .map(|id| Request {
            id,
            prompt: tokens(id / 4, 1 + 5 * (id as usize / 4)),
            sampling: Sampling {
                temperature: [0.7, 1.0, 1.5, 0.0][id as usize % 4],
                ..Sampling::new(5 + 3 * id as usize, vec![2, 17])
            },
            seed: 100 + id,
        })
        .collect()
}

/// `log softmax(logits / temperature)` before each response token, `[time, vocab]`,
/// by the forward pass that training uses.
fn training_logprobs(model: &Model, request: &Request, response: &[u32]) -> Tensor {
    let ids = [request.prompt.as_slice(), response].concat();
    let logits = model.logits(&model.hidden(&row(&ids), &Padding::Right).unwrap()).unwrap().squeeze_dim(0);
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
fn a_response_does_not_depend_on_its_neighbours() {
    let model = model(config());
    let requests = requests();
    let together = run(&model, 12, &requests);
    assert_eq!(together, run(&model, 12, &requests), "the same run twice is bit for bit the same");
    for (request, crowd) in requests.iter().zip(&together) {
        let alone = run(&model, 1, std::slice::from_ref(request)).remove(0);
        assert_eq!((&alone.response, alone.finish_reason), (&crowd.response, crowd.finish_reason));
        assert!(alone.logprobs.iter().zip(&crowd.logprobs).all(|(a, b)| (a - b).abs() < 1e-5));
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
            prompt: tokens(id, 2 + id as usize),
            sampling: Sampling::new(100 + id as usize, vec![]),
            seed: id,
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
    let (model, changed) = (model(config()), Model::random(config(), 9, gavel_policy::Device::Cpu).unwrap());
    let mut engine = Engine::new(&model, EngineConfig { max_batch: 3, prefill_tokens: 64 }).unwrap();
    let request = |id| Request { id, prompt: tokens(1, 8), sampling: Sampling::greedy(4, vec![]), seed: id };
    engine.set_version(7);
    engine.submit(request(0)).unwrap();
    engine.step(&model).unwrap();
    engine.set_version(8);
    // The same prompt under new weights must not reuse the old keys.
    engine.submit(request(1)).unwrap();
    let mut finished = Vec::new();
    while !engine.is_idle() {
        finished.extend(engine.step(&changed).unwrap());
    }
    assert_eq!(finished[0].versions, [7, 8, 8, 8]);
    assert_eq!(finished[1].versions, [8; 4]);
    assert_eq!(finished[1].response, run(&changed, 1, &[request(1)])[0].response);
}

#[test]
fn bad_requests_and_broken_weights_are_errors_that_name_the_request() {
    let model = model(config());
    let mut engine = Engine::new(&model, EngineConfig::default()).unwrap();
    let fine = Request { id: 4, prompt: vec![3], sampling: Sampling::new(8, vec![2]), seed: 0 };
    for (request, says) in [
        (Request { prompt: vec![], ..fine.clone() }, "request 4: the prompt has no tokens"),
        (Request { prompt: vec![31], ..fine.clone() }, "request 4: token 31 of the prompt is outside"),
        (Request { prompt: vec![3; 121], ..fine.clone() }, "exceed the model's 128 positions"),
        (Request { sampling: Sampling { top_p: 2.0, ..fine.sampling.clone() }, ..fine.clone() }, "request 4: `top_p`"),
    ] {
        let error = engine.submit(request).unwrap_err().to_string();
        assert!(error.contains(says), "{error}");
    }
    assert!(engine.is_idle());
    for temperature in [0.0, 1.0] {
        let mut engine = Engine::new(&model, EngineConfig::default()).unwrap();
        engine.submit(Request { sampling: Sampling { temperature, ..fine.sampling.clone() }, ..fine.clone() }).unwrap();
        let broken = model.try_clone().unwrap();
        let _ = broken.parameters().pop().unwrap().1.fill_(f64::NAN);
        let error = engine.step(&broken).unwrap_err().to_string();
        assert!(error.starts_with("the logits of request 4 at response token 0 are not finite"), "{error}");
    }
}
