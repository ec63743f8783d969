//! `[agent]` and `[[tool]]`: how a sample is made, and what the policy may call.

use crate::checks::{at_least_one, check_word};
use crate::error::ConfigError;
use gavel_agent::{EpisodeLimits, History, LeftOut, McpSource, McpSpec, OnToolFailure, ToolLimits, ToolSource};
use gavel_gateway::{ProgramSource, ProgramSpec};
use gavel_plugin::{Grants, LimitsTable, PluginSpec};
use serde::{Deserialize, Serialize};
use std::num::{NonZeroU32, NonZeroUsize};
use std::path::PathBuf;
use std::time::Duration;

/// How often a call that an MCP server could not take is asked again.
const RETRIES: u32 = 5;

/// The most samples that an agent that is a program attempts at once.
const CONCURRENCY: NonZeroUsize = NonZeroUsize::MIN.saturating_add(63);

/// `[agent]`, or one of several `[[agent]]`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct AgentTable {
    /// Its name among several agents, in metrics and in the column `agent_name` of rows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Of several agents, this one attempts the rows with these data sources, unless they name another.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub data_sources: Vec<String>,
    /// Of several agents, this one may call these tools; all by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tools: Option<Vec<String>>,
    /// `single` for one turn of the policy, the default; `tools` for turns until one calls no tool.
    pub kind: AgentKind,
    /// An agent of one's own, in place of `kind`: a component that exports `agent`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<PathBuf>,
    /// An agent that is a program with its arguments, in place of `kind`: a process for each sample, which asks the policy
    /// over HTTP.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub command: Vec<String>,
    /// An agent that is a server, in place of `kind`: it is posted each task, and asks the policy over HTTP.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// The most samples that a program or a server attempts at once; 64 by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = 64))]
    pub concurrency: Option<NonZeroUsize>,
    /// The parameters of the agent's initialisation, or those that a program gets with each task.
    #[serde(skip_serializing_if = "serde_json::Map::is_empty")]
    pub params: serde_json::Map<String, serde_json::Value>,
    /// What an agent may use in a sample, where it differs from `[limits]`. `timeout` is `agent.timeout`.
    pub limits: LimitsTable,
    /// What the agent may reach beyond its task, the policy and the tools; nothing by default.
    pub grant: Grants,
    /// The most turns of the policy in a sample, in all of its conversations; 8 by default.
    pub max_turns: usize,
    /// The most calls that one turn may make; 8 by default. Further calls are answered with an error.
    pub max_parallel_calls: usize,
    /// What the policy reads of its earlier turns: `exact` (the default), its own tokens, or `split`, what the chat
    /// template makes of them; each turn is then a trajectory of its own.
    pub history: History,
    /// Which trajectories of a sample its reward reaches: `all` (the default), the `last` alone, or `by-agent`. By
    /// agent, the trajectories of a speaker are compared with each other. Their reward is the metric `reward/SPEAKER`
    /// where a plugin gives it.
    pub reward_to: RewardTo,
    /// What counts once when losses are averaged: a `sample` (the default), with all its trajectories, or a `trajectory`.
    pub weigh_by: WeighBy,
    /// The time that a sample has; 5 minutes by default. The wait for memory of its tools does not count.
    #[serde(with = "humantime_serde")]
    #[schemars(with = "gavel_data::DurationForm")]
    pub timeout: Duration,
    /// The most tokens of a tool's answer; 1024 by default.
    pub max_tool_tokens: usize,
    /// The part of a longer answer that is left out: `start`, `middle` (the default) or `end`.
    pub truncate_tool_output: LeftOut,
    /// What becomes of a sample whose tool fails, by the ending of the call: with `answer`, the policy reads the error;
    /// with `end`, the sample ends with the outcome of the call. By default, `failed` is answered, and `unavailable` and
    /// `out-of-budget` end the sample.
    pub on_tool_failure: OnToolFailure,
}

/// How a sample is made.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum AgentKind {
    /// One turn of the policy.
    #[default]
    Single,
    /// Turns of the policy with the answers of tools between them.
    Tools,
}

/// Which trajectories of a sample its reward reaches.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RewardTo {
    /// All of them.
    #[default]
    All,
    /// The last one.
    Last,
    /// The trajectories of each speaker by themselves.
    ByAgent,
}

/// What counts once when losses are averaged.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum WeighBy {
    /// A sample, with all its trajectories.
    #[default]
    Sample,
    /// A trajectory.
    Trajectory,
}

impl Default for AgentTable {
    fn default() -> Self {
        Self {
            name: None,
            data_sources: Vec::new(),
            tools: None,
            kind: AgentKind::Single,
            path: None,
            command: Vec::new(),
            url: None,
            concurrency: None,
            params: serde_json::Map::new(),
            limits: LimitsTable::default(),
            grant: Grants::default(),
            history: History::Exact,
            reward_to: RewardTo::All,
            weigh_by: WeighBy::Sample,
            max_turns: 8,
            max_parallel_calls: 8,
            timeout: Duration::from_secs(300),
            max_tool_tokens: 1024,
            truncate_tool_output: LeftOut::default(),
            on_tool_failure: OnToolFailure::default(),
        }
    }
}

impl AgentTable {
    /// Whether a sample may have several turns.
    pub fn has_turns(&self) -> bool {
        self.kind != AgentKind::Single || self.is_own()
    }

    /// Whether it is a program or a server.
    pub fn is_program(&self) -> bool {
        !self.command.is_empty() || self.url.is_some()
    }

    /// Whether it is an agent of the user.
    pub fn is_own(&self) -> bool {
        self.path.is_some() || self.is_program()
    }

    pub(super) fn validate(&self, tools: &[ToolTable]) -> Result<(), ConfigError> {
        let key = self.key();
        if let Some(name) = &self.name {
            check_word("agent.name", name)?;
        }
        at_least_one(&format!("{key}.max_turns"), self.max_turns)?;
        at_least_one(&format!("{key}.max_parallel_calls"), self.max_parallel_calls)?;
        at_least_one(&format!("{key}.max_tool_tokens"), self.max_tool_tokens)?;
        if self.timeout.is_zero() {
            return Err(ConfigError::value(&format!("{key}.timeout"), "more than 0", "0s"));
        }
        self.grant.check().map_err(|error| ConfigError::about(&format!("{key}.grant"), &format!("[{key}]"), error))?;
        self.limits.validate(&format!("{key}.limits"))?;
        let wrong = |of: &str, what: String| Err(ConfigError::invalid(format!("{key}{of}"), what));
        if self.limits.timeout.is_some() {
            return wrong(
                ".limits.timeout",
                format!("{key}.limits.timeout is not a key\nhint: set {key}.timeout, the time of a whole sample"),
            );
        }
        if let Some(name) = self.tools.iter().flatten().find(|name| !tools.iter().any(|tool| tool.name == **name)) {
            return wrong(
                ".tools",
                format!("{key}.tools: there is no [[tool]] named `{name}`\nhint: add one, or leave the name out"),
            );
        }
        if self.is_program() {
            return self.check_program(tools);
        }
        if self.concurrency.is_some() {
            return wrong(
                ".concurrency",
                format!(
                    "{key}.concurrency is for an agent that is a program\nhint: name one with {key}.command or {key}.url"
                ),
            );
        }
        if self.path.is_some() {
            return match self.kind {
                AgentKind::Single => Ok(()),
                AgentKind::Tools => wrong(
                    ".kind",
                    format!(
                        "both {key}.kind and {key}.path say what makes a sample\nhint: leave {key}.kind out; an agent calls the tools itself"
                    ),
                ),
            };
        }
        let default = Self::default();
        if (&self.params, &self.limits, &self.grant) != (&default.params, &default.limits, &default.grant) {
            return wrong(
                "",
                format!(
                    "{key}.params, {key}.limits and {key}.grant are for an agent's component, and there is none\nhint: name it with {key}.path"
                ),
            );
        }
        let may_call = tools.iter().any(|tool| self.may_call(&tool.name));
        match self.kind {
            AgentKind::Single if may_call || (self.name.is_none() && !tools.is_empty()) => wrong(
                ".kind",
                format!("there are [[tool]] tables, and {key}.kind is \"single\"\nhint: set {key}.kind = \"tools\""),
            ),
            AgentKind::Tools if tools.is_empty() => wrong(
                ".kind",
                format!(
                    "{key}.kind is \"tools\", and there is no [[tool]] table\nhint: add one, such as [[tool]] with name = \"calculator\" and path = \"target/plugins/calculator.wasm\""
                ),
            ),
            AgentKind::Tools if !may_call => wrong(
                ".kind",
                format!(
                    "{key}.kind is \"tools\", and {key}.tools is empty\nhint: name a tool, or set {key}.kind = \"single\""
                ),
            ),
            _ => Ok(()),
        }
    }

    /// Whether a key of calls to `[[tool]]` tables is not as by default.
    fn has_keys_of_calls(&self) -> bool {
        let default = Self::default();
        self.max_parallel_calls != default.max_parallel_calls
            || self.max_tool_tokens != default.max_tool_tokens
            || self.truncate_tool_output != default.truncate_tool_output
            || self.on_tool_failure != default.on_tool_failure
    }

    /// Refuses keys that a program or a server does not use.
    fn check_program(&self, tools: &[ToolTable]) -> Result<(), ConfigError> {
        let key = self.key();
        let wrong = |of: &str, what: String| Err(ConfigError::invalid(format!("{key}{of}"), what));
        let LimitsTable { output, .. } = self.limits;
        let Grants { env, .. } = &self.grant;
        match &self.url {
            _ if self.path.is_some() || (self.url.is_some() && !self.command.is_empty()) => wrong(
                "",
                format!(
                    "{key}.path, {key}.command and {key}.url each say what the agent is\nhint: leave all but one of them out"
                ),
            ),
            _ if self.kind != AgentKind::Single => wrong(
                ".kind",
                format!(
                    "both {key}.kind and a program say what makes a sample\nhint: leave {key}.kind out; a program calls its tools itself"
                ),
            ),
            _ if self.tools.is_some() || (self.name.is_none() && !tools.is_empty()) => wrong(
                ".tools",
                format!(
                    "{key}.tools: a program has tools of its own, and reaches no [[tool]]\nhint: leave {key}.tools and the [[tool]] tables out"
                ),
            ),
            _ if self.limits != (LimitsTable { output, ..LimitsTable::default() }) => wrong(
                ".limits",
                format!(
                    "{key}.limits: a program runs outside of the sandbox: of limits, it has output\nhint: {key}.timeout limits its time"
                ),
            ),
            _ if self.grant != (Grants { env: env.clone(), ..Grants::default() }) => {
                wrong(".grant", format!("{key}.grant: a program runs outside of the sandbox: of grant, it has env"))
            }
            _ if self.has_keys_of_calls() => wrong(
                "",
                format!(
                    "{key}: max_parallel_calls, max_tool_tokens, truncate_tool_output and on_tool_failure are for calls of [[tool]] tables, which a program does not make\nhint: leave them out"
                ),
            ),
            Some(_) if !env.is_empty() => {
                wrong(".grant.env", format!("{key}.grant.env is for a program, not for a server at a URL"))
            }
            Some(url) if !url.starts_with("http://") && !url.starts_with("https://") => {
                Err(ConfigError::value(&format!("{key}.url"), "a URL, such as \"http://127.0.0.1:9000/run\"", url))
            }
            None if self.command.iter().any(|word| word.contains('\0')) => {
                wrong(".command", format!("{key}.command has a character that no argument can have"))
            }
            _ => Ok(()),
        }
    }

    /// The program or the server of the table; `limits` are the limits of all plugins.
    pub fn program(&self, limits: &LimitsTable) -> Option<ProgramSpec> {
        let source = match &self.url {
            Some(url) => ProgramSource::Url(url.clone()),
            None if self.command.is_empty() => return None,
            None => ProgramSource::Command { command: self.command.clone(), env: self.grant.env.clone() },
        };
        Some(ProgramSpec {
            table: self.key(),
            source,
            params: self.params.clone(),
            output: self.limits.over(limits).output,
            concurrency: self.concurrency.unwrap_or(CONCURRENCY),
        })
    }

    /// The table as `--set` names it.
    pub(super) fn key(&self) -> String {
        self.name.as_ref().map_or("agent".to_owned(), |name| format!("agent.{name}"))
    }

    /// The agent of the table; `limits` are the limits of all plugins.
    pub fn plugin(&self, limits: &LimitsTable) -> Option<PluginSpec> {
        let path = self.path.clone()?;
        let limits = LimitsTable { timeout: Some(self.timeout), ..self.limits }.over(limits);
        let (params, grants) = (self.params.clone(), self.grant.clone());
        Some(PluginSpec {
            name: self.name.clone().unwrap_or("agent".into()),
            path,
            params,
            limits,
            reuse: None,
            grants,
        })
    }

    /// How long an episode may last.
    pub fn limits(&self) -> EpisodeLimits {
        EpisodeLimits {
            max_turns: self.max_turns,
            deadline: self.timeout,
            history: self.history,
            tools: ToolLimits {
                max_parallel_calls: self.max_parallel_calls,
                max_output_tokens: self.max_tool_tokens,
                left_out: self.truncate_tool_output,
                on_failure: self.on_tool_failure,
            },
        }
    }
}

/// `[[tool]]`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ToolTable {
    /// Its name in metrics and logs, and in the settings of rows.
    pub name: String,
    /// The component.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<PathBuf>,
    /// In place of a component: an MCP server, by its address or as a program with its arguments.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mcp: Option<McpSource>,
    /// The environment variable with the key for requests to a server over HTTP.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api_key_env: Option<String>,
    /// The name of the limiter whose turns calls of an MCP server wait for; no limit by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<String>,
    /// How often a call that an MCP server could not take is asked again, with growing pauses; 5 by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = 5))]
    pub retries: Option<u32>,
    /// The parameters of the component's initialisation.
    #[serde(default)]
    pub params: serde_json::Map<String, serde_json::Value>,
    /// How many calls an instance answers, for a tool that declares itself pure; by default, each call has a fresh
    /// instance.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reuse: Option<NonZeroU32>,
    /// What its calls may use, where it differs from `[limits]`. `memory` is the memory of a whole trajectory.
    #[serde(default)]
    pub limits: LimitsTable,
    /// What it may reach beyond its arguments; nothing by default.
    #[serde(default)]
    pub grant: Grants,
}

impl ToolTable {
    pub(super) fn validate(&self) -> Result<(), ConfigError> {
        check_word("tool.name", &self.name)?;
        let (table, shown) = (format!("tool.{}", self.name), format!("tool `{}`", self.name));
        let wrong = |what: &str| Err(ConfigError::about(&table, &shown, what));
        self.grant.check().map_err(|error| ConfigError::about(&format!("{table}.grant"), &shown, error))?;
        self.limits.validate(&format!("{table}.limits"))?;
        match (&self.path, &self.mcp) {
            (Some(_), None) if self.limit.is_some() => wrong(
                "limit is for an MCP server\nhint: the requests of a component are limited beside its grant: grant = { http = […], limit = \"NAME\" }",
            ),
            (Some(_), None) if self.retries.is_some() => wrong(
                "retries is for an MCP server\nhint: schedule.retries draws a sample again whose tool is unavailable",
            ),
            (Some(_), None) if self.api_key_env.is_none() => Ok(()),
            (Some(_), None) => wrong("api_key_env is for an MCP server at a URL"),
            (None, Some(source)) => self.check_mcp(source).or_else(wrong),
            (Some(_), Some(_)) => wrong("both path and mcp say what it is\nhint: leave one of them out"),
            (None, None) => {
                wrong("it has neither path nor mcp\nhint: name a component with path, or an MCP server with mcp")
            }
        }
    }

    /// Refuses keys that a server does not use.
    fn check_mcp(&self, source: &McpSource) -> Result<(), &'static str> {
        let LimitsTable { timeout, output, .. } = self.limits;
        let Grants { env, .. } = &self.grant;
        if self.limits != (LimitsTable { timeout, output, ..LimitsTable::default() }) {
            return Err("an MCP server runs outside of the sandbox: of limits, it has timeout and output");
        }
        if self.grant != (Grants { env: env.clone(), ..Grants::default() }) {
            return Err("an MCP server runs outside of the sandbox: of grant, its program has env");
        }
        if !self.params.is_empty() || self.reuse.is_some() {
            return Err(
                "params and reuse are those of a component\nhint: give arguments to the MCP server's program in mcp",
            );
        }
        match source {
            McpSource::Program(command) if command.is_empty() => Err("mcp has no program"),
            McpSource::Program(_) if self.api_key_env.is_some() => {
                Err("api_key_env is for an MCP server at a URL\nhint: a program sees the variables of grant.env")
            }
            McpSource::Url(_) if !env.is_empty() => {
                Err("grant.env is for an MCP server that is a program\nhint: name the key of a URL in api_key_env")
            }
            McpSource::Url(url) if !url.starts_with("http://") && !url.starts_with("https://") => Err(
                "mcp is not a URL\nhint: write mcp = \"https://…\", or a program as a list, such as mcp = [\"mcp-server-time\"]",
            ),
            _ => Ok(()),
        }
    }

    /// The tool of the table; `limits` are the limits of all plugins.
    pub fn source(&self, limits: &LimitsTable) -> ToolSource {
        let (name, limits) = (self.name.clone(), self.limits.over(limits));
        match self.mcp.clone() {
            Some(source) => ToolSource::Mcp(McpSpec {
                name,
                source,
                api_key_env: self.api_key_env.clone(),
                env: self.grant.env.clone(),
                timeout: limits.deadline,
                output: limits.output,
                limit: self.limit.clone(),
                retries: self.retries.unwrap_or(RETRIES),
            }),
            None => ToolSource::from(PluginSpec {
                name,
                path: self.path.clone().unwrap_or_default(),
                params: self.params.clone(),
                limits,
                reuse: self.reuse,
                grants: self.grant.clone(),
            }),
        }
    }
}
