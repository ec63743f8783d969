//! The forward pass of a step over the key-value cache, without gradients. The
//! next token of every row and parts of prompts go through the layers together,
//! so that weights are read once. Only attention treats them differently.

use super::kv_cache::KvCache;
use super::next_tokens::NextTokens;
use super::prefill::{Prefill, PrefillPart};
use super::row::Row;
use crate::attention::{attend, attention};
use crate::error::Result;
use crate::layer::Projected;
use crate::mask::Masks;
use crate::model::Model;
use tch::{Device, Tensor};

/// Feeds each of `rows`, which are in the first slots, its last token, and
/// gives the logits of the next, `[rows, vocab]`; `None` without rows. The
/// cache of `prefill` is computed first, so that `rows` may include a row whose
/// prompt it completes.
pub(super) fn run(model: &Model, cache: &mut KvCache, rows: &[Row], prefill: &Prefill) -> Result<Option<Tensor>> {
    let (config, device) = (model.config(), model.device());
    let parts = &prefill.parts;
    let positions: Vec<i64> = rows.iter().map(|row| row.tokens() as i64 - 1).collect();
    // One transfer for both.
    let ids = rows.iter().map(Row::last_token).chain(parts.iter().flat_map(|part| part.ids.iter().copied()));
    let at = positions.iter().copied().chain(parts.iter().flat_map(PrefillPart::positions));
    let inputs: Vec<i64> = ids.chain(at).collect();
    let inputs = Tensor::f_from_slice(&inputs)?.f_to_device(device)?.f_view([2, -1])?;
    let rotation = model.rotary.at(&inputs.f_select(0, 1)?)?;
    let count = rows.len() as i64;
    let next = match rows {
        [] => None,
        _ => Some(NextTokens::new(model, cache, &positions, inputs.f_select(0, 1)?.f_narrow(0, 0, count)?)?),
    };
    let parts = parts.iter().map(|part| DevicePart::new(model, part)).collect::<Result<Vec<_>>>()?;
    let copies = Copies::new(prefill, device)?;
    let mut x = model.embed(&inputs.f_select(0, 0)?)?;
    for (index, layer) in model.layers.iter().enumerate() {
        let projected = layer.project(config, &x, &rotation)?;
        let mut sizes = vec![count];
        sizes.extend(parts.iter().map(|part| part.rows * part.time));
        let mut pieces = split(projected, &sizes)?.into_iter();
        let own = pieces.next();
        let pieces: Vec<Projected> = pieces.collect();
        for (part, piece) in parts.iter().zip(&pieces) {
            cache.store(index, &part.slots, part.start, &piece.key, &piece.value)?;
        }
        if let Some(Copies { from, to, tokens }) = &copies {
            cache.copy_layer(index, from, to, *tokens)?;
        }
        let mut attended = Vec::new();
        if let (Some(next), Some(own)) = (&next, own) {
            attended.push(next.attend(model, cache, index, &own)?);
        }
        if index + 1 == model.layers.len() {
            // Prompts are not needed after the last layer's keys and values.
            x = x.f_narrow(0, 0, count)?;
        } else {
            for (part, piece) in parts.iter().zip(&pieces) {
                attended.push(part.attend(model, cache, index, piece)?);
            }
        }
        x = match attended.as_slice() {
            [] => break,
            [only] => layer.finish(config, &x, only)?,
            several => layer.finish(config, &x, &Tensor::f_cat(several, 0)?)?,
        };
    }
    match next {
        Some(_) => Ok(Some(model.logits(&model.normalise(&x)?)?)),
        None => Ok(None),
    }
}

/// Pieces of dimension 0.
fn split(whole: Projected, sizes: &[i64]) -> Result<Vec<Projected>> {
    if let [_] = sizes {
        return Ok(vec![whole]);
    }
    let split = |x: &Tensor| x.f_split_with_sizes(sizes, 0);
    let (queries, keys, values) = (split(&whole.query)?, split(&whole.key)?, split(&whole.value)?);
    let pieces = queries.into_iter().zip(keys).zip(values);
    Ok(pieces.map(|((query, key), value)| Projected { query, key, value }).collect())
}

/// A [`PrefillPart`] on the device.
struct DevicePart {
    rows: i64,
    time: i64,
    start: i64,
    /// `[rows]`
    slots: Tensor,
    masks: Masks,
}

impl DevicePart {
    fn new(model: &Model, part: &PrefillPart) -> Result<Self> {
        let (start, time) = (part.start as i64, part.time as i64);
        Ok(Self {
            rows: part.slots.len() as i64,
            time,
            start,
            slots: Tensor::f_from_slice(&part.slots)?.f_to_device(model.device())?,
            masks: match start {
                0 => Masks::new(model.config(), time, model.device())?,
                _ => Masks::continued(model.config(), start, time, model.device())?,
            },
        })
    }

    /// Attends to the tokens stored before and to its own: `[rows * time,
    /// query_width]`.
    fn attend(&self, model: &Model, cache: &KvCache, layer: usize, own: &Projected) -> Result<Tensor> {
        let mask = self.masks.of(model.config(), layer);
        if self.start == 0 {
            return attend(own, self.rows, mask);
        }
        let (keys, values) = cache.gather(layer, &self.slots, self.start + self.time)?;
        let query = own.query.f_unflatten(0, [self.rows, -1])?.f_transpose(1, 2)?;
        attention(&query, &keys, &values, mask)
    }
}

/// The copies of a [`Prefill`] on the device.
struct Copies {
    from: Tensor,
    to: Tensor,
    tokens: usize,
}

impl Copies {
    fn new(prefill: &Prefill, device: Device) -> Result<Option<Self>> {
        if prefill.copies.is_empty() {
            return Ok(None);
        }
        let (from, to) = KvCache::pairs(&prefill.copies, device)?;
        Ok(Some(Self { from, to, tokens: prefill.copied }))
    }
}
