//! Responses of a model that are bound to the grammars in `tests/grammars`.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use futures::future::try_join_all;
use gavel_data::{Constraint, ConstraintState, FinishReason, SharedConstraint};
use gavel_policy::{Device, EngineConfig, Model, ModelConfig, PolicyError, Sampling};
use gavel_rollout::{AsyncEngine, GenerateRequest, RolloutError};
use gavel_text::{GrammarCompiler, GrammarSource, TextModel};
use serde::de::IgnoredAny;
use serde_json::{Value, json};
use std::fs;
use std::path::Path;
use std::sync::Arc;

fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
}

fn engine() -> AsyncEngine {
    let text = TextModel::byte_level();
    let sizes = json!({"vocab_size": text.tokenizer.vocab_size(), "hidden_size": 16, "intermediate_size": 16,
                       "num_hidden_layers": 2, "num_attention_heads": 2, "max_position_embeddings": 2048});
    let config: ModelConfig = serde_json::from_value(sizes).unwrap();
    AsyncEngine::start(Model::random(config, 3, Device::Cpu).unwrap(), text, EngineConfig::default(), Arc::new(()))
        .unwrap()
}

fn request(sampling: Sampling, seed: u64) -> GenerateRequest {
    GenerateRequest {
        prompt: TextModel::byte_level().tokenizer.encode("JSON:").unwrap().into(),
        continues_prompt: false,
        sampling: sampling.into(),
        stop: [].into(),
        seed,
        top_logprobs: 0,
        conversation: None,
    }
}

/// A random model writes long texts and lists: it is biased to end them.
fn biased(most: usize) -> Sampling {
    let tokenizer = TextModel::byte_level().tokenizer;
    let logit_bias =
        [("\"", 5.0), ("}", 4.0), ("]", 4.0)].map(|(text, bias)| (tokenizer.encode(text).unwrap()[0], bias));
    let ends = tokenizer.stop_ids().iter().map(|id| (*id, 4.0));
    let logit_bias = logit_bias.into_iter().chain(ends).collect();
    Sampling { masked: true, logit_bias, ..Sampling::new(most, tokenizer.stop_ids().to_vec()) }
}

#[test]
fn whole_responses_are_valid_in_one_batch_of_many_schemas() {
    let engine = engine();
    let compiler = GrammarCompiler::new(engine.text().tokenizer.clone());
    let mut files: Vec<_> = fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/grammars"))
        .unwrap()
        .map(|file| file.unwrap().path())
        .collect();
    files.sort();
    let (mut requests, mut schemas) = (Vec::new(), Vec::new());
    for path in files {
        let case: Value = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
        let Ok(grammar) = compiler.compile(&GrammarSource::JsonSchema(case["schema"].clone())) else { continue };
        let constraint = Some(SharedConstraint::new(grammar));
        requests.push(request(Sampling { constraint, ..biased(1200) }, requests.len() as u64));
        schemas.push((path, case["schema"].clone()));
    }
    let finished = block_on(async { try_join_all(engine.generate(requests).await?).await }).unwrap();
    let mut ended = 0;
    for ((path, schema), done) in schemas.iter().zip(&finished) {
        assert_eq!((done.masks.len(), done.logprobs.len()), (done.response.len(), done.response.len()));
        for (position, token) in done.response.iter().enumerate() {
            assert!(done.masks.get(position).contains(*token), "{}", path.display());
        }
        assert!(done.masks.cuts());
        if done.finish_reason != FinishReason::Stop {
            assert_eq!(done.finish_reason, FinishReason::Length, "{}", path.display());
            continue;
        }
        ended += 1;
        let text = engine.text().tokenizer.decode(&done.response).unwrap();
        serde_json::from_str::<IgnoredAny>(&text).unwrap_or_else(|error| panic!("{}: {error}: {text}", path.display()));
        // JSON has numbers that 64 bits have not.
        if let Ok(value) = serde_json::from_str::<Value>(&text) {
            assert!(jsonschema::validator_for(schema).unwrap().is_valid(&value), "{}: {text}", path.display());
        }
    }
    assert!(schemas.len() > 80 && ended * 10 > schemas.len() * 9, "{ended} of {}", schemas.len());
}

/// Allows letters, and fails after three.
#[derive(Debug, Clone, Default)]
struct Fails(usize);

impl Constraint for Fails {
    fn begin(&self) -> Box<dyn ConstraintState> {
        Box::new(self.clone())
    }
}

impl ConstraintState for Fails {
    fn allowed(&mut self) -> Result<Vec<u32>, String> {
        let mut words = vec![0; 4];
        (b'a'..=b'z').map(|byte| 3 + u32::from(byte)).for_each(|id| words[id as usize / 32] |= 1 << (id % 32));
        if self.0 < 3 { Ok(words) } else { Err("it needs too much".into()) }
    }

    fn advance(&mut self, _: u32) {
        self.0 += 1;
    }
}

#[test]
fn a_response_whose_grammar_fails_ends_with_an_error_and_the_others_go_on() {
    let engine = engine();
    let constraint = Some(SharedConstraint::new(Fails::default()));
    let failing = || request(Sampling { constraint: constraint.clone(), ..Sampling::new(9, vec![2]) }, 1);
    let free = || request(Sampling { logit_bias: vec![(5, 100.0)], ..Sampling::new(9, vec![2]) }, 2);
    let finished = block_on(async { try_join_all(engine.generate(vec![failing(), free()]).await?).await }).unwrap();
    assert_eq!((finished[0].response.len(), finished[0].finish_reason), (3, FinishReason::Error));
    assert_eq!((finished[1].response.clone(), finished[1].finish_reason), (vec![5; 9], FinishReason::Length));
    // One who reads a response as it comes gets the reason.
    let mut completions = block_on(engine.stream(vec![failing(), free()])).unwrap();
    assert_eq!(block_on(completions.pop().unwrap().whole()).unwrap().finish_reason, FinishReason::Length);
    let error = block_on(completions.pop().unwrap().whole()).unwrap_err();
    assert!(
        matches!(&error, RolloutError::Step(step) if matches!(**step, PolicyError::Constraint { position: 3, .. }))
    );
    assert!(error.to_string().ends_with("after response token 3, the grammar gives no next token: it needs too much"));
    assert!(engine.check().is_ok());
}
