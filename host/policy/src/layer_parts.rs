//! The parts of a layer beside its products and attention: norms, gated products and rotations. On GPUs each is one kernel
//! of our own, where libtorch computes the last two as several operations, each of which reads and writes all numbers.

use crate::config::ModelConfig;
use crate::error::Result;
use crate::fast_paths::{FastPath, Results, is_usable, random_like};
use crate::norm::Norm;
use crate::rotary::{Rotary, Rotation, Unrotated};
use gavel_torch::attention::Stored;
use gavel_torch::cuda::kernels;
use gavel_torch::layer;
use gavel_torch::scalar::{ScalarOperations, arange};
use tch::{Device, Kind, Tensor};

/// The tokens that kernels are checked with.
const TOKENS: i64 = 37;

/// How the parts of a model are computed in a pass.
#[derive(Clone, Copy)]
pub(crate) struct LayerParts<'a> {
    pub(crate) config: &'a ModelConfig,
    /// Whether kernels are used where the widths fit them.
    by_kernels: bool,
}

impl<'a> LayerParts<'a> {
    pub(crate) fn of(config: &'a ModelConfig, kind: Kind, device: Device, rotary: &Rotary) -> Self {
        let (heads, kv_heads) = (config.num_attention_heads, config.num_key_value_heads);
        let shapes = [config.hidden_size, config.intermediate_size, heads, kv_heads, config.head_dim];
        let compute = || compared(config, device, rotary);
        let by_kernels = kind == Kind::BFloat16 && is_usable(FastPath::FusedLayers, device, kind, &shapes, compute);
        Self { config, by_kernels }
    }

    /// Normalises the last dimension of `x`, which is as wide as `weight`.
    pub(crate) fn norm(self, x: &Tensor, weight: &Tensor) -> Result<Tensor> {
        let width = weight.size().first().copied().unwrap_or_default();
        let is_plain = self.config.architecture.norm_offset() == 0.0;
        match self.by_kernels && is_plain && kernels::fit(x, width) && kernels::fit(weight, width) {
            true => Ok(kernels::rms_norm(x, weight, self.config.rms_norm_eps)?),
            false => Norm::new(self.config).apply(x, weight),
        }
    }

    /// `silu(gate) · up`, `[tokens, width]`, of `gate_up`, `[tokens, 2 * width]`.
    pub(crate) fn silu_product(self, gate_up: &Tensor) -> Result<Tensor> {
        Ok(match self.by_kernels && kernels::fit(gate_up, self.config.intermediate_size) {
            true => kernels::silu_product(gate_up)?,
            false => layer::silu_product(gate_up)?,
        })
    }

    /// The queries and the keys of `turning`, rotated.
    pub(crate) fn rotate(self, rotation: &Rotation, turning: &Tensor) -> Result<[Tensor; 2]> {
        let queries = self.config.num_attention_heads;
        if self.turns_by_kernels(turning) {
            rotation.kernel(turning, queries)
        } else {
            rotation.apply(turning, queries)
        }
    }

    /// Rotates, writes keys and values to `places` of what is `stored`, and gives the queries, by one kernel without
    /// gradients. `None` where there is none.
    pub(crate) fn rotate_into(
        self,
        rotation: &Rotation,
        unrotated: &Unrotated,
        places: &Tensor,
        stored: Stored,
    ) -> Result<Option<Tensor>> {
        let queries = self.config.num_attention_heads;
        let by_kernel = || rotation.kernel_into(unrotated, queries, places, stored);
        if self.turns_by_kernels(&unrotated.turning) { by_kernel().map(Some) } else { Ok(None) }
    }

    fn turns_by_kernels(self, turning: &Tensor) -> bool {
        self.by_kernels && kernels::fit(turning, self.config.head_dim / 2)
    }
}

/// The results and gradients of the kernels and of libtorch's operations, as far as the model's widths have kernels.
fn compared(config: &ModelConfig, device: Device, rotary: &Rotary) -> Result<Vec<Results>> {
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
        let rotation = rotary.at(&arange(5, 5 + TOKENS, 1, device)?)?;
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
        let query = rotation.kernel_into(&unrotated, heads, &places, Stored { keys: &keys, values: &values })?;
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
        let rotary = Rotary::new(&config, Kind::Float, Device::Cpu).unwrap();
        assert!(!LayerParts::of(&config, Kind::BFloat16, Device::Cpu, &rotary).by_kernels);
        let error = compared(&config, Device::Cpu, &rotary).err().unwrap().to_string();
        assert!(error.contains("do not fit the kernel"), "{error}");
    }
}
