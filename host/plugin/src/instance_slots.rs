//! The room for instances of all plugins: their number and their memory.

use crate::engine::Slots;
use crate::idle_instances::IdleInstances;
use crate::instance::InstancePermit;
use crate::machine_limits;
use crate::memory_reservation::{MemoryReservation, pages};
use std::num::NonZeroU32;
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio::time::timeout;

/// How long a call waits for room before idle instances make it.
const PATIENCE: Duration = Duration::from_millis(50);

/// What all instances of a sandbox may use together.
pub(crate) struct InstanceLimits {
    instances: Arc<Semaphore>,
    memory: Arc<Semaphore>,
    memory_bytes: usize,
    /// The idle instances of each plugin.
    idle: Mutex<Vec<Weak<IdleInstances>>>,
}

impl InstanceLimits {
    /// For instances that together have `memory` bytes.
    pub(crate) fn new(memory: usize) -> Self {
        Self {
            instances: Arc::new(Semaphore::new(machine_limits::max_instances())),
            memory: Arc::new(Semaphore::new(pages(memory) as usize)),
            memory_bytes: memory,
            idle: Mutex::default(),
        }
    }

    /// Bytes of memory that all instances together may use.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.memory_bytes
    }

    /// Waits, in turn, until one more instance may live and has `bytes` of
    /// memory.
    pub(crate) async fn permit(&self, slots: &Slots, bytes: usize) -> Option<(InstancePermit, MemoryReservation)> {
        let mut waiting = pin!(async {
            let _admission = self.instances.clone().acquire_owned().await.ok()?;
            let _slot = slots.wait().await;
            Some((InstancePermit { _slot, _admission }, MemoryReservation::wait(&self.memory, bytes).await?))
        });
        loop {
            match timeout(PATIENCE, &mut waiting).await {
                Ok(permitted) => return permitted,
                Err(_) => self.all_idle().iter().for_each(|idle| idle.clear()),
            }
        }
    }

    /// Idle instances of a plugin, which make room when others wait for it.
    /// Each answers up to `max_calls` calls.
    pub(crate) fn idle(&self, max_calls: NonZeroU32) -> Arc<IdleInstances> {
        let idle = Arc::new(IdleInstances::new(max_calls));
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(Arc::downgrade(&idle));
        idle
    }

    fn all_idle(&self) -> Vec<Arc<IdleInstances>> {
        let mut all = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|idle| idle.strong_count() > 0);
        all.iter().filter_map(Weak::upgrade).collect()
    }
}
