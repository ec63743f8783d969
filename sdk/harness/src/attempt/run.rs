//! An attempt of an agent, and its result.

use super::conversation::ScriptedConversation;
use super::episode::{Played, ScriptedEpisode};
use super::script::Script;
use crate::error::HarnessError;
use crate::expectation::Mismatch;
use crate::plugin::LoadedPlugin;
use crate::report::{details, head, line};
use gavel_data::{Outcome, ToolCall};
use gavel_plugin::{AgentReport, AgentTask, OutsideWaits, SessionRooms};
use std::fmt;
use std::sync::Arc;

/// An attempt of an agent at a task, over a script.
#[derive(Debug, Clone)]
pub struct Attempt {
    pub(super) report: AgentReport,
    pub(super) conversations: Vec<ScriptedConversation>,
    pub(super) calls: Vec<ToolCall>,
    pub(super) off_script: Vec<Mismatch>,
    pub(super) ended: bool,
}

/// Lets the agent attempt the task.
///
/// # Errors
/// The plugin is not an agent.
pub(crate) fn attempt(
    plugin: &LoadedPlugin,
    task: AgentTask,
    script: Script,
    seed: u64,
) -> Result<Attempt, HarnessError> {
    let agent = plugin.agent().ok_or_else(|| HarnessError::NotAnAgent(plugin.name().to_owned()))?;
    plugin.block_on(async {
        let rooms = SessionRooms::wait(Some(agent), []).await.ok_or(HarnessError::ShutDown)?;
        let episode = Arc::new(ScriptedEpisode::new(script));
        let report = agent.run(Arc::new(rooms), task, episode.clone(), seed, OutsideWaits::default()).await;
        let Played { conversations, calls, exhausted, off_script, ended } = episode.end();
        // As in a run, the agent does not fail if the policy has used up its turns or tokens.
        let answer = report.answer.or_else(|outcome| match (&outcome, exhausted) {
            (Outcome::Fault { .. }, Some(said)) if !ended => Ok(said),
            _ => Err(outcome),
        });
        Ok(Attempt { report: AgentReport { answer, ..report }, conversations, calls, off_script, ended })
    })
}

impl Attempt {
    /// The response, or why there is none, and what the attempt used.
    pub fn report(&self) -> &AgentReport {
        &self.report
    }

    /// The conversations in which the policy wrote: the trajectories of a sample.
    pub fn conversations(&self) -> &[ScriptedConversation] {
        &self.conversations
    }

    /// The calls of tools, in their order.
    pub fn calls(&self) -> &[ToolCall] {
        &self.calls
    }

    /// Where the agent left the script: a request without an answer, or unused answers.
    pub fn off_script(&self) -> &[Mismatch] {
        &self.off_script
    }

    /// Whether the script had no answer, so that the attempt was ended there.
    pub(crate) fn was_ended(&self) -> bool {
        self.ended
    }

    /// How it ended in a few words: `answered`, `fault`, `out-of-budget (cpu)`.
    pub(crate) fn said(&self) -> String {
        match &self.report.answer {
            Ok(_) => "answered".to_owned(),
            Err(Outcome::OutOfBudget { which, .. }) => format!("out-of-budget ({which})"),
            Err(outcome) => outcome.kind().as_str().to_owned(),
        }
    }
}

impl fmt::Display for Attempt {
    /// Everything that a person needs to see what happened.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        line(f, "outcome", &self.said())?;
        match &self.report.answer {
            Ok(answer) => {
                line(f, "response", &head(&format!("{answer:?}")))?;
                if let Some(extra) = self.report.extra.as_ref().and_then(|extra| serde_json::to_string(extra).ok()) {
                    line(f, "extra", &head(&extra))?;
                }
            }
            Err(outcome) => line(f, "reason", &head(&outcome.reason().unwrap_or_default()))?,
        }
        for (number, ScriptedConversation { speaker, messages }) in (1..).zip(&self.conversations) {
            let speaker = if speaker.is_empty() { String::new() } else { format!(", {speaker}") };
            line(f, "policy", &format!("conversation {number}{speaker}"))?;
            for message in messages {
                line(f, message.role.as_str(), &head(&message.text()))?;
                calls(f, &message.tool_calls)?;
            }
        }
        details(f, self.report.diagnosis.as_ref(), &self.report.usage)
    }
}

fn calls(f: &mut fmt::Formatter<'_>, calls: &[ToolCall]) -> fmt::Result {
    calls.iter().try_for_each(|call| line(f, "calls", &format!("{} {}", call.name, head(&call.arguments))))
}
