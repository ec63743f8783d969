//! Builders of samples.

use crate::trajectory::{TrajectoryBuilder, trajectory};
use gavel_data::{
    Columns, Message, PriorVerdict, PriorVerdicts, Role, Sample, SampleInput, Task, ToolStates, Trajectory,
};
use serde_json::{Map, Value};
use std::sync::Arc;

/// A sample of one trajectory with one message, the policy's `response`.
pub fn sample(response: impl Into<String>) -> SampleBuilder {
    sample_of([trajectory().answers(response)])
}

/// A sample of these trajectories: an agent may open several.
pub fn sample_of(trajectories: impl IntoIterator<Item = TrajectoryBuilder>) -> SampleBuilder {
    SampleBuilder {
        prompt: Vec::new(),
        columns: Map::new(),
        group_index: 0,
        trajectories: trajectories.into_iter().map(TrajectoryBuilder::build).collect(),
        verdicts: PriorVerdicts::new(),
        extra: None,
        states: ToolStates::new(),
    }
}

/// One attempt at a task, and the dataset's row of the task.
#[derive(Debug, Clone)]
pub struct SampleBuilder {
    prompt: Vec<Message>,
    columns: Map<String, Value>,
    group_index: u32,
    trajectories: Vec<Trajectory>,
    verdicts: PriorVerdicts,
    extra: Option<Columns>,
    states: ToolStates,
}

impl SampleBuilder {
    /// Adds a message of the user to the prompt.
    pub fn prompt(self, text: impl Into<String>) -> Self {
        self.prompt_message(Message::new(Role::User, text))
    }

    /// Adds a message to the prompt.
    pub fn prompt_message(mut self, message: Message) -> Self {
        self.prompt.push(message);
        self
    }

    /// The right answer: the column `ground_truth`. It may be any JSON.
    pub fn ground_truth(self, truth: impl Into<Value>) -> Self {
        self.column("ground_truth", truth)
    }

    /// The origin of the row, such as `openai/gsm8k`.
    pub fn data_source(self, name: impl Into<String>) -> Self {
        self.column("data_source", name.into())
    }

    /// The id of the task; `test/row-0` by default.
    pub fn id(self, id: impl Into<String>) -> Self {
        self.column("id", id.into())
    }

    /// A column of the row.
    pub fn column(mut self, name: impl Into<String>, value: impl Into<Value>) -> Self {
        self.columns.insert(name.into(), value.into());
        self
    }

    /// The number of the sample in its group; 0 by default.
    pub fn group_index(mut self, index: u32) -> Self {
        self.group_index = index;
        self
    }

    /// The verdict of another reward, for a judger that comes after that
    /// reward: a score, or any [`PriorVerdict`].
    pub fn verdict(mut self, name: impl Into<String>, verdict: impl Into<PriorVerdict>) -> Self {
        self.verdicts.insert(name.into(), verdict.into());
        self
    }

    /// The state in which the tool `name` ended.
    pub fn state(mut self, name: impl Into<String>, state: impl Into<Value>) -> Self {
        let state: Value = state.into();
        self.states.insert(name.into(), state.into());
        self
    }

    /// The object that the agent returned beside its answer.
    pub fn extra(mut self, extra: Map<String, Value>) -> Self {
        self.extra = Some(extra.into());
        self
    }

    /// The sample, without the verdicts of other rewards.
    pub fn build(self) -> Sample {
        let Self { prompt, mut columns, group_index, trajectories, verdicts: _, extra, states } = self;
        if !prompt.is_empty() && !columns.contains_key("prompt") {
            // Any message can be written as JSON.
            columns.insert("prompt".into(), serde_json::to_value(&prompt).unwrap_or_default());
        }
        let task = Task::with_prompt(columns.into(), prompt, 0, "test");
        Sample { extra, states, ..Sample::new(Arc::new(task), group_index, trajectories) }
    }
}

impl From<SampleBuilder> for Arc<Sample> {
    fn from(builder: SampleBuilder) -> Self {
        Arc::new(builder.build())
    }
}

impl From<SampleBuilder> for SampleInput {
    fn from(mut builder: SampleBuilder) -> Self {
        let verdicts = Arc::new(std::mem::take(&mut builder.verdicts));
        Self { verdicts, ..builder.build().into() }
    }
}

impl From<&SampleBuilder> for SampleInput {
    fn from(builder: &SampleBuilder) -> Self {
        builder.clone().into()
    }
}

impl From<&SampleBuilder> for Arc<Sample> {
    fn from(builder: &SampleBuilder) -> Self {
        builder.clone().into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gavel_data::ContentPart;
    use serde_json::json;

    #[test]
    fn a_sample_is_what_a_dataset_s_row_would_be() {
        let built =
            sample("4").prompt("2 + 2?").ground_truth(4).data_source("sums").column("level", json!([1])).build();
        let row = json!({
            "ground_truth": 4, "data_source": "sums", "level": [1], "prompt": [{"role": "user", "content": "2 + 2?"}]
        });
        let row = serde_json::from_value(row).unwrap();
        assert_eq!(*built.task, Task::from_row(row, 0, "test").unwrap());
        assert_eq!((built.response(), built.index), ("4".to_owned(), 0));
    }

    #[test]
    fn a_trajectory_has_its_turns_tokens_and_attachments() {
        let built = sample_of([
            trajectory()
                .calls_tool("c1", "look", json!({"at": "x"}))
                .tool_answers("c1", "a cat")
                .attaches("image/png", [1, 2])
                .answers("It is a cat.")
                .tokens(7, 5)
                .policy_version(3)
                .finish(gavel_data::FinishReason::Length),
            trajectory().answers("second"),
        ])
        .group_index(2)
        .build();
        let first = &built.trajectories[0];
        let roles: Vec<_> = first.messages.iter().map(|message| message.role).collect();
        assert_eq!(roles, [Role::Assistant, Role::Tool, Role::User, Role::Assistant]);
        assert_eq!(first.messages[0].tool_calls[0].arguments, r#"{"at":"x"}"#);
        assert!(matches!(&first.messages[2].content[0], ContentPart::Media(media) if *media.bytes == [1, 2]));
        let counts = first.tokens.as_ref().unwrap().counts();
        assert_eq!((counts.prompt, counts.response, counts.policy_version), (7, 5, Some(3)));
        assert_eq!((built.index, built.trajectories.len()), (2, 2));
    }
}
