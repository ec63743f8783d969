//! The engines that run components. In one, instances share the slots of a pool,
//! which is several times faster than new memory for each instance. The other
//! allocates new memory, for components that do not fit a slot and for machines
//! without room for a pool.

use crate::budget::{SLOT_TABLES, TABLE_ELEMENTS, machine_limits};
use crate::compile::{Code, code_name, engine_config};
use crate::error::LoadError;
use crate::imports;
use crate::imports::State;
use std::sync::{Arc, OnceLock};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use wasmtime::component::{Component, InstancePre, Linker};
use wasmtime::{Config, Enabled, Engine, InstanceAllocationStrategy, Module, PoolingAllocationConfig};

/// The most instances of a pool. Each reserves 8 GiB of address space, of which a process has 128 TiB.
const MAX_SLOTS: u32 = 10_000;
/// The fewest instances of a pool. With fewer, calls would wait that could run.
const MIN_SLOTS: u32 = 64;
/// The largest memory in a slot. A plugin with a higher limit does not use the pool.
const SLOT_MEMORY: usize = 1 << 30;
/// A Python component has two memories: its own and an adapter's.
const SLOT_MEMORIES: u32 = 2;
/// A Python component with its shared libraries has about a dozen. One more sets an instance back, and two have the
/// data of code that is split off.
const SLOT_CORE_INSTANCES: u32 = 19;
/// The most bytes of the host's own data for an instance. A Python component has
/// thousands of globals and imports.
const INSTANCE_BYTES: usize = 4 << 20;
/// Memory that a call has touched is cleared, and not returned to the kernel, up
/// to this size. A simple Python call touches 5 MiB.
const KEEP_RESIDENT: usize = 8 << 20;

/// The engines with one set of compiler settings, created when they are needed.
pub(crate) struct Engines {
    fuel: bool,
    /// The slots that all instances have where the address space is limited. There is no pool then.
    limited: Option<Slots>,
    pooled: OnceLock<Option<LinkedEngine>>,
    on_demand: OnceLock<LinkedEngine>,
}

/// An engine, and the linker of its components.
struct LinkedEngine {
    engine: Engine,
    linker: Linker<State>,
    slots: Slots,
}

/// A component in its engine.
pub(crate) struct PlacedComponent<'a> {
    linked: &'a LinkedEngine,
    pub(crate) component: Component,
    /// The code that it imports.
    modules: Vec<Module>,
}

impl PlacedComponent<'_> {
    /// The engine.
    pub(crate) fn engine(&self) -> &Engine {
        &self.linked.engine
    }

    /// Connects its imports.
    pub(crate) fn link(&self) -> wasmtime::Result<InstancePre<State>> {
        if self.modules.is_empty() {
            return self.linked.linker.instantiate_pre(&self.component);
        }
        let mut linker = self.linked.linker.clone();
        for (number, module) in self.modules.iter().enumerate() {
            linker.root().module(&code_name(number), module)?;
        }
        linker.instantiate_pre(&self.component)
    }

    /// The slots for its instances.
    pub(crate) fn slots(&self) -> Slots {
        self.linked.slots.clone()
    }
}

/// The slot of one instance. It must outlive the instance's store.
pub(crate) struct Slot {
    _slot: Option<OwnedSemaphorePermit>,
    _session: Option<OwnedSemaphorePermit>,
}

/// Where the instances of a component find room: slots of a pool or of a limited address space, or nothing to wait for.
#[derive(Clone)]
pub(crate) struct Slots(Option<PoolSlots>);

/// The free slots.
#[derive(Clone)]
struct PoolSlots {
    all: Arc<Semaphore>,
    /// The slots that sessions may hold. The others are for calls, which sessions may wait for.
    sessions: Arc<Semaphore>,
    most_sessions: usize,
}

impl Slots {
    /// So many slots.
    pub(crate) fn of(slots: usize) -> Self {
        let most_sessions = (slots / 2).max(1);
        let [all, sessions] = [slots, most_sessions].map(|slots| Arc::new(Semaphore::new(slots)));
        Self(Some(PoolSlots { all, sessions, most_sessions }))
    }

    /// How many of them sessions may hold.
    pub(crate) fn most_sessions(&self) -> usize {
        self.0.as_ref().map_or(usize::MAX, |slots| slots.most_sessions)
    }

    /// Waits, in turn, for a free slot.
    pub(crate) async fn wait(&self) -> Slot {
        let slot = match &self.0 {
            // The semaphores are never closed.
            Some(slots) => slots.all.clone().acquire_owned().await.ok(),
            None => None,
        };
        Slot { _slot: slot, _session: None }
    }

    /// A free slot; `None` if there is none, or others wait for it.
    pub(crate) fn try_take(&self) -> Option<Slot> {
        let slot = match &self.0 {
            Some(slots) => Some(slots.all.clone().try_acquire_owned().ok()?),
            None => None,
        };
        Some(Slot { _slot: slot, _session: None })
    }

    /// Waits, in turn, for a free slot that sessions may hold.
    pub(crate) async fn wait_for_session(&self) -> Slot {
        let session = match &self.0 {
            Some(slots) => slots.sessions.clone().acquire_owned().await.ok(),
            None => None,
        };
        Slot { _session: session, ..self.wait().await }
    }
}

impl Engines {
    /// Engines; `fuel` tells whether they meter fuel, and `limited` are the only slots if the address space is limited.
    pub(crate) fn new(fuel: bool, limited: Option<Slots>) -> Self {
        Self { fuel, limited, pooled: OnceLock::new(), on_demand: OnceLock::new() }
    }

    /// Interrupts all guests that run in them.
    pub(crate) fn tick(&self) {
        let pooled = self.pooled.get().and_then(Option::as_ref);
        pooled.into_iter().chain(self.on_demand.get()).for_each(|linked| linked.engine.increment_epoch());
    }

    /// Whether their code meters fuel.
    pub(crate) fn fuel(&self) -> bool {
        self.fuel
    }

    /// An engine with the settings that all code is compiled with.
    pub(crate) fn reference(&self) -> Result<&Engine, LoadError> {
        Ok(&self.on_demand()?.engine)
    }

    /// Loads code where each instance may use `memory` bytes.
    pub(crate) fn place(&self, code: &Code, memory: usize) -> Result<PlacedComponent<'_>, LoadError> {
        if let Some(linked) = self.pooled().filter(|_| memory <= SLOT_MEMORY) {
            match linked.place(code) {
                Ok(placed) => return Ok(placed),
                Err(error) => tracing::debug!("a plugin runs without the pool: {error:#}"),
            }
        }
        self.place_on_demand(code)
    }

    /// Loads code outside of the pool.
    pub(crate) fn place_on_demand(&self, code: &Code) -> Result<PlacedComponent<'_>, LoadError> {
        self.on_demand()?.place(code).map_err(engine_error)
    }

    fn pooled(&self) -> Option<&LinkedEngine> {
        let pooled = || if self.limited.is_none() { LinkedEngine::pooled(self.fuel) } else { None };
        self.pooled.get_or_init(pooled).as_ref()
    }

    fn on_demand(&self) -> Result<&LinkedEngine, LoadError> {
        if let Some(linked) = self.on_demand.get() {
            return Ok(linked);
        }
        let linked = LinkedEngine::new(&engine_config(self.fuel), self.limited.clone().unwrap_or(Slots(None)))
            .map_err(engine_error)?;
        // If two threads are here at once, the first engine is kept.
        Ok(self.on_demand.get_or_init(|| linked))
    }
}

impl LinkedEngine {
    fn place(&self, code: &Code) -> wasmtime::Result<PlacedComponent<'_>> {
        let (component, modules) = (code.load(&self.engine)?, code.load_modules(&self.engine)?);
        Ok(PlacedComponent { linked: self, component, modules })
    }

    fn new(config: &Config, slots: Slots) -> wasmtime::Result<Self> {
        let engine = Engine::new(config)?;
        let linker = imports::linker(&engine)?;
        Ok(Self { engine, linker, slots })
    }

    /// The largest pool that there is room for; `None` if that is too small.
    fn pooled(fuel: bool) -> Option<Self> {
        let mut slots = u32::try_from(machine_limits::max_instances()).unwrap_or(MAX_SLOTS).min(MAX_SLOTS);
        while slots >= MIN_SLOTS {
            let mut config = engine_config(fuel);
            config.allocation_strategy(InstanceAllocationStrategy::Pooling(pool(slots)));
            match Self::new(&config, Slots::of(slots as usize)) {
                Ok(linked) => return Some(linked),
                Err(error) => tracing::debug!("no room for a pool of {slots} plugin instances: {error:#}"),
            }
            slots /= 2;
        }
        tracing::info!("plugins run without a pool of instances: there is not enough address space");
        None
    }
}

fn pool(slots: u32) -> PoolingAllocationConfig {
    let mut pool = PoolingAllocationConfig::new();
    pool.total_component_instances(slots)
        .total_stacks(slots)
        .total_core_instances(slots * SLOT_CORE_INSTANCES)
        .total_memories(slots * SLOT_MEMORIES)
        .total_tables(slots * SLOT_TABLES)
        .max_core_instances_per_component(SLOT_CORE_INSTANCES)
        .max_memories_per_component(SLOT_MEMORIES)
        .max_memories_per_module(SLOT_MEMORIES)
        .max_tables_per_component(SLOT_TABLES)
        .max_tables_per_module(SLOT_TABLES)
        .table_elements(TABLE_ELEMENTS)
        .max_core_instance_size(INSTANCE_BYTES)
        .max_component_instance_size(INSTANCE_BYTES)
        .max_memory_size(SLOT_MEMORY)
        .pagemap_scan(Enabled::Auto);
    // Without the scan, all of these bytes would be cleared after each call, touched or not. With swap, it would miss
    // some: https://github.com/bytecodealliance/wasmtime/pull/14357
    if PoolingAllocationConfig::is_pagemap_scan_available() && !may_swap() {
        pool.linear_memory_keep_resident(KEEP_RESIDENT).table_keep_resident(KEEP_RESIDENT);
    }
    pool
}

/// Whether the kernel may move pages to swap: if it has some, or does not say.
fn may_swap() -> bool {
    // Its first line has the titles of its columns.
    std::fs::read_to_string("/proc/swaps").map_or(true, |swaps| swaps.lines().count() > 1)
}

fn engine_error(error: wasmtime::Error) -> LoadError {
    LoadError::Engine(format!("{error:#}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::Future;
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    #[tokio::test]
    async fn a_full_pool_makes_calls_wait_in_turn() {
        let slots = Slots::of(1);
        let held = slots.wait().await;
        let (mut second, mut third) = (pin!(slots.wait()), pin!(slots.wait()));
        let mut context = Context::from_waker(Waker::noop());
        assert!(second.as_mut().poll(&mut context).is_pending());
        assert!(third.as_mut().poll(&mut context).is_pending());
        drop(held);
        assert!(third.as_mut().poll(&mut context).is_pending(), "it came last");
        assert!(slots.try_take().is_none(), "others wait");
        let Poll::Ready(held) = second.as_mut().poll(&mut context) else { panic!("it is its turn") };
        drop(held);
        assert!(third.as_mut().poll(&mut context).is_ready());
    }

    #[tokio::test]
    async fn sessions_leave_slots_for_calls() {
        let slots = Slots::of(4);
        let _sessions = [slots.wait_for_session().await, slots.wait_for_session().await];
        let mut context = Context::from_waker(Waker::noop());
        assert!(pin!(slots.wait_for_session()).as_mut().poll(&mut context).is_pending());
        assert!(pin!(slots.wait()).as_mut().poll(&mut context).is_ready());
    }

    #[test]
    fn one_module_may_have_all_memories_and_tables_of_a_slot() {
        let mut config = engine_config(false);
        config.allocation_strategy(InstanceAllocationStrategy::Pooling(pool(2)));
        let linked = LinkedEngine::new(&config, Slots::of(2)).unwrap();
        let load = |items: &[(&str, u32)]| {
            let items: String = items.iter().map(|(item, count)| item.repeat(*count as usize)).collect();
            let component = format!("(component (core module $m {items}) (core instance (instantiate $m)))");
            let code = linked.engine.precompile_component(&wat::parse_str(component).unwrap()).unwrap();
            Code::alone(code).load(&linked.engine)
        };
        load(&[("(memory 1)", SLOT_MEMORIES), ("(table 1 funcref)", SLOT_TABLES)]).unwrap();
        assert!(load(&[("(memory 1)", SLOT_MEMORIES + 1)]).is_err());
        assert!(load(&[("(table 1 funcref)", SLOT_TABLES + 1)]).is_err());
    }

    #[test]
    fn an_instance_takes_no_more_of_the_pool_than_its_slot() {
        let mut config = engine_config(false);
        config.allocation_strategy(InstanceAllocationStrategy::Pooling(pool(2)));
        let linked = LinkedEngine::new(&config, Slots::of(2)).unwrap();
        // An empty component.
        let code = Code::alone(linked.engine.precompile_component(b"\0asm\x0d\0\x01\0").unwrap());
        let pre = linked.linker.instantiate_pre(&code.load(&linked.engine).unwrap()).unwrap();
        assert!(pre.component().resources_required().is_some());
    }
}
