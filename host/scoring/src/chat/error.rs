//! Why an endpoint cannot be used.

use gavel_data::disk;
use gavel_endpoint::{LimiterError, NoRootCertificates};
use std::io;
use std::path::PathBuf;

/// An endpoint that cannot be used.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum ChatEndpointError {
    /// A field is wrong.
    #[error("chat.{name}.{what}")]
    Field { name: String, what: String },
    /// The variable with the key is not set.
    #[error(
        "chat.{name}.api_key_env: the variable {variable} is not set\nhint: set it in the environment of gavel, or remove api_key_env if the endpoint needs no key"
    )]
    NoKey { name: String, variable: String },
    /// The key cannot be sent in a header.
    #[error("chat.{name}.api_key_env: the variable {variable} has characters that an HTTP header cannot have")]
    Key { name: String, variable: String },
    /// Its limiter is not configured.
    #[error(
        "chat.{name}.limit: there is no limiter `{limiter}` (known: {})\nhint: add [limiter.{limiter}], such as requests_per_second = 10",
        if known.is_empty() { "none".to_owned() } else { known.join(", ") }
    )]
    NoLimiter { name: String, limiter: String, known: Vec<String> },
    /// Its limits cannot be kept.
    #[error("chat.{name}.{source}")]
    Limits { name: String, source: LimiterError },
    /// The folder of its cache cannot be used.
    #[error("chat.{name}.cache.folder: cannot make {}: {source}{}", folder.display(), disk::hint(source))]
    Cache { name: String, folder: PathBuf, source: io::Error },
    /// There are no certificates to check the server's certificate with.
    #[error("chat.{name}: {source}")]
    Tls { name: String, source: NoRootCertificates },
    /// The HTTP client does not start.
    #[error("chat.{name}: cannot make an HTTP client: {source}")]
    Client { name: String, source: reqwest::Error },
}
