//! `[ranks]`: how several processes share the work of a run.

use crate::checks::at_least_one;
use crate::error::ConfigError;
use gavel_train::Parameters;
use serde::{Deserialize, Serialize};

/// Which rank draws and scores a group.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Share {
    /// Groups are dealt out in turn, so that the same ranks give the same run.
    #[default]
    Static,
    /// A rank takes the next group when it has room.
    Load,
}

/// `[ranks]`
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct RanksTable {
    /// Which rank draws and scores a group; `static` by default.
    pub share: Share,
    /// With `share = "load"`, the most groups that a rank draws at once. By default an even share of all that may be under
    /// way, but no more than `rollout.max_batch` holds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub groups_at_once: Option<usize>,
    /// Which weights a rank has during an update; all of them by default.
    pub parameters: Parameters,
}

impl RanksTable {
    pub(crate) fn is_default(&self) -> bool {
        *self == Self::default()
    }

    /// Whether a key is set that is about drawing.
    pub(super) fn is_about_groups(&self) -> bool {
        *self != Self { parameters: self.parameters, ..Self::default() }
    }

    pub(super) fn validate(&self) -> Result<(), ConfigError> {
        let Some(most) = self.groups_at_once else { return Ok(()) };
        if self.share == Share::Static {
            return Err(ConfigError::invalid(
                "ranks.groups_at_once",
                "ranks.groups_at_once needs ranks.share = \"load\": with static shares, each rank starts its groups at once",
            ));
        }
        at_least_one("ranks.groups_at_once", most)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_for_shares_by_load() {
        let error =
            |text: &str| toml::from_str::<RanksTable>(text).unwrap().validate().map_err(|error| error.to_string());
        assert_eq!(error(""), Ok(()));
        assert_eq!(error("share = 'load'\ngroups_at_once = 2"), Ok(()));
        assert!(error("groups_at_once = 2").unwrap_err().contains("needs ranks.share = \"load\""));
        assert!(error("share = 'load'\ngroups_at_once = 0").unwrap_err().contains("ranks.groups_at_once"));
    }
}
