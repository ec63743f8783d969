//! Waits for what happens to the samples in flight, and reports what they wait for if nothing happens.

use super::started::SampleState;
use super::{GroupQueue, share};
use crate::error::{PipelineError, Result};
use crate::samples::{of_draw, of_score};
use std::pin::pin;

/// Waits that the watchdog lists.
const WATCHDOG_SHOWS: usize = 20;

impl GroupQueue {
    /// Waits for the next event: of several ranks, at the latest until `wanted` more groups are whole on all together.
    ///
    /// # Errors
    /// A response failed, nothing is under way, or a rank is gone.
    pub(crate) async fn wait(&mut self, wanted: usize) -> Result<()> {
        if !self.share.ranks.are_several() {
            return self.wait_here().await;
        }
        let deadline = tokio::time::Instant::now() + self.watchdog;
        let mut silence = pin!(tokio::time::sleep_until(deadline));
        let mut whole = pin!(share::until_whole(self.share.ranks.clone(), self.known_whole(), wanted));
        loop {
            tokio::select! {
                biased;
                Some(event) = self.in_flight.next() => return self.note(event?).await,
                counted = &mut whole => {
                    counted?;
                    return self.exchange().await;
                }
                () = self.control.report_asked() => self.report(usize::MAX),
                () = &mut silence => {
                    self.report_silence();
                    silence.as_mut().reset(tokio::time::Instant::now() + self.watchdog);
                }
            }
        }
    }

    /// Waits for the next event of this rank.
    ///
    /// # Errors
    /// A response failed, or nothing is under way.
    pub(crate) async fn wait_here(&mut self) -> Result<()> {
        let deadline = tokio::time::Instant::now() + self.watchdog;
        let mut silence = pin!(tokio::time::sleep_until(deadline));
        loop {
            tokio::select! {
                biased;
                event = self.in_flight.next() => return match event {
                    Some(event) => self.note(event?).await,
                    None => Err(PipelineError::Stopped("the schedule waits for a group, but none is under way".into())),
                },
                () = self.control.report_asked() => self.report(usize::MAX),
                () = &mut silence => {
                    self.report_silence();
                    silence.as_mut().reset(tokio::time::Instant::now() + self.watchdog);
                }
            }
        }
    }

    fn report_silence(&self) {
        tracing::warn!("nothing has ended for {} s (schedule.watchdog)", self.watchdog.as_secs());
        self.report(WATCHDOG_SHOWS);
    }

    /// Waits until no response is under way.
    pub(crate) async fn finish_drawing(&mut self) -> Result<()> {
        while self.is_drawing() {
            self.wait_here().await?;
        }
        Ok(())
    }

    /// Waits for `work`, while the groups under way continue.
    pub(crate) async fn meanwhile<R>(&mut self, work: impl Future<Output = Result<R>>) -> Result<R> {
        let mut work = pin!(work);
        loop {
            tokio::select! {
                biased;
                Some(event) = self.in_flight.next() => self.note(event?).await?,
                () = self.control.report_asked() => self.report(usize::MAX),
                result = &mut work => return result,
            }
        }
    }

    /// Logs what the samples in flight wait for and since when: the `most` longest waits, the longest first.
    fn report(&self, most: usize) {
        let mut waits = self.rollout.validating.now();
        let [mut of_group, mut of_batch] = [0, 0];
        for (draw, group) in self.groups.iter() {
            let (step, number) = self.numbering.place(draw);
            for (index, sample) in group.samples.iter().enumerate() {
                let id = format!("{step}.{number}.{index}");
                match &sample.state {
                    SampleState::Drawing(progress) => waits.push((id, of_draw(progress, sample.since))),
                    SampleState::Scoring(_, progress) => match of_score(progress) {
                        // The sample failed: who caused that is known once others of the group have ended.
                        none if none.is_empty() => of_group += 1,
                        found => waits.extend(found.into_iter().map(|wait| (id.clone(), wait))),
                    },
                    SampleState::Done(_) if self.groups.is_whole(draw) => of_batch += 1,
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
