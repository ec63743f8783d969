//! One sample before all judges of a run: each is called at most once, as soon
//! as it is known whether it is to be.

use crate::combine::{Answer, JudgeCall, combine};
use crate::judges::Judges;
use crate::pending_group::{Judged, PendingGroup};
use futures::FutureExt;
use futures::future::{BoxFuture, join, join_all};
use gavel_data::{Blame, Evaluation, NotCalled, Outcome, Sample, SampleOutcome};
use std::sync::Arc;
use tokio::sync::OnceCell;

/// A sample on its way.
pub(crate) struct Round<'a> {
    judges: &'a Judges,
    group: &'a PendingGroup,
    sample: &'a Arc<Sample>,
    seed: u64,
    answers: Vec<OnceCell<Answer>>,
    judged: OnceCell<Judged>,
}

impl<'a> Round<'a> {
    pub(crate) fn new(judges: &'a Judges, group: &'a PendingGroup, sample: &'a Arc<Sample>, seed: u64) -> Self {
        let answers = judges.iter().map(|_| OnceCell::new()).collect();
        Self { judges, group, sample, seed, answers, judged: OnceCell::new() }
    }

    /// What all judges say of the sample.
    pub(crate) async fn evaluate(self) -> SampleOutcome {
        // The group waits for this sample also where no judge is to see it with the others.
        join(join_all((0..self.answers.len()).map(|number| self.answer(number))), self.judged()).await;
        let calls = self.judges.iter().zip(self.answers).map(|(each, answer)| JudgeCall {
            name: each.judge.name(),
            weight: each.weight,
            gate: each.when.only_if.as_ref().map(|condition| condition.plugin.as_str()),
            answer: answer.into_inner().unwrap_or_else(|| Ok(given_up())),
        });
        combine(calls.collect())
    }

    /// What the judge of this number says; it is called once, whoever asks.
    fn answer(&self, number: usize) -> BoxFuture<'_, &Answer> {
        self.answers[number].get_or_init(move || self.call(number)).boxed()
    }

    async fn call(&self, number: usize) -> Answer {
        if let Some(why) = self.not_called(number).await {
            return Err(why);
        }
        let judge = &self.judges.get(number).judge;
        let evaluation = match judge.sees_groups() {
            true => self.judged().await.iter().find(|(other, _)| *other == number).map(|(_, found)| found.clone()),
            false => judge.judge(std::slice::from_ref(self.sample), self.seed).await.pop(),
        };
        Ok(evaluation.unwrap_or_else(given_up))
    }

    /// Why the judge of this number is not to be called, once that is known.
    async fn not_called(&self, number: usize) -> Option<NotCalled> {
        let each = self.judges.get(number);
        if !each.when.is_for(self.sample.task.data_source.as_deref()) {
            return Some(NotCalled::DataSource);
        }
        let (gate, condition) = (each.gate?, each.when.only_if.as_ref()?);
        match self.answer(gate).await {
            Ok(evaluation) => match evaluation.outcome.score() {
                Some(score) if condition.holds(score) => None,
                Some(_) => Some(NotCalled::Gate),
                None => Some(NotCalled::NoGate),
            },
            Err(NotCalled::NoGate) => Some(NotCalled::NoGate),
            Err(NotCalled::Gate | NotCalled::DataSource) => Some(NotCalled::Gate),
        }
    }

    /// What the judges that see groups say of the sample, by their number.
    async fn judged(&self) -> &Judged {
        self.judged.get_or_init(|| self.join_group()).await
    }

    async fn join_group(&self) -> Judged {
        let source = self.sample.task.data_source.as_deref();
        let sees_it = |number: &usize| {
            let each = self.judges.get(*number);
            each.judge.sees_groups() && each.when.is_for(source)
        };
        // The samples of a group are of one task, so that all of them come here or none.
        let judges: Vec<usize> = (0..self.answers.len()).filter(sees_it).collect();
        if judges.is_empty() {
            return Judged::new();
        }
        let mut asked = Vec::with_capacity(judges.len());
        for judge in judges {
            if self.not_called(judge).await.is_none() {
                asked.push(judge);
            }
        }
        self.group.judged(self.judges, self.sample, self.seed, asked).await.unwrap_or_default()
    }
}

fn given_up() -> Evaluation {
    let what = "its group was given up before it was whole".to_owned();
    Evaluation::without_call(Outcome::Fault { whose: Blame::Host, what })
}

#[cfg(test)]
mod tests;
