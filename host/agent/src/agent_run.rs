//! Lets an agent of the user attempt a task, and makes a sample of the result.

use crate::agent_episode::AgentEpisode;
use crate::agent_link::AgentLink;
use crate::episode::EpisodeError;
use crate::policy::Policy;
use crate::progress::EpisodeProgress;
use crate::row_settings::{agent_settings, tool_settings};
use crate::waits_for::WaitsFor;
use gavel_data::{Budget, Diagnosis, FinishReason, Outcome, RolloutFault, RolloutStage, Sample, ToolStates};
use gavel_plugin::{AgentReport, AgentTask};
use std::sync::Arc;

impl AgentEpisode {
    /// Lets the agent attempt the task. `progress` shows what it waits for. An agent that fails costs its own sample.
    ///
    /// # Errors
    /// The policy failed, or its tokens cannot be decoded.
    pub async fn play<P: Policy + 'static>(
        self,
        policy: Arc<P>,
        progress: &EpisodeProgress,
    ) -> Result<Sample, EpisodeError<P::Error>> {
        let (task, index) = (self.task.clone(), self.index);
        progress.wait_for(WaitsFor::Memory);
        let rooms = self.tools.set.rooms(Some(&self.agent)).await.ok_or(EpisodeError::ShutDown)?;
        let rooms = Arc::new(rooms);
        progress.wait_for(WaitsFor::Agent);
        let waits = progress.outside_waits();
        let sessions = self.tools.set.open(rooms.clone(), &tool_settings(&task), self.tool_seed, waits);
        let (agent, seed) = (self.agent.clone(), self.tool_seed);
        let attempt = Arc::new(Sample::new(task.clone(), index, Vec::new()));
        let agent_task = AgentTask { attempt, settings: agent_settings(&task) };
        let link = Arc::new(AgentLink::new(self, policy, sessions, progress.clone())?);
        let AgentReport { answer, extra, diagnosis, .. } =
            agent.run(rooms, agent_task, link.clone(), seed, waits.clone()).await;
        // An agent whose tool failed was ended, whatever it reports.
        let mut tool_fault = link.tool_fault();
        // A policy that has used up its turns or tokens is not a failure of the agent.
        let answer = answer.or_else(|outcome| match (&outcome, link.exhausted()) {
            (Outcome::Fault { .. }, Some(said)) => Ok(said),
            _ => Err(outcome),
        });
        let mut states = ToolStates::new();
        if answer.is_ok() && tool_fault.is_none() {
            match link.finish_tools().await {
                Ok(ended) => states = ended,
                Err(fault) => tool_fault = Some(fault),
            }
        }
        let answer = answer.map(|answer| Some(answer).filter(|_| tool_fault.is_none()));
        let mut trajectories = link.end(answer.as_ref().ok().and_then(Option::as_deref))?;
        let failure = match tool_fault {
            Some(fault) => Some((FinishReason::Error, fault)),
            None => answer.as_ref().err().map(|outcome| agent_failure(outcome, diagnosis)),
        };
        if let Some((reason, fault)) = failure {
            for trajectory in &mut trajectories {
                trajectory.finish_reason = reason;
                trajectory.report.error = Some(fault.clone());
            }
        }
        let answer = answer.ok().flatten();
        let extra = extra.filter(|_| answer.is_some());
        Ok(Sample { answer, extra, states, ..Sample::new(task, index, trajectories) })
    }
}

/// How the trajectories of an agent that gave no answer end, and why.
pub fn agent_failure(outcome: &Outcome, diagnosis: Option<Diagnosis>) -> (FinishReason, RolloutFault) {
    let (reason, retryable) = match outcome {
        Outcome::OutOfBudget { which: Budget::Deadline, .. } => (FinishReason::Timeout, true),
        Outcome::Unavailable(_) => (FinishReason::Error, true),
        _ => (FinishReason::Error, false),
    };
    let budget = match outcome {
        Outcome::OutOfBudget { which, .. } => Some(*which),
        _ => None,
    };
    let what = outcome.reason().unwrap_or_default();
    let message = match outcome {
        Outcome::OutOfBudget { which, what } => format!("the agent used up its {}: {what}", which.as_str()),
        _ => format!("the agent failed: {what}"),
    };
    (reason, RolloutFault { stage: RolloutStage::Agent, message, retryable, budget, diagnosis })
}
