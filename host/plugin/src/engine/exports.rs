//! The exports of a component, which are looked up once when it is linked and
//! then used in each instance. Components of every version of the contract have
//! the same functions here.

use crate::bindings::exports::gavel::plugin::advantage::{Estimates, Group};
use crate::bindings::exports::gavel::plugin::agent::Answer;
use crate::bindings::exports::gavel::plugin::lifecycle::Info;
use crate::bindings::exports::gavel::plugin::sampler;
use crate::bindings::gavel::plugin::types::{Failure, ToolSpec, Verdict};
use crate::engine::reset::Reset;
use crate::engine::versions::{v0_1, v0_2};
use crate::imports::{ReferenceRef, SampleRef, State, TaskRef};
use std::result::Result as Answered;
use std::sync::Arc;
use wasmtime::component::{Instance, InstancePre, Resource, ResourceAny};
use wasmtime::{Error, Result, Store};

/// A linked component, and the indices of its exports.
#[derive(Clone)]
pub(crate) struct Linked {
    pub(crate) instance_pre: InstancePre<State>,
    exported: Vec<String>,
    indices: Indices,
    /// The functions that set an instance back to the snapshot.
    reset: Option<Arc<Reset>>,
}

#[derive(Clone)]
enum Indices {
    V0_1(v0_1::Indices),
    V0_2(v0_2::Indices),
}

/// An instance and its exports.
pub(crate) struct Exports {
    instance: Instance,
    guests: Guests,
}

enum Guests {
    V0_1(v0_1::Guests),
    V0_2(v0_2::Guests),
}

impl Linked {
    /// Looks up the interfaces `exported` by a component of this `version` of the contract.
    pub(crate) fn new(instance_pre: InstancePre<State>, version: &str, exported: Vec<String>) -> Result<Self> {
        let indices = match version {
            v0_1::VERSION => Indices::V0_1(v0_1::Indices::new(&instance_pre, &exported)?),
            v0_2::VERSION => Indices::V0_2(v0_2::Indices::new(&instance_pre, &exported)?),
            // Not reached: the version was checked before.
            other => return Err(Error::msg(format!("the contract {other} is not known"))),
        };
        let reset = Reset::of(instance_pre.component()).map(Arc::new);
        Ok(Self { instance_pre, exported, indices, reset })
    }

    /// Whether it exports this interface of the contract, such as `reward`.
    pub(crate) fn has(&self, interface: &str) -> bool {
        self.exported.iter().any(|found| found == interface)
    }

    /// Whether the session of its tool has `finish`.
    pub(crate) fn has_finish(&self) -> bool {
        matches!(self.indices, Indices::V0_2(_))
    }

    /// Starts an instance.
    pub(crate) async fn instantiate(&self, store: &mut Store<State>) -> Result<Exports> {
        let instance = self.instance_pre.instantiate_async(&mut *store).await?;
        self.exports(store, &instance)
    }

    /// The exports of an instance; an error means that their types differ from the
    /// contract's.
    pub(crate) fn exports(&self, store: &mut Store<State>, instance: &Instance) -> Result<Exports> {
        let guests = match &self.indices {
            Indices::V0_1(indices) => Guests::V0_1(indices.load(store, instance)?),
            Indices::V0_2(indices) => Guests::V0_2(indices.load(store, instance)?),
        };
        Ok(Exports { instance: *instance, guests })
    }

    /// Whether its instances can be set back to the snapshot.
    pub(crate) fn has_reset(&self) -> bool {
        self.reset.is_some()
    }

    /// Sets an instance back to the snapshot after a call that held at most `handles`, and left none. Returns whether it
    /// could be; if not, it must not be called again.
    pub(crate) async fn set_back(&self, store: &mut Store<State>, exports: &Exports, handles: usize) -> Result<bool> {
        match &self.reset {
            Some(reset) => reset.set_back(store, &exports.instance, handles).await,
            None => Ok(false),
        }
    }
}

/// The same call, whatever the version of the exports.
macro_rules! call {
    ($exports:expr, $guests:ident => $call:expr) => {
        match &$exports.guests {
            Guests::V0_1($guests) => $call,
            Guests::V0_2($guests) => $call,
        }
    };
}

/// An exported interface; an error if the component does not have it.
fn need<'a, T>(guest: &'a Option<T>, name: &str) -> Result<&'a T> {
    guest.as_ref().ok_or_else(|| Error::msg(format!("the component does not export `{name}`")))
}

/// The functions of the contract. The outer error is a trap.
#[expect(clippy::useless_conversion, reason = "only the answers of 0.1 are converted")]
impl Exports {
    /// `lifecycle.init`
    pub(crate) async fn init(&self, store: &mut Store<State>, params: &str) -> Result<Answered<Info, String>> {
        call!(self, guests => Ok(guests.lifecycle.call_init(store, params).await?.map(Info::from)))
    }

    /// `reward.score`
    pub(crate) async fn score(
        &self,
        store: &mut Store<State>,
        sample: Resource<SampleRef>,
        reference: Resource<ReferenceRef>,
    ) -> Result<Answered<Verdict, Failure>> {
        call!(self, guests => {
            let answer = need(&guests.reward, "reward")?.call_score(store, sample, reference).await?;
            Ok(answer.map(Verdict::from))
        })
    }

    /// `judger.judge`
    pub(crate) async fn judge(
        &self,
        store: &mut Store<State>,
        samples: &[Resource<SampleRef>],
        reference: Resource<ReferenceRef>,
    ) -> Result<Answered<Vec<Verdict>, Failure>> {
        call!(self, guests => {
            let answer = need(&guests.judger, "judger")?.call_judge(store, samples, reference).await?;
            Ok(answer.map(|verdicts| verdicts.into_iter().map(Verdict::from).collect()))
        })
    }

    /// `taskset.len`
    pub(crate) async fn len(&self, store: &mut Store<State>) -> Result<Option<u64>> {
        call!(self, guests => need(&guests.taskset, "taskset")?.call_len(store).await)
    }

    /// `taskset.get`
    pub(crate) async fn get(
        &self,
        store: &mut Store<State>,
        index: u64,
        seed: u64,
    ) -> Result<Answered<String, Failure>> {
        call!(self, guests => need(&guests.taskset, "taskset")?.call_get(store, index, seed).await)
    }

    /// `tool.specs`
    pub(crate) async fn specs(&self, store: &mut Store<State>) -> Result<Vec<ToolSpec>> {
        call!(self, guests => need(&guests.tool, "tool")?.call_specs(store).await)
    }

    /// `tool.session.open`
    pub(crate) async fn open(
        &self,
        store: &mut Store<State>,
        settings: &str,
    ) -> Result<Answered<ResourceAny, Failure>> {
        call!(self, guests => need(&guests.tool, "tool")?.session().call_open(store, settings).await)
    }

    /// `tool.session.call`
    pub(crate) async fn call(
        &self,
        store: &mut Store<State>,
        session: ResourceAny,
        name: &str,
        arguments: &str,
    ) -> Result<Answered<String, Failure>> {
        call!(self, guests => need(&guests.tool, "tool")?.session().call_call(store, session, name, arguments).await)
    }

    /// `tool.session.finish`, which 0.1 does not have.
    pub(crate) async fn finish(
        &self,
        store: &mut Store<State>,
        session: ResourceAny,
    ) -> Result<Answered<Option<String>, Failure>> {
        match &self.guests {
            Guests::V0_1(_) => Ok(Ok(None)),
            Guests::V0_2(guests) => need(&guests.tool, "tool")?.session().call_finish(store, session).await,
        }
    }

    /// `agent.run`
    pub(crate) async fn run(
        &self,
        store: &mut Store<State>,
        task: Resource<TaskRef>,
    ) -> Result<Answered<Answer, Failure>> {
        call!(self, guests => Ok(need(&guests.agent, "agent")?.call_run(store, task).await?.map(Answer::from)))
    }

    /// `advantage.estimate`, which 0.1 does not have.
    pub(crate) async fn estimate(
        &self,
        store: &mut Store<State>,
        step: u64,
        groups: &[Group],
        state: &[u8],
    ) -> Result<Answered<Estimates, Failure>> {
        let advantage = match &self.guests {
            Guests::V0_1(_) => &None,
            Guests::V0_2(guests) => &guests.advantage,
        };
        need(advantage, "advantage")?.call_estimate(store, step, groups, state).await
    }

    /// `sampler.sample`, which 0.1 does not have.
    pub(crate) async fn sample(
        &self,
        store: &mut Store<State>,
        request: &sampler::Request,
    ) -> Result<Answered<sampler::Answer, Failure>> {
        let sampler = match &self.guests {
            Guests::V0_1(_) => &None,
            Guests::V0_2(guests) => &guests.sampler,
        };
        need(sampler, "sampler")?.call_sample(store, request).await
    }
}
