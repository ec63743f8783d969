//! What was said and what was thought of it: a line a trajectory.

use crate::error::{PipelineError, Result};
use crate::rollout::Rolled;
use gavel_data::{FinishReason, Message, SampleOutcome};
use serde::Serialize;
use std::io::{BufWriter, Write};
use std::path::Path;

#[derive(Serialize)]
struct Line<'a> {
    task_id: &'a str,
    data_source: Option<&'a str>,
    step: u64,
    sample: u32,
    trajectory: usize,
    prompt: &'a [Message],
    messages: &'a [Message],
    response: String,
    finish_reason: FinishReason,
    prompt_length: usize,
    response_length: usize,
    policy_version: Option<u64>,
    advantage: Option<f64>,
    #[serde(flatten)]
    outcome: &'a SampleOutcome,
}

/// Writes the trajectories of a step; `advantages` are absent for samples that
/// no update learned from.
pub(crate) fn write(path: &Path, step: u64, rolled: &[Rolled], advantages: &[Option<f64>]) -> Result<()> {
    let file = std::fs::File::create(path).map_err(PipelineError::io("write", path))?;
    let mut out = BufWriter::new(file);
    for (Rolled { sample, outcome }, advantage) in rolled.iter().zip(advantages) {
        for (number, trajectory) in sample.trajectories.iter().enumerate() {
            let tokens = trajectory.tokens.as_ref();
            let line = Line {
                task_id: &sample.task.id,
                data_source: sample.task.data_source.as_deref(),
                step,
                sample: sample.index,
                trajectory: number,
                prompt: &sample.task.prompt,
                messages: &trajectory.messages,
                response: trajectory.response(),
                finish_reason: trajectory.finish_reason,
                prompt_length: tokens.map_or(0, |tokens| tokens.prompt.len()),
                response_length: tokens.map_or(0, |tokens| tokens.response.len()),
                policy_version: tokens.and_then(|tokens| tokens.versions.first().copied()),
                advantage: *advantage,
                outcome,
            };
            serde_json::to_writer(&mut out, &line)
                .map_err(std::io::Error::from)
                .and_then(|()| out.write_all(b"\n"))
                .map_err(PipelineError::io("write", path))?;
        }
    }
    out.flush().map_err(PipelineError::io("write", path))
}
