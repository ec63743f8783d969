//! The device that a model lives on.

mod cuda;
mod failure;
mod memory;
mod runtime;

pub use cuda::load_cuda;
pub use failure::{DeviceFailure, probe};
pub use memory::{DeviceMemory, MemoryPeaks, give_back, memory, peaks, reset_peaks};
pub use runtime::make_current;

use crate::error::{PolicyError, Result};
use gavel_torch::context::prepare_for_gpus;
use gavel_torch::peers::Rendezvous;
use std::path::Path;
use tch::{Cuda, Device};

/// The device named `auto` (a GPU if there is one, else the CPU), `cpu`, `cuda` or `cuda:N`. Without a number it is the
/// GPU of this process: the first GPU or, if a machine has several ranks, the GPU with this rank's number there.
///
/// It makes no context on any GPU: libtorch asks the driver for the number of GPUs alone.
pub fn select(name: &str) -> Result<Device> {
    let fail = |what: String| Err(PolicyError::Device { name: name.to_owned(), what });
    let index = match name {
        "cpu" => return Ok(Device::Cpu),
        "auto" => {
            let usable = load_cuda().is_ok() && Cuda::is_available();
            return Ok(if usable { gpu(own_gpu()) } else { Device::Cpu });
        }
        "cuda" => None,
        _ => match name.strip_prefix("cuda:").map(str::parse::<usize>) {
            Some(Ok(index)) => Some(index),
            _ => return fail("unknown name\nhint: use \"auto\", \"cpu\", \"cuda\" or \"cuda:N\"".into()),
        },
    };
    if !has_driver() {
        return fail(format!("{NO_DRIVER}\nhint: use \"cpu\""));
    }
    if let Err(PolicyError::Device { what, .. }) = load_cuda() {
        return fail(format!("{what}\nhint: install PyTorch with CUDA, or use \"cpu\""));
    }
    let (count, index) = (gpus(), index.unwrap_or_else(own_gpu));
    if !Cuda::is_available() || index >= count {
        return fail(format!("this machine has {count} usable GPUs\nhint: check the driver, or use \"cpu\""));
    }
    Ok(gpu(index))
}

/// The GPU of this number, with libtorch prepared for it.
fn gpu(index: usize) -> Device {
    prepare_for_gpus();
    Device::Cuda(index)
}

/// The GPU of this process. A launcher may show each rank its own alone.
fn own_gpu() -> usize {
    let rank = Rendezvous::from_environment().ok().flatten();
    rank.filter(|_| gpus() > 1).map_or(0, |rank| rank.local_rank)
}

fn gpus() -> usize {
    Cuda::device_count().max(0) as usize
}

const NO_DRIVER: &str = "this machine has no NVIDIA driver";

/// Whether this system, or the system that hosts it (WSL), has a driver of NVIDIA. Without a driver, it does not matter
/// what libtorch's CUDA part lacks.
fn has_driver() -> bool {
    ["/proc/driver/nvidia", "/dev/nvidiactl", "/dev/dxg"].iter().any(|path| Path::new(path).exists())
}

/// Why no GPU can be used; `None` if one can.
pub fn why_no_gpu() -> Option<String> {
    if !has_driver() {
        return Some(NO_DRIVER.into());
    }
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
