//! What a component exports: found once when it is linked, and then at hand in
//! each instance.

use crate::bindings::exports::gavel::plugin::{judger, lifecycle, reward, taskset};
use crate::state::State;
use wasmtime::component::{Instance, InstancePre};
use wasmtime::{Result, Store};

/// A linked component and where its exports are.
#[derive(Clone)]
pub(crate) struct Linked {
    pub(crate) instance_pre: InstancePre<State>,
    lifecycle: lifecycle::GuestIndices,
    reward: Option<reward::GuestIndices>,
    judger: Option<judger::GuestIndices>,
    taskset: Option<taskset::GuestIndices>,
}

/// The exports of an instance.
pub(crate) struct Exports {
    pub(crate) lifecycle: lifecycle::Guest,
    pub(crate) reward: Option<reward::Guest>,
    pub(crate) judger: Option<judger::Guest>,
    pub(crate) taskset: Option<taskset::Guest>,
}

impl Linked {
    /// Finds what a component exports of the contract; `exported` says which
    /// of the interfaces are there.
    pub(crate) fn new(instance_pre: InstancePre<State>, exported: impl Fn(&str) -> bool) -> Result<Self> {
        let lifecycle = lifecycle::GuestIndices::new(&instance_pre)?;
        let reward = exported("reward").then(|| reward::GuestIndices::new(&instance_pre)).transpose()?;
        let judger = exported("judger").then(|| judger::GuestIndices::new(&instance_pre)).transpose()?;
        let taskset = exported("taskset").then(|| taskset::GuestIndices::new(&instance_pre)).transpose()?;
        Ok(Self { instance_pre, lifecycle, reward, judger, taskset })
    }

    /// Whether it scores samples one by one.
    pub(crate) fn is_reward(&self) -> bool {
        self.reward.is_some()
    }

    /// Whether it judges whole groups.
    pub(crate) fn is_judger(&self) -> bool {
        self.judger.is_some()
    }

    /// Whether it is a dataset.
    pub(crate) fn is_taskset(&self) -> bool {
        self.taskset.is_some()
    }

    /// Starts an instance.
    pub(crate) async fn instantiate(&self, store: &mut Store<State>) -> Result<Exports> {
        let instance = self.instance_pre.instantiate_async(&mut *store).await?;
        self.exports(store, &instance)
    }

    /// The exports of an instance; an error says that they have other types
    /// than the contract's.
    pub(crate) fn exports(&self, store: &mut Store<State>, instance: &Instance) -> Result<Exports> {
        let reward = self.reward.as_ref().map(|reward| reward.load(&mut *store, instance)).transpose()?;
        let judger = self.judger.as_ref().map(|judger| judger.load(&mut *store, instance)).transpose()?;
        let taskset = self.taskset.as_ref().map(|taskset| taskset.load(&mut *store, instance)).transpose()?;
        Ok(Exports { lifecycle: self.lifecycle.load(&mut *store, instance)?, reward, judger, taskset })
    }
}
