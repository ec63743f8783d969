//! Copies of a GPU's numbers on the host that the host does not wait for (`shim/cuda/transfer.cpp`).

use super::{found_once, symbol};
use crate::{Result, checked, made};
use std::ffi::{c_char, c_void};
use std::sync::OnceLock;
use tch::{Device, Tensor};
use torch_sys::C_tensor;

/// A copy on its way to the host. Dropping it waits, too.
#[derive(Debug)]
pub struct Receiving {
    // Dropped first: it waits until the copy is there.
    arrival: Option<Event>,
    copy: Tensor,
}

/// What the device does after the copy.
#[derive(Debug)]
struct Event {
    event: *mut c_void,
    functions: Functions,
}

// SAFETY: an event belongs to no thread.
unsafe impl Send for Event {}

type Receive = unsafe extern "C" fn(*const C_tensor, *mut *mut c_void, *mut *mut C_tensor) -> *mut c_char;
type Wait = unsafe extern "C" fn(*const c_void) -> *mut c_char;
type Free = unsafe extern "C" fn(*mut c_void);

#[derive(Debug, Clone, Copy)]
struct Functions {
    receive: Receive,
    wait: Wait,
    free: Free,
}

fn functions() -> Result<Functions> {
    static FOUND: OnceLock<Functions> = OnceLock::new();
    // SAFETY: these are the signatures in the shim.
    found_once(&FOUND, || unsafe {
        Ok(Functions {
            receive: symbol(c"gavel_cuda_receive")?,
            wait: symbol(c"gavel_cuda_event_wait")?,
            free: symbol(c"gavel_cuda_event_free")?,
        })
    })
}

/// Copies `x` as it is after all operations before. Later operations may write to it.
///
/// # Errors
/// The device fails.
pub fn receive(x: &Tensor) -> Result<Receiving> {
    if x.device() == Device::Cpu {
        let mut copy = x.f_empty_like()?;
        copy.f_copy_(x)?;
        return Ok(Receiving { arrival: None, copy });
    }
    let (x, functions) = (x.f_contiguous()?, functions()?);
    let mut event = std::ptr::null_mut();
    // SAFETY: the tensor has no gaps and outlives the call, which writes the event, or gives a message.
    let [copy] = made(|out| unsafe { (functions.receive)(x.as_ptr(), &mut event, out) })?;
    Ok(Receiving { arrival: Some(Event { event, functions }), copy })
}

impl Receiving {
    /// The copy, once it is there.
    ///
    /// # Errors
    /// The device fails.
    pub fn wait(self) -> Result<Tensor> {
        if let Some(arrival) = &self.arrival {
            arrival.wait()?;
        }
        Ok(self.copy)
    }
}

impl Event {
    fn wait(&self) -> Result<()> {
        // SAFETY: the event lives.
        checked(unsafe { (self.functions.wait)(self.event) })
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        // A device that has failed copies nothing any more.
        let _ = self.wait();
        // SAFETY: it was made by the shim, and nothing uses it any more.
        unsafe { (self.functions.free)(self.event) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cuda::load;
    use tch::Kind;

    #[test]
    fn what_is_received_is_what_was_there_before() {
        let devices = [Some(Device::Cpu), load().ok().filter(|()| tch::Cuda::is_available()).map(|()| Device::Cuda(0))];
        for device in devices.into_iter().flatten() {
            let mut numbers = Tensor::from_slice(&[1i64, -2, 3]).to_device(device);
            let receiving = receive(&numbers).unwrap();
            let _ = numbers.fill_(7);
            let received = receiving.wait().unwrap();
            assert_eq!((received.kind(), received.device()), (Kind::Int64, Device::Cpu));
            assert_eq!(Vec::<i64>::try_from(received).unwrap(), [1, -2, 3]);
        }
    }
}
