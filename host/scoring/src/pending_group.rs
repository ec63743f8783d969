//! The samples of a task on their way to the judges that see them together.

use crate::judges::Judges;
use futures::future::join_all;
use gavel_data::{Evaluation, Sample};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::oneshot;

/// The samples of a task on their way to the judges that see them together.
/// They are judged when the last of them has come; until then each waits.
#[derive(Clone)]
pub struct PendingGroup(Arc<Waiting>);

struct Waiting {
    size: usize,
    members: Mutex<Vec<Member>>,
}

struct Member {
    sample: Arc<Sample>,
    seed: u64,
    /// The judges that are to see it.
    judges: Vec<usize>,
    answer: oneshot::Sender<Judged>,
}

/// What each of these judges says of one sample, by the judge's number.
pub(crate) type Judged = Vec<(usize, Evaluation)>;

impl PendingGroup {
    /// A group of `size` samples.
    pub fn new(size: usize) -> Self {
        Self(Arc::new(Waiting { size, members: Mutex::default() }))
    }

    /// Adds a sample and waits for what those of `judges` with the numbers
    /// `asked` say of it; nothing where the group is given up before it is
    /// whole.
    pub(crate) async fn judged(
        &self,
        judges: &Judges,
        sample: &Arc<Sample>,
        seed: u64,
        asked: Vec<usize>,
    ) -> Option<Judged> {
        let (answer, waiting) = oneshot::channel();
        let whole = {
            let mut members = self.0.members.lock().unwrap_or_else(PoisonError::into_inner);
            members.push(Member { sample: sample.clone(), seed, judges: asked, answer });
            (members.len() == self.0.size).then(|| std::mem::take(&mut *members))
        };
        if let Some(members) = whole {
            judge(judges, members).await;
        }
        waiting.await.ok()
    }
}

/// Whoever came last sees to it that all are judged.
async fn judge(judges: &Judges, mut members: Vec<Member>) {
    // Whatever ended first: a judgement must not depend on it.
    members.sort_by_key(|member| member.sample.index);
    let seed = members.first().map_or(0, |first| first.seed);
    let mut judged: Vec<Judged> = members.iter().map(|_| Vec::new()).collect();
    let mut numbers: Vec<usize> = members.iter().flat_map(|member| member.judges.iter().copied()).collect();
    numbers.sort_unstable();
    numbers.dedup();
    let calls = numbers.into_iter().map(async |number| {
        let seen: Vec<usize> = (0..members.len()).filter(|at| members[*at].judges.contains(&number)).collect();
        let samples: Vec<Arc<Sample>> = seen.iter().map(|at| members[*at].sample.clone()).collect();
        (number, seen, judges.get(number).judge.judge(&samples, seed).await)
    });
    for (number, seen, evaluations) in join_all(calls).await {
        for (at, evaluation) in seen.into_iter().zip(evaluations) {
            judged[at].push((number, evaluation));
        }
    }
    for (member, judged) in members.into_iter().zip(judged) {
        // Nobody may be waiting any more.
        let _ = member.answer.send(judged);
    }
}
