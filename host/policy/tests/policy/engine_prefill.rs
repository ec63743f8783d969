//! Long prompts are computed in parts, beside the rows that decode.

use crate::engine::{assert_same, run};
use crate::{config, device, model, tokens};
use gavel_policy::{Engine, EngineConfig, Finished, Model, ModelConfig, Request, Sampling};

const PARTS: usize = 8;

fn engine(model: &Model, cache_bytes: Option<usize>) -> Engine {
    Engine::new(model, EngineConfig { max_batch: 6, prefill_tokens: PARTS, cache_bytes, ..EngineConfig::default() })
        .unwrap()
}

fn request(id: u64, prompt: u64, length: usize, new: usize) -> Request {
    Request::new(id, tokens(prompt, length), Sampling::new(new, vec![]), id)
}

/// The requests that drew a token in a step.
fn step(engine: &mut Engine, model: &Model, finished: &mut Vec<Finished>) -> Vec<u64> {
    let step = engine.step(model).unwrap();
    finished.extend(step.finished);
    let mut drew: Vec<u64> = step.drawn.iter().map(|drawn| drawn.id).collect();
    drew.sort_unstable();
    drew
}

fn finish(engine: &mut Engine, model: &Model, mut finished: Vec<Finished>) -> Vec<Finished> {
    while !engine.is_idle() {
        step(engine, model, &mut finished);
    }
    finished.sort_by_key(|response| response.id);
    finished
}

fn assert_as_alone(model: &Model, finished: &[Finished], requests: &[Request]) {
    assert_eq!(finished.len(), requests.len());
    for (done, request) in finished.iter().zip(requests) {
        assert_same(&run(model, 1, std::slice::from_ref(request))[0], done);
    }
}

#[test]
fn rows_go_on_beside_a_long_prompt() {
    for config in [config(), ModelConfig { windows: vec![Some(5), None], ..config() }] {
        let model = model(config);
        let mut requests = vec![request(0, 0, 3, 30), request(1, 1, 5, 3), request(2, 2, 1, 25), request(3, 3, 42, 12)];
        let (mut engine, mut finished) = (engine(&model, None), Vec::new());
        requests[..3].iter().for_each(|request| engine.submit(request.clone()).unwrap());
        assert_eq!(step(&mut engine, &model, &mut finished), [0, 1, 2]);
        engine.submit(requests[3].clone()).unwrap();
        // 41 tokens are six parts. Row 1 ends meanwhile, so that the others change their slots.
        for part in 1..=6 {
            // One that fits beside the last part.
            if part == 4 {
                requests.push(request(4, 4, 7, 9));
                engine.submit(requests[4].clone()).unwrap();
            }
            let drew = step(&mut engine, &model, &mut finished);
            match part {
                1 | 2 => assert_eq!(drew, [0, 1, 2], "part {part}"),
                3..6 => assert_eq!(drew, [0, 2], "part {part}"),
                _ => assert_eq!(drew, [0, 2, 3, 4], "part {part}"),
            }
        }
        assert_as_alone(&model, &finish(&mut engine, &model, finished), &requests);
    }
}

#[test]
fn a_step_computes_no_more_of_prompts_than_it_may() {
    let model = model(config());
    // Without their last tokens 4, 4, 1, 8, 9 and 2.
    let requests: Vec<Request> = [5, 5, 2, 9, 10, 3].iter().zip(0..).map(|(&n, id)| request(id, id, n, 9)).collect();
    let (mut engine, mut finished) = (engine(&model, None), Vec::new());
    requests.iter().for_each(|request| engine.submit(request.clone()).unwrap());
    let expected: [&[u64]; 5] = [&[0, 1], &[0, 1, 2], &[0, 1, 2, 3], &[0, 1, 2, 3], &[0, 1, 2, 3, 4, 5]];
    for drew in expected {
        assert_eq!(step(&mut engine, &model, &mut finished), drew);
    }
    assert_as_alone(&model, &finish(&mut engine, &model, finished), &requests);
}

#[test]
fn a_group_waits_for_the_prompt_that_is_half_done_and_computes_it_once() {
    let model = model(config());
    let requests: Vec<Request> = [0, 1, 1, 1, 1].iter().zip(0..).map(|(&p, id)| request(id, p, 31, 10)).collect();
    let (mut engine, mut finished) = (engine(&model, None), Vec::new());
    requests[..2].iter().for_each(|request| engine.submit(request.clone()).unwrap());
    let drew: Vec<Vec<u64>> = (0..6).map(|_| step(&mut engine, &model, &mut finished)).collect();
    assert_eq!(drew, [vec![], vec![], vec![], vec![0], vec![0], vec![0]]);
    requests[2..].iter().for_each(|request| engine.submit(request.clone()).unwrap());
    assert_eq!(step(&mut engine, &model, &mut finished), [0]);
    // The last part of request 1, and the others have the prompt with it.
    assert_eq!(step(&mut engine, &model, &mut finished), [0, 1, 2, 3, 4]);
    assert_as_alone(&model, &finish(&mut engine, &model, finished), &requests);
}

#[test]
fn a_prompt_that_is_half_done_can_be_taken_back() {
    let model = model(config());
    let requests = [request(0, 0, 4, 30), request(2, 2, 20, 9)];
    let (mut engine, mut finished) = (engine(&model, None), Vec::new());
    engine.submit(requests[0].clone()).unwrap();
    engine.submit(request(1, 1, 60, 9)).unwrap();
    engine.submit(requests[1].clone()).unwrap();
    (0..4).for_each(|_| assert_eq!(step(&mut engine, &model, &mut finished), [0]));
    assert_eq!((engine.active(), engine.waiting()), (2, 1));
    assert!(engine.cancel(1).unwrap());
    assert_eq!((engine.active(), engine.waiting()), (1, 1));
    // The request that waited behind it gets a place: 19 tokens are three
    // parts.
    (0..2).for_each(|_| assert_eq!(step(&mut engine, &model, &mut finished), [0]));
    assert_eq!(step(&mut engine, &model, &mut finished), [0, 2]);
    assert_as_alone(&model, &finish(&mut engine, &model, finished), &requests);
}

#[test]
fn a_prompt_that_is_half_done_can_be_put_back() {
    let model = model(config());
    // Rows take their room in steps of 64 tokens of 128 bytes: two of them, until the first needs 128 tokens.
    let requests = [request(0, 0, 58, 40), request(1, 1, 60, 4)];
    let (mut engine, mut finished) = (engine(&model, Some(128 * 128)), Vec::new());
    engine.submit(requests[0].clone()).unwrap();
    while engine.step(&model).unwrap().drawn.is_empty() {}
    engine.submit(requests[1].clone()).unwrap();
    (0..6).for_each(|_| assert_eq!(step(&mut engine, &model, &mut finished), [0]));
    assert_eq!((engine.active(), engine.waiting(), engine.preemptions()), (2, 0, 0));
    assert_eq!(step(&mut engine, &model, &mut finished), [0]);
    assert_eq!((engine.active(), engine.waiting(), engine.preemptions()), (1, 1, 1));
    assert_as_alone(&model, &finish(&mut engine, &model, finished), &requests);
}

#[test]
fn a_prompt_has_the_keys_of_one_version() {
    let (model, changed) = (model(config()), Model::random(config(), 9, device()).unwrap());
    let requests = [request(0, 0, 30, 9)];
    let (mut engine, mut finished) = (engine(&model, None), Vec::new());
    engine.submit(requests[0].clone()).unwrap();
    (0..2).for_each(|_| assert!(step(&mut engine, &model, &mut finished).is_empty()));
    engine.set_version(1);
    (0..3).for_each(|_| assert!(step(&mut engine, &changed, &mut finished).is_empty()));
    assert_eq!(step(&mut engine, &changed, &mut finished), [0]);
    let finished = finish(&mut engine, &changed, finished);
    assert_eq!(finished[0].versions, [1; 9]);
    assert_as_alone(&changed, &finished, &requests);
}

#[test]
fn what_one_row_broke_is_no_part_of_the_next() {
    // A token whose embedding is not finite, in a model with a head of its own: only rows that have it break.
    let model = model(ModelConfig { tie_word_embeddings: false, ..config() });
    let (name, embedding) = model.parameters().swap_remove(0);
    assert_eq!(name, "model.embed_tokens.weight");
    let _ = tch::no_grad(|| embedding.get(30).fill_(f64::INFINITY));
    let fine = |id, length| {
        let prompt = tokens(id, length).into_iter().map(|token| token.min(29)).collect::<Vec<_>>();
        Request::new(id, prompt, Sampling::greedy(12, vec![30]), id)
    };
    let broken = Request::new(9, [vec![5; 20], vec![30; 12]].concat(), Sampling::greedy(12, vec![]), 9);
    let requests = [fine(0, 40), fine(1, 3), fine(2, 2)];

    // Its prompt is computed in parts. It is cancelled, or the weights change, before it has drawn a token.
    for change_version in [false, true] {
        let config = EngineConfig { max_batch: 2, prefill_tokens: 16, ..EngineConfig::default() };
        let mut engine = Engine::new(&model, config).unwrap();
        engine.submit(requests[1].clone()).unwrap();
        let mut finished = engine.step(&model).unwrap().finished;
        let long = Request { prompt: [vec![30], vec![5; 40]].concat().into(), ..broken.clone() };
        engine.submit(long).unwrap();
        finished.extend(engine.step(&model).unwrap().finished);
        assert_eq!((engine.active(), engine.waiting()), (2, 0));
        if change_version {
            engine.set_version(0);
            engine.set_version(1);
            finished.extend(engine.step(&model).unwrap().finished);
            assert_eq!((engine.active(), engine.waiting()), (2, 0), "it begins anew at once");
        }
        assert!(engine.cancel(9).unwrap());
        engine.submit(requests[2].clone()).unwrap();
        assert_as_alone(&model, &finish(&mut engine, &model, finished), &requests[1..]);
    }

    let mut engine = Engine::new(&model, EngineConfig { max_batch: 3, ..EngineConfig::default() }).unwrap();
    [&requests[0], &broken, &requests[1]].iter().for_each(|request| engine.submit((*request).clone()).unwrap());
    let error = engine.step(&model).unwrap_err().to_string();
    assert!(error.starts_with("the logits of request 9 "), "{error}");
    assert!(engine.cancel(9).unwrap());
    engine.submit(requests[2].clone()).unwrap();
    assert_as_alone(&model, &finish(&mut engine, &model, Vec::new()), &requests);
}
