//! The functions of the CUDA runtime, which libtorch has loaded.

use crate::error::{PolicyError, Result};
use std::ffi::{CStr, c_char, c_int, c_void};
use tch::Device;

type Set = unsafe extern "C" fn(c_int) -> c_int;
type MemGetInfo = unsafe extern "C" fn(*mut usize, *mut usize) -> c_int;
type ErrorString = unsafe extern "C" fn(c_int) -> *const c_char;

/// The runtime's functions, for one GPU.
pub(super) struct Runtime {
    index: usize,
    set: Set,
    info: MemGetInfo,
    error_string: ErrorString,
}

impl Runtime {
    pub(super) fn of(index: usize) -> Result<Self> {
        super::cuda::load_cuda()?;
        let symbol = |name: &CStr| {
            // SAFETY: the name is a NUL-terminated string; the answer is null or the address of that symbol.
            let address = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
            let missing = || fail(index, format!("the CUDA runtime has no {}", name.to_string_lossy()));
            if address.is_null() { Err(missing()) } else { Ok(address) }
        };
        // SAFETY: these are the signatures of these functions in every version of the CUDA runtime.
        unsafe {
            Ok(Self {
                index,
                set: std::mem::transmute::<*mut c_void, Set>(symbol(c"cudaSetDevice")?),
                info: std::mem::transmute::<*mut c_void, MemGetInfo>(symbol(c"cudaMemGetInfo")?),
                error_string: std::mem::transmute::<*mut c_void, ErrorString>(symbol(c"cudaGetErrorString")?),
            })
        }
    }

    /// Makes the GPU the current one of this thread. It stays the current one: since CUDA 12, `cudaSetDevice` makes a
    /// context, half a gigabyte, so that the way back to the first GPU would take memory of a GPU that nobody uses.
    /// libtorch names the GPU in each of its own calls, and returns to no GPU without a context.
    fn make_current(&self) -> Result<()> {
        // SAFETY: it takes any number.
        self.done(unsafe { (self.set)(self.index as c_int) })
    }

    /// Its memory in bytes: all of it, and what is free.
    pub(super) fn memory(&self) -> Result<[u64; 2]> {
        self.make_current()?;
        let (mut free, mut total) = (0, 0);
        // SAFETY: the pointers are to integers of the right size that outlive the call.
        self.done(unsafe { (self.info)(&mut free, &mut total) })?;
        Ok([total, free].map(|bytes| bytes as u64))
    }

    fn done(&self, status: c_int) -> Result<()> {
        match status {
            0 => Ok(()),
            // SAFETY: the runtime gives a static NUL-terminated string for every number.
            status => Err(fail(self.index, unsafe { CStr::from_ptr((self.error_string)(status)) }.to_string_lossy())),
        }
    }
}

fn fail(index: usize, what: impl Into<String>) -> PolicyError {
    PolicyError::Device { name: format!("cuda:{index}"), what: what.into() }
}

/// Makes `device` CUDA's current device in this thread: the device of everything that names no other device, such as
/// the stream that a graph is recorded on. The current device of a new thread is the first GPU, also if its model is on
/// another device.
///
/// # Errors
/// The device cannot be used.
pub fn make_current(device: Device) -> Result<()> {
    match device {
        Device::Cuda(index) => Runtime::of(index)?.make_current(),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gpu_is_made_the_current_one_or_it_is_said_why_not() {
        assert!(make_current(Device::Cpu).is_ok());
        // No machine has this many.
        let error = make_current(Device::Cuda(4096)).unwrap_err().to_string();
        assert!(error.starts_with("device cuda"), "{error}");
    }
}
