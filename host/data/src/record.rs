//! A sample as a plugin sees it, for keeping: what a call's input is rebuilt
//! from, and what its hash is taken of.

use crate::message::Message;
use crate::sample::{FinishReason, Sample, Trajectory};
use crate::task::Task;
use crate::tokens::{KnownTokens, TokenCounts};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::sync::Arc;

/// A [`Sample`] without what no plugin can see (token ids, log-probabilities).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SampleRecord<'a> {
    /// What was attempted.
    pub task: Cow<'a, Task>,
    /// The number of the sample in its group.
    pub index: u32,
    /// What came of it.
    pub trajectories: Vec<TrajectoryRecord<'a>>,
}

/// A [`Trajectory`] without its tokens.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TrajectoryRecord<'a> {
    /// The messages after the prompt.
    pub messages: Cow<'a, [Message]>,
    /// Why it ended.
    pub finish_reason: FinishReason,
    /// What is known of its tokens, where a policy of the run wrote it.
    pub tokens: Option<TokenCounts>,
}

impl Sample {
    /// The sample for keeping.
    pub fn record(&self) -> SampleRecord<'_> {
        let trajectories = self
            .trajectories
            .iter()
            .map(|trajectory| TrajectoryRecord {
                messages: Cow::Borrowed(&trajectory.messages[..]),
                finish_reason: trajectory.finish_reason,
                tokens: trajectory.tokens.as_ref().map(KnownTokens::counts),
            })
            .collect();
        SampleRecord { task: Cow::Borrowed(&self.task), index: self.index, trajectories }
    }

    /// BLAKE3 of the sample and its reference as a plugin sees them, in
    /// hexadecimal.
    pub fn hash(&self) -> String {
        let mut hasher = blake3::Hasher::new();
        // A hasher takes every byte, and a record has only string keys: this cannot fail.
        let _ = serde_json::to_writer(&mut hasher, &self.record());
        hasher.finalize().to_hex().to_string()
    }
}

impl From<TrajectoryRecord<'_>> for Trajectory {
    /// Of the tokens come back how many there are.
    fn from(record: TrajectoryRecord<'_>) -> Self {
        Trajectory {
            messages: record.messages.into_owned(),
            tokens: record.tokens.map(KnownTokens::Counts),
            finish_reason: record.finish_reason,
        }
    }
}

impl From<SampleRecord<'_>> for Sample {
    fn from(record: SampleRecord<'_>) -> Self {
        let trajectories = record.trajectories.into_iter().map(Trajectory::from).collect();
        Sample { task: Arc::new(record.task.into_owned()), index: record.index, trajectories }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::Role;
    use crate::tokens::Tokens;

    fn sample() -> Sample {
        let row = serde_json::json!({"prompt": "q", "answer": "1", "weights": [0.1, 1e-300, 2.5e17], "none": null});
        let task = Task::from_row(serde_json::from_value(row).unwrap(), 3, "train").unwrap();
        let tokens = Tokens {
            prompt: vec![5, 6],
            response: vec![7, 8, 9],
            loss_mask: vec![true, false, true],
            logprobs: vec![-0.5; 3],
            versions: vec![4, 4, 5],
        };
        let trajectory = Trajectory {
            messages: vec![Message::new(Role::Assistant, "ä\u{0}")],
            tokens: Some(tokens.into()),
            finish_reason: FinishReason::Length,
        };
        Sample { task: Arc::new(task), index: 2, trajectories: vec![trajectory] }
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
        assert!(changed(|sample| sample.trajectories[0].tokens = None));
        assert!(changed(|sample| {
            Arc::make_mut(&mut sample.task).reference.columns.insert("new", serde_json::Value::Bool(true));
        }));
        assert!(!changed(|sample| {
            let Some(KnownTokens::Full(tokens)) = &mut sample.trajectories[0].tokens else { panic!("no tokens") };
            tokens.logprobs[0] = 0.0;
        }));
    }
}
