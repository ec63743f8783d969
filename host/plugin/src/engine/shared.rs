//! The part of a sandbox that all plugins and their calls share.

use crate::budget::{ChildLimits, Lanes, Limits};
use crate::compile::{Cache, Compiler};
use crate::engine::engines::Engines;
use crate::engine::instance_slots::InstanceLimits;
use crate::engine::ticking_engines::TickingEngines;
use crate::outside::Outside;
use crate::tape::Tape;
use std::sync::{Arc, OnceLock};

/// The part of a sandbox that calls share. It owns the programs, so these share
/// only some of its parts.
pub(crate) struct Shared {
    pub(crate) ticking: Arc<TickingEngines>,
    pub(crate) cache: Cache,
    pub(crate) compiler: Compiler,
    pub(crate) lanes: Arc<Lanes>,
    pub(crate) instances: InstanceLimits,
    pub(crate) children: Arc<ChildLimits>,
    pub(crate) tape: OnceLock<Tape>,
    pub(crate) outside: Outside,
}

impl Shared {
    /// The engines for calls with these limits.
    pub(crate) fn engines(&self, limits: &Limits) -> &Engines {
        self.ticking.for_limits(limits)
    }

    /// The tape for the answers from outside.
    pub(crate) fn tape(&self) -> &Tape {
        self.tape.get().unwrap_or(&Tape::Off)
    }
}
