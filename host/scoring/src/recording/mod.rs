//! Recorded scoring, from which each verdict can be reproduced: the samples of a
//! run's folder ([`gavel_runs`]), and the plugins that scored them.

mod actor;
mod damage;
mod error;
mod grouping;
mod kept;
mod plugin_set;
mod reader;
mod record;
mod trust;

pub use actor::{ActorRecord, ActorRole};
pub use damage::Damage;
pub use error::RecordingError;
pub use grouping::{Grouping, OfSample, Substitute};
pub use kept::KeptComponents;
pub use plugin_set::{PluginSet, keep_plugin_set};
pub use reader::Recording;
pub use record::PluginRecord;

pub(crate) use error::Result;
