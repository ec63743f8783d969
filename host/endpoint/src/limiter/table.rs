//! `[limiter.NAME]`: the limits of requests to the outside.

use serde::{Deserialize, Serialize};
use std::num::{NonZeroU64, NonZeroUsize};
use std::path::PathBuf;

/// `[limiter.NAME]`
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct LimiterTable {
    /// The most requests in any second; no limit by default. It may be less than 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requests_per_second: Option<f64>,
    /// The most tokens of prompts and answers together in any minute; no limit by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens_per_minute: Option<NonZeroU64>,
    /// The most requests at the same time; no limit by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub concurrency: Option<NonZeroUsize>,
    /// The folder through which processes of this machine share the limits; by default each process has its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub share: Option<PathBuf>,
}

impl LimiterTable {
    /// Checks the values.
    ///
    /// # Errors
    /// The field that is wrong, and why.
    pub fn check(&self) -> Result<(), String> {
        match self.requests_per_second {
            Some(rate) if !(rate.is_finite() && rate > 0.0) => {
                Err(format!("requests_per_second is {rate}; it must be a number above 0"))
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrong_is_named() {
        let check = |text: &str| match toml::from_str::<LimiterTable>(text) {
            Ok(table) => table.check(),
            Err(error) => Err(error.message().to_owned()),
        };
        assert_eq!(check("requests_per_second = 0.5\ntokens_per_minute = 90_000\nconcurrency = 8"), Ok(()));
        for (text, what) in [
            ("requests_per_second = 0.0", "above 0"),
            ("requests_per_second = inf", "above 0"),
            ("concurrency = 0", "nonzero"),
            ("requests_per_minute = 5", "unknown field `requests_per_minute`"),
        ] {
            let error = check(text).unwrap_err();
            assert!(error.contains(what), "{text}: {error}");
        }
    }
}
