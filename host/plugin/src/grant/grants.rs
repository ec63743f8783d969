//! The grants of a plugin, as in a configuration.

use super::chat::AskedModel;
use super::error::GrantError;
use super::folder::ReadRule;
use super::http::HttpServers;
use super::{chat, environment, http};
use serde::{Deserialize, Serialize};

/// The grants of one plugin, as in its `[[reward]]` table. The default grants
/// nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Grants {
    /// Folders that it may read, each as `FOLDER:/GUEST-PATH`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub read: Vec<String>,
    /// Servers that it may ask, each as `[SCHEME://]HOST[:PORT]`. The defaults are
    /// `https` and the scheme's own port.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub http: Vec<String>,
    /// The name of the limiter whose turns its requests to servers wait for; none by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<String>,
    /// Servers that share the requests to the first of them; by default each server answers its own requests.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub servers: Option<HttpServers>,
    /// Names of the language models that it may ask.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub chat: Vec<String>,
    /// Names of the reward models that it may ask.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub reward_model: Vec<String>,
    /// Names of the programs that it may run.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub exec: Vec<String>,
    /// Names of environment variables that it sees.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub env: Vec<String>,
    /// The time that it sees.
    pub clock: ClockGrant,
    /// The random numbers that it sees.
    pub random: RandomGrant,
}

/// The time that a plugin sees.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ClockGrant {
    /// It starts at 2024-01-01T00:00:00Z in each call, and a sleep moves it at
    /// once.
    #[default]
    Virtual,
    /// The machine's time.
    Real,
}

/// The random numbers that a plugin sees.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum RandomGrant {
    /// They follow from the run's seed and the sample.
    #[default]
    Seeded,
    /// The system's.
    Os,
}

impl Grants {
    /// Whether it may ask models.
    pub fn asks_models(&self) -> bool {
        !self.chat.is_empty() || !self.reward_model.is_empty()
    }

    /// Whether two calls with the same input may differ because of the grants: servers, models, the time, the system's
    /// random numbers. Folders, variables and programs are the same for all calls.
    pub fn reach_what_changes(&self) -> bool {
        // The other conversations of a batch may change the last bits of a reward model's score.
        self.asks_models() || self.reach_beyond_models()
    }

    /// Whether two calls with the same input may differ even where all models answer as before.
    pub fn reach_beyond_models(&self) -> bool {
        // No `..` pattern: every new grant must be considered here.
        let Self { read: _, http, limit: _, servers: _, chat: _, reward_model: _, exec: _, env: _, clock, random } =
            self;
        !http.is_empty() || *clock == ClockGrant::Real || *random == RandomGrant::Os
    }

    /// Checks the form of the grants, without opening anything that they name.
    pub fn check(&self) -> Result<(), GrantError> {
        ReadRule::parse_all(&self.read)?;
        http::parse_all(&self.http)?;
        if let (Some(name), true) = (&self.limit, self.http.is_empty()) {
            return Err(GrantError::LimitOfNothing { name: name.clone() });
        }
        self.servers.iter().try_for_each(http::check_servers)?;
        chat::check_names(AskedModel::Chat, &self.chat)?;
        chat::check_names(AskedModel::RewardModel, &self.reward_model)?;
        environment::check_names(&self.env)
    }
}
