//! Why an MCP server cannot be used.

use gavel_endpoint::NoRootCertificates;
use gavel_plugin::GrantError;
use std::time::Duration;

/// Why an MCP server cannot be used. Every error names the tool.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum McpError {
    /// Its program does not start.
    #[error(
        "tool `{tool}`: cannot start `{program}`: {source}\nhint: name a program of PATH, or its file, in tool.mcp"
    )]
    Start { tool: String, program: String, source: std::io::Error },
    /// A variable of its environment cannot be passed to it.
    #[error("tool `{tool}`: {source}")]
    Environment {
        tool: String,
        /// Which variable, and why.
        source: GrantError,
    },
    /// There is no key for it.
    #[error(
        "tool `{tool}`: api_key_env: the variable {variable} is not set\nhint: set it in the environment of gavel, or remove api_key_env if the server needs no key"
    )]
    NoKey { tool: String, variable: String },
    /// Its limiter is not configured.
    #[error(
        "tool `{tool}`: limit: there is no limiter `{limiter}`\nhint: add [limiter.{limiter}], such as requests_per_second = 10"
    )]
    NoLimiter { tool: String, limiter: String },
    /// There are no root certificates for HTTPS.
    #[error("tool `{tool}`: {source}")]
    Tls { tool: String, source: NoRootCertificates },
    /// The HTTP client cannot be made.
    #[error("tool `{tool}`: cannot make an HTTP client: {source}")]
    Client { tool: String, source: reqwest::Error },
    /// It does not answer as an MCP server does.
    #[error("tool `{tool}`: {server}: {what}\nhint: check that it is an MCP server, and that it works by itself")]
    Connect {
        tool: String,
        /// The program or the address.
        server: String,
        what: String,
    },
    /// It does not answer in time.
    #[error(
        "tool `{tool}`: {server} did not describe its functions within {} s\nhint: check that it works, or give it longer with tool.limits.timeout",
        limit.as_secs_f64()
    )]
    Slow {
        tool: String,
        /// The program or the address.
        server: String,
        /// The time that it had.
        limit: Duration,
    },
    /// A function that cannot be offered.
    #[error("tool `{tool}`: {what}")]
    Function { tool: String, what: String },
}
