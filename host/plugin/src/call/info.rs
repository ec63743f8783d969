//! The properties that a plugin declares.

use crate::bindings::exports::gavel::plugin::lifecycle;
use crate::error::LoadError;
use serde::{Deserialize, Serialize};

/// The properties that a plugin declares.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Info {
    /// Its own name, not the one in the run.
    pub name: String,
    /// Its version.
    pub version: String,
    /// Whether the same input always gives the same verdict.
    pub pure: bool,
    /// The scores that it gives, from lowest to highest.
    pub score_range: Option<(f64, f64)>,
}

impl Info {
    /// Whether it was built for `gavel plugin test --quick`. It reads its sources when it starts, so a run would not
    /// record them.
    pub fn is_quick(&self) -> bool {
        self.name.ends_with(" (quick)")
    }

    /// Refuses a range of scores whose ends are not finite or not in order.
    pub(crate) fn check(&self, plugin: &str) -> Result<(), LoadError> {
        match self.score_range {
            Some((min, max)) if !(min.is_finite() && max.is_finite() && min <= max) => {
                Err(LoadError::ScoreRange { plugin: plugin.to_owned(), min, max })
            }
            _ => Ok(()),
        }
    }
}

impl From<lifecycle::Info> for Info {
    fn from(info: lifecycle::Info) -> Self {
        let score_range = info.score_range.map(|range| (range.min, range.max));
        Self { name: info.name, version: info.version, pure: info.pure, score_range }
    }
}
