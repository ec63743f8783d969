//! The record of a sample as a plugin sees it. A call's input is rebuilt from
//! it, and the hash of the input is computed from it.

use crate::finish_reason::FinishReason;
use crate::json::Columns;
use crate::message::Message;
use crate::sample::{Opening, Sample, ToolStates, Trajectory};
use crate::task::Task;
use crate::tokens::{KnownTokens, TokenCounts};
use crate::trace::Trace;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::io::{BufWriter, Write};
use std::sync::Arc;

/// Bytes of a record that are hashed at once.
const HASHED_AT_ONCE: usize = 16 << 10;

/// A [`Sample`] without token ids and log-probabilities, which no plugin can see.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SampleRecord<'a> {
    /// The task.
    pub task: Cow<'a, Task>,
    /// The number of the sample in its group.
    pub index: u32,
    /// The conversations.
    pub trajectories: Vec<TrajectoryRecord<'a>>,
    /// The response that an agent gave.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<Cow<'a, str>>,
    /// The JSON object that an agent returned beside it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub extra: Option<Cow<'a, Columns>>,
    /// The states in which its tools ended.
    #[serde(default, skip_serializing_if = "ToolStates::is_empty")]
    pub states: Cow<'a, ToolStates>,
}

/// A [`Trajectory`] without its tokens.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TrajectoryRecord<'a> {
    /// How it began, where an agent opened it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub opening: Option<Cow<'a, Opening>>,
    /// The messages after the prompt.
    pub messages: Cow<'a, [Message]>,
    /// The numbers of the assistant's messages that an agent wrote.
    #[serde(default, skip_serializing_if = "<[u32]>::is_empty")]
    pub by_agent: Cow<'a, [u32]>,
    /// Why it ended.
    pub finish_reason: FinishReason,
    /// The counts of its tokens, where a policy of the run wrote it.
    pub tokens: Option<TokenCounts>,
    /// What plugins can see of it beside its messages.
    #[serde(default, skip_serializing_if = "Trace::is_empty")]
    pub trace: Cow<'a, Trace>,
}

impl Sample {
    /// The record of the sample.
    pub fn record(&self) -> SampleRecord<'_> {
        let trajectories = self
            .trajectories
            .iter()
            .map(|trajectory| TrajectoryRecord {
                opening: trajectory.opening.as_ref().map(Cow::Borrowed),
                messages: Cow::Borrowed(&trajectory.messages[..]),
                by_agent: Cow::Borrowed(&trajectory.by_agent[..]),
                finish_reason: trajectory.finish_reason,
                tokens: trajectory.tokens.as_ref().map(KnownTokens::counts),
                trace: Cow::Borrowed(&trajectory.trace),
            })
            .collect();
        let answer = self.answer.as_deref().map(Cow::Borrowed);
        let extra = self.extra.as_ref().map(Cow::Borrowed);
        let states = Cow::Borrowed(&self.states);
        SampleRecord { task: Cow::Borrowed(&self.task), index: self.index, trajectories, answer, extra, states }
    }

    /// BLAKE3 of the sample and its reference as a plugin sees them, in
    /// hexadecimal.
    pub fn hash(&self) -> String {
        let mut hasher = blake3::Hasher::new();
        // Small pieces would be hashed one by one, and large ones are hashed in parallel.
        let mut buffered = BufWriter::with_capacity(HASHED_AT_ONCE, &mut hasher);
        // Neither can fail: a hasher takes every byte, and a record has only string keys.
        let _ = serde_json::to_writer(&mut buffered, &self.record());
        let _ = buffered.flush();
        drop(buffered);
        hasher.finalize().to_hex().to_string()
    }
}

impl From<TrajectoryRecord<'_>> for Trajectory {
    /// Of the tokens, only the counts are restored.
    fn from(record: TrajectoryRecord<'_>) -> Self {
        Trajectory {
            opening: record.opening.map(Cow::into_owned),
            report: Default::default(),
            messages: record.messages.into_owned(),
            by_agent: record.by_agent.into_owned(),
            tokens: record.tokens.map(KnownTokens::Counts),
            finish_reason: record.finish_reason,
            trace: record.trace.into_owned(),
        }
    }
}

impl From<SampleRecord<'_>> for Sample {
    fn from(record: SampleRecord<'_>) -> Self {
        let trajectories = record.trajectories.into_iter().map(Trajectory::from).collect();
        let answer = record.answer.map(Cow::into_owned);
        let extra = record.extra.map(Cow::into_owned);
        let states = record.states.into_owned();
        Sample { answer, extra, states, ..Sample::new(Arc::new(record.task.into_owned()), record.index, trajectories) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::Role;
    use crate::rollout_report::ToolEnding;
    use crate::sampling_masks::SamplingMasks;
    use crate::tokens::Tokens;
    use crate::trace::{CallTrace, TurnTrace};

    fn sample() -> Sample {
        let row = serde_json::json!({"prompt": "q", "answer": "1", "weights": [0.1, 1e-300, 2.5e17], "none": null});
        let task = Task::from_row(serde_json::from_value(row).unwrap(), 3, "train").unwrap();
        let tokens = Tokens {
            prompt: vec![5, 6],
            response: vec![7, 8, 9],
            loss_mask: vec![true, false, true],
            logprobs: vec![-0.5; 3],
            versions: vec![4, 4, 5],
            masks: SamplingMasks::new(),
        };
        let trajectory = Trajectory {
            opening: None,
            report: Default::default(),
            messages: vec![Message::new(Role::Assistant, "ä\u{0}")],
            by_agent: Vec::new(),
            tokens: Some(tokens.into()),
            finish_reason: FinishReason::Length,
            trace: Trace {
                tools: Arc::from([serde_json::json!({"type": "function", "function": {"name": "f", "x": 0.1}})]),
                turns: vec![TurnTrace { message: 0, tokens: 2, finish_reason: FinishReason::Length }],
                calls: vec![CallTrace { turn: 0, function: None, ending: ToolEnding::CalledWrongly }],
            },
        };
        let extra = serde_json::from_str(r#"{"plan": 1.50}"#).unwrap();
        let states = [("shop".to_owned(), serde_json::json!({"sold": [4.5]}).into())].into();
        Sample { extra: Some(extra), states, ..Sample::new(Arc::new(task), 2, vec![trajectory]) }
    }

    #[test]
    fn a_record_comes_back_as_the_same_input() {
        let sample = sample();
        let text = serde_json::to_string(&sample.record()).unwrap();
        let back = Sample::from(serde_json::from_str::<SampleRecord>(&text).unwrap());
        assert_eq!((back.record(), back.hash()), (sample.record(), sample.hash()));
    }

    #[test]
    fn whatever_a_plugin_can_see_changes_the_hash() {
        let hash = sample().hash();
        let changed = |change: fn(&mut Sample)| {
            let mut sample = sample();
            change(&mut sample);
            sample.hash() != hash
        };
        assert!(changed(|sample| sample.index = 3));
        assert!(changed(|sample| sample.trajectories[0].messages[0] = Message::new(Role::Assistant, "b")));
        assert!(changed(|sample| sample.trajectories[0].finish_reason = FinishReason::Stop));
        assert!(changed(|sample| sample.trajectories[0].by_agent = vec![0]));
        assert!(changed(|sample| sample.trajectories[0].tokens = None));
        assert!(changed(|sample| sample.trajectories[0].trace.tools = Arc::from([])));
        assert!(changed(|sample| sample.trajectories[0].trace.turns[0].tokens = 3));
        assert!(changed(|sample| sample.trajectories[0].trace.calls[0].ending = ToolEnding::Failed));
        assert!(changed(|sample| sample.states.clear()));
        assert!(changed(|sample| sample.extra = None));
        assert!(changed(|sample| {
            Arc::make_mut(&mut sample.task).reference.columns.insert("new", serde_json::Value::Bool(true));
        }));
        assert!(!changed(|sample| {
            let Some(KnownTokens::Full(tokens)) = &mut sample.trajectories[0].tokens else { panic!("no tokens") };
            tokens.logprobs[0] = 0.0;
        }));
    }
}
