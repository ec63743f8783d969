//! A device on which nothing more can be computed.

use super::name;
use crate::error::{PolicyError, Result};
use std::sync::Arc;
use tch::{Device, Tensor};

/// A device on which this process can compute nothing more. After an error in a kernel of CUDA (an address that is not
/// its own, an assertion, a fault of the memory), every later operation of the process fails with the same error.
#[derive(Debug, thiserror::Error)]
#[error(
    "{device} failed while {during}, and nothing more can be computed there: {error}\nhint: start again; with CUDA_LAUNCH_BLOCKING=1 in the environment, the error is that of the operation that failed"
)]
pub struct DeviceFailure {
    /// The name of the device.
    device: String,
    /// What was being done.
    during: &'static str,
    /// The first error.
    error: Arc<PolicyError>,
}

impl DeviceFailure {
    /// The failure of `device`, where `error` came up `during` something, if `probe` does not find it to work.
    pub fn after(
        error: &Arc<PolicyError>,
        during: &'static str,
        device: Device,
        probe: impl FnOnce(Device) -> Result<()>,
    ) -> Option<Self> {
        match probe(device) {
            // A device whose memory is full works.
            Ok(()) | Err(PolicyError::OutOfMemory { .. }) => None,
            Err(_) => Some(Self { device: name(device), during, error: error.clone() }),
        }
    }
}

/// Computes a number on `device` and waits for it.
///
/// # Errors
/// The device does not work, or its memory is full.
pub fn probe(device: Device) -> Result<()> {
    let one = Tensor::f_from_slice(&[1f32])?.f_to_device(device)?;
    match one.f_add(&one)?.f_double_value(&[0])? {
        2.0 => Ok(()),
        other => Err(PolicyError::Device { name: name(device), what: format!("1 + 1 is {other}") }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_that_works_or_is_full_has_not_failed() {
        let error = Arc::new(PolicyError::Torch("CUDA error: an illegal memory access was encountered".into()));
        let after = |probe: fn(Device) -> Result<()>| DeviceFailure::after(&error, "drawing", Device::Cpu, probe);
        assert!(after(probe).is_none());
        assert!(after(|_| Err(PolicyError::OutOfMemory { phase: None, what: "full".into() })).is_none());
        let failure = after(|_| Err(PolicyError::Torch("again".into()))).unwrap().to_string();
        assert!(
            failure.starts_with(
                "cpu failed while drawing, and nothing more can be computed there: libtorch: CUDA error: an illegal memory access was encountered\nhint: start again"
            ),
            "{failure}"
        );
    }
}
