//! What makes a sample of a task: one turn of the policy, the loop over tools, or an agent of the user.

use crate::error::Result;
use gavel_agent::{EpisodeLimits, ToolSet, ToolSource, Tools};
use gavel_config::{AgentTable, AgentTables, Config};
use gavel_data::Task;
use gavel_gateway::{Gateway, ProgramAgent};
use gavel_plugin::{Agent, PluginSpec, Sandbox};
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
    /// An agent that is a program or a server.
    Program(Arc<ProgramAgent>, EpisodeLimits),
}

/// What makes the samples of a run: of each task, what its row chooses.
#[derive(Clone)]
pub(crate) struct EpisodeKinds {
    tables: Arc<AgentTables>,
    /// One for each table.
    kinds: Arc<[EpisodeKind]>,
    /// All tools of the run.
    tools: Arc<ToolSet>,
    /// What programs ask, if there are any.
    gateway: Option<Gateway>,
}

impl EpisodeKinds {
    /// Loads the agents and the tools of a configuration into the sandbox of its rewards. A run that is resumed continues
    /// with the components in `kept`.
    ///
    /// # Errors
    /// One of them does not load.
    pub(crate) fn load<T>(config: &Config<T>, kept: &KeptComponents, sandbox: &Sandbox) -> Result<Self> {
        let source = |source| match source {
            ToolSource::Component(spec) => kept.actor(ActorRole::Tool, *spec).into(),
            server => server,
        };
        let specs = match config.agent.have_turns() {
            true => config.tool.iter().map(|tool| source(tool.source(&config.limits))).collect(),
            false => Vec::new(),
        };
        let tools = Arc::new(sandbox.handle().block_on(ToolSet::load(sandbox, specs))?);
        let has_programs = config.agent.iter().any(AgentTable::is_program);
        let gateway = has_programs.then(|| Gateway::new(config.gateway.listens()));
        let load = |table: &AgentTable| {
            if let (Some(spec), Some(gateway)) = (table.program(&config.limits), &gateway) {
                let program = ProgramAgent::new(spec, gateway.clone())?;
                return Ok(EpisodeKind::Program(Arc::new(program), table.limits()));
            }
            let agent = table.plugin(&config.limits).map(|spec| kept.actor(ActorRole::Agent, spec));
            let set = tools.only(|tool| table.may_call(tool));
            EpisodeKind::load(table, agent, set, sandbox)
        };
        let kinds = config.agent.iter().map(load).collect::<Result<_>>()?;
        Ok(Self { tables: Arc::new(config.agent.clone()), kinds, tools, gateway })
    }

    /// Begins to listen for the requests of programs, if there are any.
    ///
    /// # Errors
    /// The port of the gateway is taken, or cannot be used.
    pub(crate) fn listen(&self, sandbox: &Sandbox) -> Result<()> {
        match &self.gateway {
            Some(gateway) => Ok(sandbox.handle().block_on(gateway.listen())?),
            None => Ok(()),
        }
    }

    /// The agents that are programs or servers, with their tables.
    pub(crate) fn programs(&self) -> impl Iterator<Item = (&AgentTable, &ProgramAgent)> {
        self.tables.iter().zip(&*self.kinds).filter_map(|(table, kind)| match kind {
            EpisodeKind::Program(program, _) => Some((table, &**program)),
            _ => None,
        })
    }

    #[cfg(test)]
    pub(crate) fn single() -> Self {
        Self { tables: Arc::default(), kinds: [EpisodeKind::Single].into(), tools: ToolSet::none(), gateway: None }
    }

    /// What makes a sample of `task`, with the tools that its row may call.
    ///
    /// # Errors
    /// The row selects an agent or a tool that does not exist; the error says so.
    pub(crate) fn of(&self, task: &Task) -> std::result::Result<EpisodeKind, String> {
        self.kinds[self.tables.number_of(task)?].of_row(task)
    }

    /// The number of the table that attempts `task`; `None` if its row selects no agent that exists.
    pub(crate) fn number_of(&self, task: &Task) -> Option<usize> {
        self.tables.number_of(task).ok()
    }

    /// The agents of the user, with their tables.
    pub(crate) fn agents(&self) -> impl Iterator<Item = (&AgentTable, &Agent)> {
        self.tables.iter().zip(&*self.kinds).filter_map(|(table, kind)| Some((table, kind.agent()?)))
    }

    /// All tools of the run.
    pub(crate) fn tools(&self) -> &ToolSet {
        &self.tools
    }

    /// For each table with several turns that attempts some of `tasks`, the first of them, and the functions of its tools.
    pub(crate) fn first_tasks<'t>(
        &self,
        tasks: impl IntoIterator<Item = &'t Task>,
    ) -> Vec<(&AgentTable, &'t Task, Arc<[Value]>)> {
        let mut first: Vec<Option<&Task>> = vec![None; self.kinds.len()];
        for task in tasks {
            if let Ok(number) = self.tables.number_of(task) {
                first[number].get_or_insert(task);
            }
            if first.iter().all(Option::is_some) {
                break;
            }
        }
        let agents = self.tables.iter().zip(&*self.kinds).zip(first);
        agents.filter_map(|((table, kind), task)| Some((table, task?, kind.definitions()?))).collect()
    }

    /// The agents and the tools, for the record.
    pub(crate) fn actors<T>(&self, config: &Config<T>) -> Vec<ActorRecord> {
        let agents = self.agents().filter_map(|(table, agent)| {
            let spec = table.plugin(&config.limits)?;
            Some(ActorRecord::new(ActorRole::Agent, spec, agent.hash(), agent.info()))
        });
        // A server outside the sandbox has no component to keep.
        let tools = config.tool.iter().zip(self.tools.tools()).filter_map(|(table, tool)| {
            let (ToolSource::Component(spec), tool) = (table.source(&config.limits), tool.component()?) else {
                return None;
            };
            Some(ActorRecord::new(ActorRole::Tool, *spec, tool.hash(), tool.info()))
        });
        agents.chain(tools).collect()
    }

    /// Whether a sample may have more than one turn.
    pub(crate) fn have_turns(&self) -> bool {
        self.tables.have_turns()
    }
}

impl EpisodeKind {
    /// The kind of a table, whose agent is `agent` and whose tools are `set`.
    fn load(table: &AgentTable, agent: Option<PluginSpec>, set: Arc<ToolSet>, sandbox: &Sandbox) -> Result<Self> {
        if !table.has_turns() {
            return Ok(Self::Single);
        }
        let agent = agent.map(|spec| sandbox.handle().block_on(Agent::load(sandbox, spec))).transpose()?;
        set.check_room(agent.as_ref())?;
        let tools = Tools { set, limits: table.limits() };
        Ok(match agent {
            None => Self::Tools(tools),
            Some(agent) => Self::Agent(Arc::new(agent), tools),
        })
    }

    /// The same with the tools that a row may call.
    fn of_row(&self, task: &Task) -> std::result::Result<Self, String> {
        let of_row = |tools: &Tools| Ok::<_, String>(Tools { set: tools.set.of_row(task)?, ..tools.clone() });
        Ok(match self {
            Self::Single => Self::Single,
            Self::Tools(tools) => Self::Tools(of_row(tools)?),
            Self::Agent(agent, tools) => Self::Agent(agent.clone(), of_row(tools)?),
            Self::Program(program, limits) => Self::Program(program.clone(), *limits),
        })
    }

    /// The agent of the user.
    pub(crate) fn agent(&self) -> Option<&Agent> {
        match self {
            Self::Single | Self::Tools(_) | Self::Program(..) => None,
            Self::Agent(agent, _) => Some(agent),
        }
    }

    /// The functions of its tools, if it may have several turns.
    fn definitions(&self) -> Option<Arc<[Value]>> {
        match self {
            Self::Single => None,
            Self::Tools(tools) | Self::Agent(_, tools) => Some(tools.set.definitions()),
            Self::Program(..) => Some([].into()),
        }
    }

    /// The functions that the prompt of a row offers.
    ///
    /// # Errors
    /// The row's own column is not a list of functions; the error says so.
    pub(crate) fn offered(&self, task: &Task) -> std::result::Result<Arc<[Value]>, String> {
        match self {
            Self::Tools(tools) => Ok(tools.set.definitions()),
            // An agent writes its prompts by itself.
            _ => task.reference.tools().map(Into::into).map_err(|error| error.to_string()),
        }
    }
}
