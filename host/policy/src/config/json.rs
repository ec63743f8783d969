//! `config.json` as it is written.

use super::ModelConfig;
use super::rope::RopeTable;
use crate::architecture::Architecture;
use crate::error::{PolicyError, Result};
use crate::head::Head;
use serde::de::{Error as _, IgnoredAny};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// How many tokens a window has where the file does not say.
const DEFAULT_WINDOW: i64 = 4096;
/// The first layer with a window where the file does not say.
const DEFAULT_WINDOW_LAYERS: i64 = 28;
const SLIDING: &str = "sliding_attention";
const FULL: &str = "full_attention";

/// The keys with which a file names the numbers that its weights are. They are
/// read from the weights.
const KINDS: [&str; 2] = ["dtype", "torch_dtype"];

/// `config.json`. Keys that are not named here say nothing about the
/// computation (version numbers, dropout) and are passed over.
#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct ConfigFile {
    architectures: Option<Vec<String>>,
    model_type: Option<String>,
    vocab_size: Option<i64>,
    hidden_size: Option<i64>,
    intermediate_size: Option<i64>,
    num_hidden_layers: Option<i64>,
    num_attention_heads: Option<i64>,
    num_key_value_heads: Option<i64>,
    head_dim: Option<i64>,
    hidden_act: Option<String>,
    /// Gemma's former name for it.
    #[serde(skip_serializing)]
    hidden_activation: Option<String>,
    max_position_embeddings: Option<i64>,
    rms_norm_eps: Option<f64>,
    rope_theta: Option<f64>,
    /// Where transformers 5 writes the rotary settings.
    rope_parameters: Option<RopeTable>,
    /// Where transformers 4 reads changes of the rotary embedding.
    #[serde(skip_serializing_if = "Option::is_none")]
    rope_scaling: Option<RopeTable>,
    #[serde(skip_serializing_if = "Option::is_none")]
    use_sliding_window: Option<bool>,
    /// Absent is not `null`, which is no window.
    #[serde(deserialize_with = "some")]
    sliding_window: Option<Option<i64>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_window_layers: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    layer_types: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    attention_bias: Option<bool>,
    #[serde(skip_serializing)]
    mlp_bias: Value,
    #[serde(skip_serializing)]
    use_bidirectional_attention: Value,
    #[serde(skip_serializing)]
    per_layer_config: Value,
    tie_word_embeddings: Option<bool>,
    initializer_range: Option<f64>,
    bos_token_id: Option<i64>,
    eos_token_id: Option<OneOrMany>,
    pad_token_id: Option<i64>,
    /// How many labels there are where `id2label` does not name them.
    #[serde(skip_serializing)]
    num_labels: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    id2label: Option<Map<String, Value>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    label2id: Option<Map<String, Value>>,
    /// The keys that are passed over.
    #[serde(flatten, skip_serializing)]
    unknown: BTreeMap<String, IgnoredAny>,
}

fn some<'de, D: Deserializer<'de>>(value: D) -> std::result::Result<Option<Option<i64>>, D::Error> {
    Option::deserialize(value).map(Some)
}

#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum OneOrMany {
    One(i64),
    Many(Vec<i64>),
}

/// A token's id. Some files have -1 where there is no token.
fn token(id: i64) -> Option<u32> {
    u32::try_from(id).ok()
}

/// Whether the value of a key that is not supported asks for anything.
fn asks(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => false,
        Value::Array(items) => !items.is_empty(),
        Value::Object(items) => !items.is_empty(),
        Value::Bool(true) | Value::Number(_) | Value::String(_) => true,
    }
}

/// What `model_type` and `architectures` say: the family and the head.
fn family(file: &ConfigFile) -> Result<(Architecture, Head)> {
    let class = file.architectures.as_deref().and_then(<[String]>::first).map(String::as_str);
    let found = match (file.model_type.as_deref(), class) {
        (None, None) => Some(Architecture::Qwen2),
        (Some(kind), _) => Architecture::ALL.into_iter().find(|known| known.model_type() == kind),
        (None, Some(class)) => Architecture::ALL.into_iter().find(|known| class.starts_with(known.class_prefix())),
    };
    // transformers leaves two labels, its default, out of the file.
    let labels = file.id2label.as_ref().map_or(file.num_labels.unwrap_or(2), |labels| labels.len() as i64);
    let head = found.and_then(|known| match class {
        None => Some(Head::LanguageModel),
        Some(class) => Head::of_class(class.strip_prefix(known.class_prefix())?, labels),
    });
    match (found, head) {
        (Some(known), Some(head)) => Ok((known, head)),
        _ => {
            let known: Vec<_> = Architecture::ALL.iter().map(|known| known.to_string()).collect();
            Err(PolicyError::Config(format!(
                "architecture {:?} (model_type {:?}) is not supported; {} of {} are",
                class.unwrap_or("none"),
                file.model_type.as_deref().unwrap_or("none"),
                Head::classes(),
                known.join(", ")
            )))
        }
    }
}

/// The window of each layer; empty where there is none.
fn windows(file: &ConfigFile, architecture: Architecture, layers: i64) -> Result<Vec<Option<i64>>> {
    let size = file.sliding_window.unwrap_or(Some(DEFAULT_WINDOW));
    let Some(size) = size else { return Ok(Vec::new()) };
    match architecture {
        Architecture::Mistral => Ok((0..layers).map(|_| Some(size)).collect()),
        Architecture::Qwen2 | Architecture::Qwen3 if file.use_sliding_window == Some(true) => match &file.layer_types {
            Some(kinds) => kinds
                .iter()
                .map(|kind| match kind.as_str() {
                    SLIDING => Ok(Some(size)),
                    FULL => Ok(None),
                    other => Err(PolicyError::Config(format!(
                        "`layer_types` {other:?} is not supported; {FULL:?} and {SLIDING:?} are"
                    ))),
                })
                .collect(),
            None => {
                let first = file.max_window_layers.unwrap_or(DEFAULT_WINDOW_LAYERS);
                Ok((0..layers).map(|layer| (layer >= first).then_some(size)).collect())
            }
        },
        _ => Ok(Vec::new()),
    }
}

impl TryFrom<ConfigFile> for ModelConfig {
    type Error = PolicyError;

    fn try_from(file: ConfigFile) -> Result<Self> {
        let wrong = |what: String| Err(PolicyError::Config(what));
        let (architecture, head) = family(&file)?;
        let size = |name: &str, value: Option<i64>| {
            value.ok_or_else(|| PolicyError::Config(format!("missing field `{name}`")))
        };
        let activation = file.hidden_activation.as_deref().or(file.hidden_act.as_deref());
        // A legacy value of Gemma that means the approximation.
        let legacy = architecture == Architecture::Gemma && activation == Some("gelu");
        if let Some(activation) = activation.filter(|name| *name != architecture.activation() && !legacy) {
            return wrong(format!(
                "`hidden_act` {activation:?} is not supported for {architecture}; only {:?} is",
                architecture.activation()
            ));
        }
        if file.attention_bias == Some(true) && architecture != Architecture::Qwen2 {
            return wrong(format!("`attention_bias` is not supported for {architecture}; only without it"));
        }
        for (name, value) in [
            ("mlp_bias", &file.mlp_bias),
            ("use_bidirectional_attention", &file.use_bidirectional_attention),
            ("per_layer_config", &file.per_layer_config),
        ] {
            if asks(value) {
                return wrong(format!("`{name}` is not supported; only without it"));
            }
        }
        let (hidden_size, heads) =
            (size("hidden_size", file.hidden_size)?, size("num_attention_heads", file.num_attention_heads)?);
        let layers = size("num_hidden_layers", file.num_hidden_layers)?;
        let windows = windows(&file, architecture, layers)?;
        let max_position_embeddings = file.max_position_embeddings.unwrap_or(32_768);
        // transformers 5 prefers what was added by hand under the former name.
        let added = file.rope_scaling.as_ref().filter(|table| **table != RopeTable::default());
        let rope = added.or(file.rope_parameters.as_ref());
        let theta = added.and_then(|table| table.rope_theta);
        let theta = theta.or(file.rope_parameters.as_ref().and_then(|table| table.rope_theta));
        let head_dim = match file.head_dim.or(architecture.default_head_dim()) {
            Some(width) => width,
            None if heads > 0 && hidden_size % heads == 0 => hidden_size / heads,
            None => {
                return wrong(format!(
                    "`hidden_size` {hidden_size} must be a multiple of `num_attention_heads` {heads} where there is no `head_dim`"
                ));
            }
        };
        let config = Self {
            architecture,
            vocab_size: size("vocab_size", file.vocab_size)?,
            hidden_size,
            intermediate_size: size("intermediate_size", file.intermediate_size)?,
            num_hidden_layers: layers,
            num_attention_heads: heads,
            num_key_value_heads: file.num_key_value_heads.unwrap_or(heads),
            head_dim,
            windows,
            max_position_embeddings,
            rms_norm_eps: file.rms_norm_eps.unwrap_or(1e-6),
            rope_theta: theta.or(file.rope_theta).unwrap_or(10_000.0),
            rope_scaling: match rope {
                Some(rope) => rope.scaling(max_position_embeddings)?,
                None => None,
            },
            tie_word_embeddings: file.tie_word_embeddings.unwrap_or(architecture.ties_embeddings_by_default()),
            head,
            initializer_range: file.initializer_range.unwrap_or(0.02),
            bos_token_id: file.bos_token_id.and_then(token),
            eos_token_id: match file.eos_token_id {
                None => Vec::new(),
                Some(OneOrMany::One(id)) => token(id).into_iter().collect(),
                Some(OneOrMany::Many(ids)) => ids.into_iter().filter_map(token).collect(),
            },
            pad_token_id: file.pad_token_id.and_then(token),
        };
        config.validate()?;
        Ok(config)
    }
}

impl ModelConfig {
    /// Reads sizes that were written for Gavel, where a key that it does not
    /// know is a mistake: a `config.json` may have any.
    pub fn deserialize_known<'de, D: Deserializer<'de>>(value: D) -> std::result::Result<Self, D::Error> {
        let file = ConfigFile::deserialize(value)?;
        let unknown = file.unknown.keys().find(|key| !KINDS.contains(&key.as_str()));
        match unknown {
            Some(key) => Err(D::Error::custom(format!("unknown field `{key}`"))),
            None => Self::try_from(file).map_err(D::Error::custom),
        }
    }
}

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
            rms_norm_eps: Some(config.rms_norm_eps),
            rope_theta: Some(config.rope_theta),
            rope_parameters: Some(rope()),
            rope_scaling: config.rope_scaling.map(|_| rope()),
            use_sliding_window: by_layer.then_some(window.is_some()),
            sliding_window: Some(window),
            max_window_layers: None,
            layer_types: (by_layer && window.is_some()).then(|| config.windows.iter().map(kind).collect()),
            attention_bias: (!by_layer || architecture == Architecture::Qwen3).then_some(false),
            mlp_bias: Value::Null,
            use_bidirectional_attention: Value::Null,
            per_layer_config: Value::Null,
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
