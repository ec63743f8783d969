//! `on_endpoint_down`: what happens while no server answers.

use serde::{Deserialize, Serialize};

/// What happens while none of an endpoint's servers answers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum OnEndpointDown {
    /// Requests wait until a server answers again; so does the run.
    Pause,
    /// Requests are unavailable at once, and their samples have no score.
    #[default]
    Drop,
    /// Like `Drop`, and a run of `gavel train` stops.
    Stop,
}

impl OnEndpointDown {
    /// Whether it is the default.
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }
}
