//! A server, as a configuration names it.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::time::Duration;

/// An MCP server, as a configuration names it.
#[derive(Debug, Clone, PartialEq)]
pub struct McpSpec {
    /// Its name in the run.
    pub name: String,
    /// Where it is.
    pub source: McpSource,
    /// The environment variable with the key for requests over HTTP.
    pub api_key_env: Option<String>,
    /// The variables that its program sees.
    pub env: Vec<String>,
    /// The longest time of a call.
    pub timeout: Duration,
    /// The most bytes of an answer.
    pub output: usize,
    /// The limiter whose turns its calls wait for.
    pub limit: Option<String>,
    /// How often a call that it could not take is asked again.
    pub retries: u32,
}

/// Where a server is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(untagged)]
pub enum McpSource {
    /// At this address, over streamable HTTP.
    Url(String),
    /// A program with its arguments, which speaks over stdin and stdout.
    Program(Vec<String>),
}

impl fmt::Display for McpSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Url(url) => f.write_str(url),
            Self::Program(command) => write!(f, "`{}`", command.join(" ")),
        }
    }
}
