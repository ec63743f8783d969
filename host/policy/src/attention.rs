//! Attention of whole sequences, by the fused operation of libtorch.

use crate::error::Result;
use crate::layer::Projected;
use tch::Tensor;

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
    // libtorch's fused attention on the CPU wants as many key heads as query heads.
    let spread = |x: &Tensor| match share {
        1 => Ok(x.shallow_clone()),
        _ => x.f_repeat_interleave_self_int(share, 1, None),
    };
    let (key, value) = (spread(key)?, spread(value)?);
    let causal = mask.is_none();
    let out = Tensor::f_scaled_dot_product_attention(query, &key, &value, mask, 0.0, causal, None, false)?;
    Ok(out.f_transpose(1, 2)?.f_flatten(2, 3)?.f_flatten(0, 1)?)
}
