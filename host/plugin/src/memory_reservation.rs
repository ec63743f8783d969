//! What a call holds of the memory that all plugins share.

use std::sync::Arc;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// A call's part of the memory that all plugins share.
pub(crate) struct MemoryReservation {
    all: Arc<Semaphore>,
    held: OwnedSemaphorePermit,
}

impl MemoryReservation {
    /// Waits, in turn, until `bytes` are free.
    pub(crate) async fn wait(all: &Arc<Semaphore>, bytes: usize) -> Option<Self> {
        let held = all.clone().acquire_many_owned(pages(bytes)).await.ok()?;
        Some(Self { all: all.clone(), held })
    }

    /// One of memory that nobody else has a part in; nothing of it is held yet.
    #[expect(clippy::expect_used, reason = "an open semaphore always has no permits to give")]
    pub(crate) fn of_its_own(bytes: usize) -> Self {
        let all = Arc::new(Semaphore::new(pages(bytes) as usize));
        let held = all.clone().try_acquire_many_owned(0).expect("an open semaphore always has no permits to give");
        Self { all, held }
    }

    /// Makes it `bytes` in all, unless others hold the rest.
    pub(crate) fn extend(&mut self, bytes: usize) -> bool {
        let missing = pages(bytes).saturating_sub(self.held.num_permits() as u32);
        if missing == 0 {
            return true;
        }
        match self.all.clone().try_acquire_many_owned(missing) {
            Ok(more) => {
                self.held.merge(more);
                true
            }
            Err(_) => false,
        }
    }

    /// Gives back what is not needed for `bytes`.
    pub(crate) fn shrink(&mut self, bytes: usize) {
        let over = self.held.num_permits().saturating_sub(pages(bytes) as usize);
        drop(self.held.split(over));
    }
}

/// WebAssembly's own page: semaphores count in 32 bits.
pub(crate) const PAGE: usize = 64 << 10;

/// The pages that hold `bytes`.
pub(crate) fn pages(bytes: usize) -> u32 {
    u32::try_from(bytes.div_ceil(PAGE)).unwrap_or(u32::MAX)
}
