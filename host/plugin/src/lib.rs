//! A component and its sandbox: load, inspect, limit, meter and call.
//!
//! A [`Sandbox`] is the engine that all plugins of a process share. A
//! [`Plugin`] is a component loaded into it with its parameters and limits; a
//! call of [`Plugin::score`] runs in a fresh instance that nothing is granted
//! to, and always comes back as an [`gavel_data::Evaluation`].

mod bindings;
mod clock;
mod contract;
mod error;
mod inspect;
mod limits;
mod plugin;
mod resources;
mod sandbox;
mod state;
mod stdio;

pub use contract::CONTRACT;
pub use error::LoadError;
pub use inspect::{Inspection, inspect};
pub use limits::Limits;
pub use plugin::{Info, Plugin, PluginSpec};
pub use sandbox::Sandbox;
