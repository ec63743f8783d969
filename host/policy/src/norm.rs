//! Root mean square normalisation (Zhang and Sennrich, arXiv:1910.07467).

use crate::architecture::Architecture;
use crate::config::ModelConfig;
use crate::error::Result;
use gavel_torch::layer::rms_norm;
use gavel_torch::scalar::ScalarOperations;
use tch::{Kind, Tensor};

/// How a model normalises.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Norm {
    eps: f64,
    /// Added to the weight.
    offset: f64,
}

impl Norm {
    pub(crate) fn new(config: &ModelConfig) -> Self {
        Self { eps: config.rms_norm_eps, offset: config.architecture.norm_offset() }
    }

    /// The initial value of a weight, with which a norm multiplies by 1.
    pub(crate) fn initial(architecture: Architecture) -> f64 {
        1.0 - architecture.norm_offset()
    }

    /// Normalises the last dimension of `x`, which is as wide as `weight`.
    pub(crate) fn apply(self, x: &Tensor, weight: &Tensor) -> Result<Tensor> {
        if self.offset == 0.0 {
            return Ok(rms_norm(x, weight, self.eps)?);
        }
        // A small weight beside 1 would lose its digits in 16 bits.
        let kind = if x.kind() == Kind::Double { Kind::Double } else { Kind::Float };
        let weight = weight.f_to_kind(kind)?.try_add(self.offset)?;
        Ok(rms_norm(&x.f_to_kind(kind)?, &weight, self.eps)?.f_to_kind(x.kind())?)
    }
}
