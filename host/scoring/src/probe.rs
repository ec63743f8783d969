//! Each plugin of a run is tried on a few rows before the run starts on all of them. Nothing is recorded, and no later
//! call depends on it.

use crate::judges::Judges;
use crate::scorer::Scorer;
use futures::FutureExt;
use futures::future::{BoxFuture, join_all};
use gavel_data::{
    Evaluation, FinishReason, Message, PriorVerdict, PriorVerdicts, Role, Sample, SampleInput, Task, Trajectory,
};
use gavel_plugin::OutsideWaits;
use std::collections::BTreeMap;
use std::sync::Arc;
use tokio::sync::OnceCell;

/// Rows that a plugin is tried on; one, where it reaches a model or a server.
const ROWS: usize = 4;
/// The response that rewards are tried with.
pub const PROBED_RESPONSE: &str = "I do not know.";
/// The second one is for judgers only, to which one response is not a comparison.
const RESPONSES: [&str; 2] = [PROBED_RESPONSE, "It is hard to say."];
/// What these calls see as random.
const SEED: u64 = 0;

/// What a plugin said of the rows of a dataset that it was tried on.
#[derive(Debug, Clone)]
pub struct Probe {
    /// Its name in the run.
    pub plugin: String,
    /// The factor of its score in the reward.
    pub weight: f64,
    /// Whether its calls, or those of rewards that it comes after, reach a model, a server or a clock.
    pub reaches_what_changes: bool,
    /// The number of the dataset.
    pub dataset: usize,
    /// The rows, and what it said of [`PROBED_RESPONSE`] to each.
    pub calls: Vec<(Arc<Task>, Evaluation)>,
}

/// The number of a dataset, and of a row in it.
type Place = (usize, usize);

impl Scorer {
    /// Tries each plugin on a few rows of each dataset, spread over those that it is for, whether or not its gate would
    /// be open; on one row of the first dataset where it reaches a model or a server.
    pub async fn probe(&self, datasets: &[Vec<Arc<Task>>]) -> Vec<Probe> {
        let judges = 0..self.judges.iter().len();
        let chosen: Vec<Vec<Place>> = judges.map(|number| self.choose(number, datasets)).collect();
        let task = |(dataset, row): Place| &datasets[dataset][row];
        let places = chosen.iter().flatten();
        let attempts: BTreeMap<Place, Attempt<'_>> =
            places.map(|place| (*place, Attempt::new(&self.judges, task(*place)))).collect();
        let asked =
            chosen.iter().enumerate().flat_map(|(number, places)| places.iter().map(move |place| (number, *place)));
        let attempts = &attempts;
        let calls = join_all(asked.map(|(number, place)| async move {
            let evaluation = attempts.get(&place)?.answer(number, 0).await?.clone();
            Some((number, place, evaluation))
        }));
        let mut probes: BTreeMap<(usize, usize), Probe> = BTreeMap::new();
        for (number, place, evaluation) in calls.await.into_iter().flatten() {
            let probe = probes.entry((number, place.0)).or_insert_with(|| self.untried(number, place.0));
            probe.calls.push((task(place).clone(), evaluation));
        }
        self.plugins().for_each(|(plugin, _)| plugin.end_idle_instances());
        probes.into_values().collect()
    }

    fn untried(&self, number: usize, dataset: usize) -> Probe {
        let each = self.judges.get(number);
        Probe {
            plugin: each.judge.name().to_owned(),
            weight: each.weight,
            reaches_what_changes: self.reaches_what_changes(number),
            dataset,
            calls: Vec::new(),
        }
    }

    /// The rows that the judge of this number is tried on.
    fn choose(&self, number: usize, datasets: &[Vec<Arc<Task>>]) -> Vec<Place> {
        let when = &self.judges.get(number).when;
        let spread = |(dataset, tasks): (usize, &Vec<Arc<Task>>)| {
            let is_meant = |row: &usize| when.is_for(tasks[*row].data_source.as_deref());
            let meant: Vec<usize> = (0..tasks.len()).filter(is_meant).collect();
            let count = ROWS.min(meant.len());
            (0..count).map(|nth| (dataset, meant[nth * meant.len() / count])).collect::<Vec<_>>()
        };
        let places = datasets.iter().enumerate().flat_map(spread);
        places.take(if self.reaches_what_changes(number) { 1 } else { usize::MAX }).collect()
    }

    fn reaches_what_changes(&self, number: usize) -> bool {
        let each = self.judges.get(number);
        each.judge.reaches_what_changes() || each.waits.after.iter().any(|other| self.reaches_what_changes(*other))
    }
}

/// Responses to one row, and what judges said of each.
struct Attempt<'a> {
    judges: &'a Judges,
    samples: Vec<Arc<Sample>>,
    /// By judge: for each response, or for the group.
    answers: Vec<[OnceCell<Vec<Evaluation>>; RESPONSES.len()]>,
}

impl<'a> Attempt<'a> {
    fn new(judges: &'a Judges, task: &Arc<Task>) -> Self {
        let sample = |(index, response): (u32, &&str)| {
            let messages = vec![Message::new(Role::Assistant, *response)];
            let trajectories = vec![Trajectory { messages, tokens: None, finish_reason: FinishReason::Stop }];
            Arc::new(Sample { task: task.clone(), index, trajectories })
        };
        let answers = judges.iter().map(|_| std::array::from_fn(|_| OnceCell::new())).collect();
        Self { judges, samples: (0..).zip(&RESPONSES).map(sample).collect(), answers }
    }

    /// What the judge of this number says of a response; it is asked once.
    async fn answer(&self, number: usize, response: usize) -> Option<&Evaluation> {
        let sees_groups = self.judges.get(number).judge.sees_groups();
        let (cell, at) = if sees_groups { (0, response) } else { (response, 0) };
        let evaluations = self.answers[number][cell].get_or_init(|| self.ask(number, cell)).await;
        evaluations.get(at)
    }

    fn ask(&self, number: usize, response: usize) -> BoxFuture<'_, Vec<Evaluation>> {
        async move {
            let each = self.judges.get(number);
            let responses = if each.judge.sees_groups() { 0..RESPONSES.len() } else { response..response + 1 };
            let inputs: Vec<SampleInput> = join_all(responses.map(|response| self.input(number, response))).await;
            each.judge.judge(&inputs, SEED, &OutsideWaits::default()).await
        }
        .boxed()
    }

    /// A response as the judge of this number sees it, once those that it comes after have answered.
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
