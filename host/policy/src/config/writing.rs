//! From a model's sizes to `config.json` as it is written.

use super::ModelConfig;
use super::file::{ConfigFile, FULL, OneOrMany, SLIDING};
use super::rope::RopeTable;
use crate::architecture::Architecture;
use serde_json::{Map, Value};
use std::collections::BTreeMap;

impl From<ModelConfig> for ConfigFile {
    fn from(config: ModelConfig) -> Self {
        let architecture = config.architecture;
        let eos_token_id = match config.eos_token_id.as_slice() {
            [] => None,
            [id] => Some(OneOrMany::One(i64::from(*id))),
            ids => Some(OneOrMany::Many(ids.iter().copied().map(i64::from).collect())),
        };
        let window = config.windows.iter().flatten().copied().next();
        let kind = |window: &Option<i64>| if window.is_some() { SLIDING } else { FULL }.to_owned();
        let by_layer = matches!(architecture, Architecture::Qwen2 | Architecture::Qwen3);
        // A file of Mistral without the list has the window in all layers.
        let is_listed = by_layer && window.is_some() || config.windows.contains(&None);
        let rope = || RopeTable::new(config.rope_theta, config.rope_scaling);
        let label = |label: i64| format!("LABEL_{label}");
        let labels = |pair: fn(i64, String) -> (String, Value)| -> Option<Map<String, Value>> {
            config.head.labels().map(|count| (0..count).map(|index| pair(index, label(index))).collect())
        };
        Self {
            architectures: Some(vec![format!("{}{}", architecture.class_prefix(), config.head.class())]),
            model_type: Some(architecture.model_type().into()),
            vocab_size: Some(config.vocab_size),
            hidden_size: Some(config.hidden_size),
            intermediate_size: Some(config.intermediate_size),
            num_hidden_layers: Some(config.num_hidden_layers),
            num_attention_heads: Some(config.num_attention_heads),
            num_key_value_heads: Some(config.num_key_value_heads),
            head_dim: Some(config.head_dim),
            hidden_act: Some(architecture.activation().into()),
            hidden_activation: None,
            max_position_embeddings: Some(config.max_position_embeddings),
            original_max_position_embeddings: None,
            rms_norm_eps: Some(config.rms_norm_eps),
            rope_theta: Some(config.rope_theta),
            rope_parameters: Some(rope()),
            rope_scaling: config.rope_scaling.map(|_| rope()),
            use_sliding_window: by_layer.then_some(window.is_some()),
            sliding_window: Some(window),
            max_window_layers: None,
            layer_types: is_listed.then(|| config.windows.iter().map(kind).collect()),
            attention_bias: (!by_layer || architecture == Architecture::Qwen3).then_some(false),
            tie_word_embeddings: Some(config.tie_word_embeddings),
            initializer_range: Some(config.initializer_range),
            bos_token_id: config.bos_token_id.map(i64::from),
            eos_token_id,
            pad_token_id: config.pad_token_id.map(i64::from),
            num_labels: None,
            id2label: labels(|index, label| (index.to_string(), label.into())),
            label2id: labels(|index, label| (label, index.into())),
            unknown: BTreeMap::new(),
        }
    }
}
