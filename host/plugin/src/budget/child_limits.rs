//! The limits of all children, which are programs that plugins run.

use crate::budget::address_space::AddressSpace;
use crate::budget::reservation::{MemoryReservation, pages};
use std::sync::Arc;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The most children at the same time. They have their own share of the sandbox,
/// so plugins that wait for children cannot block each other.
const CHILDREN: usize = 64;

/// The limits that all children of a sandbox share.
pub(crate) struct ChildLimits {
    children: Arc<Semaphore>,
    memory: Arc<Semaphore>,
    memory_bytes: usize,
}

impl ChildLimits {
    /// The limits of children that together have `memory` bytes, and of which as many as there is address space for run at
    /// the same time.
    pub(crate) fn new(memory: usize, space: Option<AddressSpace>) -> Self {
        let children = space.map_or(CHILDREN, |space| space.children.min(CHILDREN));
        let all = Arc::new(Semaphore::new(pages(memory) as usize));
        Self { children: Arc::new(Semaphore::new(children)), memory: all, memory_bytes: memory }
    }

    /// Bytes of memory that all children together may use.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.memory_bytes
    }

    /// Waits, in turn, until one more child may start with `bytes` of memory, or
    /// with all memory if that is less.
    pub(crate) async fn permit(&self, bytes: usize) -> Option<(OwnedSemaphorePermit, MemoryReservation)> {
        let permit = self.children.clone().acquire_owned().await.ok()?;
        Some((permit, MemoryReservation::wait(&self.memory, bytes.min(self.memory_bytes)).await?))
    }
}
