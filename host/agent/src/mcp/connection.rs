//! A connection to a server.

use super::error::McpError;
use super::spec::{McpSource, McpSpec};
use super::stdio::Process;
use gavel_endpoint::{excerpt, tls_client_config};
use gavel_plugin::Environment;
use reqwest::redirect::Policy;
use rmcp::model::{ClientCapabilities, ClientConfig, Implementation, ProtocolVersion};
use rmcp::service::{ClientInitializeError, ClientLifecycleMode, ClientServiceExt, RoleClient, RunningService};
use rmcp::transport::streamable_http_client::{
    StreamableHttpClientTransport, StreamableHttpClientTransportConfig, StreamableHttpError,
};
use std::error::Error;
use std::io;

/// The reason where a server has ended, which is found while reading or while writing.
const ENDED: &str = "the server ended the connection";

/// How many calls a server over HTTP gets at once; the others wait.
const MAX_REQUESTS: usize = 256;

/// A connection to a server; it ends when this is dropped.
pub(super) struct Connection {
    pub(super) service: RunningService<RoleClient, ClientConfig>,
    process: Option<Process>,
}

impl Connection {
    /// Connects with the revision of the protocol that the server speaks.
    pub(super) async fn open(spec: &McpSpec, env: &Environment) -> Result<Self, McpError> {
        match Self::try_open(spec, env, either()).await? {
            Ok(connection) => Ok(connection),
            Err(lifecycle) => match Self::try_open(spec, env, lifecycle).await? {
                Ok(connection) => Ok(connection),
                Err(_) => {
                    let what = "it answers what it was not asked".to_owned();
                    Err(McpError::Connect { tool: spec.name.clone(), server: spec.source.to_string(), what })
                }
            },
        }
    }

    /// Connects by `lifecycle`. If the server speaks another revision, gives the lifecycle to try instead.
    async fn try_open(
        spec: &McpSpec,
        env: &Environment,
        lifecycle: ClientLifecycleMode,
    ) -> Result<Result<Self, ClientLifecycleMode>, McpError> {
        let tool = || spec.name.clone();
        let failed = |error: ClientInitializeError, said: String| {
            let said = if said.is_empty() { said } else { format!("; it wrote: {said}") };
            McpError::Connect {
                tool: tool(),
                server: spec.source.to_string(),
                // A secret is found before the text is cut.
                what: excerpt(env.redact(reason(&error)).as_bytes()) + &env.redact(said),
            }
        };
        match &spec.source {
            McpSource::Program(command) => {
                let (process, stdout, stdin) = Process::start(command, env.values()).map_err(|source| {
                    McpError::Start { tool: tool(), program: command.first().cloned().unwrap_or_default(), source }
                })?;
                let mut damaged = process.damaged();
                let serving = client().serve_with_lifecycle((stdout, stdin), lifecycle);
                let served = tokio::select! {
                    biased;
                    what = damaged.next() => {
                        let (server, what) = (spec.source.to_string(), env.redact(what));
                        return Err(McpError::Connect { tool: tool(), server, what });
                    }
                    served = serving => served,
                };
                match served {
                    Ok(service) => Ok(Ok(Self { service, process: Some(process) })),
                    Err(error) => match revision(&error) {
                        Some(lifecycle) => Ok(Err(lifecycle)),
                        None => Err(failed(error, process.last_words().await)),
                    },
                }
            }
            McpSource::Url(url) => {
                let tls = tls_client_config().map_err(|source| McpError::Tls { tool: tool(), source })?;
                let http = reqwest::Client::builder()
                    // A redirect would carry the key elsewhere.
                    .redirect(Policy::none())
                    .tls_backend_preconfigured(tls)
                    .build()
                    .map_err(|source| McpError::Client { tool: tool(), source })?;
                let mut config =
                    StreamableHttpClientTransportConfig::with_uri(url.as_str()).max_concurrent_requests(MAX_REQUESTS);
                if let Some(variable) = &spec.api_key_env {
                    let key = std::env::var(variable)
                        .map_err(|_| McpError::NoKey { tool: tool(), variable: variable.clone() })?;
                    config = config.auth_header(key.trim());
                }
                let transport = StreamableHttpClientTransport::with_client(http, config);
                match client().serve_with_lifecycle(transport, lifecycle).await {
                    Ok(service) => Ok(Ok(Self { service, process: None })),
                    Err(error) => revision(&error).map(Err).ok_or_else(|| failed(error, String::new())),
                }
            }
        }
    }

    /// Whether it has ended.
    pub(super) fn is_closed(&self) -> bool {
        self.service.is_closed() || self.service.is_transport_closed()
    }

    /// The answer that `asking` waits for.
    ///
    /// # Errors
    /// The server sent a damaged message meanwhile, which may have been this answer.
    pub(super) async fn or_damaged<T>(&self, asking: impl Future<Output = T>) -> Result<T, String> {
        let Some(process) = &self.process else { return Ok(asking.await) };
        let mut damaged = process.damaged();
        tokio::select! {
            biased;
            answer = asking => Ok(answer),
            what = damaged.next() => Err(what),
        }
    }

    /// Whether the server cannot have read a request that failed to be sent: a process reads whole lines, and a server
    /// over HTTP reads nothing before there is a connection.
    pub(super) fn is_unsent(&self, error: &(dyn Error + 'static)) -> bool {
        self.process.is_some() || is_connect(error)
    }

    /// The end of what the server's process wrote to stderr.
    pub(super) async fn last_words(&self) -> String {
        match &self.process {
            Some(process) => process.last_words().await,
            None => String::new(),
        }
    }
}

/// Why there is no connection, in words: the library's own texts name its types.
fn reason(error: &ClientInitializeError) -> String {
    match error {
        ClientInitializeError::LegacyFallbackFailed { fallback, .. } => reason(fallback),
        ClientInitializeError::ConnectionClosed(_) => ENDED.to_owned(),
        ClientInitializeError::JsonRpcError(error) => format!("the server answers: {}", error.message),
        ClientInitializeError::TransportError { error, .. } => transport_reason(&*error.error),
        other => other.to_string(),
    }
}

/// Why nothing can be sent, in words.
fn transport_reason(error: &(dyn Error + 'static)) -> String {
    match error.downcast_ref() {
        Some(StreamableHttpError::<reqwest::Error>::Client(error)) => root(error),
        Some(error) => root(error),
        None if is_broken_pipe(error) => ENDED.to_owned(),
        None => root(error),
    }
}

/// Whether the error, or one that it follows from, is that a program has ended or no longer reads.
fn is_broken_pipe(error: &(dyn Error + 'static)) -> bool {
    let own = error.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe);
    own || error.source().is_some_and(is_broken_pipe)
}

/// Whether the error, or one that it follows from, is that there is no connection.
fn is_connect(error: &(dyn Error + 'static)) -> bool {
    let own = error.downcast_ref::<reqwest::Error>().is_some_and(reqwest::Error::is_connect);
    own || error.source().is_some_and(is_connect)
}

/// The last error of the chain, which says what happened.
pub(super) fn root(error: &(dyn Error + 'static)) -> String {
    error.source().map_or_else(|| error.to_string(), root)
}

fn client() -> ClientConfig {
    ClientConfig::new(ClientCapabilities::default(), Implementation::new("gavel", env!("CARGO_PKG_VERSION")))
}

/// The revision of 2026-07-28, which has no `initialize`, or an earlier one if the server knows only those.
fn either() -> ClientLifecycleMode {
    ClientLifecycleMode::Auto { preferred_versions: vec![ProtocolVersion::V_2026_07_28], legacy_version: None }
}

/// The revision of a server that answered the first request only after the second. The library assumes an old revision
/// if a server is silent for 10 s, although the server may still be starting.
fn revision(error: &ClientInitializeError) -> Option<ClientLifecycleMode> {
    match error {
        ClientInitializeError::ConflictInitResponseId(..) => {
            Some(ClientLifecycleMode::Discover { preferred_versions: vec![ProtocolVersion::V_2026_07_28] })
        }
        ClientInitializeError::UncorrelatedErrorResponse { .. } => Some(ClientLifecycleMode::Initialize),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_ended_is_named_alike_while_reading_and_writing() {
        let while_writing = |kind: io::ErrorKind| transport_reason(&io::Error::from(kind));
        assert_eq!(while_writing(io::ErrorKind::BrokenPipe), ENDED);
        assert_eq!(while_writing(io::ErrorKind::NotFound), "entity not found");
    }
}
