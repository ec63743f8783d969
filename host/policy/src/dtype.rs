//! The dtype of a run's weights.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;
use tch::{Device, Kind};

/// The dtype of weights, by its name in `transformers`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Dtype {
    /// 32 bits.
    #[default]
    #[serde(alias = "fp32")]
    Float32,
    /// 16 bits, the range of 32.
    #[serde(alias = "bf16")]
    Bfloat16,
    /// 16 bits, more digits.
    #[serde(alias = "fp16")]
    Float16,
}

impl Dtype {
    /// The kind that libtorch has for this dtype.
    pub fn kind(self) -> Kind {
        match self {
            Self::Float32 => Kind::Float,
            Self::Bfloat16 => Kind::BFloat16,
            Self::Float16 => Kind::Half,
        }
    }

    /// The dtype of a kind, if it is that of weights.
    pub fn of(kind: Kind) -> Option<Self> {
        [Self::Float32, Self::Bfloat16, Self::Float16].into_iter().find(|dtype| dtype.kind() == kind)
    }

    /// The kind of the chosen dtype. Without a choice, it is 32 bits on the CPU
    /// and the `stored` kind on a GPU.
    ///
    /// # Errors
    /// The errors of `stored`.
    pub fn or_of_device<E>(
        chosen: Option<Self>,
        device: Device,
        stored: impl FnOnce() -> Result<Kind, E>,
    ) -> Result<Kind, E> {
        match chosen {
            Some(dtype) => Ok(dtype.kind()),
            None if device == Device::Cpu => Ok(Kind::Float),
            None => stored(),
        }
    }
}

impl fmt::Display for Dtype {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Float32 => "float32",
            Self::Bfloat16 => "bfloat16",
            Self::Float16 => "float16",
        })
    }
}

impl FromStr for Dtype {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        match name {
            "float32" | "fp32" => Ok(Self::Float32),
            "bfloat16" | "bf16" => Ok(Self::Bfloat16),
            "float16" | "fp16" => Ok(Self::Float16),
            _ => Err("use float32, bfloat16 or float16".into()),
        }
    }
}
