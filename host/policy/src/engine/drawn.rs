//! The tokens that a step draws.

use crate::error::Result;
use gavel_data::SamplingMask;
use tch::{Device, Kind, Tensor};

/// A token for each row, on the device.
pub(super) struct Draw {
    /// `[rows, 1]`
    pub(super) tokens: Tensor,
    /// `[rows, 1]`: the log-probability under the tempered distribution, before truncation; not finite where the logits
    /// were not.
    pub(super) logprobs: Tensor,
}

/// The same, as the host reads it.
pub(super) struct Drawn {
    /// `[rows, 1]`
    pub(super) tokens: Tensor,
    /// `[rows, 1, 2]`: tokens and their log-probabilities, side by side, in 64 bits.
    pub(super) pairs: Tensor,
}

/// The token that was drawn for a row.
pub(super) struct Pick {
    pub(super) token: u32,
    /// As in [`Draw`]; for a row that keeps what could be drawn, among these tokens.
    pub(super) logprob: f32,
    /// The most probable tokens, as many as the row asks for.
    pub(super) top: Vec<(u32, f32)>,
    /// The tokens that could be drawn, if the row keeps them.
    pub(super) mask: SamplingMask,
}

impl Pick {
    /// A token with its log-probability, of a row that keeps nothing else.
    pub(super) fn new((token, logprob): (u32, f32)) -> Self {
        Self { token, logprob, top: Vec::new(), mask: SamplingMask::All }
    }
}

impl Draw {
    /// These tokens with their log-probabilities from `probs`, `[rows, vocab]`.
    pub(super) fn of(probs: &Tensor, tokens: Tensor) -> Result<Self> {
        // Only the drawn token's logarithm is needed; a probability that was drawn is never 0.
        let logprobs = probs.f_gather(1, &tokens, false)?.f_log()?;
        Ok(Self { tokens, logprobs })
    }

    /// Tokens and their log-probabilities, which [`pairs`] reads on the host: `[rows, 1, 2]`.
    pub(super) fn side_by_side(&self) -> Result<Tensor> {
        side_by_side(&[&self.tokens, &self.logprobs])
    }
}

/// Tokens and their log-probabilities, [side by side](Draw::side_by_side), one after another, in one transfer to the
/// host.
pub(super) fn pairs(side_by_side: &Tensor) -> Result<Vec<(u32, f32)>> {
    Ok(numbers(side_by_side)?.chunks(2).map(|pair| (pair[0] as u32, pair[1] as f32)).collect())
}

/// The elements of tensors of one shape in a new last dimension.
pub(super) fn side_by_side(tensors: &[&Tensor]) -> Result<Tensor> {
    // Doubles hold every token id exactly.
    let doubles: Vec<Tensor> =
        tensors.iter().map(|x| x.f_to_kind(Kind::Double)).collect::<std::result::Result<_, _>>()?;
    Ok(Tensor::f_stack(&doubles, -1)?)
}

/// The elements of a tensor, on the host.
pub(super) fn numbers(x: &Tensor) -> Result<Vec<f64>> {
    Ok(Vec::try_from(&x.f_to_device(Device::Cpu)?.f_flatten(0, -1)?)?)
}
