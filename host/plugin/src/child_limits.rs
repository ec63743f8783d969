//! The room for children: programs that plugins run.

use crate::memory_reservation::{MemoryReservation, pages};
use std::sync::Arc;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Children that live at once. They have their own share of the sandbox, so
/// that plugins which all wait for one cannot keep each other from it.
const CHILDREN: usize = 64;

/// What all children of a sandbox may use together.
pub(crate) struct ChildLimits {
    children: Arc<Semaphore>,
    memory: Arc<Semaphore>,
    memory_bytes: usize,
}

impl ChildLimits {
    /// For children that together have `memory` bytes.
    pub(crate) fn new(memory: usize) -> Self {
        let all = Arc::new(Semaphore::new(pages(memory) as usize));
        Self { children: Arc::new(Semaphore::new(CHILDREN)), memory: all, memory_bytes: memory }
    }

    /// Bytes of memory that all children together may use.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.memory_bytes
    }

    /// Waits, in turn, until one more child may live and has `bytes` of memory,
    /// or all that there is.
    pub(crate) async fn permit(&self, bytes: usize) -> Option<(OwnedSemaphorePermit, MemoryReservation)> {
        let permit = self.children.clone().acquire_owned().await.ok()?;
        Some((permit, MemoryReservation::wait(&self.memory, bytes.min(self.memory_bytes)).await?))
    }
}
