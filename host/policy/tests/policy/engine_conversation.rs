//! Turns of a conversation compute only what is new in their prompts.

use crate::engine::{assert_same, run};
use crate::{config, model, tokens};
use gavel_policy::{Engine, EngineConfig, Finished, Model, ModelConfig, Request, Sampling};

const NEW: usize = 4;

fn engine(model: &Model, config: EngineConfig) -> Engine {
    Engine::new(model, EngineConfig { max_batch: 4, ..config }).unwrap()
}

/// A turn of a conversation of its own number.
fn turn(id: u64, conversation: u64, prompt: &[u32]) -> Request {
    let request = Request::new(id, prompt.to_vec(), Sampling::new(NEW, vec![]), id);
    Request { conversation: Some(conversation), ..request }
}

/// Draws these responses together, and counts the tokens of prompts that were computed.
fn draw(engine: &mut Engine, model: &Model, requests: &[Request]) -> (Vec<Finished>, u64) {
    let before = engine.prefilled();
    requests.iter().for_each(|request| engine.submit(request.clone()).unwrap());
    let mut finished = Vec::new();
    while !engine.is_idle() {
        finished.extend(engine.step(model).unwrap().finished);
    }
    finished.sort_by_key(|response| response.id);
    for (done, request) in finished.iter().zip(requests) {
        assert_same(&run(model, 1, std::slice::from_ref(request))[0], done);
    }
    (finished, engine.prefilled() - before)
}

/// The next prompt: a turn, its response, and `more` tokens.
fn next(request: &Request, response: &Finished, more: usize) -> Vec<u32> {
    [&request.prompt[..], &response.response, &tokens(request.id + 7, more)].concat()
}

#[test]
fn a_turn_computes_what_is_new() {
    let windows = ModelConfig { windows: vec![Some(5), None], ..config() };
    for (config, prefill_tokens) in [(config(), 4096), (windows, 4096), (self::config(), 3)] {
        let model = model(config);
        let mut engine = engine(&model, EngineConfig { prefill_tokens, ..EngineConfig::default() });
        let mut request = turn(0, 0, &tokens(0, 9));
        let (mut done, computed) = draw(&mut engine, &model, std::slice::from_ref(&request));
        // The last token is an input of the first step.
        assert_eq!(computed, 8);
        for id in 1..5 {
            request = turn(id, 0, &next(&request, &done[0], id as usize));
            let computed;
            (done, computed) = draw(&mut engine, &model, std::slice::from_ref(&request));
            // The token that was drawn last was not an input yet, and the last token of the prompt is not one yet.
            assert_eq!(computed, id, "turn {id}");
        }
        // Nothing is new in the same prompt again.
        assert_eq!(draw(&mut engine, &model, &[turn(9, 0, &request.prompt)]).1, 0);
    }
}

#[test]
fn conversations_are_told_apart_by_their_tokens() {
    let model = model(config());
    let mut engine = engine(&model, EngineConfig::default());
    let first: Vec<Request> = (0..3).map(|id| turn(id, id, &tokens(id, 8 + id as usize))).collect();
    let (done, computed) = draw(&mut engine, &model, &first);
    assert_eq!(computed, 3 * 9, "they are padded to the longest");
    // Two conversations that continue side by side, two forks of the third with different endings, and one without a
    // number.
    let plain = Request { conversation: None, ..turn(17, 0, &next(&first[0], &done[0], 2)) };
    let second = [
        turn(10, 0, &next(&first[0], &done[0], 1)),
        turn(11, 1, &next(&first[1], &done[1], 5)),
        turn(12, 5, &[&next(&first[2], &done[2], 2)[..], &[3]].concat()),
        turn(13, 6, &[&next(&first[2], &done[2], 2)[..], &[4, 5]].concat()),
    ];
    assert_eq!(draw(&mut engine, &model, &second).1, 1 + 5 + 3 + 4);
    assert_eq!(draw(&mut engine, &model, std::slice::from_ref(&plain)).1, plain.prompt.len() as u64 - 1);
    // The same prompt of several forks is computed once.
    let same: Vec<Request> = (20..23).map(|id| turn(id, id, &second[3].prompt)).collect();
    assert_eq!(draw(&mut engine, &model, &same).1, 0);
}

#[test]
fn a_history_that_was_rewritten_is_computed_from_where_it_differs() {
    let model = model(config());
    let mut engine = engine(&model, EngineConfig::default());
    let first = turn(0, 0, &tokens(0, 20));
    draw(&mut engine, &model, std::slice::from_ref(&first));
    let rewritten = [&first.prompt[..15], &[9, 9, 9, 9, 9]].concat();
    assert_eq!(draw(&mut engine, &model, &[turn(1, 0, &rewritten)]).1, 4);
    // A prompt with less than half in common is computed from its beginning.
    let other = [&first.prompt[..5], &tokens(3, 15)].concat();
    assert_eq!(draw(&mut engine, &model, &[turn(2, 0, &other)]).1, 19);
}

#[test]
fn other_weights_and_forgotten_conversations_are_computed_again() {
    let model = model(config());
    let mut engine = engine(&model, EngineConfig::default());
    let first = turn(0, 0, &tokens(0, 9));
    let (done, _) = draw(&mut engine, &model, std::slice::from_ref(&first));
    let second = turn(1, 0, &next(&first, &done[0], 2));
    let whole = second.prompt.len() as u64 - 1;
    let again = |engine: &mut Engine| draw(engine, &model, std::slice::from_ref(&second)).1;
    assert_eq!(again(&mut engine), 2);
    engine.set_version(0);
    assert_eq!(again(&mut engine), 0);
    engine.forget(0);
    assert_eq!(again(&mut engine), whole);

    // A turn in which the weights change leaves nothing.
    engine.submit(second.clone()).unwrap();
    engine.step(&model).unwrap();
    engine.set_version(1);
    while !engine.is_idle() {
        engine.step(&model).unwrap();
    }
    let before = engine.prefilled();
    engine.submit(second).unwrap();
    engine.step(&model).unwrap();
    assert_eq!(engine.prefilled() - before, whole);
}

#[test]
fn conversations_give_way_to_rows_under_way() {
    let model = model(config());
    // 192 tokens: three rows of up to 64 tokens, or the room that they leave for conversations that wait.
    let config = EngineConfig { cache_bytes: Some(128 * 192), ..EngineConfig::default() };
    let mut engine = engine(&model, config);
    let first: Vec<Request> = (0..6).map(|id| turn(id, id, &tokens(id, 30))).collect();
    let mut done = Vec::new();
    for request in &first {
        done.extend(draw(&mut engine, &model, std::slice::from_ref(request)).0);
    }
    // A slot of 64 tokens leaves room for three conversations of 33.
    let second = |id: usize| turn(10 + id as u64, id as u64, &next(&first[id], &done[id], 1));
    let computed: Vec<u64> = [5, 0, 4].into_iter().map(|id| draw(&mut engine, &model, &[second(id)]).1).collect();
    assert_eq!(computed, [1, 34, 1]);
    // Three rows under way take it all.
    let rows: Vec<Request> =
        (20..23).map(|id| Request::new(id, tokens(id, 30), Sampling::new(30, vec![]), id)).collect();
    draw(&mut engine, &model, &rows);
    assert_eq!(draw(&mut engine, &model, &[second(5)]).1, 34);
}

#[test]
fn a_branch_copies_what_a_turn_under_way_has() {
    let model = model(config());
    let mut engine = engine(&model, EngineConfig::default());
    let first = turn(0, 0, &tokens(0, 20));
    let (done, _) = draw(&mut engine, &model, std::slice::from_ref(&first));
    let second = turn(1, 0, &next(&first, &done[0], 2));
    engine.submit(second.clone()).unwrap();
    let mut finished = Vec::new();
    (0..2).for_each(|_| finished.extend(engine.step(&model).unwrap().finished));
    assert!(finished.is_empty());
    // What was kept of the conversation is in its row now, and nowhere else.
    let bytes = engine.cache_use();
    assert!(bytes.held < 2 * 64 * 128 && bytes.used < bytes.held, "{bytes:?}");
    let before = engine.prefilled();
    let branch = turn(2, 9, &[&second.prompt[..second.prompt.len() - 1], &[3, 4, 5]].concat());
    engine.submit(branch.clone()).unwrap();
    while !engine.is_idle() {
        finished.extend(engine.step(&model).unwrap().finished);
    }
    assert_eq!(engine.prefilled() - before, 2);
    finished.sort_by_key(|done| done.id);
    for (found, request) in finished.iter().zip([second, branch]) {
        assert_same(&run(&model, 1, &[request])[0], found);
    }
}

#[test]
fn equal_turns_that_begin_as_a_row_under_way_all_have_its_beginning() {
    let model = model(config());
    let mut engine = engine(&model, EngineConfig::default());
    let long = Request { sampling: Sampling::new(20, vec![]).into(), ..turn(0, 0, &tokens(0, 40)) };
    engine.submit(long.clone()).unwrap();
    (0..2).for_each(|_| assert!(engine.step(&model).unwrap().finished.is_empty()));
    let prompt = [&long.prompt[..30], &tokens(5, 10)].concat();
    let before = engine.prefilled();
    let equal: Vec<Request> = (1..4).map(|id| turn(id, id, &prompt)).collect();
    equal.iter().for_each(|request| engine.submit(request.clone()).unwrap());
    let mut finished = Vec::new();
    while !engine.is_idle() {
        finished.extend(engine.step(&model).unwrap().finished);
    }
    assert_eq!(engine.prefilled() - before, 9);
    finished.sort_by_key(|done| done.id);
    for (found, request) in finished.iter().zip([vec![long], equal].concat()) {
        assert_same(&run(&model, 1, &[request])[0], found);
    }
}

#[test]
fn what_is_kept_stays_while_a_turn_that_rewrites_it_is_under_way() {
    let model = model(config());
    let mut engine = engine(&model, EngineConfig::default());
    let first = turn(0, 0, &tokens(0, 20));
    let (done, _) = draw(&mut engine, &model, std::slice::from_ref(&first));
    let rewritten = turn(1, 0, &[&first.prompt[..15], &[9, 9, 9, 9, 9]].concat());
    engine.submit(rewritten.clone()).unwrap();
    assert!(engine.step(&model).unwrap().finished.is_empty());
    // Another conversation goes on from the turn as it was.
    let branch = turn(2, 9, &next(&first, &done[0], 2));
    let before = engine.prefilled();
    engine.submit(branch.clone()).unwrap();
    let mut finished = Vec::new();
    while !engine.is_idle() {
        finished.extend(engine.step(&model).unwrap().finished);
    }
    assert_eq!(engine.prefilled() - before, 2);
    finished.sort_by_key(|done| done.id);
    for (found, request) in finished.iter().zip([rewritten, branch]) {
        assert_same(&run(&model, 1, &[request])[0], found);
    }
}
