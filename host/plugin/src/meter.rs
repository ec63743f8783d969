//! Counts what a call uses. The counts outlive the call's store, which is
//! dropped with everything in it when a budget ends the call.

use crate::engine::TABLE_ELEMENTS;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use wasmtime::ResourceLimiter;

/// A table's element is a pointer in the host.
const TABLE_ELEMENT_BYTES: usize = size_of::<usize>();
/// Each memory reserves gigabytes of address space, used or not. A Python
/// component has two.
const MAX_MEMORIES: usize = 16;
const MAX_TABLES: usize = 64;
/// A Python component with its shared libraries has about thirty.
const MAX_INSTANCES: usize = 256;

/// What is left of a call's use of memory after it ended.
#[derive(Default)]
pub(crate) struct MemoryUse {
    peak: AtomicUsize,
    refused: AtomicUsize,
    crowded: AtomicBool,
}

impl MemoryUse {
    /// Memory is never given back within a call, so the peak is what is used.
    pub(crate) fn peak(&self) -> usize {
        self.peak.load(Ordering::Relaxed)
    }

    /// The total that was asked for when the limit refused it.
    pub(crate) fn refused(&self) -> Option<usize> {
        Some(self.refused.load(Ordering::Relaxed)).filter(|asked| *asked > 0)
    }

    /// Whether the process had no memory left, though the call had.
    pub(crate) fn crowded(&self) -> bool {
        self.crowded.load(Ordering::Relaxed)
    }
}

/// The error of a call that must be made again when there is memory.
#[derive(Debug, thiserror::Error)]
#[error("all memory for plugins is in use")]
struct Crowded;

/// Sums up memories and tables, and remembers a refusal: whatever the guest
/// returns after one, it did not get what it asked for.
pub(crate) struct MemoryMeter {
    limit: usize,
    shared: Arc<MemoryUse>,
    reserved: Reservation,
}

impl MemoryMeter {
    pub(crate) fn new(limit: usize, shared: Arc<MemoryUse>, reserved: Reservation) -> Self {
        Self { limit, shared, reserved }
    }

    fn grow(&mut self, current: usize, desired: usize) -> wasmtime::Result<bool> {
        let total = self.shared.peak().saturating_add(desired.saturating_sub(current));
        if total > self.limit {
            self.shared.refused.store(total, Ordering::Relaxed);
            return Ok(false);
        }
        if !self.reserved.extend(total) {
            self.shared.crowded.store(true, Ordering::Relaxed);
            return Err(wasmtime::Error::new(Crowded));
        }
        self.shared.peak.store(total, Ordering::Relaxed);
        Ok(true)
    }
}

impl ResourceLimiter for MemoryMeter {
    fn memory_growing(&mut self, current: usize, desired: usize, maximum: Option<usize>) -> wasmtime::Result<bool> {
        // What the guest forbids itself is no want of memory.
        if maximum.is_some_and(|maximum| desired > maximum) {
            return Ok(false);
        }
        self.grow(current, desired)
    }

    fn table_growing(&mut self, current: usize, desired: usize, maximum: Option<usize>) -> wasmtime::Result<bool> {
        // In a pool a larger maximum may be that of the slot, which is no wish of the guest's.
        if maximum.is_some_and(|maximum| maximum < TABLE_ELEMENTS && desired > maximum) {
            return Ok(false);
        }
        self.grow(current.saturating_mul(TABLE_ELEMENT_BYTES), desired.saturating_mul(TABLE_ELEMENT_BYTES))
    }

    fn instances(&self) -> usize {
        MAX_INSTANCES
    }

    fn memories(&self) -> usize {
        MAX_MEMORIES
    }

    fn tables(&self) -> usize {
        MAX_TABLES
    }
}

/// A call's part of the memory that all plugins share.
pub(crate) struct Reservation {
    all: Arc<Semaphore>,
    held: OwnedSemaphorePermit,
}

impl Reservation {
    /// Waits, in turn, until `bytes` are free.
    pub(crate) async fn wait(all: &Arc<Semaphore>, bytes: usize) -> Option<Self> {
        let held = all.clone().acquire_many_owned(pages(bytes)).await.ok()?;
        Some(Self { all: all.clone(), held })
    }

    /// Makes it `bytes` in all, unless others hold the rest.
    fn extend(&mut self, bytes: usize) -> bool {
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
}

/// WebAssembly's own page: semaphores count in 32 bits.
const PAGE: usize = 64 << 10;

/// The pages that hold `bytes`.
pub(crate) fn pages(bytes: usize) -> u32 {
    u32::try_from(bytes.div_ceil(PAGE)).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn meter(limit: usize, all: &Arc<Semaphore>) -> (MemoryMeter, Arc<MemoryUse>) {
        let shared = Arc::new(MemoryUse::default());
        let reserved = Reservation::wait(all, 0).await.unwrap();
        (MemoryMeter::new(limit, shared.clone(), reserved), shared)
    }

    #[tokio::test]
    async fn memories_and_tables_share_one_budget() {
        let (mut meter, shared) = meter(1000, &Arc::new(Semaphore::new(100))).await;
        assert!(meter.memory_growing(0, 600, None).unwrap());
        assert!(meter.table_growing(0, 40, None).unwrap());
        assert!(!meter.memory_growing(0, 200, None).unwrap());
        assert!(meter.memory_growing(600, 680, None).unwrap());
        assert_eq!((shared.peak(), shared.refused(), shared.crowded()), (1000, Some(1120), false));
    }

    #[tokio::test]
    async fn what_a_guest_forbids_itself_is_not_refused_by_its_budget() {
        let (mut meter, shared) = meter(10 * PAGE, &Arc::new(Semaphore::new(100))).await;
        assert!(meter.memory_growing(0, PAGE, Some(PAGE)).unwrap());
        assert!(!meter.memory_growing(PAGE, 20 * PAGE, Some(PAGE)).unwrap());
        assert!(!meter.table_growing(0, 20 * PAGE, Some(10)).unwrap());
        assert_eq!((shared.peak(), shared.refused()), (PAGE, None));
        // The maximum of a slot in a pool is the host's.
        assert!(!meter.table_growing(0, 20 * PAGE, Some(TABLE_ELEMENTS)).unwrap());
        assert!(shared.refused().is_some());
    }

    #[tokio::test]
    async fn a_call_that_finds_no_memory_left_is_crowded_and_not_refused() {
        let all = Arc::new(Semaphore::new(3));
        let (mut first, _) = meter(usize::MAX, &all).await;
        let (mut second, shared) = meter(usize::MAX, &all).await;
        assert!(first.memory_growing(0, 2 * PAGE, None).unwrap());
        assert!(second.memory_growing(0, PAGE, None).unwrap());
        assert!(second.memory_growing(PAGE, 2 * PAGE, None).is_err());
        assert_eq!((shared.refused(), shared.crowded()), (None, true));
        drop((first, second));
        assert_eq!(all.available_permits(), 3);
    }
}
