//! Why an endpoint cannot be used.

use gavel_endpoint::{LimiterError, NoRootCertificates};
use std::io;
use std::path::PathBuf;

/// An endpoint that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ChatEndpointError {
    /// A field is wrong.
    #[error("chat.{name}.{what}")]
    Field {
        /// The endpoint.
        name: String,
        /// The field, and what is wrong.
        what: String,
    },
    /// The variable with the key is not set.
    #[error(
        "chat.{name}.api_key_env: the variable {variable} is not set\nhint: set it in the environment of gavel, or remove api_key_env if the endpoint needs no key"
    )]
    NoKey {
        /// The endpoint.
        name: String,
        /// The variable.
        variable: String,
    },
    /// The key cannot be sent in a header.
    #[error("chat.{name}.api_key_env: the variable {variable} has characters that an HTTP header cannot have")]
    Key {
        /// The endpoint.
        name: String,
        /// The variable.
        variable: String,
    },
    /// Its limiter is not configured.
    #[error(
        "chat.{name}.limit: there is no limiter `{limiter}` (known: {})\nhint: add [limiter.{limiter}], such as requests_per_second = 10",
        if known.is_empty() { "none".to_owned() } else { known.join(", ") }
    )]
    NoLimiter {
        /// The endpoint.
        name: String,
        /// The limiter.
        limiter: String,
        /// The configured limiters.
        known: Vec<String>,
    },
    /// Its limits cannot be kept.
    #[error("chat.{name}.{source}")]
    Limits {
        /// The endpoint.
        name: String,
        /// Why.
        source: LimiterError,
    },
    /// The folder of its cache cannot be used.
    #[error("chat.{name}.cache.folder: cannot make {}: {source}", folder.display())]
    Cache {
        /// The endpoint.
        name: String,
        /// The folder.
        folder: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// There are no certificates to check the server's certificate with.
    #[error("chat.{name}: {source}")]
    Tls {
        /// The endpoint.
        name: String,
        /// Why.
        source: NoRootCertificates,
    },
    /// The HTTP client does not start.
    #[error("chat.{name}: cannot make an HTTP client: {source}")]
    Client {
        /// The endpoint.
        name: String,
        /// Why.
        source: reqwest::Error,
    },
}
