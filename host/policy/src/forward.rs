//! The forward pass over whole sequences, with gradients.

use crate::error::{PolicyError, Result};
use crate::layer::{Projected, rms_norm};
use crate::model::Model;
use tch::{Kind, Tensor};

/// Where the padding of a batch stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Padding {
    /// After each row: causality alone keeps it out. Hidden states of padding
    /// are meaningless.
    Right,
    /// Before each row, whose number of real tokens is given.
    Left(Vec<usize>),
}

impl Model {
    /// The hidden states after the final norm, `[batch, time, hidden]`, of
    /// `ids`, `[batch, time]` of kind `Int64`. Gradients flow to
    /// [`parameters`](Model::parameters) unless they are off.
    pub fn hidden(&self, ids: &Tensor, padding: &Padding) -> Result<Tensor> {
        let (batch, time) = ids.size2().map_err(|_| {
            PolicyError::Input(format!("token ids must have the shape [batch, time], not {:?}", ids.size()))
        })?;
        let config = self.config();
        let (positions, mask) = match padding {
            Padding::Right => (None, None),
            Padding::Left(lengths) => {
                let start = left_starts(lengths, batch, time)?;
                let start = Tensor::f_from_slice(&start)?.f_to_device(self.device())?.f_unsqueeze(1)?;
                let column = Tensor::f_arange(time, (Kind::Int64, self.device()))?;
                let positions = column.f_sub(&start)?.f_clamp_min(0)?.f_flatten(0, 1)?;
                (Some(positions), Some(left_mask(&start, &column)?))
            }
        };
        let rotation = match positions {
            Some(positions) => self.rotary.at(&positions)?,
            None => self.rotary.at(&Tensor::f_arange(time, (Kind::Int64, self.device()))?)?.repeat(batch)?,
        };
        let mut x = self.embed(&ids.f_flatten(0, 1)?)?;
        for layer in &self.layers {
            let projected = layer.project(config, &x, &rotation)?;
            x = layer.finish(config, &x, &attend(&projected, batch, mask.as_ref())?)?;
        }
        Ok(rms_norm(&x, &self.norm, config.rms_norm_eps)?.f_view([batch, time, config.hidden_size])?)
    }

    /// The logits, `[…, vocab]`, of `hidden`, `[…, hidden]`.
    pub fn logits(&self, hidden: &Tensor) -> Result<Tensor> {
        Ok(hidden.f_linear(self.head.as_ref().unwrap_or(&self.embedding), None::<&Tensor>)?)
    }

    /// The embeddings, `[tokens, hidden]`, of `ids`, `[tokens]`.
    pub(crate) fn embed(&self, ids: &Tensor) -> Result<Tensor> {
        Ok(Tensor::f_embedding(&self.embedding, ids, -1, false, false)?)
    }
}

/// Causal attention within each of `batch` rows; gives `[batch * time, hidden]`.
/// `mask` is `[batch, 1, time, time]`, true where a query may look.
pub(crate) fn attend(projected: &Projected, batch: i64, mask: Option<&Tensor>) -> Result<Tensor> {
    let rows = |x: &Tensor| x.f_unflatten(0, [batch, -1])?.f_transpose(1, 2);
    let query = rows(&projected.query)?;
    let share = query.size()[1] / projected.key.size()[1];
    // libtorch's fused attention on the CPU wants as many key heads as query heads.
    let spread = |x: &Tensor| match share {
        1 => rows(x),
        _ => rows(x)?.f_repeat_interleave_self_int(share, 1, None),
    };
    let (key, value) = (spread(&projected.key)?, spread(&projected.value)?);
    let causal = mask.is_none();
    let out = Tensor::f_scaled_dot_product_attention(&query, &key, &value, mask, 0.0, causal, None, false)?;
    Ok(out.f_transpose(1, 2)?.f_flatten(2, 3)?.f_flatten(0, 1)?)
}

/// The column at which each row begins.
fn left_starts(lengths: &[usize], batch: i64, time: i64) -> Result<Vec<i64>> {
    if lengths.len() as i64 != batch {
        return Err(PolicyError::Input(format!("{} lengths were given for a batch of {batch} rows", lengths.len())));
    }
    let start = |&length: &usize| match time - length as i64 {
        start if start >= 0 => Ok(start),
        _ => Err(PolicyError::Input(format!("a row of {length} tokens does not fit into {time} columns"))),
    };
    lengths.iter().map(start).collect()
}

/// `[batch, 1, time, time]`: a token sees itself and the real tokens before it.
/// (Padding sees itself, as a row of the softmax must not be empty.)
fn left_mask(start: &Tensor, column: &Tensor) -> Result<Tensor> {
    let (query, key) = (column.f_unsqueeze(1)?, column.f_unsqueeze(0)?);
    let real = key.f_ge_tensor(start)?.f_unsqueeze(1)?;
    let before = key.f_lt_tensor(&query)?.f_logical_and(&real)?;
    Ok(before.f_logical_or(&key.f_eq_tensor(&query)?)?.f_unsqueeze(1)?)
}
