//! One sample before all judges of a run: each is called at most once, as soon
//! as it is known whether it is to be.

use crate::combine::{Answer, JudgeCall, combine};
use crate::judges::Judges;
use crate::pending_group::{Arrival, PendingGroup};
use futures::FutureExt;
use futures::future::{BoxFuture, join_all};
use gavel_data::{
    Blame, Evaluation, NotCalled, Outcome, PriorVerdict, PriorVerdicts, Sample, SampleInput, SampleOutcome,
};
use std::sync::Arc;
use tokio::sync::OnceCell;

/// A sample on its way.
pub(crate) struct Round<'a> {
    judges: &'a Judges,
    group: &'a PendingGroup,
    sample: &'a Arc<Sample>,
    seed: u64,
    /// Verdicts of an earlier run, which are shown in place of those of this one.
    recorded: &'a PriorVerdicts,
    answers: Vec<OnceCell<Answer>>,
}

impl<'a> Round<'a> {
    pub(crate) fn new(
        judges: &'a Judges,
        group: &'a PendingGroup,
        sample: &'a Arc<Sample>,
        seed: u64,
        recorded: &'a PriorVerdicts,
    ) -> Self {
        let answers = judges.iter().map(|_| OnceCell::new()).collect();
        Self { judges, group, sample, seed, recorded, answers }
    }

    /// What all judges say of the sample.
    pub(crate) async fn evaluate(self) -> SampleOutcome {
        join_all((0..self.answers.len()).map(|number| self.answer(number))).await;
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
        let not_called = self.not_called(number).await;
        let judge = &*self.judges.get(number).judge;
        if judge.sees_groups() {
            let input = match not_called {
                None => Some(self.input(number).await),
                Some(_) => None,
            };
            // The group waits for this sample also where the judge is not to see it.
            let arrival = Arrival { index: self.sample.index, seed: self.seed, input };
            let judged = self.group.judged(number, judge, arrival).await;
            return not_called.map_or_else(|| Ok(judged.unwrap_or_else(given_up)), Err);
        }
        if let Some(why) = not_called {
            return Err(why);
        }
        let evaluation = judge.judge(&[self.sample.into()], self.seed).await.pop();
        Ok(evaluation.unwrap_or_else(given_up))
    }

    /// Why the judge of this number is not to be called, once that is known.
    async fn not_called(&self, number: usize) -> Option<NotCalled> {
        let each = self.judges.get(number);
        if !each.when.is_for(self.sample.task.data_source.as_deref()) {
            return Some(NotCalled::DataSource);
        }
        let (gate, condition) = (each.waits.gate?, each.when.only_if.as_ref()?);
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

    /// What the judge of this number sees of the sample, once those that it
    /// comes after have answered.
    async fn input(&self, number: usize) -> SampleInput {
        let mut verdicts = PriorVerdicts::new();
        for other in &self.judges.get(number).waits.after {
            let name = self.judges.get(*other).judge.name();
            let verdict = match self.recorded.get(name) {
                Some(verdict) => verdict.clone(),
                None => match self.answer(*other).await {
                    Ok(evaluation) => evaluation.into(),
                    Err(_) => PriorVerdict::NotCalled,
                },
            };
            verdicts.insert(name.to_owned(), verdict);
        }
        SampleInput { sample: self.sample.clone(), verdicts: Arc::new(verdicts) }
    }
}

fn given_up() -> Evaluation {
    let what = "its group was given up before it was whole".to_owned();
    Evaluation::without_call(Outcome::Fault { whose: Blame::Host, what })
}

#[cfg(test)]
mod tests;
