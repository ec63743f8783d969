//! The engines of a sandbox, and the thread that interrupts their guests.

use crate::budget::{AddressSpace, Limits};
use crate::engine::engines::{Engines, Slots};
use std::io;
use std::sync::Arc;
use std::time::Duration;

/// The time that a guest runs before it lets others run and its time is checked.
/// Shorter ticks are fairer, but below this they cost more than they gain.
const TICK: Duration = Duration::from_micros(500);

/// Engines whose guests are interrupted at each tick, for as long as anybody
/// holds the engines.
pub(crate) struct TickingEngines {
    plain: Engines,
    /// The engines that meter fuel, which is a setting of the compiler.
    fuelled: Engines,
}

impl TickingEngines {
    /// Starts the thread that interrupts guests. A limited address space limits the instances of all engines together.
    pub(crate) fn start(space: Option<AddressSpace>) -> io::Result<Arc<Self>> {
        let slots = space.map(|space| Slots::of(space.instances));
        let engines = Arc::new(Self { plain: Engines::new(false, slots.clone()), fuelled: Engines::new(true, slots) });
        let ticked = Arc::downgrade(&engines);
        std::thread::Builder::new().name("gavel-epoch".into()).spawn(move || {
            while let Some(engines) = ticked.upgrade() {
                engines.plain.tick();
                engines.fuelled.tick();
                drop(engines);
                std::thread::sleep(TICK);
            }
        })?;
        Ok(engines)
    }

    /// The engines for calls with these limits.
    pub(crate) fn for_limits(&self, limits: &Limits) -> &Engines {
        if limits.fuel.is_some() { &self.fuelled } else { &self.plain }
    }
}
