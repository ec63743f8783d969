//! `queue.jsonl` of a checkpoint: the groups that were drawn but not trained on yet, a line each.

use crate::error::{Result, RunError};
use crate::samples::packed::PackedTokens;
use gavel_data::files::{open_regular, read_line};
use gavel_data::{
    Columns, FinishReason, KnownTokens, Message, Opening, RolloutReport, SampleOutcome, ToolStates, Trace, Trajectory,
};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::fs::File;
use std::io::{BufReader, BufWriter, ErrorKind, Write};
use std::path::Path;

const FILE: &str = "queue.jsonl";

/// A group that was started but not trained on yet.
#[derive(Debug, Clone, PartialEq)]
pub struct QueuedGroup {
    /// The number of its draw in the run.
    pub draw: u64,
    /// The number of its row, if a sampler drew it; otherwise the row follows from the draw.
    pub row: Option<u64>,
    /// The version of the policy that it was started under.
    pub version: u64,
    /// Its samples that are drawn or being drawn again.
    pub samples: Vec<QueuedSample>,
}

/// A sample that is drawn, or is being drawn again.
#[derive(Debug, Clone, PartialEq)]
pub struct QueuedSample {
    /// Its number in its group.
    pub index: u32,
    /// How many times it was drawn again.
    pub retry: u32,
    /// Its trajectories, with their tokens; empty while it is being drawn
    /// again.
    pub trajectories: Vec<Trajectory>,
    /// The response that an agent gave.
    pub answer: Option<String>,
    /// The JSON object that an agent returned beside it.
    pub extra: Option<Columns>,
    /// The states in which its tools ended.
    pub states: ToolStates,
    /// Its outcome, once every plugin has scored it.
    pub outcome: Option<SampleOutcome>,
}

#[derive(Serialize, Deserialize)]
struct Line<'a> {
    draw: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    row: Option<u64>,
    version: u64,
    samples: Vec<SampleEntry<'a>>,
}

#[derive(Serialize, Deserialize)]
struct SampleEntry<'a> {
    sample: u32,
    retry: u32,
    trajectories: Vec<TrajectoryEntry<'a>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    answer: Option<Cow<'a, str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    extra: Option<Cow<'a, Columns>>,
    #[serde(default, skip_serializing_if = "ToolStates::is_empty")]
    states: Cow<'a, ToolStates>,
    outcome: Option<Cow<'a, SampleOutcome>>,
}

#[derive(Serialize, Deserialize)]
struct TrajectoryEntry<'a> {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    opening: Option<Cow<'a, Opening>>,
    messages: Cow<'a, [Message]>,
    #[serde(default, skip_serializing_if = "<[u32]>::is_empty")]
    by_agent: Cow<'a, [u32]>,
    finish_reason: FinishReason,
    token_ids: Option<PackedTokens>,
    #[serde(default, skip_serializing_if = "Trace::is_empty")]
    trace: Cow<'a, Trace>,
    #[serde(default)]
    rollout: Cow<'a, RolloutReport>,
}

impl<'a> From<&'a QueuedGroup> for Line<'a> {
    fn from(group: &'a QueuedGroup) -> Self {
        let trajectory = |trajectory: &'a Trajectory| TrajectoryEntry {
            opening: trajectory.opening.as_ref().map(Cow::Borrowed),
            messages: Cow::Borrowed(&trajectory.messages),
            by_agent: Cow::Borrowed(&trajectory.by_agent),
            finish_reason: trajectory.finish_reason,
            token_ids: trajectory.tokens().map(PackedTokens::with_masks),
            trace: Cow::Borrowed(&trajectory.trace),
            rollout: Cow::Borrowed(&trajectory.report),
        };
        let sample = |sample: &'a QueuedSample| SampleEntry {
            sample: sample.index,
            retry: sample.retry,
            trajectories: sample.trajectories.iter().map(trajectory).collect(),
            answer: sample.answer.as_deref().map(Cow::Borrowed),
            extra: sample.extra.as_ref().map(Cow::Borrowed),
            states: Cow::Borrowed(&sample.states),
            outcome: sample.outcome.as_ref().map(Cow::Borrowed),
        };
        let QueuedGroup { draw, row, version, samples } = group;
        Self { draw: *draw, row: *row, version: *version, samples: samples.iter().map(sample).collect() }
    }
}

impl Line<'_> {
    fn into_group(self) -> std::result::Result<QueuedGroup, String> {
        let trajectory = |entry: TrajectoryEntry<'_>| {
            let tokens = entry.token_ids.map(|packed| packed.unpack()).transpose()?.map(KnownTokens::Full);
            Ok::<_, String>(Trajectory {
                opening: entry.opening.map(Cow::into_owned),
                report: entry.rollout.into_owned(),
                messages: entry.messages.into_owned(),
                by_agent: entry.by_agent.into_owned(),
                tokens,
                finish_reason: entry.finish_reason,
                trace: entry.trace.into_owned(),
            })
        };
        let sample = |entry: SampleEntry<'_>| {
            let trajectories = entry.trajectories.into_iter().map(trajectory).collect::<std::result::Result<_, _>>()?;
            Ok::<_, String>(QueuedSample {
                index: entry.sample,
                retry: entry.retry,
                answer: entry.answer.map(Cow::into_owned),
                extra: entry.extra.map(Cow::into_owned),
                states: entry.states.into_owned(),
                trajectories,
                outcome: entry.outcome.map(Cow::into_owned),
            })
        };
        let samples = self.samples.into_iter().map(sample).collect::<std::result::Result<_, _>>()?;
        Ok(QueuedGroup { draw: self.draw, row: self.row, version: self.version, samples })
    }
}

impl QueuedGroup {
    /// Writes groups, a line each.
    ///
    /// # Errors
    /// `out` cannot be written.
    pub fn write_all(groups: &[Self], mut out: impl Write) -> std::io::Result<()> {
        for group in groups {
            serde_json::to_writer(&mut out, &Line::from(group))?;
            out.write_all(b"\n")?;
        }
        out.flush()
    }

    /// Reads the line of a group.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn read(line: &[u8]) -> std::result::Result<Self, String> {
        serde_json::from_slice::<Line<'_>>(line).map_err(|error| error.to_string()).and_then(Line::into_group)
    }
}

/// Writes the groups into a checkpoint's folder.
pub(crate) fn write(folder: &Path, groups: &[QueuedGroup]) -> Result<()> {
    let path = folder.join(FILE);
    File::create(&path)
        .and_then(|file| QueuedGroup::write_all(groups, BufWriter::new(file)))
        .map_err(RunError::io("write", &path))
}

/// Reads the groups of a checkpoint; older checkpoints have none.
pub(crate) fn read(folder: &Path) -> Result<Vec<QueuedGroup>> {
    let path = folder.join(FILE);
    let mut file = match open_regular(&path) {
        Ok(file) => BufReader::new(file),
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(RunError::io("read", &path)(error)),
    };
    let (mut groups, mut line) = (Vec::new(), Vec::new());
    for number in 1.. {
        if read_line(&mut file, &mut line).map_err(RunError::io("read", &path))? == 0 {
            break;
        }
        let text = line.strip_suffix(b"\n").unwrap_or(&line);
        groups
            .push(QueuedGroup::read(text).map_err(|what| RunError::damaged(&path, format!("line {number}: {what}")))?);
    }
    Ok(groups)
}

#[cfg(test)]
mod tests {
    use super::*;
    use gavel_data::{Opening, OutcomeKind, Role, SamplingMask, SamplingMasks, Tokens};
    use std::sync::Arc;

    #[test]
    fn groups_come_back_with_their_tokens_and_outcomes() {
        let mut masks = SamplingMasks::new();
        masks.push(&SamplingMask::Except(vec![5, 9]));
        let tokens = Tokens {
            prompt: vec![1, 2],
            response: vec![3, 4],
            loss_mask: vec![true, false],
            logprobs: vec![-0.1, 0.0],
            versions: vec![7, 8],
            masks,
        };
        let trajectory = Trajectory {
            opening: Some(Opening { speaker: "pro".into(), messages: vec![Message::new(Role::User, "q")] }),
            report: Default::default(),
            messages: vec![Message::new(Role::Assistant, "a\n\u{0}"), Message::new(Role::Assistant, "b")],
            by_agent: vec![1],
            tokens: Some(tokens.into()),
            finish_reason: FinishReason::Length,
            trace: Trace { tools: Arc::from([serde_json::json!({"x": 0.1})]), ..Trace::default() },
        };
        let sample = |index, outcome| QueuedSample {
            index,
            retry: 1,
            trajectories: vec![trajectory.clone()],
            answer: Some("a".into()),
            extra: Some(serde_json::from_str(r#"{"plan": 1.50}"#).unwrap()),
            states: [("shop".to_owned(), "sold".into())].into(),
            outcome,
        };
        let scored = SampleOutcome::without_calls(OutcomeKind::Unavailable, "down");
        let groups = vec![
            QueuedGroup { draw: 5, row: Some(9), version: 7, samples: vec![sample(0, Some(scored)), sample(2, None)] },
            QueuedGroup { draw: 6, row: None, version: 7, samples: vec![] },
        ];
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(read(folder.path()).unwrap(), []);
        write(folder.path(), &groups).unwrap();
        assert_eq!(read(folder.path()).unwrap(), groups);
        std::fs::write(folder.path().join(FILE), "{}\n").unwrap();
        assert!(read(folder.path()).unwrap_err().to_string().contains("line 1: missing field `draw`"));
    }
}
