//! Drawing tokens by two kernels of our own, on GPUs. libtorch computes it as some 30 operations, most of them on a few
//! numbers.

use super::drawn::{Draw, Drawn};
use super::inputs::StepInputs;
use super::search::invert;
use crate::error::Result;
use crate::fast_paths::{FastPath, Results, is_usable, random_like};
use gavel_torch::cuda::kernels::{Draws, can_draw, draw};
use gavel_torch::scalar::{ScalarOperations, arange};
use tch::{Device, Kind, Tensor};

/// The rows that the kernels are checked with.
const ROWS: i64 = 16;

/// Whether kernels draw from logits of `vocab` tokens on `device`.
pub(super) fn are_usable(vocab: i64, device: Device) -> bool {
    can_draw(device, vocab)
        && is_usable(FastPath::FusedDraws, device, Kind::Float, &[vocab], || compared(vocab, device))
}

/// Draws a token for each row of `logits`, `[rows, vocab]` of 32 bits.
pub(super) fn draw_by_kernels(logits: &Tensor, inputs: &StepInputs) -> Result<Drawn> {
    let (temperatures, uniforms) = (inputs.temperatures()?.f_squeeze_dim(1)?, inputs.uniforms()?.f_squeeze_dim(1)?);
    let draws = Draws { temperatures: &temperatures, uniforms: &uniforms, greedy: &inputs.greedy()? };
    let [tokens, pairs] = draw(logits, draws)?;
    Ok(Drawn { tokens, pairs })
}

/// The draws of the kernels and of libtorch's operations: of every fourth row the most probable token.
fn compared(vocab: i64, device: Device) -> Result<Vec<Results>> {
    let logits = random_like(&[ROWS, vocab], 1, Kind::Float, device)?.try_mul(8.0)?;
    let uniforms = random_like(&[ROWS], 2, Kind::Double, device)?.f_abs()?;
    let numbers = arange(0, ROWS, 1, device)?;
    let greedy = numbers.f_remainder(4)?.try_lt(1)?.f_to_kind(Kind::Int64)?;
    let temperatures = numbers.f_to_kind(Kind::Double)?.try_mul(0.05)?.try_add(0.5)?;
    let [tokens, pairs] = draw(&logits, Draws { temperatures: &temperatures, uniforms: &uniforms, greedy: &greedy })?;
    let probs = logits.f_div(&temperatures.f_to_kind(Kind::Float)?.f_unsqueeze(1)?)?.f_softmax(-1, None)?;
    let drawn = invert(&probs, &uniforms.f_unsqueeze(1)?)?;
    let greedy = greedy.f_to_kind(Kind::Bool)?.f_unsqueeze(1)?;
    let plain = Draw::of(&probs, probs.f_argmax(-1, true)?.f_where_self(&greedy, &drawn)?)?;
    let plain_pairs = plain.side_by_side()?;
    let of = |fast: &Tensor, plain: &Tensor| Results {
        fast: fast.shallow_clone(),
        plain: plain.shallow_clone(),
        rows: vec![ROWS],
    };
    Ok(vec![
        of(&tokens, &plain.tokens),
        of(&pairs.f_select(-1, 0)?, &plain_pairs.f_select(-1, 0)?),
        of(&pairs.f_select(-1, 1)?, &plain_pairs.f_select(-1, 1)?),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cpu_draws_without_kernels() {
        assert!(!are_usable(4096, Device::Cpu));
        let error = compared(4096, Device::Cpu).err().unwrap().to_string();
        assert!(error.contains("do not fit the kernel"), "{error}");
    }
}
