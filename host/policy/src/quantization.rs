//! Matrices in fewer bits.

use crate::error::Result;
use crate::fp8::Fp8Matrix;
use gavel_torch::int8::Int8Matrix;
use serde::{Deserialize, Serialize};
use std::fmt;
use tch::Tensor;

/// How the weights are stored that tokens are drawn with, under vLLM's names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Quantization {
    /// Integers of 8 bits, with a scale for each output of a matrix; on the CPU.
    Int8,
    /// Floating-point numbers of 8 bits (e4m3), with a scale for each output of a matrix; on GPUs that multiply them.
    Fp8,
}

impl fmt::Display for Quantization {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Int8 => "int8",
            Self::Fp8 => "fp8",
        })
    }
}

/// A matrix in fewer bits.
pub(crate) enum Quantized {
    Int8(Int8Matrix),
    Fp8(Fp8Matrix),
}

impl Quantized {
    pub(crate) fn of(weight: &Tensor, quantization: Quantization) -> Result<Self> {
        Ok(match quantization {
            Quantization::Int8 => Self::Int8(Int8Matrix::pack(weight)?),
            Quantization::Fp8 => Self::Fp8(Fp8Matrix::of(weight)?),
        })
    }

    /// The product with `x`, `[tokens, in]`, plus `added`, in the kind of `x`.
    pub(crate) fn product(&self, x: &Tensor, added: Option<&Tensor>) -> Result<Tensor> {
        match self {
            Self::Int8(matrix) => Ok(matrix.product(x, added)?.f_to_kind(x.kind())?),
            Self::Fp8(matrix) => {
                let product = matrix.product(x)?;
                let sum = added.map_or(Ok(product.shallow_clone()), |added| product.f_add(added))?;
                Ok(sum.f_to_kind(x.kind())?)
            }
        }
    }

    /// The tensors that a CUDA graph reads.
    pub(crate) fn tensors(&self) -> Vec<&Tensor> {
        match self {
            Self::Int8(_) => Vec::new(),
            Self::Fp8(matrix) => matrix.tensors().to_vec(),
        }
    }
}

impl Quantization {
    /// Whether the head is stored like the layers. The logits of fp8 would have 16 bits.
    pub(crate) fn includes_head(self) -> bool {
        self == Self::Int8
    }

    /// The bytes of a matrix.
    pub(crate) fn bytes(self, outs: u64, width: u64) -> u64 {
        match self {
            Self::Int8 => Int8Matrix::bytes(outs, width),
            Self::Fp8 => Fp8Matrix::bytes(outs, width),
        }
    }
}
