//! Rotary position embedding (Su et al., "RoFormer", arXiv:2104.09864) in the
//! half-rotation layout of Hugging Face: dimension `i` is paired with
//! `i + head_dim / 2`.

use crate::config::{ModelConfig, RopeScaling};
use crate::error::Result;
use gavel_torch::attention::Stored;
use gavel_torch::cuda::kernels;
use gavel_torch::layer::rotate;
use gavel_torch::scalar::ScalarOperations;
use tch::{Device, Kind, Tensor};

/// The inverse wavelengths `theta^(-2i / head_dim)`, scaled if the model asks
/// for it.
pub(crate) struct Rotary {
    inverse: Tensor,
    /// The factor of queries and keys.
    attention: f64,
}

/// The rotations of a list of tokens.
pub(crate) struct Rotation {
    /// `[tokens, 1, 1, head_dim / 2]`
    cos: Tensor,
    /// `[tokens, 1, 2, head_dim / 2]`: −sin for the first half, sin for the second.
    sin: Tensor,
}

/// The inputs of attention before the rotation.
pub(crate) struct Unrotated {
    /// Queries, then keys: `[tokens, heads + kv_heads, head_dim]`.
    pub(crate) turning: Tensor,
    /// `[tokens, kv_heads, head_dim]`
    pub(crate) value: Tensor,
}

impl Rotary {
    /// Rotations are computed in `kind`: float, or double for a model in double.
    pub(crate) fn new(config: &ModelConfig, kind: Kind, device: Device) -> Result<Self> {
        let half = config.head_dim / 2;
        let mut inverse: Vec<f64> = (0..half).map(|i| config.rope_theta.powf(-(i as f64) / half as f64)).collect();
        if let Some(scaling) = config.rope_scaling {
            scaling.apply(&mut inverse, config.rope_theta);
        }
        Ok(Self {
            inverse: Tensor::f_from_slice(&inverse)?.f_to_kind(kind)?.f_to_device(device)?,
            attention: config.rope_scaling.map_or(1.0, RopeScaling::attention),
        })
    }

    /// A copy that shares its memory.
    pub(crate) fn shallow_clone(&self) -> Self {
        Self { inverse: self.inverse.shallow_clone(), attention: self.attention }
    }

    /// The rotations at `positions`, `[tokens]`.
    pub(crate) fn at(&self, positions: &Tensor) -> Result<Rotation> {
        let angle = positions.f_to_kind(self.inverse.kind())?.f_unsqueeze(1)?.f_mul(&self.inverse)?;
        let angle = angle.f_unsqueeze(1)?.f_unsqueeze(1)?;
        let (mut cos, mut sin) = (angle.f_cos()?, angle.f_sin()?);
        if self.attention != 1.0 {
            (cos, sin) = (cos.try_mul(self.attention)?, sin.try_mul(self.attention)?);
        }
        Ok(Rotation { cos, sin: Tensor::f_cat(&[sin.f_neg()?, sin], 2)? })
    }
}

impl Rotation {
    /// The same rotations for each of `batch` rows: `[tokens]` becomes
    /// `[batch * tokens]`.
    pub(crate) fn repeat(&self, batch: i64) -> Result<Self> {
        Ok(Self { cos: self.cos.f_repeat([batch, 1, 1, 1])?, sin: self.sin.f_repeat([batch, 1, 1, 1])? })
    }

    /// [`apply`](Self::apply) as one kernel.
    pub(crate) fn kernel(&self, x: &Tensor, queries: i64) -> Result<[Tensor; 2]> {
        Ok(kernels::rotate(x, queries, &self.cos, &self.sin)?)
    }

    /// The same, which writes keys and values to `places` of what is `stored` and gives the queries, without gradients.
    pub(crate) fn kernel_into(
        &self,
        Unrotated { turning, value }: &Unrotated,
        queries: i64,
        places: &Tensor,
        stored: Stored,
    ) -> Result<Tensor> {
        let (angles, stored) = ([&self.cos, &self.sin], [stored.keys, stored.values]);
        Ok(kernels::rotate_and_store([turning, value], queries, angles, places, stored)?)
    }

    /// Rotates `x`, `[tokens, heads, head_dim]`; gives the first `queries`
    /// heads, and the others.
    pub(crate) fn apply(&self, x: &Tensor, queries: i64) -> Result<[Tensor; 2]> {
        // Angles keep more digits than weights in half precision.
        Ok(rotate(x, queries, &self.cos, &self.sin)?)
    }
}
