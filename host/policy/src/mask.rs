//! Attention masks, for rows that do not simply see everything before.

use crate::config::ModelConfig;
use crate::error::Result;
use gavel_torch::scalar::{ScalarOperations, arange};
use tch::{Device, Kind, Tensor};

/// The masks of whole sequences: true where a query may look, or
/// [`added`](Self::added) to the scores. Without a mask, attention is causal.
pub(crate) struct Masks {
    /// `[rows or 1, 1, time, keys]`
    full: Option<Tensor>,
    /// The mask of layers with a window.
    window: Option<Tensor>,
}

impl Masks {
    /// The masks of rows of `time` tokens.
    pub(crate) fn new(config: &ModelConfig, time: i64, device: Device) -> Result<Self> {
        match config.window_size().filter(|&size| size < time) {
            Some(_) => Ok(Self { full: None, ..Self::after(config, &[0], time, time, device)? }),
            None => Ok(Self { full: None, window: None }),
        }
    }

    /// The masks of `time` tokens after `start` others: `[1, 1, time, start +
    /// time]`.
    pub(crate) fn continued(config: &ModelConfig, start: i64, time: i64, device: Device) -> Result<Self> {
        Self::after(config, &[start], time, start + time, device)
    }

    /// The masks of rows of `time` tokens with `before` others before them,
    /// over `keys` keys: `[rows, 1, time, keys]`. The key of column `j` is at
    /// position `j`.
    pub(crate) fn after(config: &ModelConfig, before: &[i64], time: i64, keys: i64, device: Device) -> Result<Self> {
        let first = Tensor::f_from_slice(before)?.f_to_device(device)?.f_view([-1, 1, 1, 1])?;
        let query = arange(0, time, 1, device)?.f_unsqueeze(1)?.f_add(&first)?;
        // Padding after a short row sees the last key, as a row of the softmax must not be empty.
        let query = query.try_clamp_max(keys - 1)?;
        let key = arange(0, keys, 1, device)?;
        let full = key.f_le_tensor(&query)?;
        let window = match config.window_size().filter(|&size| size < keys) {
            Some(size) => Some(key.f_gt_tensor(&query.try_sub(size)?)?.f_logical_and(&full)?),
            None => None,
        };
        Ok(Self { full: Some(full), window })
    }

    /// The masks as numbers to add to scores: 0 where a query may look, −∞
    /// elsewhere. Attention would otherwise convert them in each layer and keep
    /// the result for the backward pass.
    pub(crate) fn added(self, kind: Kind) -> Result<Self> {
        let added = |mask: Option<Tensor>| mask.map(|mask| hidden(&mask.f_logical_not()?, kind)).transpose();
        Ok(Self { full: added(self.full)?, window: added(self.window)? })
    }

    /// The mask of one layer.
    pub(crate) fn of(&self, config: &ModelConfig, layer: usize) -> Option<&Tensor> {
        let window = self.window.as_ref().filter(|_| config.window(layer).is_some());
        window.or(self.full.as_ref())
    }
}

/// −∞ where `unseen` is true, 0 elsewhere. Rows begin at multiples of 16
/// numbers: fused attention on a GPU copies a mask whose rows do not.
fn hidden(unseen: &Tensor, kind: Kind) -> Result<Tensor> {
    let mut size = unseen.size();
    let columns = size.pop().unwrap_or_default();
    size.push((columns + 15) / 16 * 16);
    let mut mask = Tensor::f_zeros(size, (kind, unseen.device()))?.f_narrow(-1, 0, columns)?;
    mask.try_masked_fill_(unseen, f64::NEG_INFINITY)?;
    Ok(mask)
}

/// The masks of one query a row, to be added to its scores: `[rows, 1, 1, longest]`, 0 where there is a token to see, −∞
/// elsewhere.
pub(crate) struct StepMasks {
    full: Tensor,
    window: Option<Tensor>,
}

impl StepMasks {
    /// The masks of the last tokens of rows with `lengths` tokens, `[rows]`, over `longest` keys.
    pub(crate) fn new(config: &ModelConfig, lengths: &Tensor, longest: i64, kind: Kind) -> Result<Self> {
        let column = arange(0, longest, 1, lengths.device())?;
        let later = column.f_sub(&lengths.f_view([-1, 1, 1, 1])?)?;
        let beyond = later.try_ge(0)?;
        let window = config.window_size().filter(|&size| size < longest).map(|size| {
            let before = later.try_lt(-size)?;
            hidden(&beyond.f_logical_or(&before)?, kind)
        });
        Ok(Self { full: hidden(&beyond, kind)?, window: window.transpose()? })
    }

    /// The mask of one layer.
    pub(crate) fn of(&self, config: &ModelConfig, layer: usize) -> &Tensor {
        self.window.as_ref().filter(|_| config.window(layer).is_some()).unwrap_or(&self.full)
    }
}
