//! The engines that run components, and their instances.

mod engines;
mod exports;
mod idle_instances;
mod instance;
mod instance_slots;
mod reset;
mod session_rooms;
mod shared;
mod ticking_engines;
mod versions;

pub(crate) use engines::{Engines, PlacedComponent, Slots};
pub(crate) use exports::{Exports, Linked};
pub(crate) use idle_instances::IdleInstances;
pub(crate) use instance::{FreshStore, InstancePermit, ReadyInstance};
pub(crate) use instance_slots::InstanceLimits;
pub use session_rooms::SessionRooms;
pub(crate) use shared::Shared;
pub(crate) use ticking_engines::TickingEngines;
