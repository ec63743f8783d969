//! One transformer layer of Qwen2: attention and a gated feed-forward block,
//! each behind an RMSNorm, over a residual stream `[tokens, hidden]`.

use crate::config::ModelConfig;
use crate::error::Result;
use crate::rotary::Rotation;
use tch::Tensor;

/// The weights of a layer. Matrices that read the same input are stored as
/// one, so that each is one multiplication.
pub(crate) struct Layer {
    /// `[hidden]`
    pub(crate) input_norm: Tensor,
    /// Query, key and value: `[hidden + 2 * kv_width, hidden]`.
    pub(crate) qkv: Tensor,
    /// `[hidden + 2 * kv_width]`
    pub(crate) qkv_bias: Tensor,
    /// `[hidden, hidden]`
    pub(crate) output: Tensor,
    /// `[hidden]`
    pub(crate) post_norm: Tensor,
    /// Gate and up: `[2 * intermediate, hidden]`.
    pub(crate) gate_up: Tensor,
    /// `[hidden, intermediate]`
    pub(crate) down: Tensor,
}

/// What attention works on: queries `[tokens, heads, head_dim]`, keys and
/// values `[tokens, kv_heads, head_dim]`, rotated.
pub(crate) struct Projected {
    pub(crate) query: Tensor,
    pub(crate) key: Tensor,
    pub(crate) value: Tensor,
}

impl Layer {
    /// The queries, keys and values of `x`, `[tokens, hidden]`.
    pub(crate) fn project(&self, config: &ModelConfig, x: &Tensor, rotation: &Rotation) -> Result<Projected> {
        let (heads, kv_heads) = (config.num_attention_heads, config.num_key_value_heads);
        let normed = rms_norm(x, &self.input_norm, config.rms_norm_eps)?;
        let qkv = normed.f_linear(&self.qkv, Some(&self.qkv_bias))?.f_unflatten(1, [-1, config.head_dim()])?;
        let [turning, value] = split(&qkv, [heads + kv_heads, kv_heads])?;
        let [query, key] = split(&rotation.apply(&turning)?, [heads, kv_heads])?;
        Ok(Projected { query, key, value })
    }

    /// Adds to `x` what attention found, `[tokens, hidden]`, and what the
    /// feed-forward block makes of it.
    pub(crate) fn finish(&self, config: &ModelConfig, x: &Tensor, attended: &Tensor) -> Result<Tensor> {
        let x = x.f_addmm(attended, &self.output.f_tr()?)?;
        let normed = rms_norm(&x, &self.post_norm, config.rms_norm_eps)?;
        let [gate, up] = split(&normed.f_linear(&self.gate_up, None::<&Tensor>)?, [config.intermediate_size; 2])?;
        Ok(x.f_addmm(&gate.f_silu()?.f_mul(&up)?, &self.down.f_tr()?)?)
    }
}

/// Root mean square normalisation (Zhang and Sennrich, arXiv:1910.07467) over
/// the last dimension.
pub(crate) fn rms_norm(x: &Tensor, weight: &Tensor, eps: f64) -> Result<Tensor> {
    Ok(x.f_rms_norm(weight.size(), Some(weight), eps)?)
}

/// Two pieces of dimension 1. (The gradient of a split is one concatenation;
/// that of two slices is two zero-filled copies and a sum.)
fn split(x: &Tensor, sizes: [i64; 2]) -> Result<[Tensor; 2]> {
    let mut pieces = x.f_split_with_sizes(sizes, 1)?;
    let second = pieces.swap_remove(1);
    Ok([pieces.swap_remove(0), second])
}
