//! The host's side of `types`, `samples` and `references`. A guest holds handles;
//! their contents stay in the host and are read piece by piece.

use super::messages::lower_finish_reason;
use crate::bindings::gavel::plugin::{references, samples, types};
use crate::imports::resources::{MediaRef, ReferenceRef, SampleRef, TrajectoryRef};
use crate::imports::state::State;
use gavel_data::{CallTrace, Columns, Credit, Json, Message, Metric, PriorVerdict, Role, Sample, Score, ToolEnding};
use serde_json::Value;
use std::sync::Arc;
use wasmtime::Result;
use wasmtime::component::Resource;

impl State {
    /// Converts a message of a trajectory, or of the prompt.
    fn lower(
        &mut self,
        sample: &Arc<Sample>,
        trajectory: Option<usize>,
        index: usize,
        message: &Message,
    ) -> Result<types::Message> {
        self.lower_message(message, |part| Some(MediaRef { sample: sample.clone(), trajectory, message: index, part }))
    }

    /// Converts the messages of a task's prompt.
    fn lower_prompt(&mut self, sample: &Arc<Sample>) -> Result<Vec<types::Message>> {
        let prompt = sample.task.prompt.iter().enumerate();
        prompt.map(|(index, message)| self.lower(sample, None, index, message)).collect()
    }
}

fn prior_verdict(verdict: &PriorVerdict) -> types::PriorVerdict {
    match verdict {
        PriorVerdict::Scored(Score { value, metrics, credit, note, payload }) => {
            types::PriorVerdict::Scored(types::Score {
                value: *value,
                metrics: metrics
                    .iter()
                    .map(|Metric { name, value }| types::Metric { name: name.clone(), value: *value })
                    .collect(),
                credit: credit.iter().map(lowered_credit).collect(),
                note: note.clone(),
                payload: payload.as_deref().map(object_text),
            })
        }
        PriorVerdict::Abstained(reason) => types::PriorVerdict::Abstained(reason.clone()),
        PriorVerdict::NotCalled => types::PriorVerdict::NotCalled,
        PriorVerdict::NoVerdict => types::PriorVerdict::NoVerdict,
    }
}

/// The text of a JSON object.
fn object_text(object: &Columns) -> String {
    // Cannot fail: its keys are strings.
    serde_json::to_string(object).unwrap_or_default()
}

/// A function in the form that chat templates take, as the contract has it.
fn offered(tool: &Value) -> types::ToolSpec {
    let function = &tool["function"];
    let text = |key: &str| function[key].as_str().unwrap_or_default().to_owned();
    types::ToolSpec {
        name: text("name"),
        description: text("description"),
        parameters: function["parameters"].to_string(),
    }
}

fn ended_call(CallTrace { turn, function, ending }: &CallTrace) -> samples::EndedCall {
    let ending = match ending {
        ToolEnding::Answered => samples::CallEnding::Answered,
        ToolEnding::CalledWrongly => samples::CallEnding::CalledWrongly,
        ToolEnding::OutOfBudget => samples::CallEnding::OutOfBudget,
        ToolEnding::Unavailable => samples::CallEnding::Unavailable,
        ToolEnding::Failed => samples::CallEnding::Failed,
    };
    samples::EndedCall { turn: *turn, function: function.clone(), ending }
}

fn lowered_credit(credit: &Credit) -> types::Credit {
    let Credit { trajectory, message, start, end, value } = *credit;
    types::Credit { trajectory, message, start, end, value }
}

impl types::Host for State {}

impl types::HostMedia for State {
    fn media_type(&mut self, media: Resource<MediaRef>) -> Result<String> {
        Ok(self.table.get(&media)?.media().map(|media| media.media_type.clone()).unwrap_or_default())
    }

    fn size(&mut self, media: Resource<MediaRef>) -> Result<u64> {
        Ok(self.table.get(&media)?.media().map_or(0, |media| media.bytes.len() as u64))
    }

    fn read(&mut self, media: Resource<MediaRef>, offset: u64, length: u32) -> Result<Vec<u8>> {
        let bytes = self.table.get(&media)?.media().map_or(&[][..], |media| &media.bytes);
        let start = usize::try_from(offset).unwrap_or(usize::MAX).min(bytes.len());
        let end = start.saturating_add(length as usize).min(bytes.len());
        Ok(bytes[start..end].to_vec())
    }

    fn drop(&mut self, media: Resource<MediaRef>) -> Result<()> {
        self.table.delete(media)?;
        Ok(())
    }
}

impl samples::Host for State {}

impl samples::HostTrajectory for State {
    fn message_count(&mut self, trajectory: Resource<TrajectoryRef>) -> Result<u32> {
        Ok(self.table.get(&trajectory)?.get().messages.len() as u32)
    }

    fn message(&mut self, trajectory: Resource<TrajectoryRef>, index: u32) -> Result<Option<types::Message>> {
        let (sample, at) = {
            let trajectory = self.table.get(&trajectory)?;
            (trajectory.sample.clone(), trajectory.index)
        };
        match sample.trajectories[at].messages.get(index as usize) {
            Some(message) => self.lower(&sample, Some(at), index as usize, message).map(Some),
            None => Ok(None),
        }
    }

    fn response(&mut self, trajectory: Resource<TrajectoryRef>) -> Result<String> {
        Ok(self.table.get(&trajectory)?.get().response())
    }

    fn finish_reason(&mut self, trajectory: Resource<TrajectoryRef>) -> Result<types::FinishReason> {
        Ok(lower_finish_reason(self.table.get(&trajectory)?.get().finish_reason))
    }

    fn turns(&mut self, trajectory: Resource<TrajectoryRef>) -> Result<u32> {
        Ok(self.table.get(&trajectory)?.get().turns(Role::Assistant))
    }

    fn tool_turns(&mut self, trajectory: Resource<TrajectoryRef>) -> Result<u32> {
        Ok(self.table.get(&trajectory)?.get().turns(Role::Tool))
    }

    fn prompt_tokens(&mut self, trajectory: Resource<TrajectoryRef>) -> Result<Option<u32>> {
        Ok(self.table.get(&trajectory)?.get().tokens.as_ref().map(|tokens| tokens.counts().prompt))
    }

    fn response_tokens(&mut self, trajectory: Resource<TrajectoryRef>) -> Result<Option<u32>> {
        Ok(self.table.get(&trajectory)?.get().tokens.as_ref().map(|tokens| tokens.counts().response))
    }

    fn policy_version(&mut self, trajectory: Resource<TrajectoryRef>) -> Result<Option<u64>> {
        Ok(self.table.get(&trajectory)?.get().tokens.as_ref().and_then(|tokens| tokens.counts().policy_version))
    }

    fn speaker(&mut self, trajectory: Resource<TrajectoryRef>) -> Result<String> {
        let opening = &self.table.get(&trajectory)?.get().opening;
        Ok(opening.as_ref().map(|opening| opening.speaker.clone()).unwrap_or_default())
    }

    fn opening(&mut self, trajectory: Resource<TrajectoryRef>) -> Result<Vec<types::Message>> {
        let TrajectoryRef { sample, index } = self.table.get(&trajectory)?;
        let (sample, index) = (sample.clone(), *index);
        match &sample.trajectories[index].opening {
            // Agents open conversations with texts only.
            Some(opening) => opening.messages.iter().map(|message| self.lower_message(message, |_| None)).collect(),
            None => self.lower_prompt(&sample),
        }
    }

    fn functions(&mut self, trajectory: Resource<TrajectoryRef>) -> Result<Vec<types::ToolSpec>> {
        Ok(self.table.get(&trajectory)?.get().trace.tools.iter().map(offered).collect())
    }

    fn calls(&mut self, trajectory: Resource<TrajectoryRef>) -> Result<Vec<samples::EndedCall>> {
        Ok(self.table.get(&trajectory)?.get().trace.calls.iter().map(ended_call).collect())
    }

    fn turn_finish_reason(
        &mut self,
        trajectory: Resource<TrajectoryRef>,
        index: u32,
    ) -> Result<Option<types::FinishReason>> {
        let turn = self.table.get(&trajectory)?.get().trace.turn(index);
        Ok(turn.map(|turn| lower_finish_reason(turn.finish_reason)))
    }

    fn message_tokens(&mut self, trajectory: Resource<TrajectoryRef>, index: u32) -> Result<Option<u32>> {
        Ok(self.table.get(&trajectory)?.get().trace.turn(index).map(|turn| turn.tokens))
    }

    fn state(&mut self, trajectory: Resource<TrajectoryRef>, name: String) -> Result<Option<String>> {
        Ok(self.table.get(&trajectory)?.sample.states.get(&name).map(Json::as_text).map(str::to_owned))
    }

    fn drop(&mut self, trajectory: Resource<TrajectoryRef>) -> Result<()> {
        self.table.delete(trajectory)?;
        Ok(())
    }
}

impl samples::HostSample for State {
    fn task_id(&mut self, sample: Resource<SampleRef>) -> Result<String> {
        Ok(self.table.get(&sample)?.0.sample.task.id.clone())
    }

    fn data_source(&mut self, sample: Resource<SampleRef>) -> Result<Option<String>> {
        Ok(self.table.get(&sample)?.0.sample.task.data_source.clone())
    }

    fn group_index(&mut self, sample: Resource<SampleRef>) -> Result<u32> {
        Ok(self.table.get(&sample)?.0.sample.index)
    }

    fn prompt(&mut self, sample: Resource<SampleRef>) -> Result<Vec<types::Message>> {
        let sample = self.table.get(&sample)?.0.sample.clone();
        self.lower_prompt(&sample)
    }

    fn trajectory_count(&mut self, sample: Resource<SampleRef>) -> Result<u32> {
        Ok(self.table.get(&sample)?.0.sample.trajectories.len() as u32)
    }

    fn trajectory(&mut self, sample: Resource<SampleRef>, index: u32) -> Result<Option<Resource<TrajectoryRef>>> {
        let sample = self.table.get(&sample)?.0.sample.clone();
        let index = index as usize;
        if index >= sample.trajectories.len() {
            return Ok(None);
        }
        Ok(Some(self.table.push(TrajectoryRef { sample, index })?))
    }

    fn response(&mut self, sample: Resource<SampleRef>) -> Result<String> {
        Ok(self.table.get(&sample)?.0.sample.response())
    }

    fn extra(&mut self, sample: Resource<SampleRef>) -> Result<Option<String>> {
        Ok(self.table.get(&sample)?.0.sample.extra.as_ref().map(object_text))
    }

    fn verdict(&mut self, sample: Resource<SampleRef>, name: String) -> Result<Option<types::PriorVerdict>> {
        Ok(self.table.get(&sample)?.0.verdicts.get(&name).map(prior_verdict))
    }

    fn drop(&mut self, sample: Resource<SampleRef>) -> Result<()> {
        self.table.delete(sample)?;
        Ok(())
    }
}

impl references::Host for State {}

impl references::HostReference for State {
    fn ground_truth(&mut self, reference: Resource<ReferenceRef>) -> Result<Option<String>> {
        Ok(self.table.get(&reference)?.0.reference.ground_truth.clone())
    }

    fn column(&mut self, reference: Resource<ReferenceRef>, name: String) -> Result<Option<String>> {
        Ok(self.table.get(&reference)?.0.reference.columns.get(&name).map(|value| value.as_text().to_owned()))
    }

    fn column_names(&mut self, reference: Resource<ReferenceRef>) -> Result<Vec<String>> {
        Ok(self.table.get(&reference)?.0.reference.columns.names().map(str::to_owned).collect())
    }

    fn columns(&mut self, reference: Resource<ReferenceRef>) -> Result<String> {
        let task = &self.table.get(&reference)?.0;
        Ok(serde_json::to_string(&task.reference.columns)?)
    }

    fn drop(&mut self, reference: Resource<ReferenceRef>) -> Result<()> {
        self.table.delete(reference)?;
        Ok(())
    }
}
