//! Why servers do not draw.

/// A failure of the servers that draw.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum ServedError {
    /// There can be no client.
    #[error("rollout.engine: cannot make an HTTP client: {0}")]
    Client(String),
    /// No server took the first weights.
    #[error("rollout.engine: no server can be used: {0}\nhint: start one, or correct rollout.engine.url")]
    Unreachable(String),
    /// No server has answered for too long.
    #[error(
        "rollout.engine: no server has answered for {seconds:.0} s: {last}\nhint: start one, and continue from the last checkpoint with --resume"
    )]
    Down { seconds: f64, last: String },
    /// A server refuses a request, or fails at it each time.
    #[error("rollout.engine: {url}: {what}")]
    Refused { url: String, what: String },
    /// A request asks for what servers do not answer.
    #[error(
        "rollout.engine: servers are bound to no grammar, and were not asked to report which tokens could be drawn"
    )]
    Unsupported,
    /// A server does not draw from the policy's distribution.
    #[error("rollout.engine: {url} after the weights of version {version}: {what}")]
    Weights { url: String, version: u64, what: String },
}
