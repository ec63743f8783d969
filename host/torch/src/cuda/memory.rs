//! The memory that libtorch's allocator holds on GPUs (`shim/cuda/memory.cpp`).

use super::function;
use crate::{Result, checked};
use std::ffi::{c_char, c_int, c_void};
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

/// The most memory of the GPU of this number, in bytes, since the start or the last [reset](reset_peaks): what tensors
/// had, and what the allocator held for them. libtorch must have used the GPU before.
///
/// # Errors
/// As [`give_back`].
pub fn peaks(device: usize) -> Result<[u64; 2]> {
    type Peaks = unsafe extern "C" fn(c_int, *mut u64) -> *mut c_char;
    let function = function(c"gavel_cuda_memory_peaks").map_err(TchError::Torch)?;
    let mut bytes = [0; 2];
    // SAFETY: this is its signature in the shim, which writes two numbers.
    checked(unsafe { std::mem::transmute::<*mut c_void, Peaks>(function)(device as c_int, bytes.as_mut_ptr()) })?;
    Ok(bytes)
}

/// Lets the peaks begin with what is there now.
///
/// # Errors
/// As [`give_back`].
pub fn reset_peaks(device: usize) -> Result<()> {
    type Reset = unsafe extern "C" fn(c_int) -> *mut c_char;
    let function = function(c"gavel_cuda_reset_memory_peaks").map_err(TchError::Torch)?;
    // SAFETY: this is its signature in the shim.
    checked(unsafe { std::mem::transmute::<*mut c_void, Reset>(function)(device as c_int) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_cuda_it_is_said_what_is_missing() {
        if let Err(missing) = super::super::load() {
            let missing = TchError::Torch(missing).to_string();
            let errors = [give_back().unwrap_err(), peaks(0).unwrap_err(), reset_peaks(0).unwrap_err()];
            assert!(errors.iter().all(|error| error.to_string() == missing), "{errors:?}");
        }
    }
}
