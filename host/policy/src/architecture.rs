//! The model families and the differences between them.

use std::fmt;

/// A family of decoder-only transformers. All have RMSNorm before each block,
/// rotary positions, grouped-query attention and a gated feed-forward block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Architecture {
    /// Qwen2 and Qwen2.5 (arXiv:2412.15115): biases of query, key and value.
    Qwen2,
    /// Qwen3 (arXiv:2505.09388): query and key are normalised, head by head.
    Qwen3,
    /// Llama 2 and 3 (arXiv:2407.21783).
    Llama,
    /// Mistral (arXiv:2310.06825): layers may see a window only.
    Mistral,
    /// Gemma, the first (arXiv:2403.08295): embeddings are scaled, norms
    /// multiply by one more than their weight, and the gate is a GELU.
    Gemma,
}

impl Architecture {
    /// Every family.
    pub const ALL: [Self; 5] = [Self::Qwen2, Self::Qwen3, Self::Llama, Self::Mistral, Self::Gemma];

    /// `model_type` in `config.json`.
    pub fn model_type(self) -> &'static str {
        match self {
            Self::Qwen2 => "qwen2",
            Self::Qwen3 => "qwen3",
            Self::Llama => "llama",
            Self::Mistral => "mistral",
            Self::Gemma => "gemma",
        }
    }

    /// The prefix of its class names in `transformers`.
    pub(crate) fn class_prefix(self) -> &'static str {
        match self {
            Self::Qwen2 => "Qwen2",
            Self::Qwen3 => "Qwen3",
            Self::Llama => "Llama",
            Self::Mistral => "Mistral",
            Self::Gemma => "Gemma",
        }
    }

    pub(crate) fn has_qkv_bias(self) -> bool {
        self == Self::Qwen2
    }

    pub(crate) fn has_qk_norm(self) -> bool {
        self == Self::Qwen3
    }

    /// A norm multiplies by its weight plus this.
    pub(crate) fn norm_offset(self) -> f64 {
        if self == Self::Gemma { 1.0 } else { 0.0 }
    }

    /// Whether embeddings are multiplied by the root of their width.
    pub(crate) fn scales_embedding(self) -> bool {
        self == Self::Gemma
    }

    /// The gate's activation, as `hidden_act` names it.
    pub(crate) fn activation(self) -> &'static str {
        if self == Self::Gemma { "gelu_pytorch_tanh" } else { "silu" }
    }

    /// `max_position_embeddings` if `config.json` does not set it.
    pub(crate) fn default_positions(self) -> i64 {
        match self {
            Self::Qwen2 | Self::Qwen3 => 32_768,
            Self::Llama => 2048,
            Self::Mistral => 131_072,
            Self::Gemma => 8192,
        }
    }

    pub(crate) fn ties_embeddings_by_default(self) -> bool {
        self == Self::Gemma
    }

    /// The width of a head if `config.json` does not set it and it does not
    /// follow from the other sizes.
    pub(crate) fn default_head_dim(self) -> Option<i64> {
        match self {
            Self::Qwen3 => Some(128),
            Self::Gemma => Some(256),
            Self::Qwen2 | Self::Llama | Self::Mistral => None,
        }
    }
}

impl fmt::Display for Architecture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.class_prefix())
    }
}
