//! What the samples in flight wait for, in words.

use super::{GroupQueue, SampleState};
use crate::samples::{of_draw, of_score};

impl GroupQueue {
    /// Logs what the samples in flight wait for and since when: the `most` longest waits, the longest first.
    pub(super) fn report(&self, most: usize) {
        let mut waits = self.rollout.validating.now();
        let [mut of_group, mut of_batch] = [0, 0];
        for (draw, group) in &self.groups {
            let (step, number) = self.numbering.place(*draw);
            for (index, sample) in group.samples.iter().enumerate() {
                let id = format!("{step}.{number}.{index}");
                match &sample.state {
                    SampleState::Drawing(progress) => waits.push((id, of_draw(progress, sample.since))),
                    SampleState::Scoring(_, progress) => match of_score(progress) {
                        // The sample failed: who caused that is known once others of the group have ended.
                        none if none.is_empty() => of_group += 1,
                        found => waits.extend(found.into_iter().map(|wait| (id.clone(), wait))),
                    },
                    SampleState::Done(_) if self.whole.contains(draw) => of_batch += 1,
                    SampleState::Done(_) => of_group += 1,
                }
            }
        }
        waits.sort_by_key(|(_, (since, _))| *since);
        let shown = waits.iter().take(most).map(|(id, (since, what))| {
            let seconds = since.elapsed().as_secs_f64();
            format!("\n  sample {id}: {what}, {seconds:.1} s")
        });
        let left = waits.len().saturating_sub(most);
        let more = if left > 0 { format!("\n  and {left} more") } else { String::new() };
        tracing::info!(
            "{} waits, {of_group} samples that wait for their group, {of_batch} for their batch{}{more}",
            waits.len(),
            shown.collect::<String>()
        );
    }
}
