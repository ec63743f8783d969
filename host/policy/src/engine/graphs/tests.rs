use super::*;
use crate::config::ModelConfig;
use crate::engine::unread_step::{UnreadStep, Weights};
use crate::engine::{Engine, EngineConfig, Finished, Lookup, Request};
use crate::sampling::Sampling;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

/// A double of CUDA graphs: it computes each step, and writes to the same tensors each time.
#[derive(Default)]
struct Repeated {
    results: HashMap<Key, Computed>,
    log: Arc<Mutex<Log>>,
}

#[derive(Debug, Default)]
struct Log {
    /// How often each key was recorded.
    recorded: BTreeMap<(usize, bool), usize>,
    launched: usize,
    forgotten: usize,
}

impl Steps for Repeated {
    fn is_usable(&self) -> bool {
        true
    }

    fn run(&mut self, key: Key, step: &mut dyn FnMut() -> Result<Computed>) -> Result<Computed> {
        let computed = step()?;
        let mut log = self.log.lock().unwrap();
        match self.results.get(&key) {
            Some(result) => {
                log.launched += 1;
                let own = |x: &Tensor, from: &Tensor| x.shallow_clone().copy_(from);
                match (result, &computed) {
                    (Computed::Logits(x), Computed::Logits(from)) => own(x, from),
                    (Computed::Tokens(x), Computed::Tokens(from)) => {
                        own(&x.tokens, &from.tokens);
                        own(&x.pairs, &from.pairs);
                    }
                    _ => panic!("a step ended in two ways"),
                }
                Ok(result.shallow_clone())
            }
            None => {
                *log.recorded.entry((key.rows, key.draws.is_some())).or_default() += 1;
                let result = computed.shallow_clone();
                self.results.insert(key, computed);
                Ok(result)
            }
        }
    }

    fn forget(&mut self) {
        self.results.clear();
        self.log.lock().unwrap().forgotten += 1;
    }
}

fn model() -> Model {
    let json = r#"{"model_type":"qwen3","vocab_size":50,"hidden_size":16,"intermediate_size":24,"num_hidden_layers":2,"num_attention_heads":4,"num_key_value_heads":2,"head_dim":8}"#;
    Model::random(serde_json::from_str::<ModelConfig>(json).unwrap(), 3, Device::Cpu).unwrap()
}

/// An engine that repeats its steps, and what it repeated.
fn engine(model: &Model) -> (Engine, Arc<Mutex<Log>>) {
    engine_of(model, EngineConfig::default())
}

fn engine_of(model: &Model, config: EngineConfig) -> (Engine, Arc<Mutex<Log>>) {
    let mut engine = Engine::new(model, config).unwrap();
    let steps = Repeated::default();
    let log = steps.log.clone();
    engine.graphs = Some(Graphs::of(Box::new(steps)));
    (engine, log)
}

fn request(id: u64, sampling: Sampling) -> Request {
    Request::new(id, (0..3 + id % 5).map(|at| ((7 * id + 3 * at) % 50) as u32).collect::<Vec<_>>(), sampling, id)
}

/// Responses of many lengths, drawn in every way. Some end with one of five tokens.
fn requests() -> Vec<Request> {
    let sampling = |id: u64| {
        let plain = Sampling::new(4 + (11 * id % 80) as usize, vec![]);
        match id % 7 {
            0 => Sampling { temperature: 0.0, ..plain },
            1 => Sampling { temperature: 0.7, ..plain },
            2 => Sampling { repetition_penalty: 1.5, ..plain },
            3 => Sampling { top_k: Some(5), top_p: 0.9, masked: id % 2 == 1, ..plain },
            4 => Sampling { logit_bias: vec![(4, 3.0)], ..plain },
            5 => Sampling { stop_ids: (10..15).collect(), ..plain },
            _ => Sampling { masked: true, ..plain },
        }
    };
    (0..21).map(|id| Request { top_logprobs: (id % 9 / 8) as usize, ..request(id, sampling(id)) }).collect()
}

/// The responses to requests of which some come while others are under way.
fn draw(engine: &mut Engine, model: &Model, requests: Vec<Request>) -> Vec<Finished> {
    let mut waiting = requests.into_iter();
    let mut finished = Vec::new();
    loop {
        waiting.by_ref().take(2).for_each(|request| engine.submit(request).unwrap());
        for _ in 0..5 {
            finished.extend(engine.step(model).unwrap().finished);
        }
        if waiting.len() == 0 && engine.is_idle() {
            finished.sort_by_key(|done| done.id);
            return finished;
        }
    }
}

fn assert_same(found: &[Finished], expected: &[Finished]) {
    assert_eq!(found.len(), expected.len());
    for (found, expected) in found.iter().zip(expected) {
        assert_eq!((found.id, &found.response), (expected.id, &expected.response));
        assert_eq!(found.masks, expected.masks);
        for (found, expected) in found.logprobs.iter().zip(&expected.logprobs) {
            assert!((found - expected).abs() < 1e-4, "{found} is not {expected}");
        }
    }
}

#[test]
fn repeated_steps_draw_the_same_tokens() {
    let model = model();
    let expected = draw(&mut Engine::new(&model, EngineConfig::default()).unwrap(), &model, requests());
    let (mut engine, log) = engine(&model);
    assert_same(&draw(&mut engine, &model, requests()), &expected);
    let log = log.lock().unwrap();
    assert!(log.launched > 50, "{log:?}");
    // Tokens are drawn in the graph where nothing but the temperature matters.
    assert!(log.recorded.keys().any(|key| key.1) && log.recorded.keys().any(|key| !key.1), "{log:?}");
    assert!(log.recorded.keys().all(|(rows, _)| [1, 2, 4, 8, 16].contains(rows)), "{log:?}");
}

#[test]
fn repeated_steps_draw_the_same_tokens_where_some_are_proposed() {
    let model = model();
    let repetitive = |id: u64| {
        // Greedy, the model repeats itself soon.
        let temperature = if id.is_multiple_of(2) { 0.0 } else { 0.2 };
        let sampling = Sampling { temperature, ..Sampling::new(10 + (7 * id % 60) as usize, vec![]) };
        let plain = request(id, sampling);
        Request { prompt: plain.prompt.repeat(3).into(), ..plain }
    };
    let requests = || (0..12).map(repetitive).collect::<Vec<_>>();
    let expected = draw(&mut Engine::new(&model, EngineConfig::default()).unwrap(), &model, requests());
    // Of few rows, proposed tokens; of many rows, the next step before its tokens are read.
    let lookup = Lookup { prompt_lookup_min: 1, disable_by_batch_size: 3, ..Lookup::default() };
    let (mut engine, log) = engine_of(&model, EngineConfig { lookup: Some(lookup), ..EngineConfig::default() });
    assert_same(&draw(&mut engine, &model, requests()), &expected);
    assert!(engine.proposals().accepted > 10 && log.lock().unwrap().launched > 10, "{:?}", engine.proposals());
}

#[test]
fn rows_are_padded_to_few_numbers() {
    let numbers: Vec<usize> = (1..=40).map(padded).collect();
    assert_eq!(numbers[..9], [1, 2, 4, 4, 8, 8, 8, 8, 16]);
    assert_eq!((numbers[15], numbers[16], numbers[39]), (16, 24, 40));
}

#[test]
fn graphs_are_dropped_when_the_cache_grows() {
    let model = model();
    let (mut engine, log) = engine(&model);
    engine.submit(request(0, Sampling::new(100, vec![]))).unwrap();
    while !engine.is_idle() {
        engine.step(&model).unwrap();
    }
    let log = log.lock().unwrap();
    // At the beginning, and when the first slot's 64 tokens are full.
    assert_eq!((log.forgotten, log.recorded[&(1, true)]), (2, 2), "{log:?}");
}

#[test]
fn graphs_are_dropped_when_weights_move_but_not_when_they_change() {
    let model = model();
    let (mut engine, log) = engine(&model);
    engine.submit(request(0, Sampling::new(50, vec![]))).unwrap();
    let step = |engine: &mut Engine| {
        engine.step(&model).unwrap();
        let log = log.lock().unwrap();
        (log.forgotten, log.launched)
    };
    // The first computes the prompt. Each of the others also starts the next one.
    step(&mut engine);
    assert_eq!([step(&mut engine), step(&mut engine)], [(1, 1), (1, 2)]);
    let mut parameters = model.parameters();
    let (_, weight) = &mut parameters[1];
    let _ = tch::no_grad(|| weight.fill_(0.5));
    engine.weights_changed();
    assert_eq!([step(&mut engine), step(&mut engine)], [(1, 4), (1, 5)]);
    let moved = weight.detach().copy();
    tch::no_grad(|| weight.set_data(&moved));
    assert_eq!([step(&mut engine), step(&mut engine)], [(2, 6), (2, 7)]);
}

#[test]
fn a_step_that_was_started_is_not_used_after_something_else_changed() {
    let model = model();
    // What happens after some steps, and whether the step that was started then is used.
    type Event = fn(&mut Engine, &Model);
    let events: [(&str, bool, Event); 6] = [
        ("nothing", true, |_, _| {}),
        ("other weights", false, |engine, model| {
            tch::no_grad(|| model.parameters().iter_mut().for_each(|(_, weight)| drop(weight.neg_())));
            engine.weights_changed();
        }),
        ("the cache is released", false, |engine, _| engine.release_cache().unwrap()),
        ("one ends, one is cancelled", true, |engine, _| {
            assert!(engine.finish(1).unwrap().is_some() && engine.cancel(2).unwrap());
        }),
        ("all are cancelled", false, |engine, _| (0..6).for_each(|id| assert!(engine.cancel(id).unwrap()))),
        ("others come", true, |engine, _| {
            (6..9).for_each(|id| engine.submit(request(id, Sampling::new(20, vec![]))).unwrap());
        }),
    ];
    let before: Vec<Tensor> = model.parameters().into_iter().map(|(_, weight)| weight.copy()).collect();
    for (what, is_used, event) in events {
        let drawn = |mut engine: Engine, repeats: bool| {
            (0..6).for_each(|id| engine.submit(request(id, Sampling::new(30, vec![]))).unwrap());
            (0..10).for_each(|_| assert_eq!(engine.step(&model).unwrap().drawn.len(), 6));
            assert_eq!(engine.ahead.is_some(), repeats);
            event(&mut engine, &model);
            let weights = Weights { changes: engine.scheduler.changes, addresses: model.addresses() };
            let places = engine.ahead.as_ref().and_then(|step| step.places(&engine.scheduler.slots.rows, weights));
            assert_eq!(places.is_some(), repeats && is_used, "{what}");
            let finished = draw(&mut engine, &model, vec![request(9, Sampling::new(20, vec![]))]);
            tch::no_grad(|| {
                let weights = model.parameters().into_iter().zip(&before);
                weights.for_each(|((_, mut weight), before)| weight.copy_(before));
            });
            finished
        };
        let expected = drawn(Engine::new(&model, EngineConfig::default()).unwrap(), false);
        assert_same(&drawn(engine(&model).0, true), &expected);
    }
}

#[test]
fn a_started_step_leaves_nothing_in_the_slot_of_a_row_that_is_gone() {
    let model = model();
    let (mut engine, _) = engine(&model);
    (0..2).for_each(|id| engine.submit(request(id, Sampling::new(30, vec![]))).unwrap());
    (0..4).for_each(|_| drop(engine.step(&model).unwrap()));
    let (slots, weights) = (&engine.scheduler.slots, engine.ahead.as_ref().unwrap().weights);
    let pairs = Tensor::from_slice2(&[[1f64, f64::NAN], [2.0, f64::NAN]]);
    let drawn = Drawn { tokens: Tensor::zeros([2, 1], (Kind::Int64, Device::Cpu)), pairs };
    engine.ahead = Some(UnreadStep::new(slots, &Decoding::all(slots), &drawn, weights).unwrap());
    let gone = slots.slot(0);
    for slot in 0..2 {
        let [mut keys, mut values] = slots.cache.row(0, slot, 9).unwrap();
        let _ = (keys.fill_(f64::NAN), values.fill_(f64::NAN));
    }
    assert!(engine.cancel(0).unwrap());
    // The other row cannot continue, and keeps what it has until it is cancelled.
    assert!(engine.step(&model).is_err());
    for slot in 0..2 {
        let [keys, values] = engine.scheduler.slots.cache.row(0, slot, 9).unwrap();
        let are_zero = keys.abs().sum(Kind::Float).double_value(&[]) + values.abs().sum(Kind::Float).double_value(&[]);
        assert_eq!(are_zero == 0.0, slot == gone);
    }
}

#[test]
fn the_next_step_is_not_started_where_a_request_can_join_it() {
    let model = model();
    for (max_batch, expected) in [(1, [1, 2, 3]), (2, [1, 1, 1])] {
        let (mut engine, log) = engine_of(&model, EngineConfig { max_batch, ..EngineConfig::default() });
        let long = |id| request(id, Sampling::new(30, vec![]));
        engine.submit(long(0)).unwrap();
        engine.step(&model).unwrap();
        let step = |engine: &mut Engine| {
            engine.step(&model).unwrap();
            log.lock().unwrap().launched
        };
        let first = step(&mut engine);
        engine.submit(long(1)).unwrap();
        assert_eq!([first, step(&mut engine), step(&mut engine)], expected, "at most {max_batch} rows");
    }
}
