//! The forward pass over the key-value cache, without gradients: prompts at
//! once, responses token by token.

use super::cache::Cache;
use crate::error::Result;
use crate::forward::{attend, attention};
use crate::mask::{Masks, StepMasks};
use crate::model::Model;
use tch::{Kind, Tensor};

/// Computes the cache of the tokens `ids`, `[rows, time]`, padded on the right,
/// in `slots`, `[rows]`, where those before `start` are already there. The
/// places of padding are overwritten as the rows grow.
pub(super) fn prefill(model: &Model, cache: &mut Cache, ids: &Tensor, slots: &Tensor, start: i64) -> Result<()> {
    let config = model.config();
    let [rows, time] = [ids.size()[0], ids.size()[1]];
    let positions = Tensor::f_arange_start(start, start + time, (Kind::Int64, ids.device()))?;
    let rotation = model.rotary.at(&positions)?.repeat(rows)?;
    let masks = match start {
        0 => Masks::new(config, time, None, ids.device())?,
        _ => Masks::continued(config, start, time, ids.device())?,
    };
    let mut x = model.embed(&ids.f_flatten(0, 1)?)?;
    for (index, layer) in model.layers.iter().enumerate() {
        let projected = layer.project(config, &x, &rotation)?;
        cache.store(index, slots, start, &projected.key, &projected.value)?;
        // After the last layer's keys and values nothing more is needed.
        if index + 1 == model.layers.len() {
            break;
        }
        let mask = masks.of(config, index);
        let attended = if start == 0 {
            attend(&projected, rows, mask)?
        } else {
            let (keys, values) = cache.gather(index, slots, start + time)?;
            let query = projected.query.f_unflatten(0, [rows, -1])?.f_transpose(1, 2)?;
            attention(&query, &keys, &values, mask)?
        };
        x = layer.finish(config, &x, &attended)?;
    }
    Ok(())
}

/// Feeds one token to each of the first slots and gives the logits of the next,
/// `[rows, vocab]`. `tokens` and `positions` are `[rows]`; `longest` is the
/// number of positions in use after this step, by the longest row; `ragged`
/// says whether another row uses fewer.
pub(super) fn step(
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
    let scale = (config.head_dim as f64).sqrt().recip();
    let rotation = model.rotary.at(positions)?;
    let places = cache.places(positions)?;
    let masks = StepMasks::new(config, positions, longest, ragged, model.kind())?;
    let mut x = model.embed(tokens)?;
    for (index, layer) in model.layers.iter().enumerate() {
        let projected = layer.project(config, &x, &rotation)?;
        cache.append(index, &places, &projected.key, &projected.value)?;
        let (keys, values) = cache.read(index, rows, longest)?;
        // One query a row: plain batched products are about three times faster than fused attention
        // on the CPU. The query heads of a group are the rows of one product.
        let query = projected.query.f_mul_scalar(scale)?.f_reshape([rows * heads[0], heads[1], -1])?;
        let mut scores = query.f_bmm(&keys.f_transpose(1, 2)?)?;
        if let Some(mask) = masks.of(config, index) {
            let _ = scores.f_view([rows, -1, longest])?.f_add_(mask)?;
        }
        scores = scores.f_softmax(-1, None)?;
        let attended = scores.f_bmm(&values)?.f_view([rows, -1])?;
        x = layer.finish(config, &x, &attended)?;
    }
    model.logits(&model.normalise(&x)?)
}
