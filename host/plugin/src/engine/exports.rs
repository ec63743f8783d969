//! The exports of a component, which are looked up once when it is linked and
//! then used in each instance.

use crate::bindings::exports::gavel::plugin::{agent, judger, lifecycle, reward, taskset, tool};
use crate::imports::State;
use wasmtime::component::{Instance, InstancePre};
use wasmtime::{Error, Result, Store};

/// A linked component, and the indices of its exports.
#[derive(Clone)]
pub(crate) struct Linked {
    pub(crate) instance_pre: InstancePre<State>,
    lifecycle: lifecycle::GuestIndices,
    reward: Option<reward::GuestIndices>,
    judger: Option<judger::GuestIndices>,
    taskset: Option<taskset::GuestIndices>,
    tool: Option<tool::GuestIndices>,
    agent: Option<agent::GuestIndices>,
}

/// The exports of an instance.
pub(crate) struct Exports {
    pub(crate) lifecycle: lifecycle::Guest,
    pub(crate) reward: Option<reward::Guest>,
    pub(crate) judger: Option<judger::Guest>,
    pub(crate) taskset: Option<taskset::Guest>,
    pub(crate) tool: Option<tool::Guest>,
    pub(crate) agent: Option<agent::Guest>,
}

impl Exports {
    /// The functions for the policy; an error if there are none.
    pub(crate) fn tool(&self) -> Result<&tool::Guest> {
        self.tool.as_ref().ok_or_else(|| Error::msg("the component does not export `tool`"))
    }

    /// The agent; an error if there is none.
    pub(crate) fn agent(&self) -> Result<&agent::Guest> {
        self.agent.as_ref().ok_or_else(|| Error::msg("the component does not export `agent`"))
    }
}

impl Linked {
    /// Looks up the exports of the contract; `exported` tells which of the
    /// interfaces the component has.
    pub(crate) fn new(instance_pre: InstancePre<State>, exported: impl Fn(&str) -> bool) -> Result<Self> {
        let lifecycle = lifecycle::GuestIndices::new(&instance_pre)?;
        let reward = exported("reward").then(|| reward::GuestIndices::new(&instance_pre)).transpose()?;
        let judger = exported("judger").then(|| judger::GuestIndices::new(&instance_pre)).transpose()?;
        let taskset = exported("taskset").then(|| taskset::GuestIndices::new(&instance_pre)).transpose()?;
        let tool = exported("tool").then(|| tool::GuestIndices::new(&instance_pre)).transpose()?;
        let agent = exported("agent").then(|| agent::GuestIndices::new(&instance_pre)).transpose()?;
        Ok(Self { instance_pre, lifecycle, reward, judger, taskset, tool, agent })
    }

    /// Whether it scores samples one by one.
    pub(crate) fn is_reward(&self) -> bool {
        self.reward.is_some()
    }

    /// Whether it judges whole groups.
    pub(crate) fn is_judger(&self) -> bool {
        self.judger.is_some()
    }

    /// Whether it is a taskset.
    pub(crate) fn is_taskset(&self) -> bool {
        self.taskset.is_some()
    }

    /// Whether it offers functions to the policy.
    pub(crate) fn is_tool(&self) -> bool {
        self.tool.is_some()
    }

    /// Whether it attempts tasks.
    pub(crate) fn is_agent(&self) -> bool {
        self.agent.is_some()
    }

    /// Starts an instance.
    pub(crate) async fn instantiate(&self, store: &mut Store<State>) -> Result<Exports> {
        let instance = self.instance_pre.instantiate_async(&mut *store).await?;
        self.exports(store, &instance)
    }

    /// The exports of an instance; an error means that their types differ from the
    /// contract's.
    pub(crate) fn exports(&self, store: &mut Store<State>, instance: &Instance) -> Result<Exports> {
        let reward = self.reward.as_ref().map(|reward| reward.load(&mut *store, instance)).transpose()?;
        let judger = self.judger.as_ref().map(|judger| judger.load(&mut *store, instance)).transpose()?;
        let taskset = self.taskset.as_ref().map(|taskset| taskset.load(&mut *store, instance)).transpose()?;
        let tool = self.tool.as_ref().map(|tool| tool.load(&mut *store, instance)).transpose()?;
        let agent = self.agent.as_ref().map(|agent| agent.load(&mut *store, instance)).transpose()?;
        Ok(Exports { lifecycle: self.lifecycle.load(&mut *store, instance)?, reward, judger, taskset, tool, agent })
    }
}
