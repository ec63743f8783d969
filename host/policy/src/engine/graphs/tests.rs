use super::*;
use crate::config::ModelConfig;
use crate::engine::{Engine, EngineConfig, Finished, Request};
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
                        own(&x.logprobs, &from.logprobs);
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
    let mut engine = Engine::new(model, EngineConfig::default()).unwrap();
    let steps = Repeated::default();
    let log = steps.log.clone();
    engine.graphs = Some(Graphs::of(Box::new(steps)));
    (engine, log)
}

fn request(id: u64, sampling: Sampling) -> Request {
    Request::new(id, (0..3 + id % 5).map(|at| ((7 * id + 3 * at) % 50) as u32).collect(), sampling, id)
}

/// Responses of many lengths, drawn in every way.
fn requests() -> Vec<Request> {
    let sampling = |id: u64| {
        let plain = Sampling::new(4 + (11 * id % 80) as usize, vec![]);
        match id % 7 {
            0 => Sampling { temperature: 0.0, ..plain },
            1 => Sampling { temperature: 0.7, ..plain },
            2 => Sampling { repetition_penalty: 1.5, ..plain },
            3 => Sampling { top_k: Some(5), top_p: 0.9, ..plain },
            4 => Sampling { logit_bias: vec![(4, 3.0)], ..plain },
            _ => plain,
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
    let mut step = || {
        engine.step(&model).unwrap();
        let log = log.lock().unwrap();
        (log.forgotten, log.launched)
    };
    // The first computes the prompt.
    step();
    assert_eq!([step(), step()], [(1, 0), (1, 1)]);
    let mut parameters = model.parameters();
    let (_, weight) = &mut parameters[1];
    let _ = tch::no_grad(|| weight.fill_(0.5));
    assert_eq!(step(), (1, 2));
    let moved = weight.detach().copy();
    tch::no_grad(|| weight.set_data(&moved));
    assert_eq!([step(), step()], [(2, 2), (2, 3)]);
}
