//! The host's side of `types`, `samples` and `references`. A guest holds handles;
//! their contents stay in the host and are read piece by piece.

use super::messages::lower_finish_reason;
use crate::bindings::gavel::plugin::{references, samples, types};
use crate::imports::resources::{MediaRef, ReferenceRef, SampleRef, TrajectoryRef};
use crate::imports::state::State;
use gavel_data::{Credit, Message, Metric, PriorVerdict, Role, Sample, Score};
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
}

fn prior_verdict(verdict: &PriorVerdict) -> types::PriorVerdict {
    match verdict {
        PriorVerdict::Scored(Score { value, metrics, credit, note }) => types::PriorVerdict::Scored(types::Score {
            value: *value,
            metrics: metrics
                .iter()
                .map(|Metric { name, value }| types::Metric { name: name.clone(), value: *value })
                .collect(),
            credit: credit.iter().map(lowered_credit).collect(),
            note: note.clone(),
        }),
        PriorVerdict::Abstained(reason) => types::PriorVerdict::Abstained(reason.clone()),
        PriorVerdict::NotCalled => types::PriorVerdict::NotCalled,
        PriorVerdict::NoVerdict => types::PriorVerdict::NoVerdict,
    }
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
        sample
            .task
            .prompt
            .iter()
            .enumerate()
            .map(|(index, message)| self.lower(&sample, None, index, message))
            .collect()
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
