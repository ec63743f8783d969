//! The linear maps of a layer that can have an adapter.

use serde::{Deserialize, Serialize};

/// A linear map of a layer that can have an adapter, by PEFT's name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema)]
pub enum Module {
    /// To queries.
    #[serde(rename = "q_proj")]
    Query,
    /// To keys.
    #[serde(rename = "k_proj")]
    Key,
    /// To values.
    #[serde(rename = "v_proj")]
    Value,
    /// From the result of attention.
    #[serde(rename = "o_proj")]
    Output,
    /// To the gate of the feed-forward block.
    #[serde(rename = "gate_proj")]
    Gate,
    /// To the values that the gate multiplies.
    #[serde(rename = "up_proj")]
    Up,
    /// From the feed-forward block.
    #[serde(rename = "down_proj")]
    Down,
}

impl Module {
    /// Every module.
    pub const ALL: [Self; 7] = [Self::Query, Self::Key, Self::Value, Self::Output, Self::Gate, Self::Up, Self::Down];

    /// Its name, with the block that it is in.
    pub(crate) fn path(self) -> &'static str {
        match self {
            Self::Query => "self_attn.q_proj",
            Self::Key => "self_attn.k_proj",
            Self::Value => "self_attn.v_proj",
            Self::Output => "self_attn.o_proj",
            Self::Gate => "mlp.gate_proj",
            Self::Up => "mlp.up_proj",
            Self::Down => "mlp.down_proj",
        }
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        self.path().rsplit('.').next().unwrap_or_default()
    }
}
