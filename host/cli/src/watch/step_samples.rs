//! The best and the worst sample of a step, and the first that has no score.

use anyhow::Result;
use gavel_data::Role;
use gavel_runs::{RecordedSample, SampleReader};
use std::path::Path;

/// The most samples of a step that are read.
const MOST_SAMPLES: usize = 2048;

/// A sample in few words.
pub struct ShortSample {
    pub id: String,
    pub reward: Option<f64>,
    /// Why it has no reward, or the last text that the policy wrote.
    pub text: String,
}

/// The samples of a step.
pub struct StepSamples {
    pub step: u64,
    pub best: Option<ShortSample>,
    pub worst: Option<ShortSample>,
    /// The first without a reward.
    pub unscored: Option<ShortSample>,
}

impl StepSamples {
    /// The samples of the newest step of `run` that recorded some. Of a large step, the first are read.
    ///
    /// # Errors
    /// A file cannot be read.
    pub fn newest(run: &Path) -> Result<Option<Self>> {
        let reader = SampleReader::open_for_few(run)?;
        let Some(step) = reader.steps().last() else { return Ok(None) };
        let mut found = Self { step, best: None, worst: None, unscored: None };
        for sample in reader.samples(step)?.take(MOST_SAMPLES) {
            found.add(&sample?);
        }
        Ok(Some(found))
    }

    fn add(&mut self, sample: &RecordedSample) {
        let Some(reward) = sample.reward else {
            let text = || format!("{}: {}", sample.outcome.as_str(), sample.reason.as_deref().unwrap_or("no reason"));
            self.unscored.get_or_insert_with(|| ShortSample { id: sample.id.clone(), reward: None, text: text() });
            return;
        };
        let short = || ShortSample { id: sample.id.clone(), reward: Some(reward), text: last_text(sample) };
        let is_beyond = |known: &Option<ShortSample>, sign: f64| {
            known.as_ref().and_then(|known| known.reward).is_none_or(|known| sign * reward > sign * known)
        };
        if is_beyond(&self.best, 1.0) {
            self.best = Some(short());
        }
        if is_beyond(&self.worst, -1.0) {
            self.worst = Some(short());
        }
    }
}

/// The last text that the policy wrote.
fn last_text(sample: &RecordedSample) -> String {
    let mut messages = sample.sample.trajectories.iter().flat_map(|trajectory| &trajectory.messages);
    messages.rfind(|message| message.role == Role::Assistant).map(|message| message.text()).unwrap_or_default()
}
