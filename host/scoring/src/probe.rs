//! Tries each plugin of a run on a few rows before the run starts. Nothing is recorded, and no later call depends on
//! these calls.

use crate::judges::Judges;
use crate::scorer::Scorer;
use futures::FutureExt;
use futures::future::{BoxFuture, join_all};
use gavel_data::{
    Evaluation, KnownTokens, Message, PriorVerdict, PriorVerdicts, Role, RowSources, Sample, SampleInput, Task,
    TokenCounts, Trajectory,
};
use gavel_plugin::OutsideWaits;
use std::collections::BTreeMap;
use std::sync::Arc;
use tokio::sync::OnceCell;

/// The number of rows that a plugin is tried on. It is one where the plugin reaches a model or a server.
const ROWS: usize = 4;
/// The response that rewards are tried with.
pub const PROBED_RESPONSE: &str = "I do not know.";
/// The second response to a row without ground truth; for judgers only, which need two responses to compare.
const OTHER_RESPONSE: &str = "It is hard to say.";
/// The seed of these calls.
const SEED: u64 = 0;

/// The evaluations of a plugin on the rows of a dataset that it was tried on.
#[derive(Debug, Clone)]
pub struct Probe {
    /// Its name in the run.
    pub plugin: String,
    /// The factor of its score in the reward.
    pub weight: f64,
    /// Whether its calls, or calls of rewards that it comes after, reach a model, a server or a clock.
    pub reaches_what_changes: bool,
    /// The number of the dataset.
    pub dataset: usize,
    /// The rows that it was tried on, each with one evaluation.
    pub calls: Vec<ProbedRow>,
}

/// A row that a plugin was tried on.
#[derive(Debug, Clone)]
pub struct ProbedRow {
    /// The row.
    pub task: Arc<Task>,
    /// Whether the response was the row's ground truth, and not [`PROBED_RESPONSE`].
    pub is_ground_truth: bool,
    /// The evaluation of the first response that failed, or else of [`PROBED_RESPONSE`].
    pub evaluation: Evaluation,
}

/// The number of a dataset, and of a row in it.
type Place = (usize, usize);

impl Scorer {
    /// Tries each plugin on a few rows of each dataset, spread over the rows that it is for, with
    /// [`PROBED_RESPONSE`] and with the row's ground truth. A gate does not prevent the calls. A plugin that reaches a
    /// model or a server is called once, for one row of the first dataset. The datasets have the data source of each
    /// row, and `task` reads the row of a number in the dataset of a number.
    ///
    /// # Errors
    /// A row cannot be read.
    pub async fn probe<E>(
        &self,
        datasets: &[&RowSources],
        task: impl Fn(usize, usize) -> Result<Arc<Task>, E>,
    ) -> Result<Vec<Probe>, E> {
        let judges = 0..self.judges.iter().len();
        let chosen: Vec<Vec<Place>> = judges.map(|number| self.choose(number, datasets)).collect();
        let mut attempts: BTreeMap<Place, Attempt<'_>> = BTreeMap::new();
        for place in chosen.iter().flatten() {
            if !attempts.contains_key(place) {
                attempts.insert(*place, Attempt::new(&self.judges, task(place.0, place.1)?));
            }
        }
        let asked =
            chosen.iter().enumerate().flat_map(|(number, places)| places.iter().map(move |place| (number, *place)));
        let attempts = &attempts;
        let calls = join_all(asked.map(|(number, place)| async move {
            let attempt = attempts.get(&place)?;
            let (is_ground_truth, evaluation) = attempt.first_failure(number).await?;
            Some((number, place, ProbedRow { task: attempt.task.clone(), is_ground_truth, evaluation }))
        }));
        let mut probes: BTreeMap<(usize, usize), Probe> = BTreeMap::new();
        for (number, place, row) in calls.await.into_iter().flatten() {
            let probe = probes.entry((number, place.0)).or_insert_with(|| self.untried(number, place.0));
            probe.calls.push(row);
        }
        self.plugins().for_each(|(plugin, _)| plugin.end_idle_instances());
        Ok(probes.into_values().collect())
    }

    fn untried(&self, number: usize, dataset: usize) -> Probe {
        let each = self.judges.get(number);
        Probe {
            plugin: each.judge.name().to_owned(),
            weight: each.weight,
            reaches_what_changes: self.judges.reaches_what_changes(number),
            dataset,
            calls: Vec::new(),
        }
    }

    /// The rows that judge `number` is tried on.
    fn choose(&self, number: usize, datasets: &[&RowSources]) -> Vec<Place> {
        let when = &self.judges.get(number).when;
        let spread = |(dataset, sources): (usize, &&RowSources)| {
            let meant = || (0..sources.len()).filter(|row| when.is_for(sources.get(*row)));
            let all = meant().count();
            let count = ROWS.min(all);
            let chosen = (0..count).filter_map(|nth| meant().nth(nth * all / count));
            chosen.map(|row| (dataset, row)).collect::<Vec<_>>()
        };
        let places = datasets.iter().enumerate().flat_map(spread);
        places.take(if self.judges.reaches_what_changes(number) { 1 } else { usize::MAX }).collect()
    }
}

/// Two responses to one row, and the evaluations of judges.
struct Attempt<'a> {
    judges: &'a Judges,
    task: Arc<Task>,
    /// Whether the second response is the row's ground truth.
    has_ground_truth: bool,
    samples: Vec<Arc<Sample>>,
    /// The evaluations of each judge: for each response, or for the group.
    answers: Vec<[OnceCell<Vec<Evaluation>>; 2]>,
}

impl<'a> Attempt<'a> {
    fn new(judges: &'a Judges, task: Arc<Task>) -> Self {
        let truth = task.reference.ground_truth.as_deref();
        let sample = |(index, response): (u32, &str)| {
            let messages = vec![Message::new(Role::Assistant, response)];
            // A policy counts its tokens, and a reward may read how many there are.
            let response = response.split_whitespace().count() as u32;
            let tokens = Some(KnownTokens::Counts(TokenCounts { prompt: 1, response, policy_version: Some(0) }));
            let trajectory = Trajectory { tokens, ..Trajectory::of(messages) };
            Arc::new(Sample::new(task.clone(), index, vec![trajectory]))
        };
        let responses = [PROBED_RESPONSE, truth.unwrap_or(OTHER_RESPONSE)];
        Self {
            judges,
            has_ground_truth: truth.is_some(),
            samples: (0..).zip(responses).map(sample).collect(),
            answers: judges.iter().map(|_| std::array::from_fn(|_| OnceCell::new())).collect(),
            task,
        }
    }

    /// The evaluation of the first response that judge `number` fails on, or else of the first response; and whether
    /// that response is the ground truth.
    async fn first_failure(&self, number: usize) -> Option<(bool, Evaluation)> {
        let first = self.answer(number, 0).await?;
        if first.ended_well() && self.has_ground_truth && !self.judges.reaches_what_changes(number) {
            let second = self.answer(number, 1).await?;
            if !second.ended_well() {
                return Some((true, second.clone()));
            }
        }
        Some((false, first.clone()))
    }

    /// The evaluation of a response by judge `number`, which is called once.
    async fn answer(&self, number: usize, response: usize) -> Option<&Evaluation> {
        let sees_groups = self.judges.get(number).judge.sees_groups();
        let (cell, at) = if sees_groups { (0, response) } else { (response, 0) };
        let evaluations = self.answers[number][cell].get_or_init(|| self.ask(number, cell)).await;
        evaluations.get(at)
    }

    fn ask(&self, number: usize, response: usize) -> BoxFuture<'_, Vec<Evaluation>> {
        async move {
            let each = self.judges.get(number);
            let responses = if each.judge.sees_groups() { 0..self.samples.len() } else { response..response + 1 };
            let inputs: Vec<SampleInput> = join_all(responses.map(|response| self.input(number, response))).await;
            each.judge.judge(&inputs, SEED, &OutsideWaits::default()).await
        }
        .boxed()
    }

    /// The input of judge `number` for a response; waits for the judges in its `after`.
    async fn input(&self, number: usize, response: usize) -> SampleInput {
        let sample = self.samples[response].clone();
        let mut verdicts = PriorVerdicts::new();
        for other in &self.judges.get(number).waits.after {
            let judge = self.judges.get(*other);
            let verdict = match judge.when.is_for(sample.task.data_source.as_deref()) {
                true => self.answer(*other, response).await.map_or(PriorVerdict::NoVerdict, PriorVerdict::from),
                false => PriorVerdict::NotCalled,
            };
            verdicts.insert(judge.judge.name().to_owned(), verdict);
        }
        SampleInput { sample, verdicts: Arc::new(verdicts) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::condition::When;
    use crate::judge::Judge;
    use crate::judges::{Waits, WeightedJudge};
    use gavel_data::{Blame, Outcome, Score};

    /// Scores a response of several words without reading the row, and reports a fault of the row for any other
    /// response.
    struct LooksLate {
        reaches_what_changes: bool,
    }

    impl Judge for LooksLate {
        fn name(&self) -> &str {
            "looks-late"
        }

        fn sees_groups(&self) -> bool {
            false
        }

        fn score_range(&self) -> Option<(f64, f64)> {
            None
        }

        fn reaches_what_changes(&self) -> bool {
            self.reaches_what_changes
        }

        fn judge<'a>(
            &'a self,
            samples: &'a [SampleInput],
            _: u64,
            _: &'a OutsideWaits,
        ) -> BoxFuture<'a, Vec<Evaluation>> {
            let outcome = match samples[0].sample.response().contains(' ') {
                true => Outcome::Scored(Score::default()),
                false => Outcome::Fault { whose: Blame::Input, what: "the row has no `level`".into() },
            };
            async move { vec![Evaluation::without_call(outcome)] }.boxed()
        }
    }

    #[test]
    fn the_ground_truth_is_a_second_response() {
        let found = |row: serde_json::Value, reaches_what_changes| {
            let task = Arc::new(Task::from_row(serde_json::from_value(row).unwrap(), 0, "train").unwrap());
            let judge = WeightedJudge {
                judge: Arc::new(LooksLate { reaches_what_changes }),
                weight: 1.0,
                when: When::default(),
                waits: Waits::default(),
            };
            let judges = Judges::new(vec![judge]).unwrap();
            let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
            let first = runtime.block_on(Attempt::new(&judges, task).first_failure(0));
            first.map(|(is_ground_truth, evaluation)| (is_ground_truth, evaluation.ended_well())).unwrap()
        };
        let row = serde_json::json!({"prompt": "2 + 2?", "answer": "4"});
        assert_eq!(found(row.clone(), false), (true, false));
        assert_eq!(found(row, true), (false, true), "what reaches outside is called once");
        assert_eq!(found(serde_json::json!({"prompt": "2 + 2?"}), false), (false, true));
        assert_eq!(found(serde_json::json!({"prompt": "2 + 2?", "answer": "it is 4"}), false), (false, true));
    }
}
