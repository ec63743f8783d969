//! The sizes of a model, as `config.json` of a Hugging Face checkpoint has
//! them.

mod file;
mod foreign;
mod head;
mod reading;
mod rope;
mod writing;

pub use head::Head;
pub use rope::RopeScaling;

use crate::architecture::Architecture;
use crate::error::{PolicyError, Result};
use crate::json_file;
use crate::lora;
use crate::model_folder::ModelFolder;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// The name of the file in a checkpoint.
pub(crate) const FILE: &str = "config.json";

/// The sizes of a model, by the names that `transformers` gives them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(try_from = "file::ConfigFile", into = "file::ConfigFile")]
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
    /// included. `None` or an empty list means all.
    pub windows: Vec<Option<i64>>,
    /// The longest sequence in tokens, unless `rope_scaling` extends it: see
    /// [`positions`](Self::positions).
    pub max_position_embeddings: i64,
    /// Added to the mean square in RMSNorm.
    pub rms_norm_eps: f64,
    /// Base of the rotary embedding's wavelengths.
    pub rope_theta: f64,
    /// How these wavelengths are changed.
    pub rope_scaling: Option<RopeScaling>,
    /// Whether the output head is the embedding.
    pub tie_word_embeddings: bool,
    /// The part after the last layer.
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

/// The most layers: the deepest published models have 130.
const MOST_LAYERS: i64 = 1000;
/// The most rows or columns of a weight, which no published model comes near. The number of weights, and of the bytes
/// that training them takes, is below 2^63 with these limits.
const MOST_WIDTH: i64 = 1 << 22;
/// The most positions. They are counted in 32 bits.
const MOST_POSITIONS: i64 = i32::MAX as i64;

impl ModelConfig {
    /// Reads `config.json` of the model in the folder `dir`. For an adapter, reads `config.json` of its base, and
    /// replaces the head by the adapter's head.
    pub fn load(dir: &Path) -> Result<Self> {
        let folder = ModelFolder::open(dir)?;
        let path = folder.base.join(FILE);
        let text = json_file::read(&path)?;
        let config: Self =
            serde_json::from_str(&text).map_err(|error| PolicyError::Checkpoint { path, what: error.to_string() })?;
        match &folder.adapter {
            Some(adapter) => Ok(Self { head: lora::head(adapter, config.head)?, ..config }),
            None => Ok(config),
        }
    }

    /// Checks that the embedding has a row for each of a tokenizer's `tokens`.
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

    /// The same sizes with the head of a reward model, which has one label.
    ///
    /// # Errors
    /// The model is a critic, or a classifier with several labels.
    pub fn for_reward_model(self) -> Result<Self> {
        match self.head {
            Head::LanguageModel | Head::Scores { labels: 1 } => Ok(Self { head: Head::Scores { labels: 1 }, ..self }),
            Head::Scores { labels } => {
                Err(PolicyError::Config(format!("a reward model has one label, and this classifier has {labels}")))
            }
            Head::Values { .. } => Err(PolicyError::Config(
                "a critic cannot become a reward model: it needs a language model, or a classifier with one label"
                    .into(),
            )),
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

    /// A layer without a window and a layer with one, as far as there are.
    pub(crate) fn a_layer_of_each_window(&self) -> Vec<usize> {
        let layers = || 0..self.num_hidden_layers as usize;
        let has_window = |layer: &usize| self.window(*layer).is_some();
        layers().find(|layer| !has_window(layer)).into_iter().chain(layers().find(has_window)).collect()
    }

    /// The window of the layers that have one.
    pub(crate) fn window_size(&self) -> Option<i64> {
        self.windows.iter().copied().flatten().next()
    }

    /// Checks that the sizes fit each other.
    pub fn validate(&self) -> Result<()> {
        let wrong = |what: String| Err(PolicyError::Config(what));
        for (name, value, most) in [
            ("vocab_size", self.vocab_size, MOST_WIDTH),
            ("hidden_size", self.hidden_size, MOST_WIDTH),
            ("intermediate_size", self.intermediate_size, MOST_WIDTH),
            ("num_hidden_layers", self.num_hidden_layers, MOST_LAYERS),
            ("num_attention_heads", self.num_attention_heads, MOST_WIDTH),
            ("num_key_value_heads", self.num_key_value_heads, MOST_WIDTH),
            ("head_dim", self.head_dim, MOST_WIDTH),
            ("max_position_embeddings", self.max_position_embeddings, MOST_POSITIONS),
            ("sliding_window", self.windows.iter().flatten().copied().min().unwrap_or(1), i64::MAX),
            ("num_labels", self.head.labels().unwrap_or(1), MOST_WIDTH),
        ] {
            if !(1..=most).contains(&value) {
                return wrong(format!("`{name}` must be from 1 to {most}, not {value}"));
            }
        }
        if self.query_width() > MOST_WIDTH {
            return wrong(format!(
                "`num_attention_heads` {} times `head_dim` {} must be at most {MOST_WIDTH}",
                self.num_attention_heads, self.head_dim
            ));
        }
        if self.positions() > MOST_POSITIONS {
            return wrong(format!(
                "`factor` times `original_max_position_embeddings` of the rotary embedding must be at most {MOST_POSITIONS}, not {}",
                self.positions()
            ));
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
mod tests;
