//! The groups of a run between their start and their training: a group waits here for its samples.

mod exchanged;
mod report;
mod share;
mod stored;

use crate::error::{PipelineError, Result};
use crate::rl::ledger::Cause;
use crate::rows::{Drawable, Numbering, Prompt, Seeds, TaskStream};
use crate::run::Control;
use crate::samples::{Event, Rollout, SampleDraw, SampleKey, SamplesInFlight};
use gavel_agent::{EpisodeProgress, PolicyWaits};
use gavel_config::ScheduleTable;
use gavel_data::{Group, Member, OutcomeKind, Sample, SampleOutcome};
use gavel_policy::Sampling;
use gavel_scoring::{PendingGroup, Progress};
use std::collections::{BTreeMap, VecDeque};
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

pub(crate) use share::GroupShare;

/// Waits that the watchdog lists.
const WATCHDOG_SHOWS: usize = 20;

/// Groups under way, and whole groups that wait for their step.
pub(crate) struct GroupQueue {
    rollout: Rollout,
    prompts: Vec<Prompt>,
    stream: TaskStream,
    numbering: Numbering,
    retries: u32,
    in_flight: SamplesInFlight,
    groups: BTreeMap<u64, StartedGroup>,
    /// The draws whose groups are whole, in the order in which they became whole.
    whole: VecDeque<u64>,
    /// Responses under way.
    drawing: usize,
    /// The number of the next draw.
    next: u64,
    /// What the sample that was scored last waited for.
    last_scored: Option<Cause>,
    /// When no episode asked the policy.
    policy_waits: PolicyWaits,
    control: Control,
    watchdog: Duration,
    share: GroupShare,
}

/// A group under way.
struct StartedGroup {
    row: usize,
    /// Whether this rank draws and scores it. If not, it has samples once it is whole.
    is_here: bool,
    version: u64,
    judged_together: PendingGroup,
    samples: Vec<StartedSample>,
}

/// A sample under way.
struct StartedSample {
    retry: u32,
    since: Instant,
    state: SampleState,
}

enum SampleState {
    Drawing(EpisodeProgress),
    Scoring(Arc<Sample>, Progress),
    Done(Box<Member>),
}

impl SampleState {
    /// The state of a sample with this id that is about to be drawn.
    fn drawing(id: String, waits: &PolicyWaits) -> Self {
        Self::Drawing(EpisodeProgress::among(waits, id))
    }
}

impl GroupQueue {
    pub(crate) fn new(
        rollout: Rollout,
        prompts: Drawable<Prompt>,
        numbering: Numbering,
        schedule: &ScheduleTable,
        share: GroupShare,
        control: Control,
    ) -> Self {
        let Drawable { rows: prompts, shares } = prompts;
        let stream = TaskStream::new(numbering.seed, &shares);
        Self {
            rollout,
            prompts,
            stream,
            numbering,
            retries: schedule.retries,
            in_flight: SamplesInFlight::default(),
            groups: BTreeMap::new(),
            whole: VecDeque::new(),
            drawing: 0,
            next: 0,
            last_scored: None,
            policy_waits: PolicyWaits::default(),
            control,
            watchdog: schedule.watchdog,
            share,
        }
    }

    /// Groups that were started so far.
    pub(crate) fn started(&self) -> u64 {
        self.next
    }

    /// Groups that are under way or wait for their step.
    pub(crate) fn len(&self) -> usize {
        self.groups.len()
    }

    /// The versions that the groups under way were started under, without that of `draw`.
    pub(crate) fn versions_beside(&self, draw: u64) -> Vec<u64> {
        self.groups.iter().filter(|(other, _)| **other != draw).map(|(_, group)| group.version).collect()
    }

    /// Whether responses are under way.
    pub(crate) fn is_drawing(&self) -> bool {
        self.drawing > 0
    }

    /// Whether some group is not whole yet.
    pub(crate) fn is_waiting(&self) -> bool {
        self.whole.len() < self.groups.len()
    }

    /// The whole groups that may be taken next, with the versions that they were started under. With `in_order`, this
    /// is at most the oldest group under way; otherwise it is all of them, in the order in which they became whole.
    pub(crate) fn whole(&self, in_order: bool) -> Vec<(u64, u64)> {
        let version = |draw: &u64| Some((*draw, self.groups.get(draw)?.version));
        match in_order {
            true => self
                .groups
                .keys()
                .next()
                .filter(|draw| self.whole.contains(draw))
                .and_then(version)
                .into_iter()
                .collect(),
            false => self.whole.iter().filter_map(version).collect(),
        }
    }

    /// Starts the next `count` groups under `version` of the policy.
    pub(crate) async fn start(&mut self, count: usize, version: u64) -> Result<()> {
        let draws = self.next..self.next + count as u64;
        self.next = draws.end;
        let mut samples = Vec::with_capacity(count * self.numbering.group_size);
        for draw in draws {
            let group = match !self.share.is_by_load() && self.share.is_dealt(draw) {
                true => self.new_group(draw, version),
                false => self.group_elsewhere(draw, version),
            };
            samples.extend((0..group.samples.len()).map(|index| SampleKey { draw, index }));
            self.groups.insert(draw, group);
        }
        self.share.is_drawing |= count > 0;
        self.draw(samples).await?;
        self.take_more().await
    }

    fn new_group(&mut self, draw: u64, version: u64) -> StartedGroup {
        let size = self.numbering.samples();
        let sample = |index| {
            let state = SampleState::drawing(self.id(SampleKey { draw, index }), &self.policy_waits);
            StartedSample { retry: 0, since: Instant::now(), state }
        };
        let samples = (0..size).map(sample).collect();
        StartedGroup {
            row: self.stream.row(draw),
            is_here: true,
            version,
            judged_together: PendingGroup::new(size),
            samples,
        }
    }

    fn seeds(&self, key: SampleKey, retry: u32) -> Seeds {
        self.numbering.seeds(key.draw, key.index, retry)
    }

    /// Draws the responses of these samples, all of which are decoded together from the first step.
    async fn draw(&mut self, samples: Vec<SampleKey>) -> Result<()> {
        let Self { rollout, prompts, groups, in_flight, .. } = self;
        let draw = |key: &SampleKey| {
            let group = groups.get(&key.draw)?;
            let sample = &group.samples[key.index];
            let SampleState::Drawing(progress) = &sample.state else { return None };
            let seeds = self.numbering.seeds(key.draw, key.index, sample.retry);
            let (judged_together, progress) = (group.judged_together.clone(), progress.clone());
            Some(SampleDraw { key: *key, prompt: &prompts[group.row], seeds, judged_together, progress })
        };
        let is_greedy = |draw: &SampleDraw<'_>| self.numbering.is_greedy(draw.key.index);
        let (greedy, draws): (Vec<_>, Vec<_>) = samples.iter().filter_map(draw).partition(is_greedy);
        self.drawing += draws.len() + greedy.len();
        rollout.start(&draws, &rollout.sampling(), in_flight).await?;
        if greedy.is_empty() {
            return Ok(());
        }
        rollout.start(&greedy, &Sampling { temperature: 0.0, ..rollout.sampling() }, in_flight).await
    }

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

    /// What the sample that was scored last had waited for; nothing if it was already taken.
    pub(crate) fn take_last_scored(&mut self) -> Option<Cause> {
        self.last_scored.take()
    }

    fn cause(&self, key: SampleKey, outcome: &SampleOutcome) -> Option<Cause> {
        let last = outcome.timing.last.as_ref()?;
        Some(Cause::new(last, self.id(key)))
    }

    /// A sample's id.
    fn id(&self, SampleKey { draw, index }: SampleKey) -> String {
        let (step, group) = self.numbering.place(draw);
        format!("{step}.{group}.{index}")
    }

    /// When no episode asked the policy.
    pub(crate) fn policy_waits(&self) -> &PolicyWaits {
        &self.policy_waits
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

    async fn note(&mut self, event: Event) -> Result<()> {
        match event {
            Event::Drawn(key, sample, progress) => {
                self.drawing -= 1;
                self.set(key, SampleState::Scoring(sample, progress));
                self.take_more().await
            }
            Event::Scored(key, sample, outcome) => {
                self.last_scored = self.cause(key, &outcome);
                let member = Member { sample: Arc::unwrap_or_clone(sample), outcome, advantages: Vec::new() };
                self.set(key, SampleState::Done(Box::new(member)));
                self.check_whole(key.draw).await
            }
        }
    }

    fn set(&mut self, key: SampleKey, state: SampleState) {
        if let Some(group) = self.groups.get_mut(&key.draw) {
            let sample = &mut group.samples[key.index];
            (sample.since, sample.state) = (Instant::now(), state);
        }
    }

    /// Once all samples of a group have their outcomes, declares the group whole, or draws some samples again.
    async fn check_whole(&mut self, draw: u64) -> Result<()> {
        let Some(group) = self.groups.get_mut(&draw) else { return Ok(()) };
        if !group.samples.iter().all(|sample| matches!(sample.state, SampleState::Done(_))) {
            return Ok(());
        }
        let again = |sample: &StartedSample| match &sample.state {
            SampleState::Done(member) => {
                member.outcome.outcome == OutcomeKind::Unavailable && sample.retry < self.retries
            }
            _ => false,
        };
        let mut again: Vec<usize> = (0..group.samples.len()).filter(|index| again(&group.samples[*index])).collect();
        if again.is_empty() && self.share.ranks.are_several() {
            return self.share.end(draw).await;
        }
        if again.is_empty() {
            self.whole.push_back(draw);
            return Ok(());
        }
        if self.rollout.scorer.has_judgers() {
            // Judgers see a group only once, so all of it is drawn again.
            again = (0..group.samples.len()).collect();
        }
        group.judged_together = PendingGroup::new(again.len());
        let (step, number) = self.numbering.place(draw);
        for index in &again {
            let sample = &mut group.samples[*index];
            sample.retry += 1;
            let state = SampleState::drawing(format!("{step}.{number}.{index}"), &self.policy_waits);
            (sample.since, sample.state) = (Instant::now(), state);
        }
        self.draw(again.into_iter().map(|index| SampleKey { draw, index }).collect()).await
    }

    /// Takes a whole group out.
    pub(crate) fn take(&mut self, draw: u64) -> Option<DrawnGroup> {
        self.whole.retain(|other| *other != draw);
        let StartedGroup { row, is_here, samples, .. } = self.groups.remove(&draw)?;
        let member = |sample: StartedSample| match sample.state {
            SampleState::Done(member) => Some(*member),
            SampleState::Drawing(_) | SampleState::Scoring(..) => None,
        };
        let mut members: Vec<Member> = samples.into_iter().filter_map(member).collect();
        let greedy = if self.numbering.has_greedy { members.pop() } else { None };
        let group = Group { task: self.prompts[row].task.clone(), members };
        Some(DrawnGroup { draw, group, greedy, dropped: None, is_here })
    }
}
