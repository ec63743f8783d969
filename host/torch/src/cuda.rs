//! libtorch's CUDA part, and the part of the shim that needs it (`shim/cuda`). The binary links neither, so that the
//! same binary runs without CUDA.

pub mod graph;
pub mod kernels;
pub mod memory;
pub mod transfer;

use std::ffi::{CStr, CString, c_void};
use std::os::fd::AsRawFd;
use std::sync::OnceLock;

/// Loads libtorch's CUDA part. libtorch must not have been asked about CUDA before: call this first in `main`. Later
/// calls repeat the answer of the first.
///
/// # Errors
/// Why it cannot be loaded, in the words of the system.
pub fn load() -> Result<(), String> {
    static LOADED: OnceLock<Result<(), String>> = OnceLock::new();
    LOADED.get_or_init(|| open(c"libtorch_cuda.so").map(|_| ())).clone()
}

/// Whether the part of the shim that needs CUDA is there.
///
/// # Errors
/// Why it cannot be loaded.
pub fn has_part() -> Result<(), String> {
    library().map(|_| ())
}

/// The version of NCCL, which connects the GPUs of several ranks.
///
/// # Errors
/// Why GPUs cannot be connected.
pub fn nccl_version() -> Result<String, String> {
    let version = function(c"gavel_cuda_nccl_version")?;
    // SAFETY: this is its signature in the shim; it returns a string that nothing else owns.
    let text = unsafe {
        let version = std::mem::transmute::<*mut c_void, unsafe extern "C" fn() -> *mut std::ffi::c_char>(version);
        let text = version();
        let copy = CStr::from_ptr(text).to_string_lossy().into_owned();
        crate::gavel_free(text);
        copy
    };
    Ok(text)
}

/// A function of the shim's CUDA part.
///
/// # Errors
/// Why that part cannot be loaded.
pub(crate) fn function(name: &CStr) -> Result<*mut c_void, String> {
    let library = library()?;
    // SAFETY: the library is open, and the name is a string of C.
    match unsafe { libc::dlsym(library, name.as_ptr()) } {
        function if function.is_null() => Err(message()),
        function => Ok(function),
    }
}

/// The function of this name.
///
/// # Safety
/// `F` is the function's signature.
pub(crate) unsafe fn symbol<F>(name: &CStr) -> crate::Result<F> {
    let function = function(name).map_err(tch::TchError::Torch)?;
    // SAFETY: the caller answers for the signature; pointers to functions are as large as others.
    Ok(unsafe { std::mem::transmute_copy::<*mut c_void, F>(&function) })
}

/// What `find` gives, once it has succeeded.
pub(crate) fn found_once<T: Copy>(found: &OnceLock<T>, find: impl FnOnce() -> crate::Result<T>) -> crate::Result<T> {
    match found.get() {
        Some(known) => Ok(*known),
        None => find().map(|new| *found.get_or_init(|| new)),
    }
}

fn library() -> Result<*mut c_void, String> {
    static LIBRARY: &[u8] = include_bytes!(env!("GAVEL_CUDA_LIBRARY"));
    /// A handle may be used from any thread.
    struct Handle(*mut c_void);
    // SAFETY: as the comment says; it is never closed.
    unsafe impl Send for Handle {}
    // SAFETY: as above.
    unsafe impl Sync for Handle {}
    static OPENED: OnceLock<Result<Handle, String>> = OnceLock::new();
    let opened = OPENED.get_or_init(|| {
        load()?;
        if LIBRARY.is_empty() {
            return Err("gavel was built with a libtorch that has no CUDA part".into());
        }
        // The system loads libraries from files alone.
        let file = file_in_memory(LIBRARY).map_err(|error| format!("cannot make a file in memory: {error}"))?;
        let path = format!("/proc/self/fd/{}", file.as_raw_fd());
        open(&CString::new(path).map_err(|error| error.to_string())?).map(Handle)
    });
    match opened {
        Ok(handle) => Ok(handle.0),
        Err(what) => Err(what.clone()),
    }
}

#[cfg(not(target_os = "linux"))]
fn file_in_memory(_: &[u8]) -> std::io::Result<std::fs::File> {
    Err(std::io::ErrorKind::Unsupported.into())
}

#[cfg(target_os = "linux")]
fn file_in_memory(bytes: &[u8]) -> std::io::Result<std::fs::File> {
    use std::io::Write;
    use std::os::fd::{FromRawFd, OwnedFd};
    // SAFETY: the name is a string of C.
    let descriptor = unsafe { libc::memfd_create(c"libgavel_cuda.so".as_ptr(), libc::MFD_CLOEXEC) };
    if descriptor < 0 {
        return Err(std::io::Error::last_os_error());
    }
    // SAFETY: the descriptor was just opened, and nothing else has it.
    let mut file = std::fs::File::from(unsafe { OwnedFd::from_raw_fd(descriptor) });
    file.write_all(bytes)?;
    Ok(file)
}

/// Loads a library; what it needs comes from those that were loaded before. It is never closed.
fn open(name: &CStr) -> Result<*mut c_void, String> {
    // SAFETY: the name is a string of C, and the initialisers are libtorch's own and the shim's.
    match unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_GLOBAL) } {
        handle if handle.is_null() => Err(message()),
        handle => Ok(handle),
    }
}

/// Why the last call for a library failed on this thread.
fn message() -> String {
    // SAFETY: dlerror gives null or a string of C that stays valid until this thread's next call for a library.
    unsafe {
        let message = libc::dlerror();
        if message.is_null() {
            return "the library cannot be loaded".into();
        }
        CStr::from_ptr(message).to_string_lossy().into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_cuda_it_is_said_what_is_missing() {
        match (load(), nccl_version()) {
            (Ok(()), Ok(version)) => assert!(version.starts_with("2."), "{version}"),
            (Err(missing), Err(same)) => assert!(missing == same && missing.contains(".so"), "{missing}, {same}"),
            (loaded, version) => panic!("{loaded:?}, {version:?}"),
        }
    }
}
