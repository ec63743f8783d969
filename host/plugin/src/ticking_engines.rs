//! The engines of a sandbox, and the thread that interrupts what runs in them.

use crate::engine::Engines;
use crate::limits::Limits;
use std::io;
use std::sync::Arc;
use std::time::Duration;

/// How long a guest runs before it lets others run and its time is looked at.
/// Shorter ticks are fairer; below this they cost more than they give.
const TICK: Duration = Duration::from_micros(500);

/// Engines whose guests are interrupted at each tick, for as long as anybody
/// holds the engines.
pub(crate) struct TickingEngines {
    plain: Engines,
    /// Fuel is a setting of the compiler, so that it needs engines of its own.
    fuelled: Engines,
}

impl TickingEngines {
    /// Starts the thread that interrupts guests.
    pub(crate) fn start() -> io::Result<Arc<Self>> {
        let engines = Arc::new(Self { plain: Engines::new(false), fuelled: Engines::new(true) });
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
