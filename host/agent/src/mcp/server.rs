//! A server whose functions the policy may call.

use super::answer;
use super::connection::{Connection, root};
use super::error::McpError;
use super::link::Link;
use super::spec::{McpSource, McpSpec};
use crate::tool_failure::CallResult;
use futures::FutureExt;
use futures::future::BoxFuture;
use gavel_data::{Budget, ToolEnding};
use gavel_endpoint::{Limiter, excerpt, names_a_key};
use gavel_plugin::{Environment, OutsideWaits, Sandbox, ToolFunction};
use rmcp::model::{CallToolRequestParams, ErrorCode, JsonObject, PaginatedRequestParams, Tool};
use rmcp::service::ServiceError;
use std::collections::BTreeSet;
use std::time::Duration;
use tokio::sync::RwLock;
use tokio::time::timeout;

/// The most functions of a server, all of which are in each prompt.
const MAX_FUNCTIONS: usize = 1000;
/// The most pages of their list. A page may have 16 MB.
const MAX_PAGES: usize = 50;
/// The most bytes of their names, descriptions and schemas in all.
const MAX_LIST_BYTES: usize = 16 << 20;
/// The pause before a call is asked again for the second time; it doubles with each further time.
const FIRST_PAUSE: Duration = Duration::from_millis(500);
/// After so many, the pauses grow no longer.
const MOST_DOUBLINGS: u32 = 6;

/// A server whose functions the policy may call. All trajectories share it.
pub struct McpServer {
    spec: McpSpec,
    env: Environment,
    functions: Vec<ToolFunction>,
    /// The limiter whose turns its calls wait for.
    limiter: Option<Limiter>,
    /// The functions that may be called twice where one call was meant, by their annotations.
    repeatable: BTreeSet<String>,
    link: Link,
    /// Held by the calls under way, and by one alone that has ended the server twice.
    turns: RwLock<()>,
}

/// A request that has no answer, since the connection ended.
struct Lost {
    what: String,
    /// Whether the server may have read it.
    is_sent: bool,
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
        let read = |names: &[String]| {
            Environment::read(names).map_err(|source| McpError::Environment { tool: tool(), source })
        };
        let env = read(&names)?;
        // Calls are checked with a schema as it is shown. A variable that is no key may be one of its values.
        let is_key = |name: &&String| spec.api_key_env.as_ref() == Some(*name) || names_a_key(name);
        let keys = read(&names.iter().filter(is_key).cloned().collect::<Vec<_>>())?;
        let described = async {
            let connection = Connection::open(&spec, &env).await?;
            let functions = listed(&connection).await.map_err(|what| {
                let what = format!("it does not list its functions: {}", excerpt(env.redact(what).as_bytes()));
                let server = spec.source.to_string();
                McpError::Connect { tool: tool(), server, what }
            })?;
            Ok((connection, functions))
        };
        let slow = |_| McpError::Slow { tool: tool(), server: spec.source.to_string(), limit: spec.timeout };
        let (connection, described) = timeout(spec.timeout, described).await.map_err(slow)??;
        let repeatable = described.iter().filter(|function| function.may_be_repeated);
        let repeatable = repeatable.map(|function| function.name.clone()).collect();
        let described = described
            .into_iter()
            .map(|Listed { name, description, schema, .. }| (name, env.redact(description), keys.redact(schema)));
        let functions = ToolFunction::all(described).map_err(|what| McpError::Function { tool: tool(), what })?;
        if functions.is_empty() {
            return Err(McpError::Function { tool: tool(), what: format!("{} has no functions", spec.source) });
        }
        let (link, turns) = (Link::new(connection), RwLock::new(()));
        Ok(Self { env, functions, limiter, repeatable, link, turns, spec })
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

    /// Calls a function with arguments that fit its schema. A server that has ended is started again. A call that it could
    /// not take is asked again, and so is a call under way at its end, if its function may be repeated.
    pub(crate) fn call<'a>(
        &'a self,
        function: &'a str,
        arguments: &'a str,
        waits: &'a OutsideWaits,
    ) -> BoxFuture<'a, CallResult> {
        self.answer(function, arguments, waits).boxed()
    }

    async fn answer(&self, function: &str, arguments: &str, waits: &OutsideWaits) -> CallResult {
        let McpSpec { name, output, .. } = &self.spec;
        let result = self.ask(function, arguments, waits).await;
        if result.text.len() > *output {
            let what =
                format!("the answer of `{name}` has {} bytes, more than the {output} allowed", result.text.len());
            return out_of_budget(Budget::Output, &what);
        }
        CallResult { text: self.env.redact(result.text), ..result }
    }

    async fn ask(&self, function: &str, arguments: &str, waits: &OutsideWaits) -> CallResult {
        let McpSpec { name, timeout: limit, retries, limit: limiter, .. } = &self.spec;
        let arguments: JsonObject = match serde_json::from_str(arguments) {
            Ok(arguments) => arguments,
            Err(error) => return CallResult::error(ToolEnding::CalledWrongly, &error.to_string()),
        };
        let mut again = 0;
        loop {
            let turn = match (limiter, &self.limiter) {
                (Some(name), Some(limiter)) => Some(waits.turn(name, limiter).await),
                _ => None,
            };
            // A call that ends the server each time must not end the others with it.
            let alone = if again > 1 { Some(self.turns.write().await) } else { None };
            let beside = if again > 1 { None } else { Some(self.turns.read().await) };
            // The time of a restart does not count as time of the call.
            let lost = match self.link.connected(&self.spec, &self.env).await {
                Err(what) => Lost { what, is_sent: false },
                Ok(connection) => match timeout(*limit, self.request(&connection, function, &arguments)).await {
                    Err(_) => {
                        let what = format!("`{name}` did not answer within {} s", limit.as_secs_f64());
                        return out_of_budget(Budget::Deadline, &what);
                    }
                    Ok(Ok(result)) => return result,
                    Ok(Err(lost)) => {
                        self.link.forget(&connection).await;
                        self.report(&connection, &lost.what).await;
                        lost
                    }
                },
            };
            if again == *retries || (lost.is_sent && !self.repeatable.contains(function)) {
                let what = if lost.is_sent { format!("`{name}` does not answer") } else { lost.what };
                return CallResult::error(ToolEnding::Unavailable, &what);
            }
            drop((turn, alone, beside));
            if again > 0 {
                tokio::time::sleep(FIRST_PAUSE * (1 << (again - 1).min(MOST_DOUBLINGS))).await;
            }
            again += 1;
        }
    }

    /// Asks once.
    async fn request(
        &self,
        connection: &Connection,
        function: &str,
        arguments: &JsonObject,
    ) -> Result<CallResult, Lost> {
        let request = CallToolRequestParams::new(function.to_owned()).with_arguments(arguments.clone());
        let answer = match connection.or_damaged(connection.service.call_tool(request)).await {
            Ok(answer) => answer,
            Err(what) => return Ok(CallResult::error(ToolEnding::Failed, &format!("`{}`: {what}", self.spec.name))),
        };
        match answer {
            Ok(result) => Ok(match answer::text(result) {
                (text, false) => CallResult { text, ending: ToolEnding::Answered, budget: None },
                (text, true) => CallResult::error(ToolEnding::Failed, &text),
            }),
            Err(ServiceError::McpError(error)) => {
                let is_call = [ErrorCode::INVALID_PARAMS, ErrorCode::METHOD_NOT_FOUND].contains(&error.code);
                let ending = if is_call { ToolEnding::CalledWrongly } else { ToolEnding::Failed };
                Ok(CallResult::error(ending, &error.message))
            }
            Err(ServiceError::TransportSend(error)) => {
                Err(Lost { what: root(&*error.error), is_sent: !connection.is_unsent(&*error.error) })
            }
            Err(ServiceError::TransportClosed | ServiceError::Cancelled { .. }) => {
                Err(Lost { what: "the connection ended".to_owned(), is_sent: true })
            }
            Err(error) => Ok(CallResult::error(ToolEnding::Failed, &error.to_string())),
        }
    }

    /// Reports a connection that ended during a call.
    async fn report(&self, connection: &Connection, what: &str) {
        let said = Some(connection.last_words().await).filter(|said| !said.is_empty());
        let said = said.map(|said| format!("; it wrote: {said}")).unwrap_or_default();
        let what = self.env.redact(format!("{what}{said}"));
        tracing::warn!("tool `{}`: {}", self.spec.name, gavel_data::Shown(&what));
    }
}

fn out_of_budget(budget: Budget, what: &str) -> CallResult {
    CallResult { budget: Some(budget), ..CallResult::error(ToolEnding::OutOfBudget, what) }
}

/// What is kept of a function that a server lists.
struct Listed {
    name: String,
    description: String,
    schema: String,
    /// Whether a second call with the same arguments has no effect of its own.
    may_be_repeated: bool,
}

impl Listed {
    fn of(function: Tool) -> Self {
        let hints = function.annotations.as_ref();
        let may_be_repeated =
            hints.is_some_and(|it| it.read_only_hint == Some(true) || it.idempotent_hint == Some(true));
        let schema = serde_json::Value::Object((*function.input_schema).clone()).to_string();
        let description = function.description.unwrap_or_default().into_owned();
        Self { name: function.name.into_owned(), description, schema, may_be_repeated }
    }

    fn bytes(&self) -> usize {
        self.name.len() + self.description.len() + self.schema.len()
    }
}

/// The functions of a server. A server may send their list in pages, and must end it.
async fn listed(connection: &Connection) -> Result<Vec<Listed>, String> {
    let (mut functions, mut bytes, mut cursor) = (Vec::new(), 0, None);
    for _ in 0..MAX_PAGES {
        let page = connection.service.list_tools(Some(PaginatedRequestParams::default().with_cursor(cursor)));
        let page = connection.or_damaged(page).await?.map_err(|error| error.to_string())?;
        if functions.len() + page.tools.len() > MAX_FUNCTIONS {
            return Err(format!("it has more than {MAX_FUNCTIONS}"));
        }
        let page_functions = page.tools.into_iter().map(Listed::of);
        functions.extend(page_functions.inspect(|function| bytes += function.bytes()));
        if bytes > MAX_LIST_BYTES {
            return Err(format!("their names, descriptions and schemas have more than {MAX_LIST_BYTES} bytes"));
        }
        // Some servers end the list with an empty cursor, though MCP asks them to leave it out.
        match page.next_cursor.filter(|next| !next.is_empty()) {
            Some(next) => cursor = Some(next),
            None => return Ok(functions),
        }
    }
    Err(format!("their list has more than {MAX_PAGES} pages"))
}
