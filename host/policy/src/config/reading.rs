//! From `config.json` as it is written to a model's sizes.

use super::file::{ConfigFile, FULL, OneOrMany, SLIDING};
use super::foreign;
use super::head::Head;
use super::rope::RopeTable;
use super::{MOST_LAYERS, ModelConfig};
use crate::architecture::Architecture;
use crate::error::{PolicyError, Result};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};

/// The tokens of a window if the file does not set them.
const DEFAULT_WINDOW: i64 = 4096;
/// The first layer with a window if the file does not set it.
const DEFAULT_WINDOW_LAYERS: i64 = 28;

/// The keys that name the dtype of the weights, which is read from the weights
/// themselves.
const KINDS: [&str; 2] = ["dtype", "torch_dtype"];

/// A token's id. Some files have -1 where there is no token.
fn token(id: i64) -> Option<u32> {
    u32::try_from(id).ok()
}

/// The family and the head, from `model_type` and `architectures`.
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

/// The window of each layer; empty if no layer has one.
fn windows(file: &ConfigFile, architecture: Architecture, layers: i64) -> Result<Vec<Option<i64>>> {
    let size = file.sliding_window.unwrap_or(Some(DEFAULT_WINDOW));
    let size = match architecture {
        Architecture::Mistral => size,
        Architecture::Qwen2 | Architecture::Qwen3 => size.filter(|_| file.use_sliding_window == Some(true)),
        Architecture::Llama | Architecture::Gemma => None,
    };
    if let Some(kinds) = &file.layer_types {
        let windows = kinds.iter().map(|kind| window_of(kind, size)).collect::<Result<Vec<_>>>()?;
        return Ok(if size.is_some() { windows } else { Vec::new() });
    }
    let Some(size) = size else { return Ok(Vec::new()) };
    let first = match architecture {
        Architecture::Mistral => 0,
        _ => file.max_window_layers.unwrap_or(DEFAULT_WINDOW_LAYERS),
    };
    Ok((0..layers).map(|layer| (layer >= first).then_some(size)).collect())
}

/// The window of a layer of this kind in a model whose windows have `size` tokens.
fn window_of(kind: &str, size: Option<i64>) -> Result<Option<i64>> {
    match (kind, size) {
        (FULL, _) => Ok(None),
        (SLIDING, Some(size)) => Ok(Some(size)),
        (SLIDING, None) => Err(PolicyError::Config(format!("`layer_types` has {SLIDING:?}, and no window is set"))),
        (other, _) => {
            Err(PolicyError::Config(format!("`layer_types` {other:?} is not supported; {FULL:?} and {SLIDING:?} are")))
        }
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
        // A legacy value of Gemma that means the approximation.
        let legacy = |name: &str| architecture == Architecture::Gemma && name == "gelu";
        let mut activations = [&file.hidden_activation, &file.hidden_act].into_iter().flatten();
        if let Some(activation) = activations.find(|name| *name != architecture.activation() && !legacy(name)) {
            return wrong(format!(
                "`hidden_act` {activation:?} is not supported for {architecture}; only {:?} is",
                architecture.activation()
            ));
        }
        if file.attention_bias == Some(true) && architecture != Architecture::Qwen2 {
            return wrong(format!("`attention_bias` is not supported for {architecture}; only without it"));
        }
        foreign::refuse(&file.unknown)?;
        let (hidden_size, heads) =
            (size("hidden_size", file.hidden_size)?, size("num_attention_heads", file.num_attention_heads)?);
        let layers = size("num_hidden_layers", file.num_hidden_layers)?;
        // More layers are refused below, without a window for each.
        let windows = windows(&file, architecture, layers.min(MOST_LAYERS))?;
        let max_position_embeddings = file.max_position_embeddings.unwrap_or(architecture.default_positions());
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
                Some(rope) => rope.scaling(max_position_embeddings, file.original_max_position_embeddings)?,
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
    /// Reads sizes that were written for Gavel. Unknown keys are refused here;
    /// a `config.json` may have any.
    pub fn deserialize_known<'de, D: Deserializer<'de>>(value: D) -> std::result::Result<Self, D::Error> {
        let file = ConfigFile::deserialize(value)?;
        let unknown = file.unknown.keys().find(|key| !KINDS.contains(&key.as_str()));
        match unknown {
            Some(key) => Err(D::Error::custom(format!("unknown field `{key}`"))),
            None => Self::try_from(file).map_err(D::Error::custom),
        }
    }
}
