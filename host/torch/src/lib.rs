//! The parts of libtorch that tch does not offer. A C++ shim has parts of a transformer layer as one operation each,
//! the operations of an optimiser, and what connects the ranks of a run. Beside it are operations with a number that
//! return their errors.

pub mod attention;
pub mod autograd;
pub mod context;
pub mod cuda;
pub mod head;
pub mod int8;
pub mod layer;
pub mod optimizer;
pub mod peers;
pub mod scalar;
pub mod transfer;

use std::ffi::{CStr, c_char};
use tch::{TchError, Tensor};
use torch_sys::C_tensor;

/// The result of libtorch, or the exception that it throws.
pub type Result<T> = std::result::Result<T, TchError>;

unsafe extern "C" {
    fn gavel_free(message: *mut c_char);
}

/// The message that the shim allocated, if any, as an error.
fn checked(message: *mut c_char) -> Result<()> {
    if message.is_null() {
        return Ok(());
    }
    // SAFETY: the shim gives null or a string that it allocated and that nothing else owns; it is freed once, after it
    // was copied.
    let text = unsafe {
        let text = CStr::from_ptr(message).to_string_lossy().into_owned();
        gavel_free(message);
        text
    };
    Err(TchError::Torch(text))
}

/// The tensors that a function of the shim makes.
fn made<const N: usize>(function: impl FnOnce(*mut *mut C_tensor) -> *mut c_char) -> Result<[Tensor; N]> {
    let mut out = [std::ptr::null_mut(); N];
    checked(function(out.as_mut_ptr()))?;
    // SAFETY: without a message all the tensors exist, and nothing else owns them.
    Ok(out.map(|tensor| unsafe { Tensor::from_ptr(tensor) }))
}
