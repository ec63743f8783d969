//! The CUDA part of libtorch, loaded if it is installed.

use crate::error::{PolicyError, Result};
use std::ffi::CStr;
use std::sync::OnceLock;

/// Loads libtorch's CUDA part. The binary does not link it, so that the same binary runs without CUDA. libtorch must
/// not have been asked about CUDA before: call this (or [`select`](super::select)) first in `main`. Later calls repeat
/// the answer of the first.
pub fn load_cuda() -> Result<()> {
    static LOADED: OnceLock<std::result::Result<(), String>> = OnceLock::new();
    let loaded = LOADED.get_or_init(|| {
        // SAFETY: the name is a NUL-terminated string; the library's initialisers are libtorch's own
        // and the handle is never closed.
        let handle = unsafe { libc::dlopen(c"libtorch_cuda.so".as_ptr(), libc::RTLD_NOW | libc::RTLD_GLOBAL) };
        if !handle.is_null() {
            return Ok(());
        }
        // SAFETY: dlopen has just failed on this thread, so dlerror gives its message, a NUL-terminated
        // string that stays valid until the thread's next dl call.
        let message = unsafe { libc::dlerror() };
        if message.is_null() {
            return Err("libtorch_cuda.so cannot be loaded".into());
        }
        // SAFETY: as above, and it is not null.
        Err(unsafe { CStr::from_ptr(message) }.to_string_lossy().into_owned())
    });
    loaded.clone().map_err(|what| PolicyError::Device { name: "cuda".into(), what })
}
