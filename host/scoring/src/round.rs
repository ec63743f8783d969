//! Asks all judges of a run about one sample. Each is called at most once, as
//! soon as it is known whether it must be called.

use crate::combine::{Answer, JudgeCall, combine};
use crate::judges::Judges;
use crate::pending_group::{Arrival, PendingGroup};
use crate::progress::Progress;
use futures::FutureExt;
use futures::future::{BoxFuture, join_all};
use gavel_data::{
    Blame, CausedBy, Evaluation, LastCall, NotCalled, Outcome, PriorVerdict, PriorVerdicts, Sample, SampleInput,
    SampleOutcome, Timing,
};
use gavel_plugin::OutsideWaits;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::OnceCell;

/// A sample that is being scored.
pub(crate) struct Round<'a> {
    judges: &'a Judges,
    group: &'a PendingGroup,
    sample: &'a Arc<Sample>,
    seed: u64,
    /// Recorded verdicts, which judges see in place of the new ones.
    recorded: &'a PriorVerdicts,
    progress: Progress,
    answers: Vec<OnceCell<Timed>>,
}

/// The answer of a judge for the sample, with its times.
struct Timed {
    answer: Answer,
    /// When the call could start and when it answered; absent if there was no call.
    span: Option<(Instant, Instant)>,
    waits: OutsideWaits,
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
        Self { judges, group, sample, seed, recorded, progress: Progress::default(), answers }
    }

    /// Notes in `progress` which judges it waits for.
    pub(crate) fn with_progress(self, progress: Progress) -> Self {
        Self { progress, ..self }
    }

    /// Asks all judges and combines their answers.
    pub(crate) async fn evaluate(self) -> SampleOutcome {
        let answers = join_all((0..self.answers.len()).map(|number| self.answer(number))).await;
        let evaluations =
            answers.iter().enumerate().filter_map(|(number, answer)| Some((number, answer.as_ref().ok()?)));
        self.group.end_sample(evaluations);
        let causes = answers.iter().enumerate().map(|(number, answer)| self.caused_by(number, answer));
        let causes = join_all(causes).await;
        let timing = self.timing();
        let answers = self.answers.into_iter().zip(causes).map(|(answer, caused_by)| {
            let answer = answer.into_inner().map_or_else(|| Ok(given_up()), |timed| timed.answer);
            answer.map(|evaluation| Evaluation { caused_by, ..evaluation })
        });
        let calls = self.judges.iter().zip(answers).map(|(each, answer)| JudgeCall {
            name: each.judge.name(),
            weight: each.weight,
            gate: each.when.only_if.as_ref().map(|condition| condition.plugin.as_str()),
            range: each.judge.score_range(),
            answer,
        });
        SampleOutcome { timing, ..combine(calls.collect()) }
    }

    /// Who caused that judge `number` failed or abstained, if it did.
    async fn caused_by(&self, number: usize, answer: &Answer) -> Option<CausedBy> {
        let evaluation = answer.as_ref().ok()?;
        match &evaluation.outcome {
            Outcome::Abstained(_) => Some(self.abstention_caused_by(number).await),
            _ if evaluation.failed() => Some(self.failure_caused_by(number, evaluation).await),
            _ => None,
        }
    }

    /// Who caused an abstention of judge `number`: the response, if the judge scores another one. A judger gives each
    /// sample its own verdict, so that this holds for it too, unless a model did not answer.
    async fn abstention_caused_by(&self, number: usize) -> CausedBy {
        let judge = &*self.judges.get(number).judge;
        let is_unanswered = || self.answers[number].get().is_some_and(|timed| timed.waits.is_unanswered());
        if judge.reaches_beyond_models() || is_unanswered() {
            CausedBy::Unknown
        } else if self.group.scores(number).await {
            CausedBy::Response
        } else if judge.sees_groups() || judge.reaches_what_changes() {
            CausedBy::Unknown
        } else {
            self.judges.empty_responses.abstention_caused_by(number, judge, self.sample).await
        }
    }

    /// Who caused a failure of judge `number`.
    async fn failure_caused_by(&self, number: usize, evaluation: &Evaluation) -> CausedBy {
        let judge = &*self.judges.get(number).judge;
        let is_of_host = matches!(evaluation.outcome, Outcome::Fault { whose: Blame::Host, .. });
        if judge.sees_groups() || judge.reaches_what_changes() || is_of_host {
            CausedBy::Unknown
        } else if self.group.ends_well(number).await {
            CausedBy::Response
        } else {
            self.judges.empty_responses.failure_caused_by(number, judge, self.sample).await
        }
    }

    fn timing(&self) -> Timing {
        let mut latency = BTreeMap::new();
        let mut last: Option<(Instant, f64, &str, &OutsideWaits)> = None;
        for (each, answer) in self.judges.iter().zip(&self.answers) {
            let Some(Timed { span: Some((start, end)), waits, .. }) = answer.get() else { continue };
            let seconds = (*end - *start).as_secs_f64();
            latency.insert(each.judge.name().to_owned(), seconds);
            if last.is_none_or(|(latest, ..)| latest < *end) {
                last = Some((*end, seconds, each.judge.name(), waits));
            }
        }
        let last = last.map(|(_, seconds, plugin, waits)| {
            let share = |(endpoint, spent): (String, Duration)| (endpoint, (spent.as_secs_f64() / seconds).min(1.0));
            LastCall { plugin: plugin.to_owned(), endpoints: waits.spent().into_iter().map(share).collect() }
        });
        Timing { latency, last }
    }

    /// The answer of judge `number`. The judge is called once, however many ask for its answer.
    fn answer(&self, number: usize) -> BoxFuture<'_, &Answer> {
        let timed = self.answers[number].get_or_init(move || self.call(number));
        timed.map(|timed| &timed.answer).boxed()
    }

    async fn call(&self, number: usize) -> Timed {
        let not_called = self.not_called(number).await;
        let judge = &*self.judges.get(number).judge;
        if judge.sees_groups() {
            let input = match not_called {
                None => Some(self.input(number).await),
                Some(_) => None,
            };
            // The group waits for this sample even if the judge must not see it.
            let waits = self.group.waits(number, judge.name());
            let _wait = self.progress.wait_for(judge.name(), &waits);
            let arrival = Arrival { index: self.sample.index, seed: self.seed, input };
            let judged = self.group.judged(number, judge, arrival).await;
            return match (not_called, judged) {
                (Some(why), _) => Timed { answer: Err(why), span: None, waits },
                (None, Some((evaluation, asked))) => {
                    Timed { answer: Ok(evaluation), span: Some((asked, Instant::now())), waits }
                }
                (None, None) => Timed { answer: Ok(given_up()), span: None, waits },
            };
        }
        let waits = self.group.waits_of_sample(judge.name(), self.sample.index);
        if let Some(why) = not_called {
            return Timed { answer: Err(why), span: None, waits };
        }
        let _wait = self.progress.wait_for(judge.name(), &waits);
        let asked = Instant::now();
        let evaluation = judge.judge(&[self.sample.into()], self.seed, &waits).await.pop();
        let span = Some((asked, Instant::now()));
        Timed { answer: Ok(evaluation.unwrap_or_else(given_up)), span, waits: waits.clone() }
    }

    /// Why judge `number` must not be called; waits until this is known.
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

    /// The input of judge `number`; waits for the judges in its `after`.
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
    let what = "its group was dropped before it was whole".to_owned();
    Evaluation::without_call(Outcome::Fault { whose: Blame::Host, what })
}

#[cfg(test)]
mod tests;
