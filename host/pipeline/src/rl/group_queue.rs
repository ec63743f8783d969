//! The groups of a run between their start and their training: a group waits here for its samples.

mod drawing_tasks;
mod events;
mod exchanged;
mod groups;
mod share;
mod started;
mod stored;
mod watchdog;

pub(crate) use share::GroupShare;

use crate::error::Result;
use crate::rl::ledger::Cause;
use crate::rl::task_source::TaskSource;
use crate::rows::{Numbering, Prompt, Seeds, StoredRows};
use crate::run::Control;
use crate::samples::{DrawnGroup, Rollout, SampleKey, SamplesInFlight};
use gavel_agent::PolicyWaits;
use gavel_config::ScheduleTable;
use gavel_data::{Group, Member};
use gavel_scoring::PendingGroup;
use groups::Groups;
use started::{SampleState, StartedGroup, StartedSample};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// Groups under way, and whole groups that wait for their step.
pub(crate) struct GroupQueue {
    rollout: Rollout,
    prompts: StoredRows<Prompt>,
    tasks: TaskSource,
    numbering: Numbering,
    retries: u32,
    in_flight: SamplesInFlight,
    groups: Groups,
    /// Responses under way.
    drawing: usize,
    /// Groups with responses under way.
    drawing_groups: usize,
    /// The number of the next draw.
    next: u64,
    /// What the sample that was scored last waited for.
    last_scored: Option<Cause>,
    /// When no episode asked the policy.
    policy_waits: PolicyWaits,
    control: Control,
    watchdog: Duration,
    /// Whether a checkpoint has the responses of the groups.
    keeps_responses: bool,
    share: GroupShare,
}

impl GroupQueue {
    pub(crate) fn new(
        rollout: Rollout,
        prompts: StoredRows<Prompt>,
        tasks: TaskSource,
        numbering: Numbering,
        schedule: &ScheduleTable,
        share: GroupShare,
        control: Control,
    ) -> Self {
        Self {
            rollout,
            prompts,
            tasks,
            numbering,
            retries: schedule.retries,
            in_flight: SamplesInFlight::default(),
            groups: Groups::default(),
            drawing: 0,
            drawing_groups: 0,
            next: 0,
            last_scored: None,
            policy_waits: PolicyWaits::default(),
            control,
            watchdog: schedule.watchdog,
            keeps_responses: schedule.checkpoint_groups,
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

    /// How many groups were started under each version.
    pub(crate) fn versions(&self) -> &BTreeMap<u64, usize> {
        self.groups.versions()
    }

    /// Whether responses are under way.
    pub(crate) fn is_drawing(&self) -> bool {
        self.drawing > 0
    }

    /// Whether some group is not whole yet.
    pub(crate) fn is_waiting(&self) -> bool {
        self.groups.whole_len() < self.groups.len()
    }

    /// The draw of the oldest group under way, if it is whole.
    pub(crate) fn oldest_whole(&self) -> Option<u64> {
        self.groups.oldest_whole()
    }

    /// The draw of the group that became whole first, among those whose version `may_take` allows.
    pub(crate) fn first_whole(&self, may_take: impl Fn(u64) -> bool) -> Option<u64> {
        self.groups.first_whole(may_take)
    }

    /// Starts the next `count` groups under `version` of the policy.
    pub(crate) async fn start(&mut self, count: usize, version: u64) -> Result<()> {
        let draws = self.next..self.next + count as u64;
        let rows = self.rows(draws.clone(), version + 1).await?;
        self.next = draws.end;
        let mut samples = Vec::with_capacity(count * self.numbering.group_size);
        for (draw, row) in draws.zip(rows) {
            let group = match !self.share.is_by_load() && self.share.is_dealt(draw) {
                true => self.new_group(draw, row, version)?,
                false => self.group_elsewhere(draw, row, version)?,
            };
            samples.extend((0..group.samples.len()).map(|index| SampleKey { draw, index }));
            self.groups.insert(draw, group);
        }
        self.share.is_drawing |= count > 0;
        self.draw(samples).await?;
        self.take_more().await
    }

    fn new_group(&self, draw: u64, row: usize, version: u64) -> Result<StartedGroup> {
        let size = self.numbering.samples();
        let sample = |index| {
            let state = SampleState::drawing(self.id(SampleKey { draw, index }), &self.policy_waits);
            StartedSample { retry: 0, since: Instant::now(), state }
        };
        let samples = (0..size).map(sample).collect();
        Ok(StartedGroup {
            prompt: self.prompts.get(row)?.into_owned(),
            row,
            is_here: true,
            version,
            judged_together: PendingGroup::named(size, self.group_id(draw)),
            samples,
        })
    }

    fn seeds(&self, key: SampleKey, retry: u32) -> Seeds {
        self.numbering.seeds(key.draw, key.index, retry)
    }

    /// What the sample that was scored last had waited for; nothing if it was already taken.
    pub(crate) fn take_last_scored(&mut self) -> Option<Cause> {
        self.last_scored.take()
    }

    /// A sample's id.
    fn id(&self, SampleKey { draw, index }: SampleKey) -> String {
        format!("{}.{index}", self.group_id(draw))
    }

    /// The id of a draw's group, with which the ids of its samples begin.
    fn group_id(&self, draw: u64) -> String {
        let (step, group) = self.numbering.place(draw);
        format!("{step}.{group}")
    }

    /// When no episode asked the policy.
    pub(crate) fn policy_waits(&self) -> &PolicyWaits {
        &self.policy_waits
    }

    /// Takes a whole group out.
    pub(crate) fn take(&mut self, draw: u64) -> Option<DrawnGroup> {
        let StartedGroup { prompt, row, is_here, version, samples, .. } = self.groups.remove(draw)?;
        let retries = samples.iter().map(|sample| sample.retry).collect();
        let member = |sample: StartedSample| match sample.state {
            SampleState::Done(member) => Some(*member),
            SampleState::Drawing(_) | SampleState::Scoring(..) => None,
        };
        let mut members: Vec<Member> = samples.into_iter().filter_map(member).collect();
        let greedy = if self.numbering.has_greedy { members.pop() } else { None };
        let group = Group { task: prompt.task.clone(), members };
        Some(DrawnGroup { draw, row, prompt, version, group, greedy, retries, dropped: None, is_here })
    }

    /// Puts a whole group back that was taken for a step that did not end.
    pub(crate) fn put_back(&mut self, drawn: DrawnGroup) {
        let DrawnGroup { draw, row, prompt, version, group, greedy, retries, is_here, .. } = drawn;
        let done = |(member, retry): (Member, u32)| {
            let state = SampleState::Done(Box::new(member));
            StartedSample { retry, since: Instant::now(), state }
        };
        let samples = group.members.into_iter().chain(greedy).zip(retries).map(done).collect();
        let judged_together = PendingGroup::named(self.numbering.samples(), self.group_id(draw));
        self.groups.insert(draw, StartedGroup { prompt, row, is_here, version, judged_together, samples });
        self.groups.set_whole(draw);
    }
}
