//! A server whose functions the policy may call.

use super::answer;
use super::connection::{Connection, root};
use super::error::McpError;
use super::spec::{McpSource, McpSpec};
use futures::FutureExt;
use futures::future::BoxFuture;
use gavel_data::ToolEnding;
use gavel_limiter::Limiter;
use gavel_plugin::{Environment, OutsideWaits, Sandbox, ToolFunction};
use rmcp::model::{CallToolRequestParams, ErrorCode, JsonObject, PaginatedRequestParams, Tool};
use rmcp::service::ServiceError;
use std::sync::Arc;
use tokio::sync::Mutex;
use tokio::time::timeout;

/// The most functions of a server, all of which are in each prompt.
const MAX_FUNCTIONS: usize = 1000;
/// The most pages of their list. A page may have 16 MB.
const MAX_PAGES: usize = 50;

/// A server whose functions the policy may call. All trajectories share it.
pub struct McpServer {
    spec: McpSpec,
    env: Environment,
    functions: Vec<ToolFunction>,
    /// The limiter whose turns its calls wait for.
    limiter: Option<Limiter>,
    /// Absent after it broke, until the next call.
    connection: Mutex<Option<Arc<Connection>>>,
}

/// A text for the policy, and how the call ended.
pub(crate) struct McpAnswer {
    pub(crate) text: String,
    pub(crate) ending: ToolEnding,
}

impl McpServer {
    /// Connects to a server and asks for its functions. It shares the limiters of the sandbox.
    ///
    /// # Errors
    /// Its limiter does not exist; it does not start, does not answer in time or does not answer as an MCP server does;
    /// or a function cannot be offered.
    pub fn load(spec: McpSpec, sandbox: &Sandbox) -> BoxFuture<'_, Result<Self, McpError>> {
        // Boxed, as `call` is, so that this crate compiles the client, and not each crate that uses it.
        Self::described(spec, sandbox).boxed()
    }

    async fn described(spec: McpSpec, sandbox: &Sandbox) -> Result<Self, McpError> {
        let tool = || spec.name.clone();
        let names: Vec<String> = spec.env.iter().chain(&spec.api_key_env).cloned().collect();
        if let Some(variable) = spec.api_key_env.as_ref().filter(|variable| std::env::var(variable).is_err()) {
            return Err(McpError::NoKey { tool: tool(), variable: variable.clone() });
        }
        let limiter = spec.limit.as_ref().map(|limiter| {
            sandbox.limiter(limiter).map_err(|_| McpError::NoLimiter { tool: tool(), limiter: limiter.clone() })
        });
        let limiter = limiter.transpose()?;
        let env = Environment::read(&names).map_err(|source| McpError::Environment { tool: tool(), source })?;
        let described = async {
            let connection = Connection::open(&spec, &env).await?;
            let functions = listed(&connection).await.map_err(|what| {
                let (server, what) = (spec.source.to_string(), format!("it does not list its functions: {what}"));
                McpError::Connect { tool: tool(), server, what }
            })?;
            Ok((connection, functions))
        };
        let slow = |_| McpError::Slow { tool: tool(), server: spec.source.to_string(), limit: spec.timeout };
        let (connection, described) = timeout(spec.timeout, described).await.map_err(slow)??;
        let functions: Vec<ToolFunction> = described
            .into_iter()
            .map(|function| {
                let schema = serde_json::Value::Object((*function.input_schema).clone()).to_string();
                let description = function.description.unwrap_or_default().into_owned();
                ToolFunction::new(function.name.into_owned(), description, &schema)
                    .map_err(|what| McpError::Function { tool: tool(), what })
            })
            .collect::<Result<_, _>>()?;
        if functions.is_empty() {
            return Err(McpError::Function { tool: tool(), what: format!("{} has no functions", spec.source) });
        }
        Ok(Self { env, functions, limiter, connection: Mutex::new(Some(Arc::new(connection))), spec })
    }

    /// The name in the run.
    pub fn name(&self) -> &str {
        &self.spec.name
    }

    /// Where it is.
    pub fn source(&self) -> &McpSource {
        &self.spec.source
    }

    /// Its functions.
    pub fn functions(&self) -> &[ToolFunction] {
        &self.functions
    }

    /// Calls a function with arguments that fit its schema. A server that has ended is started again.
    pub(crate) fn call<'a>(
        &'a self,
        function: &'a str,
        arguments: &'a str,
        waits: &'a OutsideWaits,
    ) -> BoxFuture<'a, McpAnswer> {
        self.answer(function, arguments, waits).boxed()
    }

    async fn answer(&self, function: &str, arguments: &str, waits: &OutsideWaits) -> McpAnswer {
        let McpSpec { name, timeout: limit, output, limit: limiter, .. } = &self.spec;
        let _turn = match (limiter, &self.limiter) {
            (Some(name), Some(limiter)) => Some(waits.turn(name, limiter).await),
            _ => None,
        };
        let answer = match timeout(*limit, self.ask(function, arguments)).await {
            Ok(answer) => answer,
            Err(_) => McpAnswer {
                text: format!("error: `{name}` did not answer within {} s", limit.as_secs_f64()),
                ending: ToolEnding::OutOfBudget,
            },
        };
        if answer.text.len() > *output {
            let text = format!(
                "error: the answer of `{name}` has {} bytes, more than the {output} allowed",
                answer.text.len()
            );
            return McpAnswer { text, ending: ToolEnding::OutOfBudget };
        }
        McpAnswer { text: self.env.redact(answer.text), ..answer }
    }

    async fn ask(&self, function: &str, arguments: &str) -> McpAnswer {
        let arguments: JsonObject = match serde_json::from_str(arguments) {
            Ok(arguments) => arguments,
            Err(error) => return McpAnswer::error(ToolEnding::CalledWrongly, &error.to_string()),
        };
        let connection = match self.connected().await {
            Ok(connection) => connection,
            Err(error) => {
                // The hint is for people, not for the policy.
                let error = error.to_string();
                let what = error.split("\nhint:").next().unwrap_or_default();
                return McpAnswer::error(ToolEnding::Unavailable, what);
            }
        };
        let request = CallToolRequestParams::new(function.to_owned()).with_arguments(arguments);
        match connection.service.call_tool(request).await {
            Ok(result) => match answer::text(result) {
                (text, false) => McpAnswer { text, ending: ToolEnding::Answered },
                (text, true) => McpAnswer::error(ToolEnding::Failed, &text),
            },
            Err(ServiceError::McpError(error)) => {
                let is_call = [ErrorCode::INVALID_PARAMS, ErrorCode::METHOD_NOT_FOUND].contains(&error.code);
                let ending = if is_call { ToolEnding::CalledWrongly } else { ToolEnding::Failed };
                McpAnswer::error(ending, &error.message)
            }
            Err(error @ (ServiceError::TransportSend(_) | ServiceError::TransportClosed)) => {
                self.disconnect(&connection).await;
                let what = match &error {
                    ServiceError::TransportSend(error) => root(&*error.error),
                    _ => "the connection ended".to_owned(),
                };
                let said = Some(connection.last_words()).filter(|said| !said.is_empty());
                let said = said.map(|said| format!("; it wrote: {}", self.env.redact(said))).unwrap_or_default();
                tracing::warn!("tool `{}`: {}", self.spec.name, gavel_data::Shown(&(what + &said)));
                McpAnswer::error(ToolEnding::Unavailable, &format!("`{}` does not answer", self.spec.name))
            }
            Err(error) => McpAnswer::error(ToolEnding::Failed, &error.to_string()),
        }
    }

    /// The connection, or a new one after it broke.
    async fn connected(&self) -> Result<Arc<Connection>, McpError> {
        let mut connection = self.connection.lock().await;
        if let Some(open) = &*connection {
            return Ok(open.clone());
        }
        let open = Arc::new(Connection::open(&self.spec, &self.env).await?);
        *connection = Some(open.clone());
        Ok(open)
    }

    /// Forgets a connection that broke, unless there is another one already.
    async fn disconnect(&self, broken: &Arc<Connection>) {
        self.connection.lock().await.take_if(|connection| Arc::ptr_eq(connection, broken));
    }
}

/// The functions of a server. A server may send their list in pages, and must end it.
async fn listed(connection: &Connection) -> Result<Vec<Tool>, String> {
    let (mut functions, mut cursor) = (Vec::new(), None);
    for _ in 0..MAX_PAGES {
        let page = connection.service.list_tools(Some(PaginatedRequestParams::default().with_cursor(cursor))).await;
        let page = page.map_err(|error| error.to_string())?;
        functions.extend(page.tools);
        if functions.len() > MAX_FUNCTIONS {
            return Err(format!("it has more than {MAX_FUNCTIONS}"));
        }
        match page.next_cursor {
            Some(next) => cursor = Some(next),
            None => return Ok(functions),
        }
    }
    Err(format!("their list has more than {MAX_PAGES} pages"))
}

impl McpAnswer {
    fn error(ending: ToolEnding, what: &str) -> Self {
        Self { text: format!("error: {what}"), ending }
    }
}
