//! A sampler that prefers datasets on which the policy makes progress: whose mean reward moves, up or down (Matiisen et
//! al., "Teacher-student curriculum learning", 2017). Within a dataset, each row comes once an epoch.

use gavel_sdk::sampler::{Answer, Random, Request, Task};
use gavel_sdk::{Failure, Info, Sampler};
use row_order::shuffled;
use serde::Deserialize;

/// The bytes of a state before the datasets: the seed of their orders.
const HEAD: usize = 8;
/// The bytes of a dataset in a state: four numbers.
const DATASET_BYTES: usize = 32;

struct Progress {
    params: Params,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Params {
    /// How much a new group changes the recent mean reward of its dataset.
    recent: f64,
    /// How much it changes the mean that the recent one is compared with; below `recent`.
    before: f64,
    /// The least distance of the two means that is progress: they come together only in the limit.
    least: f64,
    /// The share of draws that follow the weights of the configuration, whatever the progress is.
    explore: f64,
}

impl Default for Params {
    fn default() -> Self {
        Self { recent: 0.2, before: 0.02, least: 1e-3, explore: 0.2 }
    }
}

impl Sampler for Progress {
    type Params = Params;

    fn new(params: Params) -> Result<Self, String> {
        let Params { recent, before, least, explore } = params;
        if !(before > 0.0 && before < recent && recent <= 1.0) {
            return Err(format!(
                "`before` ({before}) must be above 0 and below `recent` ({recent}), which is at most 1"
            ));
        }
        if !(least >= 0.0 && least.is_finite()) {
            return Err(format!("`least` must be at least 0, not {least}"));
        }
        if !(explore > 0.0 && explore <= 1.0) {
            return Err(format!("`explore` must be above 0 and at most 1, not {explore}"));
        }
        Ok(Self { params })
    }

    fn info(&self) -> Info {
        Info::new(env!("CARGO_PKG_NAME"), env!("CARGO_PKG_VERSION")).pure()
    }

    fn sample(&self, request: &Request) -> Result<Answer, Failure> {
        let mut mixture = Mixture::read(request)?;
        for group in &request.ended {
            let Some(reward) = group.mean_reward() else { continue };
            mixture.datasets[group.task.dataset as usize].add(reward, &self.params);
        }
        let weights = self.weights(request, &mixture);
        let mut random = Random::new(request.seed);
        let mut draw = || {
            let dataset = pick(&weights, random.uniform());
            let of = &mut mixture.datasets[dataset];
            let (place, rows) = (of.draws, request.datasets[dataset].rows);
            of.draws += 1;
            let seed = Random::new(mixture.seed ^ dataset as u64).bits();
            Task { dataset: dataset as u32, row: shuffled(seed, place / rows, rows, place % rows) }
        };
        let draws = (0..request.wanted).map(|_| draw()).collect();
        Ok(Answer::new(draws).state(mixture.written()))
    }
}

gavel_sdk::export_sampler!(Progress);

impl Progress {
    /// The probability of each dataset.
    fn weights(&self, request: &Request, mixture: &Mixture) -> Vec<f64> {
        let has_weights = request.datasets.iter().any(|dataset| dataset.weight.is_some());
        // Without weights, a row is as likely as any other.
        let base = request.datasets.iter().map(|dataset| match has_weights {
            true => dataset.weight.unwrap_or_default(),
            false => dataset.rows as f64,
        });
        let base = shares(base.collect());
        let Params { least, explore, .. } = self.params;
        let progress = |dataset: &Dataset| {
            let distance = (dataset.recent - dataset.before).abs();
            if distance < least { 0.0 } else { distance }
        };
        let moved: Vec<f64> = mixture.datasets.iter().map(progress).collect();
        if moved.iter().sum::<f64>() == 0.0 {
            return base;
        }
        base.iter().zip(shares(moved)).map(|(base, moved)| explore * base + (1.0 - explore) * moved).collect()
    }
}

fn shares(weights: Vec<f64>) -> Vec<f64> {
    let sum: f64 = weights.iter().sum();
    weights.into_iter().map(|weight| weight / sum).collect()
}

/// The number of the weight on which `point` falls, from 0 to their sum, which is 1.
fn pick(weights: &[f64], mut point: f64) -> usize {
    for (number, weight) in weights.iter().enumerate() {
        if point < *weight {
            return number;
        }
        point -= weight;
    }
    // Rounding may leave the last point beyond all of them.
    weights.iter().rposition(|weight| *weight > 0.0).unwrap_or_default()
}

/// What is kept of the datasets.
struct Mixture {
    seed: u64,
    datasets: Vec<Dataset>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Dataset {
    /// Tasks drawn from it.
    draws: u64,
    /// Groups that ended.
    groups: u64,
    recent: f64,
    before: f64,
}

impl Dataset {
    /// Adds the mean reward of a group. The first sets both means.
    fn add(&mut self, reward: f64, params: &Params) {
        if self.groups == 0 {
            (self.recent, self.before) = (reward, reward);
        }
        self.groups += 1;
        self.recent += params.recent * (reward - self.recent);
        self.before += params.before * (reward - self.before);
    }
}

impl Mixture {
    fn read(request: &Request) -> Result<Self, Failure> {
        if request.state.is_empty() {
            return Ok(Self { seed: request.seed, datasets: vec![Dataset::default(); request.datasets.len()] });
        }
        let head = request.state.split_first_chunk::<HEAD>();
        let Some((seed, rest)) = head.filter(|(_, rest)| rest.len() == request.datasets.len() * DATASET_BYTES) else {
            return Err(Failure::internal("the state is of other datasets"));
        };
        let datasets = rest.chunks_exact(DATASET_BYTES).map(|bytes| {
            let mut numbers = bytes.chunks_exact(8).map(|number| {
                let mut bytes = [0; 8];
                bytes.copy_from_slice(number);
                u64::from_le_bytes(bytes)
            });
            let mut next = || numbers.next().unwrap_or_default();
            let (draws, groups) = (next(), next());
            Dataset { draws, groups, recent: f64::from_bits(next()), before: f64::from_bits(next()) }
        });
        Ok(Self { seed: u64::from_le_bytes(*seed), datasets: datasets.collect() })
    }

    fn written(&self) -> Vec<u8> {
        let of_dataset =
            |dataset: &Dataset| [dataset.draws, dataset.groups, dataset.recent.to_bits(), dataset.before.to_bits()];
        let numbers = self.datasets.iter().flat_map(of_dataset);
        std::iter::once(self.seed).chain(numbers).flat_map(u64::to_le_bytes).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(rows: &[u64], weights: &[Option<f64>]) -> Request {
        let dataset =
            |(rows, weight): (&u64, &Option<f64>)| gavel_sdk::sampler::Dataset { rows: *rows, weight: *weight };
        Request {
            step: 1,
            seed: 7,
            datasets: rows.iter().zip(weights).map(dataset).collect(),
            ended: Vec::new(),
            wanted: 4,
            next_draw: 0,
            state: Vec::new(),
        }
    }

    #[test]
    fn a_dataset_whose_reward_moves_is_drawn_from_more_often() {
        let sampler = Progress::new(Params::default()).unwrap();
        let request = request(&[30, 10], &[None, None]);
        let mut mixture = Mixture::read(&request).unwrap();
        assert_eq!(sampler.weights(&request, &mixture), [0.75, 0.25]);
        (0..20).for_each(|_| mixture.datasets[0].add(0.5, &sampler.params));
        (0..20).for_each(|group| mixture.datasets[1].add(f64::from(group) / 20.0, &sampler.params));
        let weights = sampler.weights(&request, &mixture);
        assert!((weights[0] - 0.15).abs() < 1e-9 && (weights[1] - 0.85).abs() < 1e-9, "{weights:?}");
    }

    #[test]
    fn a_dataset_that_is_learned_is_drawn_from_no_more_than_one_that_never_moved() {
        let sampler = Progress::new(Params::default()).unwrap();
        let request = request(&[30, 10], &[None, None]);
        let mut mixture = Mixture::read(&request).unwrap();
        let learned = (0..20).map(|group| f64::from(group) / 20.0).chain(std::iter::repeat_n(1.0, 500));
        learned.for_each(|reward| mixture.datasets[0].add(reward, &sampler.params));
        (0..520).for_each(|_| mixture.datasets[1].add(0.0, &sampler.params));
        let distance = mixture.datasets[0].recent - mixture.datasets[0].before;
        assert!(0.0 < distance && distance < sampler.params.least, "{distance}");
        assert_eq!(sampler.weights(&request, &mixture), [0.75, 0.25]);
    }

    #[test]
    fn weights_of_the_configuration_are_the_start() {
        let sampler = Progress::new(Params::default()).unwrap();
        let request = request(&[30, 10], &[Some(1.0), Some(3.0)]);
        let mixture = Mixture::read(&request).unwrap();
        assert_eq!(sampler.weights(&request, &mixture), [0.25, 0.75]);
        assert_eq!([0.0, 0.24, 0.25, 1.0].map(|point| pick(&[0.25, 0.75], point)), [0, 0, 1, 1]);
    }

    #[test]
    fn what_is_kept_comes_back() {
        let datasets = vec![Dataset { draws: 3, groups: 2, recent: 0.1, before: -0.5 }, Dataset::default()];
        let mixture = Mixture { seed: 9, datasets: datasets.clone() };
        let again = Request { state: mixture.written(), ..request(&[4, 4], &[None, None]) };
        let read = Mixture::read(&again).unwrap();
        assert_eq!((read.seed, read.datasets), (9, datasets));
        let other = Request { state: mixture.written(), ..request(&[4], &[None]) };
        assert!(Mixture::read(&other).is_err());
    }

    #[test]
    fn parameters_out_of_range_are_refused() {
        let wrong = |params: Params| Progress::new(params).err().unwrap();
        assert!(wrong(Params { before: 0.2, ..Params::default() }).starts_with("`before` (0.2) must be"));
        assert!(wrong(Params { least: -1.0, ..Params::default() }).starts_with("`least` must be"));
        assert!(wrong(Params { explore: 0.0, ..Params::default() }).starts_with("`explore` must be"));
    }
}
