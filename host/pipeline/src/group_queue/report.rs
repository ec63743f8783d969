//! What the samples in flight wait for, in words.

use super::{GroupQueue, SampleState};
use gavel_agent::{EpisodeWait, WaitsFor};
use gavel_plugin::OutsideWait;
use std::time::Instant;

/// An endpoint that a judge or a tool waits for.
fn describe(who: &str, OutsideWait { endpoint, is_queued, .. }: &OutsideWait) -> String {
    let what = if *is_queued { "its turn at" } else { "the answer of" };
    format!("{what} the endpoint {endpoint}, for {who}")
}

impl GroupQueue {
    /// Logs what the samples in flight wait for and since when: the `most` longest waits, the longest first.
    pub(super) fn report(&self, most: usize) {
        let mut waits = Vec::new();
        let memory = match self.rollout.logic.agent() {
            None => "memory for its tools",
            Some(_) => "memory for its agent and tools",
        };
        let [mut of_group, mut of_batch] = [0, 0];
        for (draw, group) in &self.groups {
            let (step, number) = self.numbering.place(*draw);
            for (index, sample) in group.samples.iter().enumerate() {
                let mut wait = |what: &str, since: Instant| {
                    waits.push((since.elapsed().as_secs_f64(), format!("sample {step}.{number}.{index}: {what}")));
                };
                match &sample.state {
                    SampleState::Drawing(progress) => {
                        let EpisodeWait { what, since } = progress.now();
                        match (&what, progress.outside()) {
                            // The whole draw, with its wait for the device.
                            (WaitsFor::Policy, _) => wait("generation", sample.since),
                            (WaitsFor::Memory, _) => wait(memory, since),
                            (WaitsFor::Agent, None) => wait("its agent", since),
                            (WaitsFor::Agent, Some(outside)) => wait(&describe("its agent", &outside), outside.since),
                            (WaitsFor::Tools(names), None) => wait(&format!("tool {}", names.join(", ")), since),
                            (WaitsFor::Tools(names), Some(outside)) => {
                                wait(&describe(&format!("tool {}", names.join(", ")), &outside), outside.since);
                            }
                        }
                    }
                    SampleState::Scoring(_, progress) => match progress.waits() {
                        // Who caused a failure is known once others of the group have ended.
                        none if none.is_empty() => of_group += 1,
                        waits => waits.iter().for_each(|asked| match &asked.outside {
                            None => wait(&format!("reward {}", asked.judge), asked.since),
                            Some(outside) => {
                                wait(&describe(&format!("reward {}", asked.judge), outside), outside.since)
                            }
                        }),
                    },
                    SampleState::Done(_) if self.whole.contains(draw) => of_batch += 1,
                    SampleState::Done(_) => of_group += 1,
                }
            }
        }
        waits.sort_by(|a, b| b.0.total_cmp(&a.0));
        let shown = waits.iter().take(most).map(|(seconds, what)| format!("\n  {what}, {seconds:.1} s"));
        let left = waits.len().saturating_sub(most);
        let more = if left > 0 { format!("\n  and {left} more") } else { String::new() };
        tracing::info!(
            "{} waits, {of_group} samples that wait for their group, {of_batch} for their batch{}{more}",
            waits.len(),
            shown.collect::<String>()
        );
    }
}
