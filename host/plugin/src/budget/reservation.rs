//! A call's share of the memory of all plugins.

use std::sync::Arc;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// A call's share of the memory of all plugins.
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

    /// Reserves `bytes`; `None` if they are not free, or others wait for them.
    pub(crate) fn try_take(all: &Arc<Semaphore>, bytes: usize) -> Option<Self> {
        let held = all.clone().try_acquire_many_owned(pages(bytes)).ok()?;
        Some(Self { all: all.clone(), held })
    }

    /// A reservation in memory that is not shared; nothing of it is reserved yet.
    #[expect(clippy::expect_used, reason = "an open semaphore always has no permits to give")]
    pub(crate) fn of_its_own(bytes: usize) -> Self {
        let all = Arc::new(Semaphore::new(pages(bytes) as usize));
        let held = all.clone().try_acquire_many_owned(0).expect("an open semaphore always has no permits to give");
        Self { all, held }
    }

    /// Extends it to `bytes` in all, unless other calls hold the rest.
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

    /// Shrinks it to `bytes` in all.
    pub(crate) fn shrink(&mut self, bytes: usize) {
        let over = self.held.num_permits().saturating_sub(pages(bytes) as usize);
        drop(self.held.split(over));
    }
}

/// The unit of reservations, a page of WebAssembly, since semaphores count in 32 bits.
pub(crate) const PAGE: usize = 64 << 10;

/// The pages that hold `bytes`.
pub(crate) fn pages(bytes: usize) -> u32 {
    u32::try_from(bytes.div_ceil(PAGE)).unwrap_or(u32::MAX)
}
