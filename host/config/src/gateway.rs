//! `[gateway]`: where agents that are programs ask the policy.

use crate::error::ConfigError;
use gavel_gateway::GatewayAddress;
use serde::{Deserialize, Serialize};
use std::net::{Ipv4Addr, SocketAddr};

/// `[gateway]`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct GatewayTable {
    /// The address at which it listens; `127.0.0.1:0` by default. With port 0, each run has a free one.
    #[schemars(with = "String")]
    pub address: SocketAddr,
    /// The address at which programs reach it, where it is another one, such as `http://host:8100`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
}

impl Default for GatewayTable {
    fn default() -> Self {
        Self { address: (Ipv4Addr::LOCALHOST, 0).into(), url: None }
    }
}

impl GatewayTable {
    /// Whether nothing is configured.
    pub(super) fn is_default(&self) -> bool {
        *self == Self::default()
    }

    pub(super) fn validate(&self) -> Result<(), ConfigError> {
        match &self.url {
            Some(url) if !url.starts_with("http://") && !url.starts_with("https://") => {
                Err(ConfigError::value("gateway.url", "a URL, such as \"http://host:8100\"", url))
            }
            _ => Ok(()),
        }
    }

    /// Where it listens.
    pub fn listens(&self) -> GatewayAddress {
        GatewayAddress { address: self.address, url: self.url.clone() }
    }
}
