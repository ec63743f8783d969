//! Reward models that many ask at once.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod steps;

use futures::future::join_all;
use gavel_data::{Message, Role};
use gavel_policy::{Device, EngineConfig, Kind, Model, ModelConfig, Sampling, Tensor};
use gavel_rollout::{
    AsyncEngine, DeviceTurns, GenerateRequest, Observer, Reading, RewardModel, RewardModelConfig, RewardModelError,
};
use gavel_text::{RenderOptions, TextModel};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Runtime;

fn model(more: Value) -> Model {
    let mut sizes = json!({"architectures": ["Qwen2ForSequenceClassification"], "num_labels": 1, "vocab_size": 259,
        "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4,
        "num_key_value_heads": 2, "max_position_embeddings": 512});
    sizes.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    Model::random(serde_json::from_value::<ModelConfig>(sizes).unwrap(), 3, Device::Cpu).unwrap()
}

fn config(max_tokens_per_batch: usize) -> RewardModelConfig {
    RewardModelConfig { max_tokens_per_batch, max_wait: Duration::from_millis(20), ..RewardModelConfig::default() }
}

fn start(model: Model, config: RewardModelConfig) -> Result<RewardModel, RewardModelError> {
    RewardModel::start(model, TextModel::byte_level(), config, Arc::default())
}

fn conversation(number: usize) -> Vec<Message> {
    let response = "word ".repeat(number * 37 % 61);
    vec![Message::new(Role::User, format!("Say {number}.")), Message::new(Role::Assistant, response)]
}

fn ids(conversation: &[Message], options: &RenderOptions) -> Tensor {
    let ids = TextModel::byte_level().prompt_ids_with(conversation, options).unwrap();
    Tensor::from_slice(&ids.into_iter().map(i64::from).collect::<Vec<_>>()).unsqueeze(0)
}

#[test]
fn a_score_is_that_of_the_model_alone_whatever_comes_together() {
    let alone = model(json!({}));
    let expected: Vec<f64> = (0..50)
        .map(|number| {
            let ids = ids(&conversation(number), &RenderOptions::default());
            alone.scores(&ids, &[ids.size()[1] as usize]).unwrap().double_value(&[0, 0])
        })
        .collect();
    for most in [1, 700, 100_000] {
        // A batch that is not full waits, and on a busy machine the requests take their time.
        let config = RewardModelConfig { max_wait: Duration::from_secs(2), ..config(most) };
        let rewards = start(model(json!({})), config).unwrap();
        let asked: Vec<Vec<Message>> = (0..50).map(conversation).collect();
        let found = Runtime::new().unwrap().block_on(join_all(asked.iter().map(|asked| rewards.score(asked))));
        for (number, (found, expected)) in found.into_iter().zip(&expected).enumerate() {
            let found = found.unwrap().score;
            assert!((found - expected).abs() < 1e-5, "{most}, {number}: {found} {expected}");
        }
        let usage = rewards.usage();
        assert_eq!((usage.scored, usage.reused), (50, 0));
        match most {
            1 => assert_eq!(usage.batches, 50),
            700 => assert!((8..25).contains(&usage.batches), "{usage:?}"),
            // All requests came within the wait, or nearly.
            _ => assert!(usage.batches < 5, "{usage:?}"),
        }
    }
}

#[test]
fn a_conversation_is_computed_once() {
    let rewards = start(model(json!({})), config(10_000)).unwrap();
    let runtime = Runtime::new().unwrap();
    let asked = conversation(7);
    let found = runtime.block_on(join_all((0..20).map(|_| rewards.score(&asked))));
    let scores: Vec<u64> = found.into_iter().map(|score| score.unwrap().score.to_bits()).collect();
    assert!(scores.iter().all(|score| *score == scores[0]), "{scores:?}");
    let again = runtime.block_on(rewards.score(&asked)).unwrap();
    assert_eq!((again.score.to_bits(), rewards.usage().scored, rewards.usage().reused), (scores[0], 1, 20));
}

#[test]
fn what_cannot_be_scored_says_why() {
    let rewards = start(model(json!({})), config(10_000)).unwrap();
    let long = [Message::new(Role::User, "a"), Message::new(Role::Assistant, "b".repeat(600))];
    let error = Runtime::new().unwrap().block_on(rewards.score(&long)).unwrap_err();
    assert!(error.is_of_conversation(), "{error}");
    assert!(error.to_string().ends_with(" tokens, and the reward model reads at most 512"), "{error}");
    let longer = [Message::new(Role::User, "a"), Message::new(Role::Assistant, "b".repeat(64 << 20))];
    let error = Runtime::new().unwrap().block_on(rewards.score(&longer)).unwrap_err();
    assert!(error.is_of_conversation() && error.to_string().contains("has 67108865 bytes"), "{error}");

    // Broken weights.
    let broken = model(json!({}));
    let (_, mut norm) = broken.parameters().into_iter().find(|(name, _)| name == "model.norm.weight").unwrap();
    let _ = tch::no_grad(|| norm.fill_(f64::NAN));
    let error = Runtime::new().unwrap().block_on(start(broken, config(100)).unwrap().score(&conversation(1)));
    assert_eq!(error.unwrap_err().to_string(), "the reward model's score is NaN");
}

#[test]
fn a_model_that_is_no_reward_model_is_refused() {
    let yes_no =
        |yes: &str| RewardModelConfig { reading: Reading::YesNo { yes: yes.into(), no: "n".into() }, ..config(100) };
    let language_model = || model(json!({"architectures": ["Qwen2ForCausalLM"]}));
    for (model, config, says) in [
        (language_model(), config(100), "it is a language model, which has no score\nhint: "),
        (model(json!({"num_labels": 3})), config(100), "there are 3 labels, and a reward model has one"),
        (
            model(json!({"architectures": ["Qwen2ForTokenClassification"]})),
            config(100),
            "it is a token classifier, whose values are those of steps\nhint: set steps",
        ),
        (model(json!({})), yes_no("y"), "the checkpoint is a classifier, which says neither yes nor no"),
        (language_model(), yes_no("yes"), "\"yes\" is 3 tokens of the tokenizer, and must be one"),
        (model(json!({"vocab_size": 200})), config(100), "is smaller than the tokenizer's vocabulary"),
    ] {
        let error = start(model, config).err().unwrap().to_string();
        assert!(error.contains(says), "{error}");
    }
}

#[test]
fn a_language_model_says_yes_or_no() {
    let language_model = || model(json!({"architectures": ["Qwen2ForCausalLM"]}));
    let reading = Reading::YesNo { yes: "y".into(), no: "n".into() };
    let rewards = start(language_model(), RewardModelConfig { reading, ..config(10_000) }).unwrap();
    let runtime = Runtime::new().unwrap();
    for number in 0..3 {
        let ids = ids(&conversation(number), &RenderOptions::prompt(&[]));
        let model = language_model();
        let logits = model.logits(&model.hidden(&ids).unwrap()).unwrap().select(1, -1).softmax(1, Kind::Double);
        let token = |text: &str| i64::from(TextModel::byte_level().tokenizer.encode(text).unwrap()[0]);
        let [yes, no] = ["y", "n"].map(|text| logits.double_value(&[0, token(text)]));
        let found = runtime.block_on(rewards.score(&conversation(number))).unwrap().score;
        assert!((found - yes / (yes + no)).abs() < 1e-5, "{found} {yes} {no}");
    }
}

#[test]
fn the_thread_ends_with_the_last_handle() {
    let rewards = start(model(json!({})), config(10_000)).unwrap();
    let other = rewards.clone();
    drop(rewards);
    assert!(Runtime::new().unwrap().block_on(other.score(&conversation(1))).is_ok());
    // Its drop joins the thread, and would wait for ever.
    drop(other);
}

#[test]
fn a_sleeping_model_and_a_waking_one_score_alike_and_their_turns_are_counted() {
    let runtime = Runtime::new().unwrap();
    let scores = |sleep: bool| -> Vec<u64> {
        let rewards = start(model(json!({})), RewardModelConfig { sleep, ..config(10_000) }).unwrap();
        let score = |number| runtime.block_on(rewards.score(&conversation(number))).unwrap().score.to_bits();
        let scores = (0..3).map(score).collect();
        let usage = rewards.usage();
        assert!(usage.computing > Duration::ZERO, "{usage:?}");
        assert_eq!(usage.moving > Duration::ZERO, sleep, "{usage:?}");
        scores
    };
    assert_eq!(scores(true), scores(false));
}

#[test]
fn a_template_of_another_tokenizer_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("llama.jinja");
    std::fs::write(&path, "{% for m in messages %}<|start_header_id|>{{ m.role }}: {{ m.content }}{% endfor %}")
        .unwrap();
    let mut text = TextModel::byte_level();
    text.template = text.template.replaced_by(&path).unwrap();
    let error = RewardModel::start(model(json!({})), text, config(100), Arc::default()).err().unwrap();
    let says =
        "it writes `<|start_header_id|>`, which is not a token of tokenizer.json, whose tokens are like `<|pad|>`";
    assert!(error.to_string().starts_with(says), "{error}");
}

/// Reports when an engine's thread begins and ends its work.
#[derive(Default)]
struct Steps(std::sync::Mutex<Vec<usize>>);

impl Observer for Steps {
    fn stepped(&self, tokens: usize, _: u64) {
        self.0.lock().unwrap().push(tokens);
    }
}

#[test]
fn a_policy_and_a_reward_model_share_a_device_by_turns() {
    let turns = Arc::new(DeviceTurns::default());
    let language_model = model(json!({"architectures": ["Qwen2ForCausalLM"]}));
    let steps = Arc::new(Steps::default());
    let (text, decoding) = (TextModel::byte_level(), EngineConfig::default());
    let engine = AsyncEngine::start_sharing(language_model, text, decoding, steps.clone(), turns.clone()).unwrap();
    let config = RewardModelConfig { max_tokens_per_batch: 1, max_wait: Duration::ZERO, ..config(1) };
    let rewards = RewardModel::start(model(json!({})), TextModel::byte_level(), config, turns.clone()).unwrap();
    Runtime::new().unwrap().block_on(async {
        let sampling = Arc::new(Sampling::greedy(300, Vec::new()));
        let request = GenerateRequest {
            prompt: [1, 2, 3].into(),
            continues_prompt: false,
            sampling,
            stop: [].into(),
            seed: 0,
            top_logprobs: 0,
            conversation: None,
        };
        let mut responses = engine.generate(vec![request.clone()]).await.unwrap();
        // Asked for while the policy draws: it waits until the whole response is there.
        let scored = rewards.score(&conversation(1)).await.unwrap();
        assert_eq!(steps.0.lock().unwrap().iter().sum::<usize>(), 300);
        assert_eq!(responses.pop().unwrap().await.unwrap().response.len(), 300);
        assert!(scored.score.is_finite() && rewards.usage().waiting > Duration::ZERO, "{:?}", rewards.usage());
        // The policy gets its device back while conversations still wait, and both end.
        let (many, response) =
            tokio::join!(join_all((2..40).map(|number| rewards.score(&conversation(number)))), async {
                engine.generate(vec![request]).await.unwrap().pop().unwrap().await
            });
        assert!(many.into_iter().all(|score| score.is_ok()) && response.is_ok());
    });
    assert_eq!(rewards.usage().scored, 39);
}
