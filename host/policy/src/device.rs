//! The device that a model lives on.

mod memory;

pub use memory::{DeviceMemory, memory};

use crate::error::{PolicyError, Result};
use std::ffi::CStr;
use std::sync::OnceLock;
use tch::{Cuda, Device};

/// Loads libtorch's CUDA part, which the binary does not link, so that the
/// same binary runs where there is none. libtorch must not have been asked
/// about CUDA before: call this (or [`select`]) first thing in `main`. Only
/// the first call does anything; later ones repeat its answer.
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

/// The device named `auto` (the first GPU if there is one, else the CPU),
/// `cpu`, `cuda` or `cuda:N`.
pub fn select(name: &str) -> Result<Device> {
    let fail = |what: String| Err(PolicyError::Device { name: name.to_owned(), what });
    let index = match name {
        "cpu" => return Ok(Device::Cpu),
        "auto" => {
            let usable = load_cuda().is_ok() && Cuda::is_available();
            return Ok(if usable { Device::Cuda(0) } else { Device::Cpu });
        }
        "cuda" => 0,
        _ => match name.strip_prefix("cuda:").map(str::parse::<usize>) {
            Some(Ok(index)) => index,
            _ => return fail("unknown name; use \"auto\", \"cpu\", \"cuda\" or \"cuda:N\"".into()),
        },
    };
    if let Err(PolicyError::Device { what, .. }) = load_cuda() {
        return fail(format!("{what}; install PyTorch with CUDA or use \"cpu\""));
    }
    let count = Cuda::device_count().max(0) as usize;
    if !Cuda::is_available() || index >= count {
        return fail(format!("this machine has {count} usable GPUs; check the driver or use \"cpu\""));
    }
    Ok(Device::Cuda(index))
}

/// Why no GPU can be used; nothing where one can.
pub fn why_no_gpu() -> Option<String> {
    match load_cuda() {
        Err(PolicyError::Device { what, .. }) => Some(what),
        Err(other) => Some(other.to_string()),
        Ok(()) if Cuda::is_available() => None,
        Ok(()) => Some("the driver finds none".into()),
    }
}

/// The device's name, as [`select`] takes it.
pub fn name(device: Device) -> String {
    match device {
        Device::Cuda(index) => format!("cuda:{index}"),
        _ => "cpu".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_understood_or_refused() {
        assert_eq!(select("cpu").unwrap(), Device::Cpu);
        assert!(select("auto").is_ok());
        for name in ["gpu", "cuda:x", "cuda:4096"] {
            let error = select(name).unwrap_err().to_string();
            assert!(error.starts_with(&format!("device {name}: ")), "{error}");
        }
    }
}
