//! Transfers to a GPU that the host does not wait for (`shim/transfer.cpp`).

use crate::{Result, made};
use std::ffi::{c_char, c_int};
use tch::{Device, Tensor};
use torch_sys::C_tensor;

unsafe extern "C" {
    fn gavel_send(host: *const C_tensor, device: c_int, out: *mut *mut C_tensor) -> *mut c_char;
}

/// `host`, a tensor on the CPU, on `device`. Later operations of the device find it there; the host
/// does not wait.
pub fn send(host: &Tensor, device: Device) -> Result<Tensor> {
    let Device::Cuda(index) = device else { return host.f_to_device(device) };
    // SAFETY: the tensor outlives the call.
    let [sent] = made(|out| unsafe { gavel_send(host.as_ptr(), index as c_int, out) })?;
    Ok(sent)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_sent_arrives_or_it_is_said_why_not() {
        let numbers = Tensor::from_slice(&[1i64, -2, 3]);
        assert_eq!(send(&numbers, Device::Cpu).unwrap(), numbers);
        match send(&numbers, Device::Cuda(0)) {
            Ok(sent) => assert_eq!(Vec::<i64>::try_from(sent.to_device(Device::Cpu)).unwrap(), [1, -2, 3]),
            Err(error) => assert!(!error.to_string().is_empty()),
        }
    }
}
