//! Scores a second of a reward model with random weights at hidden 256, for conversations of 16 to 512 tokens: batched
//! as they come, one at a time, and in fixed batches of 16 that are padded. Prints one line of JSON each.
//!
//! `cargo bench --workspace --bench reward_model`, on an idle machine, with `OMP_WAIT_POLICY=PASSIVE
//! GOMP_SPINCOUNT=20000`, which `gavel` sets itself.
#![allow(clippy::print_stdout, clippy::unwrap_used, missing_docs)]

use futures::future::join_all;
use gavel_data::{Message, Role};
use gavel_policy::{Device, Model, ModelConfig, Tensor};
use gavel_rollout::{RewardModel, RewardModelConfig};
use gavel_text::{RenderOptions, TextModel};
use serde_json::json;
use std::sync::Arc;
use std::time::Instant;
use tokio::runtime::Runtime;

const CONVERSATIONS: usize = 256;
const FIXED: usize = 16;

fn model() -> Model {
    let sizes = json!({"architectures": ["Qwen2ForSequenceClassification"], "num_labels": 1, "vocab_size": 259,
        "hidden_size": 256, "intermediate_size": 768, "num_hidden_layers": 4, "num_attention_heads": 8,
        "num_key_value_heads": 4, "max_position_embeddings": 1024});
    Model::random(serde_json::from_value::<ModelConfig>(sizes).unwrap(), 3, Device::Cpu).unwrap()
}

fn conversation(number: usize, round: usize) -> Vec<Message> {
    // Most are short, as responses are.
    let share = ((number * 2_654_435_761 % 1_000) as f64 / 1_000.0).powi(3);
    let length = (share * 450.0) as usize;
    let mark = char::from(b'a' + round as u8);
    vec![
        Message::new(Role::User, "a"),
        Message::new(Role::Assistant, format!("{number:03}{mark}") + &"x".repeat(length)),
    ]
}

fn ids(conversation: &[Message]) -> Vec<i64> {
    let ids = TextModel::byte_level().prompt_ids_with(conversation, &RenderOptions::default()).unwrap();
    ids.into_iter().map(i64::from).collect()
}

/// Scores rows of the model, padded.
fn padded(model: &Model, rows: &[Vec<i64>]) {
    let lengths: Vec<usize> = rows.iter().map(Vec::len).collect();
    let width = lengths.iter().copied().max().unwrap_or_default();
    let flat: Vec<i64> =
        rows.iter().flat_map(|row| row.iter().copied().chain(std::iter::repeat_n(0, width - row.len()))).collect();
    let ids = Tensor::from_slice(&flat).view([rows.len() as i64, width as i64]);
    let _guard = tch::no_grad_guard();
    let _: Vec<f64> = Vec::try_from(model.scores(&ids, &lengths).unwrap().squeeze_dim(1)).unwrap();
}

fn report(what: &str, round: usize, started: Instant) {
    let rate = CONVERSATIONS as f64 / started.elapsed().as_secs_f64();
    println!(r#"{{"what": "{what}", "round": {round}, "scores_per_second": {rate:.1}}}"#);
}

fn main() {
    tch::set_num_threads(2);
    let runtime = Runtime::new().unwrap();
    let config = RewardModelConfig::default();
    let rewards = RewardModel::start(model(), TextModel::byte_level(), config, Arc::default()).unwrap();
    let model = model();
    for round in 0..3 {
        let asked: Vec<_> = (0..CONVERSATIONS).map(|number| conversation(number, round)).collect();
        let rows: Vec<_> = asked.iter().map(|asked| ids(asked)).collect();
        let started = Instant::now();
        runtime.block_on(join_all(asked.iter().map(|asked| rewards.score(asked)))).into_iter().for_each(|score| {
            score.unwrap();
        });
        report("as they come", round, started);
        let started = Instant::now();
        rows.iter().for_each(|row| padded(&model, std::slice::from_ref(row)));
        report("one at a time", round, started);
        let started = Instant::now();
        rows.chunks(FIXED).for_each(|rows| padded(&model, rows));
        report("16 at a time, padded", round, started);
    }
}
