//! The limits of the instances of all plugins: their number and their memory.

use crate::budget::{MemoryReservation, machine_limits, pages};
use crate::engine::engines::{Slot, Slots};
use crate::engine::idle_instances::IdleInstances;
use crate::engine::instance::InstancePermit;
use std::num::NonZeroU32;
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio::time::timeout;

/// The time that a call waits for room before idle instances are ended.
const PATIENCE: Duration = Duration::from_millis(50);

/// Sessions may hold the memory divided by this.
const SESSION_SHARE: usize = 2;

/// What all instances of a sandbox may use together.
pub(crate) struct InstanceLimits {
    instances: Arc<Semaphore>,
    memory: Arc<Semaphore>,
    memory_bytes: usize,
    /// The part of the memory that sessions may hold. The rest is for calls, which sessions may wait for.
    session_memory: Arc<Semaphore>,
    /// Held by the episode that is taking rooms for its sessions.
    session_turn: tokio::sync::Mutex<()>,
    /// The idle instances of each plugin.
    idle: Mutex<Vec<Weak<IdleInstances>>>,
    /// Held by the call that ends idle instances while it waits for room.
    idle_turn: tokio::sync::Mutex<()>,
}

/// The room for one session, with all the memory that it may use.
pub(crate) struct SessionRoom {
    _slot: Slot,
    _memory: MemoryReservation,
    _share: MemoryReservation,
}

impl InstanceLimits {
    /// The limits of instances that together have `memory` bytes.
    pub(crate) fn new(memory: usize) -> Self {
        Self {
            instances: Arc::new(Semaphore::new(machine_limits::max_instances())),
            memory: Arc::new(Semaphore::new(pages(memory) as usize)),
            memory_bytes: memory,
            session_memory: Arc::new(Semaphore::new(pages(memory / SESSION_SHARE) as usize)),
            session_turn: tokio::sync::Mutex::default(),
            idle: Mutex::default(),
            idle_turn: tokio::sync::Mutex::default(),
        }
    }

    /// Bytes of memory that all instances together may use.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.memory_bytes
    }

    /// Waits, in turn, until one more instance may start with `bytes` of memory.
    pub(crate) async fn permit(&self, slots: &Slots, bytes: usize) -> Option<(InstancePermit, MemoryReservation)> {
        // Usually there is room, and a timer for the wait costs a short call a part of its time.
        if let Some(room) = self.try_permit(slots, bytes) {
            return Some(room);
        }
        self.without_idle(async {
            let _admission = self.instances.clone().acquire_owned().await.ok()?;
            let _slot = slots.wait().await;
            Some((InstancePermit { _slot, _admission }, MemoryReservation::wait(&self.memory, bytes).await?))
        })
        .await
    }

    /// The same if there is room and nobody waits for it.
    pub(crate) fn try_permit(&self, slots: &Slots, bytes: usize) -> Option<(InstancePermit, MemoryReservation)> {
        let _admission = self.instances.clone().try_acquire_owned().ok()?;
        let _slot = slots.try_take()?;
        Some((InstancePermit { _slot, _admission }, MemoryReservation::try_take(&self.memory, bytes)?))
    }

    /// Bytes of memory that all sessions together may hold.
    pub(crate) fn session_memory_bytes(&self) -> usize {
        self.memory_bytes / SESSION_SHARE
    }

    /// Waits, in turn, until there is room for one session for each of these slots and bytes of memory.
    pub(crate) async fn session_rooms(&self, needed: &[(Slots, usize)]) -> Option<Vec<SessionRoom>> {
        // One episode takes rooms at a time: two that each held a part would wait for each other.
        let _turn = self.session_turn.lock().await;
        let mut rooms = Vec::with_capacity(needed.len());
        for (slots, bytes) in needed {
            let room = self.without_idle(async {
                let _share = MemoryReservation::wait(&self.session_memory, *bytes).await?;
                let _slot = slots.wait_for_session().await;
                let _memory = MemoryReservation::wait(&self.memory, *bytes).await?;
                Some(SessionRoom { _slot, _memory, _share })
            });
            rooms.push(room.await?);
        }
        Some(rooms)
    }

    /// Waits for `room`. If that takes long, the idle instances are ended.
    async fn without_idle<T>(&self, room: impl Future<Output = Option<T>>) -> Option<T> {
        let mut room = pin!(room);
        // One call at a time does so for all that wait: timers of thousands take more processor time than their calls.
        let _turn = tokio::select! {
            biased;
            room = &mut room => return room,
            turn = self.idle_turn.lock() => turn,
        };
        loop {
            match timeout(PATIENCE, &mut room).await {
                Ok(room) => return room,
                Err(_) => self.all_idle().iter().for_each(|idle| idle.clear()),
            }
        }
    }

    /// A store for idle instances of a plugin, which are ended when other calls
    /// wait for room. Each answers up to `max_calls` calls.
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
