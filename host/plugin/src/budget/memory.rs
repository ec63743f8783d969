//! A call's memory and its limit. The counts outlive the call's store, which is
//! dropped when a budget ends the call.

use crate::budget::limits::TABLE_ELEMENTS;
use crate::budget::reservation::MemoryReservation;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use wasmtime::ResourceLimiter;

/// A table's element is a pointer in the host.
const TABLE_ELEMENT_BYTES: usize = size_of::<usize>();
/// Each memory reserves gigabytes of address space, used or not. A Python
/// component has two.
const MAX_MEMORIES: usize = 16;
const MAX_TABLES: usize = 64;
/// A Python component with its shared libraries has about thirty.
const MAX_INSTANCES: usize = 256;

/// A call's use of memory, which can be read after it ended.
#[derive(Default)]
pub(crate) struct MemoryUse {
    peak: AtomicUsize,
    refused: Mutex<Option<RefusedMemory>>,
    crowded: AtomicBool,
}

/// The memory that the limit refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RefusedMemory {
    /// The guest asked for this much in all.
    Guest(usize),
    /// The host needed memory for the call. The amount is not reported, since it
    /// depends on which answer comes first.
    Host,
}

impl MemoryUse {
    /// The most memory at any one time.
    pub(crate) fn peak(&self) -> usize {
        self.peak.load(Ordering::Relaxed)
    }

    /// The last refusal by the limit.
    pub(crate) fn refused(&self) -> Option<RefusedMemory> {
        *self.refused.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the process had no memory left, though the call had.
    pub(crate) fn crowded(&self) -> bool {
        self.crowded.load(Ordering::Relaxed)
    }

    fn refuse(&self, what: RefusedMemory) {
        *self.refused.lock().unwrap_or_else(PoisonError::into_inner) = Some(what);
    }
}

/// The error of a call that must be repeated when there is memory.
#[derive(Debug, thiserror::Error)]
#[error("all memory for plugins is in use")]
struct Crowded;

/// The host cannot hold more memory for a call. The call has failed, whatever the
/// plugin returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the call has no memory left")]
pub struct NoMemory;

/// Sums up memories, tables, and memory of the host for the guest. It remembers a
/// refusal, after which the guest's answer does not count. Clones share their
/// state.
#[derive(Clone)]
pub(crate) struct MemoryBudget {
    limit: usize,
    shared: Arc<MemoryUse>,
    ledger: Arc<Mutex<Ledger>>,
}

/// A call's current memory.
struct Ledger {
    /// Memories and tables, which never shrink.
    guest: usize,
    /// Memory of the host for the call.
    host: usize,
    reserved: MemoryReservation,
}

/// Why there is no more memory.
enum Full {
    /// It would be this much, which is over the limit.
    Limit(usize),
    /// Other calls hold it.
    Crowded,
}

impl MemoryBudget {
    pub(crate) fn new(limit: usize, shared: Arc<MemoryUse>, reserved: MemoryReservation) -> Self {
        Self { limit, shared, ledger: Arc::new(Mutex::new(Ledger { guest: 0, host: 0, reserved })) }
    }

    /// Begins a further call of the same instance: the host's memory for the last
    /// call and its reservation are released.
    pub(crate) fn begin_again(&self) {
        let mut ledger = self.ledger();
        let left = ledger.guest.saturating_add(ledger.host);
        ledger.reserved.shrink(left);
        self.shared.peak.store(left, Ordering::Relaxed);
    }

    /// Counts memory of the host for the guest, until [`give_back`](Self::give_back).
    pub(crate) fn hold(&self, bytes: usize) -> Result<(), NoMemory> {
        let mut ledger = self.ledger();
        match self.make_room(&mut ledger, bytes) {
            Ok(()) => ledger.host += bytes,
            Err(Full::Limit(_)) => {
                self.shared.refuse(RefusedMemory::Host);
                return Err(NoMemory);
            }
            Err(Full::Crowded) => return Err(NoMemory),
        }
        Ok(())
    }

    pub(crate) fn give_back(&self, bytes: usize) {
        let mut ledger = self.ledger();
        ledger.host = ledger.host.saturating_sub(bytes);
    }

    /// Notes that the host could not hold more memory, unless other calls were the
    /// reason.
    pub(crate) fn refuse(&self) {
        if !self.shared.crowded() {
            self.shared.refuse(RefusedMemory::Host);
        }
    }

    fn grow(&self, current: usize, desired: usize) -> wasmtime::Result<bool> {
        let mut ledger = self.ledger();
        let more = desired.saturating_sub(current);
        match self.make_room(&mut ledger, more) {
            Ok(()) => ledger.guest += more,
            Err(Full::Limit(total)) => {
                self.shared.refuse(RefusedMemory::Guest(total));
                return Ok(false);
            }
            Err(Full::Crowded) => return Err(wasmtime::Error::new(Crowded)),
        }
        Ok(true)
    }

    fn make_room(&self, ledger: &mut Ledger, more: usize) -> Result<(), Full> {
        let total = ledger.guest.saturating_add(ledger.host).saturating_add(more);
        if total > self.limit {
            return Err(Full::Limit(total));
        }
        if !ledger.reserved.extend(total) {
            self.shared.crowded.store(true, Ordering::Relaxed);
            return Err(Full::Crowded);
        }
        self.shared.peak.fetch_max(total, Ordering::Relaxed);
        Ok(())
    }

    fn ledger(&self) -> MutexGuard<'_, Ledger> {
        self.ledger.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ResourceLimiter for MemoryBudget {
    fn memory_growing(&mut self, current: usize, desired: usize, maximum: Option<usize>) -> wasmtime::Result<bool> {
        // The guest's own maximum is not a lack of memory.
        if maximum.is_some_and(|maximum| desired > maximum) {
            return Ok(false);
        }
        self.grow(current, desired)
    }

    fn table_growing(&mut self, current: usize, desired: usize, maximum: Option<usize>) -> wasmtime::Result<bool> {
        // In a pool, a larger maximum may be the slot's maximum, and not the guest's own.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::budget::reservation::PAGE;
    use tokio::sync::Semaphore;

    async fn meter(limit: usize, all: &Arc<Semaphore>) -> (MemoryBudget, Arc<MemoryUse>) {
        let shared = Arc::new(MemoryUse::default());
        let reserved = MemoryReservation::wait(all, 0).await.unwrap();
        (MemoryBudget::new(limit, shared.clone(), reserved), shared)
    }

    #[tokio::test]
    async fn memories_and_tables_share_one_budget() {
        let (mut meter, shared) = meter(1000, &Arc::new(Semaphore::new(100))).await;
        assert!(meter.memory_growing(0, 600, None).unwrap());
        assert!(meter.table_growing(0, 40, None).unwrap());
        assert!(!meter.memory_growing(0, 200, None).unwrap());
        assert!(meter.memory_growing(600, 680, None).unwrap());
        assert_eq!(
            (shared.peak(), shared.refused(), shared.crowded()),
            (1000, Some(RefusedMemory::Guest(1120)), false)
        );
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

    #[tokio::test]
    async fn what_the_host_holds_is_the_calls_until_it_is_given_back() {
        let all = Arc::new(Semaphore::new(100));
        let (mut meter, shared) = meter(10 * PAGE, &all).await;
        assert!(meter.memory_growing(0, 6 * PAGE, None).unwrap());
        assert_eq!(meter.hold(4 * PAGE), Ok(()));
        meter.give_back(4 * PAGE);
        assert_eq!(meter.hold(3 * PAGE), Ok(()));
        assert!(!meter.memory_growing(6 * PAGE, 8 * PAGE, None).unwrap());
        assert_eq!((shared.refused(), shared.peak()), (Some(RefusedMemory::Guest(11 * PAGE)), 10 * PAGE));
        assert_eq!(meter.hold(2 * PAGE), Err(NoMemory));
        assert_eq!(shared.refused(), Some(RefusedMemory::Host));
        assert_eq!(all.available_permits(), 90);
        meter.give_back(3 * PAGE);
        meter.begin_again();
        assert_eq!((shared.peak(), all.available_permits()), (6 * PAGE, 94));
    }
}
