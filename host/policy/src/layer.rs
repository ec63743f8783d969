//! One transformer layer: attention and a gated feed-forward block, each
//! behind an RMSNorm, over a residual stream `[tokens, hidden]`.

use crate::architecture::Architecture;
use crate::config::ModelConfig;
use crate::error::Result;
use crate::layer_parts::LayerParts;
use crate::linear::Linear;
use crate::lora::module::Module;
use crate::quantization::Quantization;
use crate::rotary::{Rotation, Unrotated};
use tch::{Device, Kind, Tensor};

/// The weights of a layer.
pub(crate) struct Layer {
    /// `[hidden]`
    pub(crate) input_norm: Tensor,
    /// Query, key and value: `hidden` to `query_width + 2 * kv_width`, with a
    /// bias in Qwen2.
    pub(crate) qkv: Linear,
    /// Norms of each query and each key, `[head_dim]`, in Qwen3.
    pub(crate) qk_norms: Option<[Tensor; 2]>,
    /// `query_width` to `hidden`
    pub(crate) output: Linear,
    /// `[hidden]`
    pub(crate) post_norm: Tensor,
    /// Gate and up: `hidden` to `2 * intermediate`.
    pub(crate) gate_up: Linear,
    /// `intermediate` to `hidden`
    pub(crate) down: Linear,
}

/// The inputs of attention: queries `[tokens, heads, head_dim]`, and keys and
/// values `[tokens, kv_heads, head_dim]`. Queries and keys are rotated.
pub(crate) struct Projected {
    pub(crate) query: Tensor,
    pub(crate) key: Tensor,
    pub(crate) value: Tensor,
}

impl Layer {
    /// A layer whose weights are all 0.
    pub(crate) fn zeros(config: &ModelConfig, kind: Kind, device: Device) -> Result<Self> {
        let options = (kind, device);
        let zeros = |shape: &[i64]| Tensor::f_zeros(shape, options);
        let (hidden, inner, architecture) = (config.hidden_size, config.intermediate_size, config.architecture);
        let (query, kv) = (config.query_width(), config.kv_width());
        let qkv = [(Module::Query, query), (Module::Key, kv), (Module::Value, kv)];
        let gate_up = [(Module::Gate, inner), (Module::Up, inner)];
        Ok(Self {
            input_norm: zeros(&[hidden])?,
            qkv: Linear::zeros("self_attn.qkv_proj", &qkv, hidden, architecture.has_qkv_bias(), options)?,
            qk_norms: match architecture.has_qk_norm() {
                true => Some([zeros(&[config.head_dim])?, zeros(&[config.head_dim])?]),
                false => None,
            },
            output: Linear::zeros("self_attn.o_proj", &[(Module::Output, hidden)], query, false, options)?,
            post_norm: zeros(&[hidden])?,
            gate_up: Linear::zeros("mlp.gate_up_proj", &gate_up, hidden, false, options)?,
            down: Linear::zeros("mlp.down_proj", &[(Module::Down, hidden)], inner, false, options)?,
        })
    }

    /// The same layer without adapters and gradients, in the same memory.
    pub(crate) fn base(&self) -> Result<Self> {
        Ok(Self {
            input_norm: self.input_norm.f_detach()?,
            qkv: self.qkv.base()?,
            qk_norms: match &self.qk_norms {
                Some([query, key]) => Some([query.f_detach()?, key.f_detach()?]),
                None => None,
            },
            output: self.output.base()?,
            post_norm: self.post_norm.f_detach()?,
            gate_up: self.gate_up.base()?,
            down: self.down.base()?,
        })
    }

    /// The same layer with its matrices in fewer bits, to draw with. The rest is in the same memory.
    pub(crate) fn quantized(&self, quantization: Quantization) -> Result<Self> {
        Ok(Self {
            qkv: self.qkv.quantized(quantization)?,
            output: self.output.quantized(quantization)?,
            gate_up: self.gate_up.quantized(quantization)?,
            down: self.down.quantized(quantization)?,
            ..self.base()?
        })
    }

    pub(crate) fn linears(&self) -> [&Linear; 4] {
        [&self.qkv, &self.output, &self.gate_up, &self.down]
    }

    pub(crate) fn linears_mut(&mut self) -> [&mut Linear; 4] {
        [&mut self.qkv, &mut self.output, &mut self.gate_up, &mut self.down]
    }

    /// The weights with their names in the model, after `model.layers.N.`.
    pub(crate) fn weights(&self) -> Vec<(&'static str, &Tensor)> {
        let mut all =
            vec![("input_layernorm.weight", &self.input_norm), ("self_attn.qkv_proj.weight", &self.qkv.weight)];
        all.extend(self.qkv.bias.as_ref().map(|bias| ("self_attn.qkv_proj.bias", bias)));
        if let Some([query, key]) = &self.qk_norms {
            all.extend([("self_attn.q_norm.weight", query), ("self_attn.k_norm.weight", key)]);
        }
        all.extend([
            ("self_attn.o_proj.weight", &self.output.weight),
            ("post_attention_layernorm.weight", &self.post_norm),
            ("mlp.gate_up_proj.weight", &self.gate_up.weight),
            ("mlp.down_proj.weight", &self.down.weight),
        ]);
        all
    }

    /// The queries, keys and values of `x`, `[tokens, hidden]`.
    pub(crate) fn project(&self, parts: LayerParts, x: &Tensor, rotation: &Rotation) -> Result<Projected> {
        let Unrotated { turning, value } = self.project_unrotated(parts, x)?;
        let [query, key] = parts.rotate(rotation, &turning)?;
        Ok(Projected { query, key, value })
    }

    /// The same before the rotation.
    pub(crate) fn project_unrotated(&self, parts: LayerParts, x: &Tensor) -> Result<Unrotated> {
        let config = parts.config;
        let (heads, kv_heads) = (config.num_attention_heads, config.num_key_value_heads);
        let normed = parts.norm(x, &self.input_norm)?;
        let qkv = self.qkv.apply(&normed)?.f_unflatten(1, [-1, config.head_dim])?;
        let [mut turning, value] = split(&qkv, [heads + kv_heads, kv_heads])?;
        if let Some([query_norm, key_norm]) = &self.qk_norms {
            let [query, key] = split(&turning, [heads, kv_heads])?;
            turning = Tensor::f_cat(&[parts.norm(&query, query_norm)?, parts.norm(&key, key_norm)?], 1)?;
        }
        Ok(Unrotated { turning, value })
    }

    /// Adds to `x` the result of attention, `[tokens, query_width]`, and the
    /// output of the feed-forward block.
    pub(crate) fn finish(&self, parts: LayerParts, x: &Tensor, attended: &Tensor) -> Result<Tensor> {
        let x = self.output.apply_onto(x, attended)?;
        self.down.apply_onto(&x, &self.gated(parts, &x)?)
    }

    /// The same in the memory of `x`, without gradients.
    pub(crate) fn finish_over(&self, parts: LayerParts, x: Tensor, attended: &Tensor) -> Result<Tensor> {
        let x = self.output.apply_over(x, attended)?;
        let product = self.gated(parts, &x)?;
        self.down.apply_over(x, &product)
    }

    /// The gated product of the feed-forward block, `[tokens, intermediate]`.
    fn gated(&self, parts: LayerParts, x: &Tensor) -> Result<Tensor> {
        let (config, normed) = (parts.config, parts.norm(x, &self.post_norm)?);
        let gate_up = self.gate_up.apply(&normed)?;
        Ok(match config.architecture {
            Architecture::Gemma => {
                let [gate, up] = split(&gate_up, [config.intermediate_size; 2])?;
                gate.f_gelu("tanh")?.f_mul(&up)?
            }
            _ => parts.silu_product(&gate_up)?,
        })
    }
}

/// Two pieces of dimension 1. A split, as its gradient is one concatenation;
/// the gradient of two slices is two zero-filled copies and a sum.
fn split(x: &Tensor, sizes: [i64; 2]) -> Result<[Tensor; 2]> {
    let mut pieces = x.f_split_with_sizes(sizes, 1)?;
    let second = pieces.remove(1);
    Ok([pieces.remove(0), second])
}
