//! The example `grpo` learns.

#[allow(dead_code, reason = "its main")]
#[path = "../../examples/grpo.rs"]
mod example;

use gavel_data::Task;
use gavel_plugin::{Plugin, PluginSpec, Sandbox, SandboxConfig};
use gavel_policy::{Device, Model, ModelConfig};
use gavel_text::TextModel;
use serde_json::json;
use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::Arc;

#[test]
fn the_reward_of_a_small_model_rises() {
    let sizes = json!({
        "model_type": "qwen2", "vocab_size": 259, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2,
        "num_attention_heads": 2, "num_key_value_heads": 2, "max_position_embeddings": 256,
    });
    let config: ModelConfig = serde_json::from_value(sizes).unwrap();
    let model = Model::random(config, 1, Device::Cpu).unwrap();
    let task = |number: u32| {
        let row = json!({"prompt": format!("{number}?")});
        Arc::new(Task::from_row(serde_json::from_value(row).unwrap(), number as usize, "train").unwrap())
    };
    let tasks: Vec<Arc<Task>> = (0..4).map(task).collect();
    let sandbox = Sandbox::new(SandboxConfig::with_threads(NonZeroUsize::MIN)).unwrap();
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/plugins/format.wasm");
    // A response that begins with one of half of all bytes.
    let params = json!({"pattern": "(?s)[\\x00-\\x7f].*"});
    let spec = PluginSpec { params: serde_json::from_value(params).unwrap(), ..PluginSpec::new("format", path) };
    let reward = sandbox.handle().block_on(Plugin::load(&sandbox, spec)).unwrap();
    let means = example::train(&model, &TextModel::byte_level(), &sandbox, &reward, &tasks, 20, 0.05).unwrap();
    let [first, last] = [&means[..3], &means[17..]].map(|part| part.iter().sum::<f64>() / 3.0);
    assert!(first < 0.7 && last > 0.9, "{means:?}");
}
