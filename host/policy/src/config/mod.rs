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
    use serde_json::{Value, json};

    const QWEN: &str = r#"{"architectures":["Qwen2ForCausalLM"],"attention_dropout":0.0,"bos_token_id":151643,"eos_token_id":[7,9],
        "hidden_act":"silu","hidden_size":896,"initializer_range":0.02,"intermediate_size":4864,"max_position_embeddings":32768,
        "model_type":"qwen2","num_attention_heads":14,"num_hidden_layers":24,"num_key_value_heads":2,"rms_norm_eps":1e-06,
        "rope_theta":1000000.0,"sliding_window":32768,"tie_word_embeddings":true,"torch_dtype":"bfloat16","use_sliding_window":false,"vocab_size":151936}"#;

    const LLAMA_3_2_1B: &str = r#"{"architectures":["LlamaForCausalLM"],"attention_bias":false,"attention_dropout":0.0,"bos_token_id":128000,
        "eos_token_id":128001,"head_dim":64,"hidden_act":"silu","hidden_size":2048,"initializer_range":0.02,"intermediate_size":8192,
        "max_position_embeddings":131072,"mlp_bias":false,"model_type":"llama","num_attention_heads":32,"num_hidden_layers":16,
        "num_key_value_heads":8,"pretraining_tp":1,"rms_norm_eps":1e-05,"rope_scaling":{"factor":32.0,"high_freq_factor":4.0,
        "low_freq_factor":1.0,"original_max_position_embeddings":8192,"rope_type":"llama3"},"rope_theta":500000.0,
        "tie_word_embeddings":true,"torch_dtype":"bfloat16","use_cache":true,"vocab_size":128256}"#;

    const MISTRAL_7B: &str = r#"{"architectures":["MistralForCausalLM"],"bos_token_id":1,"eos_token_id":2,"hidden_act":"silu",
        "hidden_size":4096,"initializer_range":0.02,"intermediate_size":14336,"max_position_embeddings":32768,"model_type":"mistral",
        "num_attention_heads":32,"num_hidden_layers":32,"num_key_value_heads":8,"rms_norm_eps":1e-05,"rope_theta":10000.0,
        "sliding_window":4096,"tie_word_embeddings":false,"torch_dtype":"bfloat16","use_cache":true,"vocab_size":32000}"#;

    const QWEN_2_5_7B: &str = r#"{"architectures":["Qwen2ForCausalLM"],"attention_dropout":0.0,"bos_token_id":151643,"eos_token_id":151645,
        "hidden_act":"silu","hidden_size":3584,"initializer_range":0.02,"intermediate_size":18944,"max_position_embeddings":32768,
        "max_window_layers":28,"model_type":"qwen2","num_attention_heads":28,"num_hidden_layers":28,"num_key_value_heads":4,
        "rms_norm_eps":1e-06,"rope_theta":1000000.0,"sliding_window":131072,"tie_word_embeddings":false,"torch_dtype":"bfloat16",
        "use_cache":true,"use_sliding_window":false,"vocab_size":152064}"#;

    const QWEN_3_0_6B: &str = r#"{"architectures":["Qwen3ForCausalLM"],"attention_bias":false,"attention_dropout":0.0,"bos_token_id":151643,
        "eos_token_id":151645,"head_dim":128,"hidden_act":"silu","hidden_size":1024,"initializer_range":0.02,"intermediate_size":3072,
        "max_position_embeddings":40960,"max_window_layers":28,"model_type":"qwen3","num_attention_heads":16,"num_hidden_layers":28,
        "num_key_value_heads":8,"rms_norm_eps":1e-06,"rope_scaling":null,"rope_theta":1000000,"sliding_window":null,
        "tie_word_embeddings":true,"torch_dtype":"bfloat16","use_cache":true,"use_sliding_window":false,"vocab_size":151936}"#;

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
            json.insert("rope_parameters".into(), json!({"rope_theta": 1e6, "rope_type": "default"}));
        });
        assert_eq!(five.unwrap(), four);
        let both = with(|json| {
            let scaling = json!({"rope_type": "linear", "type": "linear", "factor": 2.0});
            json.insert("rope_scaling".into(), scaling);
        });
        assert_eq!(both.unwrap().rope_scaling, Some(RopeScaling::Linear { factor: 2.0 }));
        assert_eq!(four.positions(), 32_768);
        // As the model cards of Qwen2.5 have it: the file's positions are those before the change.
        let scaling = json!({"type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32768});
        let longer = with(|json| _ = json.insert("rope_scaling".into(), scaling));
        assert_eq!(longer.unwrap().positions(), 131_072);
        // The same, added to a file that transformers 5 saved.
        let added = |scaling: Value| {
            with(|json| {
                json.remove("rope_theta");
                json.insert("rope_parameters".into(), json!({"rope_theta": 1e6, "rope_type": "default"}));
                json.insert("rope_scaling".into(), scaling);
            })
            .unwrap()
        };
        let yarn = json!({"type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32768});
        let longer = added(yarn);
        assert!(matches!(longer.rope_scaling, Some(RopeScaling::Yarn { factor: 4.0, original: 32_768.0, .. })));
        assert_eq!((longer.rope_theta, longer.positions()), (1e6, 131_072));
        assert_eq!(added(json!({"type": "linear", "factor": 2.0, "rope_theta": 5e5})).rope_theta, 5e5);
        assert_eq!((added(json!({})), added(Value::Null)), (four.clone(), four.clone()));
        let again: ModelConfig = serde_json::from_str(&serde_json::to_string(&four).unwrap()).unwrap();
        assert_eq!(again, four);
    }

    #[test]
    fn published_files_say_what_their_models_compute() {
        let read = |text: &str| -> ModelConfig { serde_json::from_str(text).unwrap() };
        let kinds = |config: &ModelConfig| (config.architecture.has_qkv_bias(), config.architecture.has_qk_norm());

        let llama = read(LLAMA_3_2_1B);
        assert_eq!((llama.architecture, kinds(&llama)), (Architecture::Llama, (false, false)));
        assert_eq!((llama.head_dim, llama.query_width(), llama.kv_width()), (64, 2048, 512));
        let scaling = RopeScaling::Llama3 { factor: 32.0, low: 1.0, high: 4.0, original: 8192.0 };
        assert_eq!((llama.rope_theta, llama.rope_scaling), (500_000.0, Some(scaling)));
        assert_eq!((llama.positions(), llama.window_size(), llama.tie_word_embeddings), (131_072, None, true));

        let mistral = read(MISTRAL_7B);
        assert_eq!((mistral.architecture, kinds(&mistral)), (Architecture::Mistral, (false, false)));
        assert_eq!((mistral.head_dim, mistral.query_width(), mistral.kv_width()), (128, 4096, 1024));
        assert_eq!((mistral.rope_theta, mistral.rope_scaling), (10_000.0, None));
        assert_eq!(mistral.windows, [Some(4096); 32]);
        assert_eq!((mistral.positions(), mistral.tie_word_embeddings), (32_768, false));

        let qwen2 = read(QWEN_2_5_7B);
        assert_eq!((qwen2.architecture, kinds(&qwen2)), (Architecture::Qwen2, (true, false)));
        assert_eq!((qwen2.head_dim, qwen2.query_width(), qwen2.kv_width()), (128, 3584, 512));
        assert_eq!((qwen2.rope_theta, qwen2.rope_scaling), (1e6, None));
        assert_eq!((qwen2.positions(), qwen2.window_size(), qwen2.tie_word_embeddings), (32_768, None, false));

        let qwen3 = read(QWEN_3_0_6B);
        assert_eq!((qwen3.architecture, kinds(&qwen3)), (Architecture::Qwen3, (false, true)));
        assert_eq!((qwen3.head_dim, qwen3.query_width(), qwen3.kv_width()), (128, 2048, 1024));
        assert_eq!((qwen3.rope_theta, qwen3.rope_scaling), (1e6, None));
        assert_eq!((qwen3.positions(), qwen3.window_size(), qwen3.tie_word_embeddings), (40_960, None, true));
    }

    #[test]
    fn labels_are_counted_where_they_have_no_names() {
        let labels = |changes: Value| {
            let classifier = with(|json| {
                json.insert("architectures".into(), json!(["Qwen2ForSequenceClassification"]));
                json.extend(changes.as_object().unwrap().clone());
            });
            classifier.unwrap().head.labels()
        };
        assert_eq!(labels(json!({})), Some(2));
        assert_eq!(labels(json!({"num_labels": 1})), Some(1));
        assert_eq!(labels(json!({"num_labels": 1, "id2label": {"0": "a", "1": "b", "2": "c"}})), Some(3));
    }

    #[test]
    fn what_is_no_token_is_left_out() {
        let config = with(|json| {
            for (key, id) in
                [("bos_token_id", json!(-1)), ("pad_token_id", json!(-1)), ("eos_token_id", json!([-1, 7]))]
            {
                json.insert(key.into(), id);
            }
        });
        let config = config.unwrap();
        assert_eq!((config.bos_token_id, config.eos_token_id, config.pad_token_id), (None, vec![7], None));
        assert!(with(|json| _ = json.insert("eos_token_id".into(), json!(-1))).unwrap().eos_token_id.is_empty());
    }

    #[test]
    fn sizes_for_gavel_have_no_unknown_keys() {
        let read = |json: Value| ModelConfig::deserialize_known(json).map_err(|error| error.to_string());
        let mut json: serde_json::Map<String, Value> = serde_json::from_str(QWEN).unwrap();
        assert_eq!(read(Value::Object(json.clone())).unwrap_err(), "unknown field `attention_dropout`");
        json.remove("attention_dropout");
        json.insert("dtype".into(), "float32".into());
        let config = read(Value::Object(json)).unwrap();
        assert_eq!(config, with(|_| ()).unwrap());
        // What is written is known.
        let window = [Some(8)].into_iter().chain([None; 23]).collect();
        let scaled = ModelConfig { rope_scaling: Some(RopeScaling::Linear { factor: 2.0 }), ..config.clone() };
        let classifier = ModelConfig { head: Head::Scores { labels: 3 }, windows: window, ..config.clone() };
        for config in [config, scaled, classifier] {
            assert_eq!(read(serde_json::to_value(&config).unwrap()).unwrap(), config);
        }
    }

    #[test]
    fn what_asks_for_nothing_is_no_mistake() {
        let plain = with(|_| ()).unwrap();
        for value in [Value::Null, json!(false), json!({}), json!([])] {
            for key in ["mlp_bias", "use_bidirectional_attention", "per_layer_config"] {
                assert_eq!(with(|json| _ = json.insert(key.into(), value.clone())).unwrap(), plain, "{key}: {value}");
            }
        }
    }

    #[test]
    fn what_cannot_run_is_refused_by_name() {
        for (key, value, says) in [
            ("model_type", json!("phi3"), "(model_type \"phi3\") is not supported; ForCausalLM, "),
            ("model_type", json!("llama"), "\"Qwen2ForCausalLM\" (model_type \"llama\")"),
            ("architectures", json!(["Qwen2Model"]), "architecture \"Qwen2Model\""),
            ("hidden_act", json!("gelu"), "`hidden_act` \"gelu\""),
            ("mlp_bias", json!(true), "`mlp_bias` is not supported"),
            ("use_bidirectional_attention", json!(true), "`use_bidirectional_attention` is not supported"),
            ("per_layer_config", json!({"0": {"head_dim": 32}}), "`per_layer_config` is not supported"),
            ("sliding_window", json!(0), "`sliding_window` must be a positive"),
            ("layer_types", json!(["full_attention"]), "`layer_types` has 1 layers"),
            ("rope_scaling", json!({"type": "dynamic", "factor": 4.0}), "type \"dynamic\""),
            ("rope_scaling", json!({"rope_type": "llama3", "factor": 4.0}), "needs `low_freq_factor`"),
            ("num_attention_heads", json!(15), "`hidden_size` 896"),
            ("num_key_value_heads", json!(3), "multiple of `num_key_value_heads` 3"),
            ("num_hidden_layers", json!(0), "`num_hidden_layers` must be a positive"),
            ("head_dim", json!(127), "`head_dim` must be even"),
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
