//! The sizes of a model, as `config.json` of a Hugging Face checkpoint of the
//! Qwen2 architecture writes them.

use crate::error::{PolicyError, Result};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::path::Path;

/// The name of the file in a checkpoint.
pub(crate) const FILE: &str = "config.json";

/// The sizes of a Qwen2 model, by the names that `transformers` gives them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "RawConfig", into = "RawConfig")]
pub struct ModelConfig {
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
    /// The longest sequence, in tokens.
    pub max_position_embeddings: i64,
    /// Added to the mean square in RMSNorm.
    pub rms_norm_eps: f64,
    /// Base of the rotary embedding's wavelengths.
    pub rope_theta: f64,
    /// Whether the output head is the embedding.
    pub tie_word_embeddings: bool,
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
    /// Reads `config.json` in `dir`.
    pub fn load(dir: &Path) -> Result<Self> {
        let path = dir.join(FILE);
        let text = std::fs::read_to_string(&path).map_err(|source| PolicyError::Io {
            action: "read",
            path: path.clone(),
            source,
        })?;
        serde_json::from_str(&text).map_err(|error| PolicyError::Checkpoint { path, what: error.to_string() })
    }

    /// Width of one attention head.
    pub fn head_dim(&self) -> i64 {
        self.hidden_size / self.num_attention_heads
    }

    /// Width of all key heads (or all value heads) together.
    pub(crate) fn kv_width(&self) -> i64 {
        self.num_key_value_heads * self.head_dim()
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
            ("max_position_embeddings", self.max_position_embeddings),
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
        let (hidden, heads, kv_heads) = (self.hidden_size, self.num_attention_heads, self.num_key_value_heads);
        if hidden % heads != 0 || (hidden / heads) % 2 != 0 {
            return wrong(format!(
                "`hidden_size` {hidden} must be an even multiple of `num_attention_heads` {heads}: rotary embedding needs heads of an even width"
            ));
        }
        if heads % kv_heads != 0 {
            return wrong(format!(
                "`num_attention_heads` {heads} must be a multiple of `num_key_value_heads` {kv_heads}"
            ));
        }
        Ok(())
    }
}

/// `config.json` as it is written. Keys that are not named here say nothing
/// about the computation (version numbers, dropout) and are passed over.
#[derive(Serialize, Deserialize)]
struct RawConfig {
    #[serde(default)]
    architectures: Option<Vec<String>>,
    #[serde(default)]
    model_type: Option<String>,
    vocab_size: i64,
    hidden_size: i64,
    intermediate_size: i64,
    num_hidden_layers: i64,
    num_attention_heads: i64,
    #[serde(default)]
    num_key_value_heads: Option<i64>,
    #[serde(default, skip_serializing)]
    head_dim: Option<i64>,
    #[serde(default)]
    hidden_act: Option<String>,
    #[serde(default)]
    max_position_embeddings: Option<i64>,
    #[serde(default)]
    rms_norm_eps: Option<f64>,
    #[serde(default)]
    rope_theta: Option<f64>,
    /// Where transformers 5 writes the rotary settings.
    #[serde(default)]
    rope_parameters: Option<RopeParameters>,
    /// Where transformers 4 writes changes of the rotary embedding.
    #[serde(default, skip_serializing)]
    rope_scaling: Option<RopeParameters>,
    #[serde(default)]
    use_sliding_window: Option<bool>,
    #[serde(default)]
    tie_word_embeddings: Option<bool>,
    #[serde(default)]
    initializer_range: Option<f64>,
    #[serde(default)]
    bos_token_id: Option<u32>,
    #[serde(default)]
    eos_token_id: Option<OneOrMany>,
    #[serde(default)]
    pad_token_id: Option<u32>,
    #[serde(default)]
    torch_dtype: Value,
}

#[derive(Serialize, Deserialize)]
struct RopeParameters {
    #[serde(default)]
    rope_theta: Option<f64>,
    #[serde(default, alias = "type")]
    rope_type: Option<String>,
}

#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum OneOrMany {
    One(u32),
    Many(Vec<u32>),
}

impl TryFrom<RawConfig> for ModelConfig {
    type Error = PolicyError;

    fn try_from(raw: RawConfig) -> Result<Self> {
        let wrong = |what: String| Err(PolicyError::Config(what));
        let kind = raw.model_type.as_deref().unwrap_or("qwen2");
        let class = raw.architectures.as_deref().and_then(<[String]>::first).map_or("Qwen2ForCausalLM", String::as_str);
        if kind != "qwen2" || class != "Qwen2ForCausalLM" {
            return wrong(format!(
                "architecture {class:?} (model_type {kind:?}) is not supported; only \"Qwen2ForCausalLM\" is"
            ));
        }
        if let Some(activation) = raw.hidden_act.as_deref().filter(|name| *name != "silu") {
            return wrong(format!("`hidden_act` {activation:?} is not supported; only \"silu\" is"));
        }
        if raw.use_sliding_window == Some(true) {
            return wrong("`use_sliding_window` is not supported; set it to false".into());
        }
        for rope in [&raw.rope_parameters, &raw.rope_scaling].into_iter().flatten() {
            if let Some(kind) = rope.rope_type.as_deref().filter(|kind| *kind != "default") {
                return wrong(format!("rotary embedding of type {kind:?} is not supported; only \"default\" is"));
            }
        }
        let config = Self {
            vocab_size: raw.vocab_size,
            hidden_size: raw.hidden_size,
            intermediate_size: raw.intermediate_size,
            num_hidden_layers: raw.num_hidden_layers,
            num_attention_heads: raw.num_attention_heads,
            num_key_value_heads: raw.num_key_value_heads.unwrap_or(raw.num_attention_heads),
            max_position_embeddings: raw.max_position_embeddings.unwrap_or(32_768),
            rms_norm_eps: raw.rms_norm_eps.unwrap_or(1e-6),
            rope_theta: raw.rope_parameters.and_then(|rope| rope.rope_theta).or(raw.rope_theta).unwrap_or(10_000.0),
            tie_word_embeddings: raw.tie_word_embeddings.unwrap_or(false),
            initializer_range: raw.initializer_range.unwrap_or(0.02),
            bos_token_id: raw.bos_token_id,
            eos_token_id: match raw.eos_token_id {
                None => Vec::new(),
                Some(OneOrMany::One(id)) => vec![id],
                Some(OneOrMany::Many(ids)) => ids,
            },
            pad_token_id: raw.pad_token_id,
        };
        config.validate()?;
        if let Some(width) = raw.head_dim.filter(|width| *width != config.head_dim()) {
            return wrong(format!(
                "`head_dim` {width} is not supported; it must be `hidden_size` / `num_attention_heads` = {}",
                config.head_dim()
            ));
        }
        Ok(config)
    }
}

impl From<ModelConfig> for RawConfig {
    fn from(config: ModelConfig) -> Self {
        let eos_token_id = match config.eos_token_id.as_slice() {
            [] => None,
            [id] => Some(OneOrMany::One(*id)),
            _ => Some(OneOrMany::Many(config.eos_token_id)),
        };
        Self {
            architectures: Some(vec!["Qwen2ForCausalLM".into()]),
            model_type: Some("qwen2".into()),
            vocab_size: config.vocab_size,
            hidden_size: config.hidden_size,
            intermediate_size: config.intermediate_size,
            num_hidden_layers: config.num_hidden_layers,
            num_attention_heads: config.num_attention_heads,
            num_key_value_heads: Some(config.num_key_value_heads),
            head_dim: None,
            hidden_act: Some("silu".into()),
            max_position_embeddings: Some(config.max_position_embeddings),
            rms_norm_eps: Some(config.rms_norm_eps),
            rope_theta: Some(config.rope_theta),
            rope_parameters: Some(RopeParameters {
                rope_theta: Some(config.rope_theta),
                rope_type: Some("default".into()),
            }),
            rope_scaling: None,
            use_sliding_window: Some(false),
            tie_word_embeddings: Some(config.tie_word_embeddings),
            initializer_range: Some(config.initializer_range),
            bos_token_id: config.bos_token_id,
            eos_token_id,
            pad_token_id: config.pad_token_id,
            torch_dtype: "float32".into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
        assert_eq!((four.head_dim(), four.rope_theta, four.eos_token_id.as_slice()), (64, 1e6, &[7, 9][..]));
        let five = with(|json| {
            json.remove("rope_theta");
            json.insert("rope_parameters".into(), serde_json::json!({"rope_theta": 1e6, "rope_type": "default"}));
        });
        assert_eq!(five.unwrap(), four);
        let again: ModelConfig = serde_json::from_str(&serde_json::to_string(&four).unwrap()).unwrap();
        assert_eq!(again, four);
    }

    #[test]
    fn what_cannot_run_is_refused_by_name() {
        for (key, value, says) in [
            ("model_type", serde_json::json!("llama"), "only \"Qwen2ForCausalLM\""),
            ("hidden_act", serde_json::json!("gelu"), "`hidden_act` \"gelu\""),
            ("use_sliding_window", serde_json::json!(true), "`use_sliding_window`"),
            ("rope_scaling", serde_json::json!({"type": "yarn", "factor": 4.0}), "type \"yarn\""),
            ("num_attention_heads", serde_json::json!(15), "`hidden_size` 896"),
            ("num_key_value_heads", serde_json::json!(3), "multiple of `num_key_value_heads` 3"),
            ("num_hidden_layers", serde_json::json!(0), "`num_hidden_layers` must be a positive"),
            ("head_dim", serde_json::json!(128), "`head_dim` 128"),
        ] {
            let error = with(|json| drop(json.insert(key.into(), value))).unwrap_err();
            assert!(error.contains(says), "{key}: {error}");
        }
    }
}
