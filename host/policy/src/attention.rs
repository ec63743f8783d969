//! Attention of whole sequences, by the fused operation of libtorch.

use crate::error::Result;
use crate::fast_paths::{FastPath, Results, is_usable, random_like};
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
    flat(&out)
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
            let shapes = [heads, kv_heads, kv_heads].map(|heads| vec![2, heads, 70, width]);
            let rows = [[140], [2]];
            with_gradients(&shapes, [&rows[0], &rows[1]], kind, device, |[query, key, value], is_fast| match is_fast {
                true => flat(&fused(query, key, value, None, true)?),
                false => {
                    let spread = |x: &Tensor| x.f_repeat_interleave_self_int(heads / kv_heads, 1, None);
                    flat(&fused(query, &spread(key)?, &spread(value)?, None, false)?)
                }
            })
        }))
}

/// `[rows * time, heads * head_dim]` of `[rows, heads, time, head_dim]`.
fn flat(out: &Tensor) -> Result<Tensor> {
    Ok(out.f_transpose(1, 2)?.f_flatten(2, 3)?.f_flatten(0, 1)?)
}

/// The results of two forms of an attention of random tensors of these shapes: what it gives, and the gradients of its
/// weighted sum. The rows of the output and of the inputs have these lengths.
pub(crate) fn with_gradients(
    shapes: &[Vec<i64>; 3],
    [of_output, of_inputs]: [&[i64]; 2],
    kind: Kind,
    device: Device,
    attend: impl Fn([&Tensor; 3], bool) -> Result<Tensor>,
) -> Result<Vec<Results>> {
    let all = |is_fast: bool| -> Result<[Tensor; 4]> {
        let leaf = |seed: i64, shape: &[i64]| -> Result<Tensor> {
            Ok(random_like(shape, seed, kind, device)?.f_set_requires_grad(true)?)
        };
        let [query, key, value] = [leaf(1, &shapes[0])?, leaf(2, &shapes[1])?, leaf(3, &shapes[2])?];
        let out = tch::with_grad(|| attend([&query, &key, &value], is_fast))?;
        backward(&out, &random_like(&out.size(), 4, kind, device)?)?;
        Ok([out.f_detach()?, query.f_grad()?, key.f_grad()?, value.f_grad()?])
    };
    let rows = [of_output, of_inputs, of_inputs, of_inputs].map(<[i64]>::to_vec);
    let results = all(true)?.into_iter().zip(all(false)?).zip(rows);
    Ok(results.map(|((fast, plain), rows)| Results { fast, plain, rows }).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fast_paths::differing;
    use gavel_torch::scalar::ScalarOperations;

    #[test]
    fn a_check_compares_results_and_gradients() {
        let shapes = [4, 2, 2].map(|heads| vec![2, heads, 5, 8]);
        // With another gradient of the keys alone.
        let compared = |factor: f64| {
            with_gradients(&shapes, [&[10], &[2]], Kind::BFloat16, Device::Cpu, |[query, key, value], is_fast| {
                let spread = |x: &Tensor| x.f_repeat_interleave_self_int(2, 1, None);
                let factor = if is_fast { factor } else { 1.0 };
                let key = key.f_detach()?.f_add(&key.f_sub(&key.f_detach()?)?.try_mul(factor)?)?;
                flat(&fused(query, &spread(&key)?, &spread(value)?, None, false)?)
            })
            .unwrap()
        };
        // The output, and the gradients of queries, keys and values.
        let sizes: Vec<Vec<i64>> = compared(1.0).iter().map(|of| of.fast.size()).collect();
        assert_eq!(sizes, [vec![10, 32], vec![2, 4, 5, 8], vec![2, 2, 5, 8], vec![2, 2, 5, 8]]);
        let differing = |factor| differing(&compared(factor), Kind::BFloat16).unwrap();
        assert!(differing(1.0).is_none() && differing(0.0).is_some() && differing(1.1).is_some());
    }
}
