//! The samples of a task on their way to the judges that see them together.

use crate::judge::Judge;
use gavel_data::{Evaluation, SampleInput};
use gavel_plugin::OutsideWaits;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;
use tokio::sync::{oneshot, watch};

/// The samples of a task on their way to the judges that see them together.
/// Each of these judges is called once the last sample has come to it; until
/// then the others wait.
#[derive(Clone)]
pub struct PendingGroup(Arc<Waiting>);

struct Waiting {
    size: usize,
    /// By the judge's number.
    judgements: Mutex<BTreeMap<usize, Judgement>>,
    ended: watch::Sender<Ended>,
}

/// What there is of a judge's call about the group.
#[derive(Default)]
struct Judgement {
    /// The samples that have come to it.
    members: Vec<Member>,
    /// What it waits for outside.
    waits: OutsideWaits,
}

/// How far the samples of a group are.
#[derive(Default)]
struct Ended {
    /// Samples for which all judges have answered.
    samples: usize,
    /// The judges that gave one of them a verdict, by number.
    well: BTreeSet<usize>,
}

/// A sample that has come to a judge.
pub(crate) struct Arrival {
    /// Its place in the group.
    pub(crate) index: u32,
    pub(crate) seed: u64,
    /// What the judge is to see of it; absent where it is not to see it.
    pub(crate) input: Option<SampleInput>,
}

struct Member {
    arrival: Arrival,
    answer: oneshot::Sender<(Evaluation, Instant)>,
}

impl PendingGroup {
    /// A group of `size` samples.
    pub fn new(size: usize) -> Self {
        let ended = watch::Sender::new(Ended::default());
        Self(Arc::new(Waiting { size, judgements: Mutex::default(), ended }))
    }

    /// Shows what the call of the judge of this number waits for outside.
    pub(crate) fn waits(&self, number: usize) -> OutsideWaits {
        self.judgements().entry(number).or_default().waits.clone()
    }

    fn judgements(&self) -> MutexGuard<'_, BTreeMap<usize, Judgement>> {
        self.0.judgements.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Brings a sample to the judge of this number and waits for what it says
    /// of it, and when it was asked; nothing where it is not to see it, or the
    /// group is given up before it is whole.
    pub(crate) async fn judged(
        &self,
        number: usize,
        judge: &dyn Judge,
        arrival: Arrival,
    ) -> Option<(Evaluation, Instant)> {
        let (answer, waiting) = oneshot::channel();
        let whole = {
            let mut judgements = self.judgements();
            let Judgement { members, waits } = judgements.entry(number).or_default();
            members.push(Member { arrival, answer });
            (members.len() == self.0.size).then(|| (std::mem::take(members), waits.clone()))
        };
        if let Some((members, waits)) = whole {
            call(judge, members, &waits).await;
        }
        waiting.await.ok()
    }

    /// Says that all judges have answered for a sample, and which of them, by
    /// number, gave it a verdict.
    pub(crate) fn end_sample(&self, well: impl Iterator<Item = usize>) {
        self.0.ended.send_modify(|ended| {
            ended.samples += 1;
            ended.well.extend(well);
        });
    }

    /// Waits until it is known whether the judge of this number gives a sample
    /// of the group a verdict.
    pub(crate) async fn ends_well(&self, number: usize) -> bool {
        let known = |ended: &Ended| ended.well.contains(&number) || ended.samples >= self.0.size;
        // The sender lives as long as this group.
        self.0.ended.subscribe().wait_for(known).await.is_ok_and(|ended| ended.well.contains(&number))
    }
}

/// Whoever came last sees to it that all are judged.
async fn call(judge: &dyn Judge, mut members: Vec<Member>, waits: &OutsideWaits) {
    // Whatever ended first: a judgement must not depend on it.
    members.sort_by_key(|member| member.arrival.index);
    let seed = members.first().map_or(0, |first| first.arrival.seed);
    let seen = members.into_iter().filter_map(|Member { arrival, answer }| Some((arrival.input?, answer)));
    let (inputs, answers): (Vec<SampleInput>, Vec<_>) = seen.unzip();
    if inputs.is_empty() {
        return;
    }
    let asked = Instant::now();
    for (answer, evaluation) in answers.into_iter().zip(judge.judge(&inputs, seed, waits).await) {
        // Nobody may be waiting any more.
        let _ = answer.send((evaluation, asked));
    }
}
