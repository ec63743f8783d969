//! A group of samples that judges wait for, to see it as a whole.

use crate::judge::Judge;
use gavel_data::{Evaluation, SampleInput};
use gavel_endpoint::{Asker, group_number};
use gavel_plugin::OutsideWaits;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;
use tokio::sync::{oneshot, watch};

/// A group of samples that judges wait for, to see it as a whole. Each of these
/// judges is called when the last sample has arrived; until then, the other
/// samples wait.
#[derive(Clone)]
pub struct PendingGroup(Arc<Waiting>);

struct Waiting {
    size: usize,
    /// Its id; absent outside of a run.
    id: Option<Arc<str>>,
    /// Its place among all groups, for the order of requests.
    number: u64,
    /// The calls, by the judge's number.
    judgements: Mutex<BTreeMap<usize, Judgement>>,
    ended: watch::Sender<Ended>,
}

/// A judge's call for the group, which may not have started.
struct Judgement {
    /// The samples that have arrived.
    members: Vec<Member>,
    /// The requests that it waits for outside.
    waits: OutsideWaits,
}

/// The progress of a group's samples.
#[derive(Default)]
struct Ended {
    /// Samples for which all judges have answered.
    samples: usize,
    /// The numbers of the judges that gave a verdict on one of them.
    well: BTreeSet<usize>,
    /// The numbers of the judges that scored one of them.
    scored: BTreeSet<usize>,
}

/// A sample that has arrived at a judge.
pub(crate) struct Arrival {
    /// Its place in the group.
    pub(crate) index: u32,
    pub(crate) seed: u64,
    /// The input of the judge; absent if the judge must not see the sample.
    pub(crate) input: Option<SampleInput>,
}

struct Member {
    arrival: Arrival,
    answer: oneshot::Sender<(Evaluation, Instant)>,
}

impl PendingGroup {
    /// A group of `size` samples.
    pub fn new(size: usize) -> Self {
        Self::with(size, None)
    }

    /// The same with an id, by which the records of requests name it. The ids of its samples begin with it.
    pub fn named(size: usize, id: impl Into<Arc<str>>) -> Self {
        Self::with(size, Some(id.into()))
    }

    fn with(size: usize, id: Option<Arc<str>>) -> Self {
        let ended = watch::Sender::new(Ended::default());
        Self(Arc::new(Waiting { size, id, number: group_number(), judgements: Mutex::default(), ended }))
    }

    /// The requests of the call of judge `number`.
    pub(crate) fn waits(&self, number: usize, judge: &str) -> OutsideWaits {
        self.judgement(&mut self.judgements(), number, judge).waits.clone()
    }

    /// The requests of a call of `judge` for one of its samples.
    pub(crate) fn waits_of_sample(&self, judge: &str, sample: u32) -> OutsideWaits {
        let id = self.0.id.as_ref().map(|group| format!("{group}.{sample}").into());
        self.waits_for(judge, sample, id)
    }

    fn waits_for(&self, judge: &str, sample: u32, id: Option<Arc<str>>) -> OutsideWaits {
        OutsideWaits::of(Asker { plugin: judge.into(), group: self.0.number, sample }).made_for(id)
    }

    fn judgement<'a>(
        &self,
        judgements: &'a mut BTreeMap<usize, Judgement>,
        number: usize,
        judge: &str,
    ) -> &'a mut Judgement {
        let new = || Judgement { members: Vec::new(), waits: self.waits_for(judge, 0, self.0.id.clone()) };
        judgements.entry(number).or_insert_with(new)
    }

    fn judgements(&self) -> MutexGuard<'_, BTreeMap<usize, Judgement>> {
        self.0.judgements.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a sample to the call of judge `number`, and waits for its evaluation
    /// and the time when the judge was asked. `None` if the judge must not see
    /// the sample, or the group was dropped before it was whole.
    pub(crate) async fn judged(
        &self,
        number: usize,
        judge: &dyn Judge,
        arrival: Arrival,
    ) -> Option<(Evaluation, Instant)> {
        let (answer, waiting) = oneshot::channel();
        let whole = {
            let mut judgements = self.judgements();
            let Judgement { members, waits } = self.judgement(&mut judgements, number, judge.name());
            members.push(Member { arrival, answer });
            (members.len() == self.0.size).then(|| (std::mem::take(members), waits.clone()))
        };
        if let Some((members, waits)) = whole {
            call(judge, members, &waits).await;
        }
        waiting.await.ok()
    }

    /// Notes that all judges have answered for a sample: the evaluations, by the judge's number.
    pub(crate) fn end_sample<'a>(&self, evaluations: impl Iterator<Item = (usize, &'a Evaluation)>) {
        self.0.ended.send_modify(|ended| {
            ended.samples += 1;
            for (number, evaluation) in evaluations {
                if evaluation.ended_well() {
                    ended.well.insert(number);
                }
                if evaluation.outcome.score().is_some() {
                    ended.scored.insert(number);
                }
            }
        });
    }

    /// Whether judge `number` gives a verdict on a sample of the group; waits
    /// until this is known.
    pub(crate) async fn ends_well(&self, number: usize) -> bool {
        self.knows(|ended| ended.well.contains(&number)).await
    }

    /// Whether judge `number` scores a sample of the group; waits until this is known.
    pub(crate) async fn scores(&self, number: usize) -> bool {
        self.knows(|ended| ended.scored.contains(&number)).await
    }

    /// Whether `holds` for the samples that have ended; waits until it does, or all have ended.
    async fn knows(&self, holds: impl Fn(&Ended) -> bool) -> bool {
        let known = |ended: &Ended| holds(ended) || ended.samples >= self.0.size;
        // Cannot fail: the sender lives as long as this group.
        self.0.ended.subscribe().wait_for(known).await.is_ok_and(|ended| holds(&ended))
    }
}

/// Calls the judge for all members; the last one to arrive does this.
async fn call(judge: &dyn Judge, mut members: Vec<Member>, waits: &OutsideWaits) {
    // The verdicts must not depend on the order in which samples ended.
    members.sort_by_key(|member| member.arrival.index);
    let seed = members.first().map_or(0, |first| first.arrival.seed);
    let seen = members.into_iter().filter_map(|Member { arrival, answer }| Some((arrival.input?, answer)));
    let (inputs, answers): (Vec<SampleInput>, Vec<_>) = seen.unzip();
    if inputs.is_empty() {
        return;
    }
    let asked = Instant::now();
    for (answer, evaluation) in answers.into_iter().zip(judge.judge(&inputs, seed, waits).await) {
        // The receiver may be dropped.
        let _ = answer.send((evaluation, asked));
    }
}
