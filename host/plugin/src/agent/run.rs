//! A run of an agent: one call, in its own instance.

use super::component::Agent;
use crate::bindings::exports::gavel::plugin::agent::Answer;
use crate::call::{CallReport, CallSetup, GuestResult, Loaded, beside, kept_store, make_ready, used_fuel, verdict};
use crate::engine::FreshStore;
use crate::engine::SessionRooms;
use crate::episode::{AgentTask, Episode, EpisodeLink};
use crate::imports::{State, TaskRef};
use crate::outside::OutsideWaits;
use futures::FutureExt;
use futures::future::BoxFuture;
use gavel_data::{Columns, Diagnosis, Outcome, Usage};
use std::sync::Arc;
use wasmtime::component::Resource;
use wasmtime::{Result, Store};

/// The result of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct AgentReport {
    /// The response, or why there is none.
    pub answer: std::result::Result<String, Outcome>,
    /// The JSON object beside it.
    pub extra: Option<Columns>,
    /// What the run used.
    pub usage: Usage,
    /// Details that help to fix the agent, if it failed.
    pub diagnosis: Option<Diagnosis>,
}

impl Agent {
    /// Lets the agent attempt a task, in its own instance, whose memory comes from `rooms`. Whatever the agent does,
    /// this returns within its budgets; waits for the policy and for tools count towards its deadline. Its random
    /// numbers follow from `seed`.
    pub fn run(
        &self,
        rooms: Arc<SessionRooms>,
        task: AgentTask,
        link: Arc<dyn EpisodeLink>,
        seed: u64,
        waits: OutsideWaits,
    ) -> BoxFuture<'_, AgentReport> {
        let reported = async move {
            let CallReport { answer, details } = run(&self.loaded, rooms, task, link, seed, waits).await;
            let granted = &self.loaded.granted;
            let answer = answer
                .and_then(|answer| answer)
                .and_then(|Answer { response, extra }| Ok((granted.redact(response), beside::extra(granted, extra)?)));
            let (answer, extra) = match answer {
                Ok((response, extra)) => (Ok(response), extra),
                Err(outcome) => (Err(granted.loggable(outcome, &details.refusals)), None),
            };
            AgentReport { answer, extra, usage: details.usage, diagnosis: details.diagnosis }
        };
        reported.boxed()
    }
}

async fn run(
    agent: &Arc<Loaded>,
    rooms: Arc<SessionRooms>,
    task: AgentTask,
    link: Arc<dyn EpisodeLink>,
    seed: u64,
    waits: OutsideWaits,
) -> CallReport<std::result::Result<Answer, Outcome>> {
    let input = format!("run {} {}", task.attempt.task.id, task.attempt.index);
    let traces = CallSetup { input: &input, seed, waits }.traces(agent);
    let mut store = match kept_store(agent, seed, &traces) {
        Ok(store) => store,
        Err(error) => return CallReport::lost(&format!("no store for an agent: {error:#}")),
    };
    match store.data().meter().hold(0) {
        Ok(held) => {
            let handle = agent.shared.lanes.handle().clone();
            store.data_mut().episode = Some(Episode { link, held, handle });
        }
        Err(error) => return CallReport::lost(&format!("no memory for an episode: {error}")),
    }
    let work = attempt(rooms, agent.clone(), FreshStore { store, permit: None }, task, seed);
    let (end, time) = agent.shared.lanes.run(work, agent.limits, traces.pauses.clone(), &agent.history).await;
    CallReport::new(agent, end, time, &traces)
}

/// The outer error of the answer is a trap. The rooms are released after the store.
async fn attempt(
    _rooms: Arc<SessionRooms>,
    agent: Arc<Loaded>,
    mut fresh: FreshStore,
    task: AgentTask,
    seed: u64,
) -> GuestResult<std::result::Result<Answer, Outcome>> {
    let answer = ask(&agent, &mut fresh.store, task, seed).await;
    GuestResult { answer, fuel: used_fuel(&agent, &fresh.store) }
}

async fn ask(
    agent: &Loaded,
    store: &mut Store<State>,
    task: AgentTask,
    seed: u64,
) -> Result<std::result::Result<Answer, Outcome>> {
    let exports = match make_ready(agent, store, seed).await? {
        Ok(exports) => exports,
        Err(outcome) => return Ok(Err(outcome)),
    };
    State::give_handles(store, &agent.limits, 1);
    let task = store.data_mut().table.push(TaskRef(task))?;
    let answer = exports.run(store, Resource::new_borrow(task.rep())).await?;
    Ok(answer.map_err(verdict::failed))
}
