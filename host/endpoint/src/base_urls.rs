//! The addresses of an endpoint's servers.

use serde::{Deserialize, Serialize};
use std::fmt;

/// The addresses of an endpoint's servers: one, or a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(untagged)]
#[serde(expecting = "an address or a list of addresses")]
pub enum BaseUrls {
    /// One server.
    One(String),
    /// Servers that answer the same requests.
    Several(Vec<String>),
}

impl BaseUrls {
    /// The addresses.
    pub fn all(&self) -> &[String] {
        match self {
            Self::One(url) => std::slice::from_ref(url),
            Self::Several(urls) => urls,
        }
    }

    /// Checks the addresses, the value of `key`, without the network.
    ///
    /// # Errors
    /// The key, and what is wrong with its value.
    pub fn check(&self, key: &str) -> Result<(), String> {
        if self.all().is_empty() {
            return Err(format!("{key}: the list is empty"));
        }
        self.all().iter().try_for_each(|url| check(key, url))
    }

    /// The URLs of `path` at each server.
    pub fn of_path(&self, path: &str) -> Vec<String> {
        self.all().iter().map(|url| format!("{}/{path}", url.trim_end_matches('/'))).collect()
    }
}

impl fmt::Display for BaseUrls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.all().join(", "))
    }
}

fn check(key: &str, url: &str) -> Result<(), String> {
    let parsed = reqwest::Url::parse(url).map_err(|error| format!("{key}: {error}"))?;
    // Checked first, since later messages show the URL.
    if !parsed.username().is_empty() || parsed.password().is_some() || parsed.query().is_some() {
        return Err(format!("{key}: a key does not belong here\nhint: name its variable in api_key_env"));
    }
    if !matches!(parsed.scheme(), "http" | "https") {
        return Err(format!("{key}: {url:?} starts neither with https:// nor with http://"));
    }
    Ok(())
}
