//! c10d's process groups, the connections of all ranks: over Gloo for tensors on the CPU (`shim/collectives.cpp`), over
//! NCCL for those on GPUs (`shim/cuda/nccl.cpp`).

use super::error::{PeersError, Result};
use super::rendezvous::Rendezvous;
use super::store::{CStore, Store, c_text};
use crate::{checked, cuda};
use std::ffi::{c_char, c_void};
use std::time::Duration;
use tch::Tensor;
use torch_sys::C_tensor;

/// c10d's process group.
#[repr(C)]
struct CGroup {
    _private: [u8; 0],
}

/// An operation of the group.
#[repr(C)]
struct CRunning {
    _private: [u8; 0],
}

unsafe extern "C" {
    fn gavel_group_join(
        store: *mut CStore,
        prefix: *const c_char,
        interface: *const c_char,
        host: *const c_char,
        rank: i32,
        size: i32,
        timeout_ms: i64,
        out: *mut *mut CGroup,
    ) -> *mut c_char;
    fn gavel_group_leave(group: *mut CGroup);
    fn gavel_group_sum(group: *mut CGroup, tensor: *const C_tensor, out: *mut *mut CRunning) -> *mut c_char;
    fn gavel_group_reduce(group: *mut CGroup, tensor: *const C_tensor, to: i32, out: *mut *mut CRunning)
    -> *mut c_char;
    fn gavel_group_broadcast(
        group: *mut CGroup,
        tensor: *const C_tensor,
        from: i32,
        out: *mut *mut CRunning,
    ) -> *mut c_char;
    fn gavel_group_gather(
        group: *mut CGroup,
        own: *const C_tensor,
        all: *const C_tensor,
        out: *mut *mut CRunning,
    ) -> *mut c_char;
    fn gavel_running_wait(running: *mut CRunning, timeout_ms: i64, done: *mut bool, ago_ns: *mut i64) -> *mut c_char;
    fn gavel_running_free(running: *mut CRunning);
}

type JoinGpus = unsafe extern "C" fn(*mut CStore, *const c_char, i32, i32, i64, *mut *mut CGroup) -> *mut c_char;

/// How long an operation waits for the slowest rank, as in torch.distributed.
const TIMEOUT: Duration = Duration::from_secs(30 * 60);

/// The connection of all ranks. Its operations run in the order in which they begin, which is the same on all ranks.
pub(super) struct Group(*mut CGroup);

// SAFETY: c10d's group may be used from any thread.
unsafe impl Send for Group {}
// SAFETY: it locks its queue of operations. Which of two threads begins first is for the caller to order.
unsafe impl Sync for Group {}

impl Drop for Group {
    fn drop(&mut self) {
        // SAFETY: the group was made by `gavel_group_join`, and nothing uses it any more.
        unsafe { gavel_group_leave(self.0) }
    }
}

/// An operation that runs in the background.
pub(super) struct Running(*mut CRunning);

// SAFETY: an operation may be waited for on any thread.
unsafe impl Send for Running {}

impl Drop for Running {
    fn drop(&mut self) {
        // SAFETY: the operation was begun by the shim. One that still runs is kept by the group.
        unsafe { gavel_running_free(self.0) }
    }
}

impl Running {
    /// Waits for some time, and returns how long ago the operation ended, if it has.
    pub fn wait(&self, time: Duration) -> Result<Option<Duration>> {
        let (mut done, mut ago) = (false, 0);
        // SAFETY: the operation is alive, and the results outlive the call.
        checked(unsafe { gavel_running_wait(self.0, time.as_millis() as i64, &mut done, &mut ago) })?;
        Ok(done.then(|| Duration::from_nanos(ago.unsigned_abs())))
    }
}

impl Group {
    /// Connects the GPU of this rank with the GPUs of the other ranks, which do the same. They meet at the first
    /// operation.
    pub fn join_gpus(store: &Store, at: &Rendezvous, prefix: &str) -> Result<Self> {
        let join = cuda::function(c"gavel_cuda_group_join").map_err(|what| PeersError::Gpus { what })?;
        // SAFETY: this is its signature in the shim.
        let join = unsafe { std::mem::transmute::<*mut c_void, JoinGpus>(join) };
        let prefix = c_text(prefix);
        let (rank, size, timeout) = (at.rank as i32, at.size as i32, TIMEOUT.as_millis() as i64);
        let mut out = std::ptr::null_mut();
        // SAFETY: the store is open, and the text and the result outlive the call.
        checked(unsafe { join(store.as_ptr(), prefix.as_ptr(), rank, size, timeout, &mut out) })?;
        Ok(Self(out))
    }

    /// Connects this rank with the others, which do the same. The keys in the store begin with `prefix`.
    pub fn join(store: &Store, at: &Rendezvous, prefix: &str) -> Result<Self> {
        // The variable of torch.distributed: the network between the machines, where a machine has several.
        let interface = std::env::var("GLOO_SOCKET_IFNAME").unwrap_or_default();
        let host = if at.is_local() { "127.0.0.1" } else { "" };
        let (prefix, interface, host) = (c_text(prefix), c_text(&interface), c_text(host));
        let mut out = std::ptr::null_mut();
        // SAFETY: the store is open, and the texts and the result outlive the call.
        checked(unsafe {
            gavel_group_join(
                store.as_ptr(),
                prefix.as_ptr(),
                interface.as_ptr(),
                host.as_ptr(),
                at.rank as i32,
                at.size as i32,
                TIMEOUT.as_millis() as i64,
                &mut out,
            )
        })?;
        Ok(Self(out))
    }

    /// Begins to sum a tensor over all ranks, in place.
    pub fn sum(&self, tensor: &Tensor) -> Result<Running> {
        check(tensor)?;
        // SAFETY: the group is open. The operation keeps the tensor's memory alive.
        begun(|out| unsafe { gavel_group_sum(self.0, tensor.as_ptr(), out) })
    }

    /// Begins to sum a tensor over all ranks. The rank `to` gets the sum in place; other tensors have no meaning then.
    pub fn reduce(&self, tensor: &Tensor, to: usize) -> Result<Running> {
        check(tensor)?;
        // SAFETY: as above.
        begun(|out| unsafe { gavel_group_reduce(self.0, tensor.as_ptr(), to as i32, out) })
    }

    /// Begins to overwrite a tensor with the tensor of the rank `from`.
    pub fn broadcast(&self, tensor: &Tensor, from: usize) -> Result<Running> {
        check(tensor)?;
        // SAFETY: as above.
        begun(|out| unsafe { gavel_group_broadcast(self.0, tensor.as_ptr(), from as i32, out) })
    }

    /// Begins to write the tensors `own` of all ranks, of one size, into `all`, in the order of the ranks.
    pub fn gather(&self, own: &Tensor, all: &Tensor) -> Result<Running> {
        // SAFETY: as above, of both tensors.
        begun(|out| unsafe { gavel_group_gather(self.0, own.as_ptr(), all.as_ptr(), out) })
    }
}

fn check(tensor: &Tensor) -> Result<()> {
    match tensor.is_contiguous() {
        true => Ok(()),
        false => Err(PeersError::Torch("a tensor of several ranks must be contiguous".into())),
    }
}

fn begun(begin: impl FnOnce(*mut *mut CRunning) -> *mut c_char) -> Result<Running> {
    let mut out = std::ptr::null_mut();
    checked(begin(&mut out))?;
    Ok(Running(out))
}
