//! What makes a sample of a task: one turn of the policy, the loop over tools, or an agent of the user.

use crate::error::Result;
use gavel_agent::{ToolSet, ToolSource, Tools};
use gavel_config::Config;
use gavel_data::Task;
use gavel_plugin::{Agent, Sandbox};
use gavel_scoring::recording::{ActorRecord, ActorRole, KeptComponents};
use serde_json::Value;
use std::sync::Arc;

/// What makes a sample of a task.
#[derive(Clone)]
pub(crate) enum EpisodeKind {
    /// One turn of the policy.
    Single,
    /// Turns of the policy until one calls no tool.
    Tools(Tools),
    /// An agent, and the tools that it may call.
    Agent(Arc<Agent>, Tools),
}

impl EpisodeKind {
    /// Loads the agent and the tools of a configuration into the sandbox of its rewards. A run that is resumed continues
    /// with the components in `kept`.
    ///
    /// # Errors
    /// One of them does not load.
    pub(crate) fn load<T>(config: &Config<T>, kept: &KeptComponents, sandbox: &Sandbox) -> Result<Self> {
        let (table, runtime) = (&config.agent, sandbox.handle());
        let agent = table.plugin(&config.limits).map(|spec| kept.actor(ActorRole::Agent, spec));
        if !table.has_turns() {
            return Ok(Self::Single);
        }
        let kept = |source| match source {
            ToolSource::Component(spec) => kept.actor(ActorRole::Tool, *spec).into(),
            server => server,
        };
        let specs = config.tool.iter().map(|tool| kept(tool.source(&config.limits))).collect();
        let set = Arc::new(runtime.block_on(ToolSet::load(sandbox, specs))?);
        let tools = Tools { set, limits: table.limits() };
        let agent = agent.map(|spec| runtime.block_on(Agent::load(sandbox, spec))).transpose()?;
        tools.set.check_room(agent.as_ref())?;
        Ok(match agent {
            None => Self::Tools(tools),
            Some(agent) => Self::Agent(Arc::new(agent), tools),
        })
    }

    /// The agent of the user.
    pub(crate) fn agent(&self) -> Option<&Agent> {
        match self {
            Self::Single | Self::Tools(_) => None,
            Self::Agent(agent, _) => Some(agent),
        }
    }

    /// The tools.
    pub(crate) fn tools(&self) -> Option<&Tools> {
        match self {
            Self::Single => None,
            Self::Tools(tools) | Self::Agent(_, tools) => Some(tools),
        }
    }

    /// The tools that a row may call.
    ///
    /// # Errors
    /// The row selects a tool that does not exist; the error says so.
    pub(crate) fn tools_of(&self, task: &Task) -> std::result::Result<Option<Tools>, String> {
        let of_row = |tools: &Tools| Ok(Tools { set: tools.set.of_row(task)?, ..tools.clone() });
        self.tools().map(of_row).transpose()
    }

    /// The functions that the prompt of a row offers.
    ///
    /// # Errors
    /// The row selects a tool that does not exist, or its own column is not a list of functions; the error says so.
    pub(crate) fn offered(&self, task: &Task) -> std::result::Result<Arc<[Value]>, String> {
        match (self, self.tools_of(task)?) {
            (Self::Tools(_), Some(tools)) => Ok(tools.set.definitions()),
            // An agent writes its prompts by itself.
            _ => task.reference.tools().map(Into::into).map_err(|error| error.to_string()),
        }
    }

    /// The agent and the tools, for the record.
    pub(crate) fn actors<T>(&self, config: &Config<T>) -> Vec<ActorRecord> {
        let agent = self.agent().zip(config.agent.plugin(&config.limits));
        let agent = agent.map(|(agent, spec)| ActorRecord::new(ActorRole::Agent, spec, agent.hash(), agent.info()));
        let loaded = self.tools().into_iter().flat_map(|tools| tools.set.tools());
        // A server outside the sandbox has no component to keep.
        let tools = config.tool.iter().zip(loaded).filter_map(|(table, tool)| {
            let (ToolSource::Component(spec), tool) = (table.source(&config.limits), tool.component()?) else {
                return None;
            };
            Some(ActorRecord::new(ActorRole::Tool, *spec, tool.hash(), tool.info()))
        });
        agent.into_iter().chain(tools).collect()
    }

    /// Whether a sample may have more than one turn.
    pub(crate) fn has_turns(&self) -> bool {
        !matches!(self, Self::Single)
    }
}
