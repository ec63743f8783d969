//! Norms, gated products and rotations as one kernel each, on GPUs. libtorch computes the last two as several operations,
//! each of which reads and writes all numbers.

use crate::config::ModelConfig;
use crate::error::Result;
use crate::fast_paths::{FastPath, Results, is_usable, random_like};
use crate::model::Model;
use crate::rotary::{Rotation, Unrotated};
use gavel_torch::attention::Stored;
use gavel_torch::cuda::kernels;
use gavel_torch::layer;
use gavel_torch::scalar::{ScalarOperations, arange};
use tch::{Device, Kind, Tensor};

/// The tokens that kernels are checked with.
const TOKENS: i64 = 37;

impl Model {
    /// The rotations at `positions`, `[tokens]`, with which each pass begins. Layers use kernels of our own from here on,
    /// where the model's device has them.
    pub(crate) fn rotation(&self, positions: &Tensor) -> Result<Rotation> {
        let config = self.config();
        let rotation = self.rotary.at(positions)?;
        if self.kind() == Kind::BFloat16 && self.device() != Device::Cpu {
            let (heads, kv_heads) = (config.num_attention_heads, config.num_key_value_heads);
            let shapes = [config.hidden_size, config.intermediate_size, heads, kv_heads, config.head_dim];
            let compute = || compared(config, self.device(), |at| self.rotary.at(at));
            kernels::set_on(is_usable(FastPath::FusedLayers, self.device(), self.kind(), &shapes, compute));
        }
        Ok(rotation)
    }
}

/// The results and gradients of the kernels and of libtorch's operations, as far as the model's widths have kernels.
fn compared(
    config: &ModelConfig,
    device: Device,
    rotation_at: impl Fn(&Tensor) -> Result<Rotation>,
) -> Result<Vec<Results>> {
    // The plain parts are libtorch's.
    kernels::set_on(false);
    let (heads, kv_heads, width) = (config.num_attention_heads, config.num_key_value_heads, config.head_dim);
    let random =
        |shape: &[i64], seed| -> Result<Tensor> { Ok(random_like(shape, seed, Kind::BFloat16, device)?.try_mul(4.0)?) };
    let (mut fast, mut plain) = (Vec::new(), Vec::new());
    if config.hidden_size % 8 == 0 {
        let (x, weight) = (random(&[TOKENS, config.hidden_size], 1)?, random(&[config.hidden_size], 2)?);
        fast.push(kernels::rms_norm(&x, &weight, config.rms_norm_eps)?);
        plain.push(layer::rms_norm(&x, &weight, config.rms_norm_eps)?);
    }
    if config.intermediate_size % 8 == 0 {
        let gate_up = random(&[TOKENS, 2 * config.intermediate_size], 3)?;
        fast.extend(with_gradient(&gate_up, |x| Ok(vec![kernels::silu_product(x)?]))?);
        plain.extend(with_gradient(&gate_up, |x| Ok(vec![layer::silu_product(x)?]))?);
    }
    if width % 16 == 0 {
        let rotation = rotation_at(&arange(5, 5 + TOKENS, 1, device)?)?;
        // Queries, keys and values lie beside each other, as a layer projects them.
        let all = random(&[TOKENS, heads + 2 * kv_heads, width], 4)?;
        let turning = |all: &Tensor| Ok::<_, crate::error::PolicyError>(all.f_narrow(1, 0, heads + kv_heads)?);
        fast.extend(with_gradient(&all, |x| Ok(rotation.kernel(&turning(x)?, heads)?.into()))?);
        plain.extend(with_gradient(&all, |x| Ok(rotation.apply(&turning(x)?, heads)?.into()))?);
        let unrotated = Unrotated { turning: turning(&all)?, value: all.f_narrow(1, heads + kv_heads, kv_heads)? };
        // Every place is written once, in another order.
        let places = arange(0, TOKENS, 1, device)?.try_mul(5)?.f_remainder(TOKENS)?;
        let empty = || Tensor::f_zeros([TOKENS, kv_heads, width], (Kind::BFloat16, device));
        let (keys, values) = (empty()?, empty()?);
        let query = rotation.apply_into(&unrotated, heads, &places, Stored { keys: &keys, values: &values })?;
        fast.extend([query, keys, values]);
        let [query, key] = rotation.apply(&unrotated.turning, heads)?;
        let stored = |x: &Tensor| empty()?.f_index_copy_(0, &places, x);
        plain.extend([query, stored(&key)?, stored(&unrotated.value)?]);
    }
    let rows = || vec![1; TOKENS as usize];
    Ok(fast.into_iter().zip(plain).map(|(fast, plain)| Results { fast, plain, rows: rows() }).collect())
}

/// What `compute` gives for `x`, and the gradient of a weighted sum of it.
fn with_gradient(x: &Tensor, compute: impl Fn(&Tensor) -> Result<Vec<Tensor>>) -> Result<Vec<Tensor>> {
    let x = x.f_detach()?.f_set_requires_grad(true)?;
    let _guard = tch::no_grad_guard();
    let (out, sum) = tch::with_grad(|| -> Result<_> {
        let out = compute(&x)?;
        let flat = out.iter().map(|part| part.f_flatten(0, -1)).collect::<std::result::Result<Vec<_>, _>>()?;
        let flat = Tensor::f_cat(&flat, 0)?;
        let weights = random_like(&flat.size(), 5, x.kind(), x.device())?;
        Ok((out, flat.f_mul(&weights)?.f_sum(Kind::Float)?))
    })?;
    sum.f_backward()?;
    let mut all = out.iter().map(Tensor::f_detach).collect::<std::result::Result<Vec<_>, _>>()?;
    all.push(x.f_grad()?);
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cpu_has_no_kernels() {
        let json = r#"{"model_type":"qwen2","vocab_size":50,"hidden_size":32,"intermediate_size":24,"num_hidden_layers":2,"num_attention_heads":4,"num_key_value_heads":2,"head_dim":16}"#;
        let config: ModelConfig = serde_json::from_str(json).unwrap();
        let model = Model::noise(config.clone(), Kind::BFloat16, Device::Cpu).unwrap();
        let error = compared(&config, Device::Cpu, |at| model.rotary.at(at)).err().unwrap().to_string();
        assert!(error.contains("do not fit the kernel"), "{error}");
        assert!(!Rotation::can_store(&Tensor::zeros([1, 2, 16], (Kind::BFloat16, Device::Cpu))));
    }
}
