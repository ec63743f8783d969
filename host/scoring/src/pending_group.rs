//! The samples of a task on their way to the judges that see them together.

use crate::judge::Judge;
use gavel_data::{Evaluation, SampleInput};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::oneshot;

/// The samples of a task on their way to the judges that see them together.
/// Each of these judges is called once the last sample has come to it; until
/// then the others wait.
#[derive(Clone)]
pub struct PendingGroup(Arc<Waiting>);

struct Waiting {
    size: usize,
    /// The samples that have come to a judge, by the judge's number.
    members: Mutex<BTreeMap<usize, Vec<Member>>>,
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
    answer: oneshot::Sender<Evaluation>,
}

impl PendingGroup {
    /// A group of `size` samples.
    pub fn new(size: usize) -> Self {
        Self(Arc::new(Waiting { size, members: Mutex::default() }))
    }

    /// Brings a sample to the judge of this number and waits for what it says
    /// of it; nothing where it is not to see it, or the group is given up before
    /// it is whole.
    pub(crate) async fn judged(&self, number: usize, judge: &dyn Judge, arrival: Arrival) -> Option<Evaluation> {
        let (answer, waiting) = oneshot::channel();
        let whole = {
            let mut members = self.0.members.lock().unwrap_or_else(PoisonError::into_inner);
            let came = members.entry(number).or_default();
            came.push(Member { arrival, answer });
            (came.len() == self.0.size).then(|| std::mem::take(came))
        };
        if let Some(members) = whole {
            call(judge, members).await;
        }
        waiting.await.ok()
    }
}

/// Whoever came last sees to it that all are judged.
async fn call(judge: &dyn Judge, mut members: Vec<Member>) {
    // Whatever ended first: a judgement must not depend on it.
    members.sort_by_key(|member| member.arrival.index);
    let seed = members.first().map_or(0, |first| first.arrival.seed);
    let seen = members.into_iter().filter_map(|Member { arrival, answer }| Some((arrival.input?, answer)));
    let (inputs, answers): (Vec<SampleInput>, Vec<_>) = seen.unzip();
    if inputs.is_empty() {
        return;
    }
    for (answer, evaluation) in answers.into_iter().zip(judge.judge(&inputs, seed).await) {
        // Nobody may be waiting any more.
        let _ = answer.send(evaluation);
    }
}
