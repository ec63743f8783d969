//! The log-probabilities of given tokens (`shim/head.cpp`), with gradients. The logits of 32 bits exist once.

mod changes;

use crate::cuda::function;
#[cfg(doc)]
use crate::cuda::kernels;
use crate::{Result, TchError, made};
use std::ffi::{c_char, c_void};
use std::sync::OnceLock;
use tch::{Kind, Tensor};
use torch_sys::C_tensor;

pub use changes::LogitChanges;

unsafe extern "C" {
    fn gavel_token_logprobs(
        hidden: *const C_tensor,
        head: *const C_tensor,
        targets: *const C_tensor,
        temperature: f64,
        beside: i64,
        how: i64,
        rows: i64,
        changes: *const *const C_tensor,
        out: *mut *mut C_tensor,
    ) -> *mut c_char;
    fn gavel_take_head_kernels(sum_rows: *mut c_void, turn_rows: *mut c_void);
}

/// Without gradients, the logits of this many tokens exist at a time.
pub const TOKENS_AT_A_TIME: i64 = 512;

/// The changes of this many tokens' logits are on the device at a time: `ROWS` of the shim. The places and the
/// derivatives of penalised logits stay there until the backward pass.
pub const CHANGED_AT_A_TIME: i64 = 256;

/// How logits are computed and normalised. The CPU has only [`Narrow`](Self::Narrow).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Logits {
    /// In the kind of the hidden states.
    Narrow,
    /// Of numbers of 16 bits in 32, which only GPUs can give.
    Wide,
    /// The same by [kernels], for bfloat16 and a vocabulary that is a multiple of 4.
    ByKernels,
}

/// Loads the kernels of [`Logits::ByKernels`].
fn load_kernels() -> Result<()> {
    static LOADED: OnceLock<std::result::Result<(), String>> = OnceLock::new();
    let loaded = LOADED.get_or_init(|| {
        let [sum, turn] = [function(c"gavel_cuda_sum_rows")?, function(c"gavel_cuda_turn_rows")?];
        // SAFETY: both parts of the shim agree on the signatures, and the library of these functions is never closed.
        unsafe { gavel_take_head_kernels(sum, turn) };
        Ok(())
    });
    loaded.clone().map_err(TchError::Torch)
}

/// What is computed beside log-probabilities, from the same logits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Beside {
    /// Nothing.
    Nothing,
    /// The entropy of each distribution, in nats, through which gradients flow.
    Entropies,
    /// The sum over the vocabulary of the squared probabilities, without gradients.
    SquaredProbabilities,
    /// Whether the token is the most probable one: the first of those, if there are several.
    AreMostProbable,
}

/// The log-probabilities of tokens, and what was computed beside them.
#[derive(Debug)]
pub struct TokenLogprobs {
    /// `[tokens]`, in at least 32 bits.
    pub logprobs: Tensor,
    /// `[tokens]`; undefined for [`Beside::Nothing`].
    pub beside: Tensor,
}

/// The log-probabilities of `targets`, `[tokens]`, under `softmax(hidden · headᵀ / temperature)`; `hidden` is `[tokens,
/// width]` and `head` is `[vocab, width]`. If the head is a leaf, a backward pass adds its gradient to the gradient
/// that the head has, if any. There can be one backward pass.
///
/// # Errors
/// The shapes or kinds do not fit, or a target is outside the vocabulary; with [`Logits::ByKernels`] such a target's
/// log-probability is no number.
pub fn token_logprobs(
    hidden: &Tensor,
    head: &Tensor,
    targets: &Tensor,
    temperature: f64,
    beside: Beside,
    logits: Logits,
) -> Result<TokenLogprobs> {
    changed_logprobs(hidden, head, targets, temperature, beside, logits, &LogitChanges::default())
}

/// As [`token_logprobs`], under the softmax of logits after `changes`, over `temperature`. What is computed beside
/// log-probabilities, and gradients, are of this distribution too.
///
/// # Errors
/// As [`token_logprobs`], or the changes are of other logits.
pub fn changed_logprobs(
    hidden: &Tensor,
    head: &Tensor,
    targets: &Tensor,
    temperature: f64,
    beside: Beside,
    logits: Logits,
    changes: &LogitChanges,
) -> Result<TokenLogprobs> {
    let ((tokens, width), (vocab, _)) = (hidden.size2()?, head.size2()?);
    let fit = head.size() == [vocab, width]
        && targets.size() == [tokens]
        && targets.kind() == Kind::Int64
        && hidden.kind() == head.kind()
        && [head, targets].iter().all(|x| x.device() == hidden.device())
        && vocab > 0;
    if !fit {
        return Err(TchError::Torch(format!("{hidden:?}, {head:?} and {targets:?} do not fit")));
    }
    changes.check(tokens, vocab)?;
    let how = match logits {
        Logits::ByKernels if hidden.kind() != Kind::BFloat16 || vocab % 4 != 0 => {
            return Err(TchError::Torch(format!("kernels do not fit logits of {hidden:?} and {head:?}")));
        }
        Logits::ByKernels => load_kernels().map(|()| 2)?,
        Logits::Wide => 1,
        Logits::Narrow => 0,
    };
    let targets = targets.f_contiguous()?;
    let beside = match beside {
        Beside::Nothing => 0,
        Beside::Entropies => 1,
        Beside::SquaredProbabilities => 2,
        Beside::AreMostProbable => 3,
    };
    let tensors = changes.tensors()?;
    let changes = tensors.each_ref().map(|tensor| tensor.as_ref().map_or(std::ptr::null(), Tensor::as_ptr));
    // SAFETY: shapes, kinds and devices are those that the shim asks for, and the tensors outlive the call.
    let [logprobs, beside] = made(|out| unsafe {
        let (hidden, head, targets) = (hidden.as_ptr(), head.as_ptr(), targets.as_ptr());
        let (rows, changes) = (TOKENS_AT_A_TIME, changes.as_ptr());
        gavel_token_logprobs(hidden, head, targets, temperature, beside, how, rows, changes, out)
    })?;
    Ok(TokenLogprobs { logprobs, beside })
}

#[cfg(test)]
mod tests;
