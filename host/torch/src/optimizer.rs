//! The operations of an optimiser (`shim/optimizer.cpp`, `shim/adamw_8bit.cpp`, `shim/muon.cpp`).

use crate::{Result, checked};
use std::ffi::c_char;
use tch::Tensor;
use torch_sys::C_tensor;

type Tensors = *const *const C_tensor;

unsafe extern "C" {
    fn gavel_reset_gradients(parameters: Tensors, count: usize) -> *mut c_char;
    fn gavel_hand_over_gradients(parameters: Tensors, masters: Tensors, count: usize) -> *mut c_char;
    fn gavel_bucket_gradients(parameters: Tensors, count: usize, flat: *mut *mut C_tensor) -> *mut c_char;
    fn gavel_round(parameters: Tensors, masters: Tensors, count: usize) -> *mut c_char;
    fn gavel_gradient_norm(parameters: Tensors, count: usize, norm: *mut f64, missing: *mut i64) -> *mut c_char;
    fn gavel_scale_gradients(parameters: Tensors, count: usize, factor: f64) -> *mut c_char;
    fn gavel_adamw_step(
        parameters: Tensors,
        exp_avgs: Tensors,
        exp_avg_sqs: Tensors,
        count: usize,
        step: f64,
        lr: f64,
        beta1: f64,
        beta2: f64,
        weight_decay: f64,
        eps: f64,
    ) -> *mut c_char;
    fn gavel_adamw_8bit_step(
        parameter: *const C_tensor,
        exp_avg: *const C_tensor,
        exp_avg_scale: *const C_tensor,
        exp_avg_sq: *const C_tensor,
        exp_avg_sq_scale: *const C_tensor,
        step: f64,
        lr: f64,
        beta1: f64,
        beta2: f64,
        weight_decay: f64,
        eps: f64,
    ) -> *mut c_char;
    fn gavel_muon_step(
        parameter: *const C_tensor,
        momentum_buffer: *const C_tensor,
        rows: *const i64,
        count: usize,
        lr: f64,
        momentum: f64,
        nesterov: bool,
        newton_schulz_steps: i64,
        as_adamw: bool,
        weight_decay: f64,
    ) -> *mut c_char;
}

/// The numbers of one AdamW step.
pub struct AdamWStep {
    /// Counted from 1.
    pub step: u64,
    /// The learning rate.
    pub lr: f64,
    /// Decay of the running means of gradient and squared gradient.
    pub betas: [f64; 2],
    /// Decoupled, times the learning rate.
    pub weight_decay: f64,
    /// Added to the denominator.
    pub eps: f64,
}

/// The numbers of one Muon step.
pub struct MuonStep {
    /// The learning rate, before it is adjusted to the shape of a matrix.
    pub lr: f64,
    /// Decay of the running mean of the gradient.
    pub momentum: f64,
    /// Whether the update is the mean as it would be after another step with the same gradient.
    pub nesterov: bool,
    /// Steps of the iteration that makes the update orthogonal.
    pub newton_schulz_steps: u32,
    /// Whether updates are as large as AdamW's.
    pub as_adamw: bool,
    /// Decoupled, times the learning rate.
    pub weight_decay: f64,
}

/// The numbers of a running mean that share a scale if it has 8 bits.
pub const BLOCK: usize = 256;
/// The numbers that a step of 8-bit AdamW has in 32 bits at a time.
pub const CHUNK: usize = 1 << 23;

fn pointers(tensors: &[Tensor]) -> Vec<*const C_tensor> {
    tensors.iter().map(Tensor::as_ptr).collect()
}

/// Makes every gradient undefined, so that the next backward pass stores
/// instead of adding to zeros.
pub fn reset_gradients(parameters: &[Tensor]) -> Result<()> {
    // SAFETY: the list and the tensors behind it outlive the call.
    checked(unsafe { gavel_reset_gradients(pointers(parameters).as_ptr(), parameters.len()) })
}

/// From now on every gradient of a parameter is added to the gradient of its master, in the master's kind, and then
/// dropped. The lists have the same length.
pub fn hand_over_gradients(parameters: &[Tensor], masters: &[Tensor]) -> Result<()> {
    debug_assert!(parameters.len() == masters.len());
    let (parameters, masters, count) = (pointers(parameters), pointers(masters), parameters.len());
    // SAFETY: the lists are of the length that is given, and they and the tensors behind them outlive the call. The
    // hooks that remain hold the masters weakly.
    checked(unsafe { gavel_hand_over_gradients(parameters.as_ptr(), masters.as_ptr(), count) })
}

/// Moves the gradients of parameters of one kind and device into one tensor, which is returned, and of which they become
/// views. A gradient that is undefined becomes 0. There is at least one parameter.
pub fn bucket_gradients(parameters: &[Tensor]) -> Result<Tensor> {
    debug_assert!(!parameters.is_empty());
    let mut flat = std::ptr::null_mut();
    // SAFETY: the list is not empty; it, the tensors behind it and the result outlive the call.
    checked(unsafe { gavel_bucket_gradients(pointers(parameters).as_ptr(), parameters.len(), &mut flat) })?;
    // SAFETY: without a message the tensor exists, and nothing else owns it.
    Ok(unsafe { Tensor::from_ptr(flat) })
}

/// Rounds each master into its parameter; the lists have the same length.
pub fn round(parameters: &[Tensor], masters: &[Tensor]) -> Result<()> {
    debug_assert!(parameters.len() == masters.len());
    let (parameters, masters, count) = (pointers(parameters), pointers(masters), parameters.len());
    // SAFETY: the lists are of the length that is given, and they and the tensors behind them outlive the call.
    checked(unsafe { gavel_round(parameters.as_ptr(), masters.as_ptr(), count) })
}

/// The 2-norm of all gradients together, or the index of the first parameter
/// that has none.
pub fn gradient_norm(parameters: &[Tensor]) -> Result<std::result::Result<f64, usize>> {
    let (mut norm, mut missing) = (0.0, -1);
    // SAFETY: the list, the tensors behind it and both results outlive the call.
    checked(unsafe { gavel_gradient_norm(pointers(parameters).as_ptr(), parameters.len(), &mut norm, &mut missing) })?;
    Ok(usize::try_from(missing).map_or(Ok(norm), Err))
}

/// Multiplies every gradient by `factor`. All gradients must exist.
pub fn scale_gradients(parameters: &[Tensor], factor: f64) -> Result<()> {
    // SAFETY: the list and the tensors behind it outlive the call.
    checked(unsafe { gavel_scale_gradients(pointers(parameters).as_ptr(), parameters.len(), factor) })
}

/// One step with the stored gradients; the three lists have the same length.
pub fn adamw_step(parameters: &[Tensor], exp_avgs: &[Tensor], exp_avg_sqs: &[Tensor], step: &AdamWStep) -> Result<()> {
    debug_assert!(parameters.len() == exp_avgs.len() && parameters.len() == exp_avg_sqs.len());
    // SAFETY: the lists are of the length that is given, and they and the tensors behind them outlive the call.
    checked(unsafe {
        gavel_adamw_step(
            pointers(parameters).as_ptr(),
            pointers(exp_avgs).as_ptr(),
            pointers(exp_avg_sqs).as_ptr(),
            parameters.len(),
            step.step as f64,
            step.lr,
            step.betas[0],
            step.betas[1],
            step.weight_decay,
            step.eps,
        )
    })
}

/// One step of a parameter whose running means have 8 bits, with its stored gradient. A mean has a code of 8 bits for
/// each number of the parameter, and a scale for each [`BLOCK`] of them; the parameter has whole blocks.
pub fn adamw_8bit_step(
    parameter: &Tensor,
    [exp_avg, exp_avg_scale]: [&Tensor; 2],
    [exp_avg_sq, exp_avg_sq_scale]: [&Tensor; 2],
    step: &AdamWStep,
) -> Result<()> {
    debug_assert!(parameter.numel() == exp_avg_scale.numel() * BLOCK);
    // SAFETY: the tensors outlive the call.
    checked(unsafe {
        gavel_adamw_8bit_step(
            parameter.as_ptr(),
            exp_avg.as_ptr(),
            exp_avg_scale.as_ptr(),
            exp_avg_sq.as_ptr(),
            exp_avg_sq_scale.as_ptr(),
            step.step as f64,
            step.lr,
            step.betas[0],
            step.betas[1],
            step.weight_decay,
            step.eps,
        )
    })
}

/// One step with the stored gradient, for each of the matrices that lie one below the other in the parameter and have
/// these numbers of rows.
pub fn muon_step(parameter: &Tensor, momentum_buffer: &Tensor, rows: &[i64], step: &MuonStep) -> Result<()> {
    // SAFETY: the list and the tensors outlive the call.
    checked(unsafe {
        gavel_muon_step(
            parameter.as_ptr(),
            momentum_buffer.as_ptr(),
            rows.as_ptr(),
            rows.len(),
            step.lr,
            step.momentum,
            step.nesterov,
            i64::from(step.newton_schulz_steps),
            step.as_adamw,
            step.weight_decay,
        )
    })
}
