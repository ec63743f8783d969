//! One attempt at a task by a program, from its task to a sample.

use crate::answer::Answer;
use crate::limits::SessionLimits;
use crate::process::{Printed, fault};
use crate::program::ProgramAgent;
use crate::session::{EndedSession, Session};
use gavel_agent::{EpisodeError, EpisodeLimits, EpisodeProgress, Policy, WaitsFor, agent_failure};
use gavel_data::{Blame, Budget, FinishReason, Message, Outcome, Role, Sample, Task, Trajectory};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;

/// How long an answer is drawn that no client waits for. Clients' libraries wait up to 8 s before they send a request
/// again.
const GRACE: Duration = Duration::from_secs(10);

/// One attempt at a task by a program.
pub struct ProgramEpisode {
    /// The task.
    pub task: Arc<Task>,
    /// The number of the sample in its group.
    pub index: u32,
    /// The most tokens of the prompt with which a conversation begins.
    pub max_prompt_tokens: usize,
    /// The most tokens after the prompt of a conversation, with those that the policy did not write.
    pub max_tokens: usize,
    /// The seed of the policy's draws.
    pub seed: u64,
    /// The seed that the program gets.
    pub program_seed: u64,
    /// The program.
    pub agent: Arc<ProgramAgent>,
    /// The most turns of the policy, and the time that the attempt may take.
    pub limits: EpisodeLimits,
}

/// Ends a session whose sample is given up, so that nothing more is drawn for it.
struct EndsSession<P: Policy + 'static>(Arc<Session<P>>);

impl<P: Policy + 'static> Drop for EndsSession<P> {
    fn drop(&mut self) {
        self.0.end();
    }
}

impl ProgramEpisode {
    /// Lets the program attempt the task. `progress` shows what it waits for. A program that fails costs its own sample.
    ///
    /// # Errors
    /// The policy failed, or its tokens cannot be decoded.
    pub async fn play<P: Policy + 'static>(
        self,
        policy: Arc<P>,
        progress: &EpisodeProgress,
    ) -> Result<Sample, EpisodeError<P::Error>> {
        let Self { task, index, max_prompt_tokens, max_tokens, seed, program_seed, agent, limits } = self;
        progress.wait_for(WaitsFor::Place);
        let _place = agent.place().await.ok_or(EpisodeError::ShutDown)?;
        progress.wait_for(WaitsFor::Agent);
        let EpisodeLimits { max_turns, deadline, history, .. } = limits;
        let of_session = SessionLimits { max_prompt_tokens, max_tokens, max_turns, history, grace: GRACE };
        let session = Session::new(task.clone(), seed, of_session, policy, progress.clone())?;
        let _ends = EndsSession(session.clone());
        let printed = Printed::default();
        let attempt = async {
            let host =
                |error: crate::error::GatewayError| Err(Outcome::Fault { whose: Blame::Host, what: error.to_string() });
            match agent.gateway().open(session.clone()).await {
                Ok(open) => agent.attempt(&task, program_seed, deadline, &open, &printed).await,
                Err(error) => host(error),
            }
        };
        let attempted = tokio::select! {
            attempted = timeout(deadline, attempt) => attempted.unwrap_or_else(|_| {
                let what = format!("the program had not ended after {} s", deadline.as_secs_f64());
                Err(Outcome::OutOfBudget { which: Budget::Deadline, what })
            }),
            // Its error is the session's.
            () = session.failed() => Ok(Answer::default()),
        };
        let EndedSession { mut trajectories, last_text, is_exhausted, error } = session.end();
        if let Some(error) = error {
            return Err(error);
        }
        let has_asked = !trajectories.is_empty();
        let attempted = match attempted {
            // A policy that has used up its turns or tokens is not a failure of the program.
            Err(Outcome::Fault { .. }) if is_exhausted && has_asked => Ok(Answer::default()),
            Ok(_) if !has_asked && !is_exhausted => {
                let what = "the program ended without asking the model\nhint: it finds the model at OPENAI_BASE_URL, with the key in OPENAI_API_KEY";
                Err(fault(what.to_owned()))
            }
            attempted => attempted,
        };
        if !has_asked {
            let said = attempted.as_ref().ok().and_then(|answer| answer.answer.as_ref());
            let said = said.map(|said| Message::new(Role::Assistant, said)).into_iter().collect();
            let finish_reason = if is_exhausted { FinishReason::Length } else { FinishReason::Stop };
            trajectories.push(Trajectory { finish_reason, ..Trajectory::of(said) });
        }
        let (answer, extra) = match attempted {
            Ok(Answer { answer, extra }) => (answer, extra),
            Err(outcome) => {
                let (reason, fault) = agent_failure(&outcome, printed.diagnosis());
                for trajectory in &mut trajectories {
                    trajectory.finish_reason = reason;
                    trajectory.report.error = Some(fault.clone());
                }
                return Ok(Sample::new(task, index, trajectories));
            }
        };
        // Of several trajectories, the last text of the policy is its response.
        let answer = answer.or_else(|| last_text.filter(|_| trajectories.len() > 1));
        if let (Some(first), Some(printed)) = (trajectories.first_mut(), printed.diagnosis()) {
            first.report.printed = printed.stderr;
        }
        Ok(Sample { answer, extra, ..Sample::new(task, index, trajectories) })
    }
}
