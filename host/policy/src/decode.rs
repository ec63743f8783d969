//! The forward pass over the key-value cache, without gradients: prompts at
//! once, responses token by token.

use crate::cache::Cache;
use crate::error::Result;
use crate::forward::attend;
use crate::layer::rms_norm;
use crate::model::Model;
use tch::{Kind, Tensor};

/// Computes the cache of whole prompts, `ids`, `[rows, time]`, padded on the
/// right, into `slots`, `[rows]`. The places of padding are overwritten as the
/// rows grow.
pub(crate) fn prefill(model: &Model, cache: &mut Cache, ids: &Tensor, slots: &Tensor) -> Result<()> {
    let config = model.config();
    let [rows, time] = [ids.size()[0], ids.size()[1]];
    let positions = Tensor::f_arange(time, (Kind::Int64, ids.device()))?;
    let rotation = model.rotary.at(&positions)?.repeat(rows)?;
    let mut x = model.embed(&ids.f_flatten(0, 1)?)?;
    for (index, layer) in model.layers.iter().enumerate() {
        let projected = layer.project(config, &x, &rotation)?;
        cache.store(index, slots, &projected.key, &projected.value)?;
        // After the last layer's keys and values nothing more is needed.
        if index + 1 < model.layers.len() {
            x = layer.finish(config, &x, &attend(&projected, rows, None)?)?;
        }
    }
    Ok(())
}

/// Feeds one token to each of the first slots and gives the logits of the next,
/// `[rows, vocab]`. `tokens` and `positions` are `[rows]`; `longest` is the
/// number of positions in use after this step, by the longest row; `ragged`
/// says whether another row uses fewer.
pub(crate) fn step(
    model: &Model,
    cache: &mut Cache,
    tokens: &Tensor,
    positions: &Tensor,
    longest: i64,
    ragged: bool,
) -> Result<Tensor> {
    let config = model.config();
    let rows = tokens.size()[0];
    let heads = [config.num_key_value_heads, config.num_attention_heads / config.num_key_value_heads];
    let scale = (config.head_dim() as f64).sqrt().recip();
    let rotation = model.rotary.at(positions)?;
    let places = cache.places(positions)?;
    let mask = if ragged { Some(length_mask(positions, longest, model.kind())?) } else { None };
    let mut x = model.embed(tokens)?;
    for (index, layer) in model.layers.iter().enumerate() {
        let projected = layer.project(config, &x, &rotation)?;
        cache.append(index, &places, &projected.key, &projected.value)?;
        let (keys, values) = cache.read(index, rows, longest)?;
        // One query a row: plain batched products are about three times faster than fused attention
        // on the CPU. The query heads of a group are the rows of one product.
        let query = projected.query.f_mul_scalar(scale)?.f_reshape([rows * heads[0], heads[1], -1])?;
        let mut scores = query.f_bmm(&keys.f_transpose(1, 2)?)?;
        if let Some(mask) = &mask {
            let _ = scores.f_view([rows, -1, longest])?.f_add_(mask)?;
        }
        scores = scores.f_softmax(-1, None)?;
        let attended = scores.f_bmm(&values)?.f_view([rows, -1])?;
        x = layer.finish(config, &x, &attended)?;
    }
    model.logits(&rms_norm(&x, &model.norm, config.rms_norm_eps)?)
}

/// `[rows, 1, longest]`: 0 where a row has a token, −∞ after it.
fn length_mask(positions: &Tensor, longest: i64, kind: Kind) -> Result<Tensor> {
    let column = Tensor::f_arange(longest, (Kind::Int64, positions.device()))?;
    let beyond = column.f_gt_tensor(&positions.f_unsqueeze(1)?)?;
    let mut mask = Tensor::f_zeros(beyond.size(), (kind, positions.device()))?;
    Ok(mask.f_masked_fill_(&beyond, f64::NEG_INFINITY)?.f_unsqueeze(1)?)
}
