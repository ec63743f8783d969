//! The forward pass of a step over the key-value cache, without gradients. The
//! next token of every row and parts of prompts go through the layers together,
//! so that weights are read once. Only attention treats them differently.

use super::inputs::StepInputs;
use super::kv_cache::KvCache;
use super::next_tokens::NextTokens;
use super::prefill::{Prefill, PrefillPart};
use super::slots::Slots;
use crate::attention::{attend, attention};
use crate::error::Result;
use crate::layer::Projected;
use crate::mask::Masks;
use crate::model::Model;
use tch::Tensor;

/// Feeds each of the rows that decode its last token, and gives the logits of the next, `[rows, vocab]`; `None` without
/// rows. The cache of `prefill` is computed first, so that the rows may include one whose prompt it completes.
pub(super) fn run(model: &Model, slots: &mut Slots, inputs: &StepInputs, prefill: &Prefill) -> Result<Option<Tensor>> {
    let parts = prefill.parts.iter().map(|part| Part::new(model, slots, part)).collect::<Result<Vec<_>>>()?;
    let copies = inputs.copies()?;
    logits(model, &mut slots.cache, inputs, &parts, copies.as_ref())
}

/// The same without prompts. Nothing of it comes from the host, so that its operations can be recorded.
pub(super) fn decode(model: &Model, cache: &mut KvCache, inputs: &StepInputs) -> Result<Option<Tensor>> {
    logits(model, cache, inputs, &[], None)
}

fn logits(
    model: &Model,
    cache: &mut KvCache,
    inputs: &StepInputs,
    parts: &[Part],
    copies: Option<&[Tensor; 2]>,
) -> Result<Option<Tensor>> {
    let (config, count) = (model.config(), inputs.rows());
    let (how, rotation) = (model.layer_parts(), model.rotary.at(&inputs.positions()?)?);
    let places = inputs.places()?;
    let next = if count > 0 { Some(NextTokens::new(model, inputs)?) } else { None };
    let mut sizes = vec![count];
    sizes.extend(parts.iter().map(|part| part.rows * part.time));
    let mut x = model.embed(&inputs.ids()?)?;
    for (index, layer) in model.layers.iter().enumerate() {
        if let (Some(next), true, None) = (&next, parts.is_empty(), copies) {
            let unrotated = layer.project_unrotated(how, &x)?;
            let query = cache.rotate_and_write(index, &places, &unrotated, how, &rotation)?;
            let attended = next.attend(config, cache.stored(index), index, &query)?;
            x = layer.finish_over(how, x, &attended)?;
            continue;
        }
        let projected = layer.project(how, &x, &rotation)?;
        cache.write(index, &places, &projected.key, &projected.value)?;
        if let Some([from, to]) = copies {
            cache.copy_layer(index, from, to)?;
        }
        let mut pieces = split(projected, &sizes)?.into_iter();
        let own = pieces.next();
        let mut attended = Vec::new();
        if let (Some(next), Some(own)) = (&next, own) {
            attended.push(next.attend(config, cache.stored(index), index, &own.query)?);
        }
        if index + 1 == model.layers.len() {
            // Prompts are not needed after the last layer's keys and values.
            x = x.f_narrow(0, 0, count)?;
        } else {
            for (part, piece) in parts.iter().zip(pieces) {
                attended.push(part.attend(model, cache, index, &piece)?);
            }
        }
        x = match attended.as_slice() {
            [] => break,
            [only] => layer.finish(how, &x, only)?,
            several => layer.finish(how, &x, &Tensor::f_cat(several, 0)?)?,
        };
    }
    match next {
        Some(_) => Ok(Some(model.logits_to_draw_from(&model.normalise(&x)?)?)),
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

/// A [`PrefillPart`] and its masks.
struct Part {
    rows: i64,
    time: i64,
    masks: Masks,
    /// The slot of its row, and the tokens of the row up to its end, if it does not begin with the row. Then it has one
    /// row.
    continued: Option<(usize, usize)>,
}

impl Part {
    fn new(model: &Model, slots: &Slots, part: &PrefillPart) -> Result<Self> {
        let (start, time, device) = (part.start as i64, part.time as i64, model.device());
        let row = part.rows.first().filter(|_| start > 0);
        Ok(Self {
            rows: part.rows.len() as i64,
            time,
            masks: match row {
                None => Masks::new(model.config(), time, device)?,
                Some(_) => Masks::continued(model.config(), start, time, device)?,
            },
            continued: row.map(|&row| (slots.slot(row), part.start + part.time)),
        })
    }

    /// Attends to the tokens stored before and to its own: `[rows * time,
    /// query_width]`.
    fn attend(&self, model: &Model, cache: &KvCache, layer: usize, own: &Projected) -> Result<Tensor> {
        let mask = self.masks.of(model.config(), layer);
        let Some((slot, tokens)) = self.continued else { return attend(own, self.rows, mask) };
        let [keys, values] = cache.row(layer, slot, tokens)?;
        let query = own.query.f_unsqueeze(0)?.f_transpose(1, 2)?;
        attention(&query, &keys, &values, mask)
    }
}
