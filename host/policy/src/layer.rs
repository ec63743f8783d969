//! One transformer layer: attention and a gated feed-forward block, each
//! behind an RMSNorm, over a residual stream `[tokens, hidden]`.

use crate::architecture::Architecture;
use crate::config::ModelConfig;
use crate::error::Result;
use crate::norm::Norm;
use crate::rotary::Rotation;
use tch::{Device, Kind, Tensor};

/// The weights of a layer. Matrices that read the same input are stored as
/// one, so that each is one multiplication.
pub(crate) struct Layer {
    /// `[hidden]`
    pub(crate) input_norm: Tensor,
    /// Query, key and value: `[query_width + 2 * kv_width, hidden]`.
    pub(crate) qkv: Tensor,
    /// `[query_width + 2 * kv_width]`, in Qwen2.
    pub(crate) qkv_bias: Option<Tensor>,
    /// Norms of each query and each key, `[head_dim]`, in Qwen3.
    pub(crate) qk_norms: Option<[Tensor; 2]>,
    /// `[hidden, query_width]`
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
    /// A layer whose weights are all 0.
    pub(crate) fn zeros(config: &ModelConfig, kind: Kind, device: Device) -> Result<Self> {
        let zeros = |shape: &[i64]| Tensor::f_zeros(shape, (kind, device));
        let (hidden, inner, architecture) = (config.hidden_size, config.intermediate_size, config.architecture);
        let qkv_width = config.query_width() + 2 * config.kv_width();
        Ok(Self {
            input_norm: zeros(&[hidden])?,
            qkv: zeros(&[qkv_width, hidden])?,
            qkv_bias: if architecture.has_qkv_bias() { Some(zeros(&[qkv_width])?) } else { None },
            qk_norms: match architecture.has_qk_norm() {
                true => Some([zeros(&[config.head_dim])?, zeros(&[config.head_dim])?]),
                false => None,
            },
            output: zeros(&[hidden, config.query_width()])?,
            post_norm: zeros(&[hidden])?,
            gate_up: zeros(&[2 * inner, hidden])?,
            down: zeros(&[hidden, inner])?,
        })
    }

    /// The weights with their names in the model, after `model.layers.N.`.
    pub(crate) fn parameters(&self) -> Vec<(&'static str, &Tensor)> {
        let mut all = vec![("input_layernorm.weight", &self.input_norm), ("self_attn.qkv_proj.weight", &self.qkv)];
        all.extend(self.qkv_bias.as_ref().map(|bias| ("self_attn.qkv_proj.bias", bias)));
        if let Some([query, key]) = &self.qk_norms {
            all.extend([("self_attn.q_norm.weight", query), ("self_attn.k_norm.weight", key)]);
        }
        all.extend([
            ("self_attn.o_proj.weight", &self.output),
            ("post_attention_layernorm.weight", &self.post_norm),
            ("mlp.gate_up_proj.weight", &self.gate_up),
            ("mlp.down_proj.weight", &self.down),
        ]);
        all
    }

    /// The queries, keys and values of `x`, `[tokens, hidden]`.
    pub(crate) fn project(&self, config: &ModelConfig, x: &Tensor, rotation: &Rotation) -> Result<Projected> {
        let (heads, kv_heads, norm) = (config.num_attention_heads, config.num_key_value_heads, Norm::new(config));
        let normed = norm.apply(x, &self.input_norm)?;
        let qkv = normed.f_linear(&self.qkv, self.qkv_bias.as_ref())?.f_unflatten(1, [-1, config.head_dim])?;
        let [mut turning, value] = split(&qkv, [heads + kv_heads, kv_heads])?;
        if let Some([query_norm, key_norm]) = &self.qk_norms {
            let [query, key] = split(&turning, [heads, kv_heads])?;
            turning = Tensor::f_cat(&[norm.apply(&query, query_norm)?, norm.apply(&key, key_norm)?], 1)?;
        }
        let [query, key] = split(&rotation.apply(&turning)?, [heads, kv_heads])?;
        Ok(Projected { query, key, value })
    }

    /// Adds to `x` what attention found, `[tokens, query_width]`, and what the
    /// feed-forward block makes of it.
    pub(crate) fn finish(&self, config: &ModelConfig, x: &Tensor, attended: &Tensor) -> Result<Tensor> {
        let x = x.f_addmm(attended, &self.output.f_tr()?)?;
        let normed = Norm::new(config).apply(&x, &self.post_norm)?;
        let [gate, up] = split(&normed.f_linear(&self.gate_up, None::<&Tensor>)?, [config.intermediate_size; 2])?;
        let gate = match config.architecture {
            Architecture::Gemma => gate.f_gelu("tanh")?,
            _ => gate.f_silu()?,
        };
        Ok(x.f_addmm(&gate.f_mul(&up)?, &self.down.f_tr()?)?)
    }
}

/// Two pieces of dimension 1. (The gradient of a split is one concatenation;
/// that of two slices is two zero-filled copies and a sum.)
fn split(x: &Tensor, sizes: [i64; 2]) -> Result<[Tensor; 2]> {
    let mut pieces = x.f_split_with_sizes(sizes, 1)?;
    let second = pieces.swap_remove(1);
    Ok([pieces.swap_remove(0), second])
}
