//! The sizes of a model, as `config.json` of a Hugging Face checkpoint has
//! them.

mod json;
mod rope;

pub use rope::RopeScaling;

use crate::architecture::Architecture;
use crate::error::{PolicyError, Result};
use crate::folder::ModelFolder;
use crate::head::Head;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// The name of the file in a checkpoint.
pub(crate) const FILE: &str = "config.json";

/// The sizes of a model, by the names that `transformers` gives them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "json::ConfigFile", into = "json::ConfigFile")]
pub struct ModelConfig {
    /// The family.
    pub architecture: Architecture,
    /// Rows of the embedding; at least the tokenizer's vocabulary.
    pub vocab_size: i64,
    /// Width of the residual stream.
    pub hidden_size: i64,
    /// Width inside the feed-forward block.
    pub intermediate_size: i64,
    /// Number of layers.
    pub num_hidden_layers: i64,
    /// Number of query heads.
    pub num_attention_heads: i64,
    /// Number of key and value heads (grouped-query attention).
    pub num_key_value_heads: i64,
    /// Width of one attention head.
    pub head_dim: i64,
    /// For each layer, how many of the latest tokens a query sees, itself
    /// included; all where it is `None`, or where the list is empty.
    pub windows: Vec<Option<i64>>,
    /// The longest sequence in tokens, where `rope_scaling` does not say more:
    /// see [`positions`](Self::positions).
    pub max_position_embeddings: i64,
    /// Added to the mean square in RMSNorm.
    pub rms_norm_eps: f64,
    /// Base of the rotary embedding's wavelengths.
    pub rope_theta: f64,
    /// How these wavelengths are changed.
    pub rope_scaling: Option<RopeScaling>,
    /// Whether the output head is the embedding.
    pub tie_word_embeddings: bool,
    /// What stands after the last layer.
    pub head: Head,
    /// Standard deviation of random initial weights.
    pub initializer_range: f64,
    /// The token that begins a sequence, if any.
    pub bos_token_id: Option<u32>,
    /// The tokens that end a sequence.
    pub eos_token_id: Vec<u32>,
    /// The token that fills up batches, if any.
    pub pad_token_id: Option<u32>,
}

impl ModelConfig {
    /// Reads `config.json` of the model in the folder `dir`.
    pub fn load(dir: &Path) -> Result<Self> {
        let path = ModelFolder::open(dir)?.base.join(FILE);
        let text = std::fs::read_to_string(&path).map_err(|source| PolicyError::Io {
            action: "read",
            path: path.clone(),
            source,
        })?;
        serde_json::from_str(&text).map_err(|error| PolicyError::Checkpoint { path, what: error.to_string() })
    }

    /// Checks that there is a row of the embedding for each of a tokenizer's
    /// `tokens`.
    pub fn check_vocabulary(&self, tokens: usize) -> Result<()> {
        match self.vocab_size {
            rows if rows as u64 >= tokens as u64 => Ok(()),
            rows => Err(PolicyError::Config(format!(
                "`vocab_size` {rows} is smaller than the tokenizer's vocabulary of {tokens}"
            ))),
        }
    }

    /// The longest sequence, in tokens. The model cards of Qwen2.5 have YaRN
    /// added without `max_position_embeddings` being raised.
    pub fn positions(&self) -> i64 {
        match self.rope_scaling {
            Some(RopeScaling::Yarn { factor, original, .. }) => {
                self.max_position_embeddings.max((factor * original).round() as i64)
            }
            _ => self.max_position_embeddings,
        }
    }

    /// Width of all query heads together.
    pub(crate) fn query_width(&self) -> i64 {
        self.num_attention_heads * self.head_dim
    }

    /// Width of all key heads (or all value heads) together.
    pub(crate) fn kv_width(&self) -> i64 {
        self.num_key_value_heads * self.head_dim
    }

    /// How many of the latest tokens a query of the layer sees; all if `None`.
    pub(crate) fn window(&self, layer: usize) -> Option<i64> {
        self.windows.get(layer).copied().flatten()
    }

    /// The window that layers have which have one.
    pub(crate) fn window_size(&self) -> Option<i64> {
        self.windows.iter().copied().flatten().next()
    }

    /// Checks that the sizes fit each other.
    pub fn validate(&self) -> Result<()> {
        let wrong = |what: String| Err(PolicyError::Config(what));
        for (name, value) in [
            ("vocab_size", self.vocab_size),
            ("hidden_size", self.hidden_size),
            ("intermediate_size", self.intermediate_size),
            ("num_hidden_layers", self.num_hidden_layers),
            ("num_attention_heads", self.num_attention_heads),
            ("num_key_value_heads", self.num_key_value_heads),
            ("head_dim", self.head_dim),
            ("max_position_embeddings", self.max_position_embeddings),
            ("sliding_window", self.windows.iter().flatten().copied().min().unwrap_or(1)),
            ("num_labels", self.head.labels().unwrap_or(1)),
        ] {
            if !(1..=i64::from(i32::MAX)).contains(&value) {
                return wrong(format!("`{name}` must be a positive 32-bit number, not {value}"));
            }
        }
        for (name, value) in [("rms_norm_eps", self.rms_norm_eps), ("rope_theta", self.rope_theta)] {
            if !(value.is_finite() && value > 0.0) {
                return wrong(format!("`{name}` must be positive, not {value}"));
            }
        }
        if !(self.initializer_range.is_finite() && self.initializer_range >= 0.0) {
            return wrong(format!("`initializer_range` must be at least 0, not {}", self.initializer_range));
        }
        if self.head_dim % 2 != 0 {
            return wrong(format!("`head_dim` must be even for the rotary embedding, not {}", self.head_dim));
        }
        let (heads, kv_heads) = (self.num_attention_heads, self.num_key_value_heads);
        if heads % kv_heads != 0 {
            return wrong(format!(
                "`num_attention_heads` {heads} must be a multiple of `num_key_value_heads` {kv_heads}"
            ));
        }
        if self.windows.iter().flatten().any(|window| Some(*window) != self.window_size()) {
            return wrong("layers with windows of different sizes are not supported".into());
        }
        if !self.windows.is_empty() && self.windows.len() as i64 != self.num_hidden_layers {
            return wrong(format!(
                "`layer_types` has {} layers, `num_hidden_layers` is {}",
                self.windows.len(),
                self.num_hidden_layers
            ));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    const QWEN: &str = r#"{"architectures":["Qwen2ForCausalLM"],"attention_dropout":0.0,"bos_token_id":151643,"eos_token_id":[7,9],
        "hidden_act":"silu","hidden_size":896,"initializer_range":0.02,"intermediate_size":4864,"max_position_embeddings":32768,
        "model_type":"qwen2","num_attention_heads":14,"num_hidden_layers":24,"num_key_value_heads":2,"rms_norm_eps":1e-06,
        "rope_theta":1000000.0,"sliding_window":32768,"tie_word_embeddings":true,"torch_dtype":"bfloat16","use_sliding_window":false,"vocab_size":151936}"#;

    fn with(change: impl FnOnce(&mut serde_json::Map<String, Value>)) -> std::result::Result<ModelConfig, String> {
        let mut json: serde_json::Map<String, Value> = serde_json::from_str(QWEN).unwrap();
        change(&mut json);
        serde_json::from_value(Value::Object(json)).map_err(|error| error.to_string())
    }

    #[test]
    fn both_generations_of_rotary_settings_are_read() {
        let four = with(|_| ()).unwrap();
        assert_eq!((four.head_dim, four.rope_theta, four.eos_token_id.as_slice()), (64, 1e6, &[7, 9][..]));
        let five = with(|json| {
            json.remove("rope_theta");
            json.insert("rope_parameters".into(), serde_json::json!({"rope_theta": 1e6, "rope_type": "default"}));
        });
        assert_eq!(five.unwrap(), four);
        let both = with(|json| {
            let scaling = serde_json::json!({"rope_type": "linear", "type": "linear", "factor": 2.0});
            json.insert("rope_scaling".into(), scaling);
        });
        assert_eq!(both.unwrap().rope_scaling, Some(RopeScaling::Linear { factor: 2.0 }));
        assert_eq!(four.positions(), 32_768);
        // As the model cards of Qwen2.5 have it: the file's positions are those before the change.
        let scaling = serde_json::json!({"type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32768});
        let longer = with(|json| _ = json.insert("rope_scaling".into(), scaling));
        assert_eq!(longer.unwrap().positions(), 131_072);
        let again: ModelConfig = serde_json::from_str(&serde_json::to_string(&four).unwrap()).unwrap();
        assert_eq!(again, four);
    }

    #[test]
    fn what_cannot_run_is_refused_by_name() {
        for (key, value, says) in [
            ("model_type", serde_json::json!("phi3"), "(model_type \"phi3\") is not supported; ForCausalLM, "),
            ("model_type", serde_json::json!("llama"), "\"Qwen2ForCausalLM\" (model_type \"llama\")"),
            ("architectures", serde_json::json!(["Qwen2Model"]), "architecture \"Qwen2Model\""),
            ("hidden_act", serde_json::json!("gelu"), "`hidden_act` \"gelu\""),
            ("sliding_window", serde_json::json!(0), "`sliding_window` must be a positive"),
            ("layer_types", serde_json::json!(["full_attention"]), "`layer_types` has 1 layers"),
            ("rope_scaling", serde_json::json!({"type": "dynamic", "factor": 4.0}), "type \"dynamic\""),
            ("rope_scaling", serde_json::json!({"rope_type": "llama3", "factor": 4.0}), "needs `low_freq_factor`"),
            ("num_attention_heads", serde_json::json!(15), "`hidden_size` 896"),
            ("num_key_value_heads", serde_json::json!(3), "multiple of `num_key_value_heads` 3"),
            ("num_hidden_layers", serde_json::json!(0), "`num_hidden_layers` must be a positive"),
            ("head_dim", serde_json::json!(127), "`head_dim` must be even"),
        ] {
            let change = |json: &mut serde_json::Map<String, Value>| {
                json.insert("use_sliding_window".into(), (key == "sliding_window" || key == "layer_types").into());
                json.insert("max_window_layers".into(), 0.into());
                json.insert(key.into(), value);
            };
            let error = with(change).unwrap_err();
            assert!(error.contains(says), "{key}: {error}");
        }
    }
}
