//! The memory that libtorch's allocator holds on GPUs (`shim/cuda/memory.cpp`).

use super::function;
use crate::{Result, checked};
use std::ffi::{c_char, c_void};
use tch::TchError;

/// Gives the memory that no tensor uses back to the driver. libtorch must have used a GPU before.
///
/// # Errors
/// There is no CUDA part, or a GPU has failed.
pub fn give_back() -> Result<()> {
    let empty = function(c"gavel_cuda_empty_cache").map_err(TchError::Torch)?;
    // SAFETY: this is its signature in the shim; it returns null or a message, which `checked` frees.
    checked(unsafe { std::mem::transmute::<*mut c_void, unsafe extern "C" fn() -> *mut c_char>(empty)() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_cuda_it_is_said_what_is_missing() {
        if let Err(missing) = super::super::load() {
            assert_eq!(give_back().unwrap_err().to_string(), TchError::Torch(missing).to_string());
        }
    }
}
