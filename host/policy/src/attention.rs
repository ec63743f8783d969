//! Attention of whole sequences, by the fused operation of libtorch.

use crate::error::Result;
use crate::fast_paths::{FastPath, is_usable, random_like};
use crate::layer::Projected;
use gavel_torch::autograd::backward;
use tch::{Device, Kind, Tensor};

/// Causal attention within each of `batch` rows; gives `[batch * time, heads *
/// head_dim]`. `mask` is `[batch or 1, 1, time, time]`, true where a query may
/// look.
pub(crate) fn attend(projected: &Projected, batch: i64, mask: Option<&Tensor>) -> Result<Tensor> {
    let rows = |x: &Tensor| x.f_unflatten(0, [batch, -1])?.f_transpose(1, 2);
    attention(&rows(&projected.query)?, &rows(&projected.key)?, &rows(&projected.value)?, mask)
}

/// Attention of `query`, `[rows, heads, time, head_dim]`, to `key` and `value`,
/// `[rows, kv_heads, keys, head_dim]`; gives `[rows * time, heads * head_dim]`.
/// Without a `mask` it is causal, from the first key on.
pub(crate) fn attention(query: &Tensor, key: &Tensor, value: &Tensor, mask: Option<&Tensor>) -> Result<Tensor> {
    let share = query.size()[1] / key.size()[1];
    let out = match share {
        1 => fused(query, key, value, mask, false)?,
        _ if mask.is_none() && can_share(query, key)? => fused(query, key, value, mask, true)?,
        _ => {
            // Elsewhere fused attention wants as many key heads as query heads.
            let spread = |x: &Tensor| x.f_repeat_interleave_self_int(share, 1, None);
            fused(query, &spread(key)?, &spread(value)?, mask, false)?
        }
    };
    Ok(out.f_transpose(1, 2)?.f_flatten(2, 3)?.f_flatten(0, 1)?)
}

fn fused(query: &Tensor, key: &Tensor, value: &Tensor, mask: Option<&Tensor>, shares: bool) -> Result<Tensor> {
    let causal = mask.is_none();
    Ok(Tensor::f_scaled_dot_product_attention(query, key, value, mask, 0.0, causal, None, shares)?)
}

/// Whether fused attention without a mask can let query heads share keys on this device.
fn can_share(query: &Tensor, key: &Tensor) -> Result<bool> {
    let (kind, device) = (query.f_kind()?, query.device());
    let (heads, kv_heads, width) = (query.size()[1], key.size()[1], query.size()[3]);
    // In 32 bits libtorch would compute all scores one by one.
    let is_half = matches!(kind, Kind::BFloat16 | Kind::Half);
    Ok(is_half
        && is_usable(FastPath::SharedKeys, device, kind, &[heads, kv_heads, width], || {
            let inputs = [heads, kv_heads, kv_heads].map(|heads| [2, heads, 70, width]);
            with_gradients(&inputs, kind, device, |[query, key, value], is_fast| match is_fast {
                true => fused(query, key, value, None, true),
                false => {
                    let spread = |x: &Tensor| x.f_repeat_interleave_self_int(heads / kv_heads, 1, None);
                    fused(query, &spread(key)?, &spread(value)?, None, false)
                }
            })
        }))
}

/// The results of two forms of an attention of random tensors of these shapes, the faster first: what it gives, and the
/// gradients of its weighted sum.
pub(crate) fn with_gradients(
    shapes: &[[i64; 4]; 3],
    kind: Kind,
    device: Device,
    attend: impl Fn([&Tensor; 3], bool) -> Result<Tensor>,
) -> Result<[Tensor; 2]> {
    let all = |is_fast: bool| -> Result<Tensor> {
        let leaf = |seed: i64, shape: &[i64]| -> Result<Tensor> {
            Ok(random_like(shape, seed, kind, device)?.f_set_requires_grad(true)?)
        };
        let [query, key, value] = [leaf(1, &shapes[0])?, leaf(2, &shapes[1])?, leaf(3, &shapes[2])?];
        let out = tch::with_grad(|| attend([&query, &key, &value], is_fast))?;
        backward(&out, &random_like(&out.size(), 4, kind, device)?)?;
        let parts = [out.f_detach()?, query.f_grad()?, key.f_grad()?, value.f_grad()?];
        let flat = parts.iter().map(|part| part.f_flatten(0, -1)).collect::<std::result::Result<Vec<_>, _>>()?;
        Ok(Tensor::f_cat(&flat, 0)?)
    };
    Ok([all(true)?, all(false)?])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fast_paths::beyond_rounding;
    use gavel_torch::scalar::ScalarOperations;

    #[test]
    fn a_check_compares_results_and_gradients() {
        let shapes = [4, 2, 2].map(|heads| [2, heads, 5, 8]);
        let compared = |wrong: bool| {
            with_gradients(&shapes, Kind::Float, Device::Cpu, |[query, key, value], is_fast| {
                let spread = |x: &Tensor| x.f_repeat_interleave_self_int(2, 1, None);
                // With another gradient alone.
                let key = if wrong && is_fast {
                    key.f_detach()?.f_add(&(key - key.detach()).try_mul(2.0)?)?
                } else {
                    key.shallow_clone()
                };
                fused(query, &spread(&key)?, &spread(value)?, None, false)
            })
            .unwrap()
        };
        let [fast, plain] = compared(false);
        // The output, and the gradients of queries, keys and values.
        assert_eq!((fast.size(), &fast), (vec![2 * 5 * 8 * (4 + 4 + 2 + 2)], &plain));
        let [fast, plain] = compared(true);
        assert!(beyond_rounding(&fast, &plain, Kind::Float).unwrap().is_some());
    }
}
