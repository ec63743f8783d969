//! `config.json` as it is written.

use super::rope::RopeTable;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// The kinds of layers in `layer_types`.
pub(super) const SLIDING: &str = "sliding_attention";
pub(super) const FULL: &str = "full_attention";

/// `config.json`. Of the keys that are not named here, those in `foreign` are refused. The others do not affect the
/// computation (version numbers, dropout) and are ignored.
#[derive(Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
#[schemars(
    rename = "ModelSizes",
    description = "The sizes of a model, with the keys of `config.json`.",
    deny_unknown_fields
)]
pub(super) struct ConfigFile {
    pub(super) architectures: Option<Vec<String>>,
    pub(super) model_type: Option<String>,
    pub(super) vocab_size: Option<i64>,
    pub(super) hidden_size: Option<i64>,
    pub(super) intermediate_size: Option<i64>,
    pub(super) num_hidden_layers: Option<i64>,
    pub(super) num_attention_heads: Option<i64>,
    pub(super) num_key_value_heads: Option<i64>,
    pub(super) head_dim: Option<i64>,
    pub(super) hidden_act: Option<String>,
    /// Gemma's former name for it.
    #[serde(skip_serializing)]
    pub(super) hidden_activation: Option<String>,
    pub(super) max_position_embeddings: Option<i64>,
    /// Outside the rotary settings, where it goes before the same key inside.
    #[serde(skip_serializing)]
    pub(super) original_max_position_embeddings: Option<i64>,
    pub(super) rms_norm_eps: Option<f64>,
    pub(super) rope_theta: Option<f64>,
    /// Where transformers 5 writes the rotary settings.
    pub(super) rope_parameters: Option<RopeTable>,
    /// Where transformers 4 reads changes of the rotary embedding.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) rope_scaling: Option<RopeTable>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) use_sliding_window: Option<bool>,
    /// An absent key differs from `null`, which means no window.
    #[serde(deserialize_with = "some")]
    pub(super) sliding_window: Option<Option<i64>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) max_window_layers: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) layer_types: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) attention_bias: Option<bool>,
    pub(super) tie_word_embeddings: Option<bool>,
    pub(super) initializer_range: Option<f64>,
    pub(super) bos_token_id: Option<i64>,
    pub(super) eos_token_id: Option<OneOrMany>,
    pub(super) pad_token_id: Option<i64>,
    /// The number of labels if `id2label` does not name them.
    #[serde(skip_serializing)]
    pub(super) num_labels: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) id2label: Option<Map<String, Value>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) label2id: Option<Map<String, Value>>,
    /// All other keys.
    #[serde(flatten, skip_serializing)]
    #[schemars(skip)]
    pub(super) unknown: BTreeMap<String, Value>,
}

fn some<'de, D: Deserializer<'de>>(value: D) -> std::result::Result<Option<Option<i64>>, D::Error> {
    Option::deserialize(value).map(Some)
}

#[derive(Serialize, Deserialize, schemars::JsonSchema)]
#[serde(untagged)]
pub(super) enum OneOrMany {
    One(i64),
    Many(Vec<i64>),
}
