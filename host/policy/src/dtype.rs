//! The numbers that a run's weights are.

use serde::{Deserialize, Serialize};
use std::str::FromStr;
use tch::Kind;

/// The numbers that weights are, by the names that `transformers` has for them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Dtype {
    /// 32 bits.
    #[default]
    Float32,
    /// 16 bits, the range of 32.
    Bfloat16,
    /// 16 bits, more digits.
    Float16,
}

impl Dtype {
    /// The same for libtorch.
    pub fn kind(self) -> Kind {
        match self {
            Self::Float32 => Kind::Float,
            Self::Bfloat16 => Kind::BFloat16,
            Self::Float16 => Kind::Half,
        }
    }
}

impl FromStr for Dtype {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        match name {
            "float32" => Ok(Self::Float32),
            "bfloat16" => Ok(Self::Bfloat16),
            "float16" => Ok(Self::Float16),
            _ => Err("use float32, bfloat16 or float16".into()),
        }
    }
}
