//! Samplers: which task a run draws next, and which group it trains on.

pub use crate::bindings::sampler::{Answer, Dataset, EndedGroup, EndedSample, Refusal, Request, SampleOutcome, Task};

use crate::{Failure, Info};
use serde::de::DeserializeOwned;

/// A sampler that draws the tasks of a run. It sees numbers, ids and data
/// sources, and no text.
///
/// ```
/// use gavel_sdk::sampler::{Answer, Random, Request};
/// use gavel_sdk::{Failure, Info, NoParams, Sampler};
///
/// /// Any row, as often as any other.
/// struct Uniform;
///
/// impl Sampler for Uniform {
///     type Params = NoParams;
///
///     fn new(_: NoParams) -> Result<Self, String> {
///         Ok(Self)
///     }
///
///     fn info(&self) -> Info {
///         Info::new(env!("CARGO_PKG_NAME"), env!("CARGO_PKG_VERSION")).pure()
///     }
///
///     fn sample(&self, request: &Request) -> Result<Answer, Failure> {
///         let mut random = Random::new(request.seed);
///         let draws = (0..request.wanted).map(|_| request.task(random.below(request.rows())));
///         Ok(Answer::new(draws.collect()))
///     }
/// }
///
/// gavel_sdk::export_sampler!(Uniform);
/// # fn main() {}
/// ```
pub trait Sampler: Sized + 'static {
    /// The keys of `[plugin.NAME.params]` in a run's configuration;
    /// [`NoParams`](crate::NoParams) if there are none.
    type Params: DeserializeOwned;

    /// Creates the plugin, once, before any call.
    ///
    /// # Errors
    /// What is wrong with the parameters, in one sentence for the user.
    fn new(params: Self::Params) -> Result<Self, String>;

    /// The plugin's name, version and promises.
    fn info(&self) -> Info;

    /// Gives the `wanted` tasks that are drawn next, and names the groups of
    /// `ended` that are not to be trained on. The state of the request is what
    /// the last call returned, and empty in the first call of a run.
    ///
    /// # Errors
    /// With a [`Failure`], the step is not taken and the run stops.
    fn sample(&self, request: &Request) -> Result<Answer, Failure>;
}

impl Answer {
    /// These tasks, without a refusal and without a state.
    pub fn new(draws: Vec<Task>) -> Self {
        Self { draws, refusals: Vec::new(), state: Vec::new() }
    }

    /// Refuses the group of the draw `draw`. The run counts it by `reason`: 1 to
    /// 64 letters, digits or one of `_ . / -`.
    #[must_use]
    pub fn refuse(mut self, draw: u64, reason: impl Into<String>) -> Self {
        self.refusals.push(Refusal { draw, reason: reason.into() });
        self
    }

    /// Adds the state that the next call gets.
    #[must_use]
    pub fn state(mut self, state: impl Into<Vec<u8>>) -> Self {
        self.state = state.into();
        self
    }
}

impl Request {
    /// The number of rows of all datasets.
    pub fn rows(&self) -> u64 {
        self.datasets.iter().map(|dataset| dataset.rows).sum()
    }

    /// The task of a row that is counted over all datasets, from 0. A number
    /// that no row has gives a task that no dataset has.
    pub fn task(&self, mut row: u64) -> Task {
        for (dataset, Dataset { rows, .. }) in (0..).zip(&self.datasets) {
            match row.checked_sub(*rows) {
                None => return Task { dataset, row },
                Some(rest) => row = rest,
            }
        }
        Task { dataset: self.datasets.len() as u32, row }
    }

    /// The number of a task's row, counted over all datasets.
    pub fn row(&self, task: &Task) -> u64 {
        self.datasets.iter().take(task.dataset as usize).map(|dataset| dataset.rows).sum::<u64>() + task.row
    }
}

impl EndedGroup {
    /// The rewards of the samples that have one.
    pub fn rewards(&self) -> Vec<f64> {
        self.samples.iter().filter_map(|sample| sample.reward).collect()
    }

    /// Their mean; none if no sample has a reward.
    pub fn mean_reward(&self) -> Option<f64> {
        let rewards = self.rewards();
        (!rewards.is_empty()).then(|| rewards.iter().sum::<f64>() / rewards.len() as f64)
    }
}

/// Random numbers that follow from a seed: SplitMix64 (Steele, Lea and Flood,
/// "Fast splittable pseudorandom number generators", 2014).
#[derive(Debug, Clone)]
pub struct Random(u64);

impl Random {
    /// The numbers of this seed.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// A number of 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number from 0 up to, but not including, 1.
    pub fn uniform(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// A whole number from 0 up to, but not including, `end`; 0 if that is 0.
    pub fn below(&mut self, end: u64) -> u64 {
        ((u128::from(self.bits()) * u128::from(end)) >> 64) as u64
    }
}

/// Makes a type that implements [`Sampler`] the component's sampler. Use it once
/// in a crate of the type `cdylib`.
#[macro_export]
macro_rules! export_sampler {
    ($sampler:ty) => {
        const _: () = {
            $crate::__export_plugin!($sampler as $crate::Sampler);

            impl $crate::bindings::sampler::Guest for Component {
                fn sample(
                    request: $crate::sampler::Request,
                ) -> ::std::result::Result<$crate::sampler::Answer, $crate::Failure> {
                    INSTANCE.with(|instance| $crate::Sampler::sample(instance.get()?, &request))
                }
            }

            #[cfg(target_family = "wasm")]
    $crate::bindings::sampler::__export_sampler!(Component with_types_in $crate::bindings::sampler);

            #[cfg(not(target_family = "wasm"))]
            const _: () = {
                let _ = <Component as $crate::bindings::sampler::Guest>::sample;
            };
        };
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request() -> Request {
        let datasets = [3, 1, 5].map(|rows| Dataset { rows, weight: None });
        Request {
            step: 1,
            seed: 7,
            datasets: datasets.into(),
            ended: Vec::new(),
            wanted: 2,
            next_draw: 0,
            state: Vec::new(),
        }
    }

    #[test]
    fn rows_are_counted_over_all_datasets() {
        let request = request();
        let places: Vec<(u32, u64)> =
            (0..10).map(|row| request.task(row)).map(|task| (task.dataset, task.row)).collect();
        assert_eq!(places, [(0, 0), (0, 1), (0, 2), (1, 0), (2, 0), (2, 1), (2, 2), (2, 3), (2, 4), (3, 0)]);
        assert_eq!(request.rows(), 9);
        assert!((0..9).all(|row| request.row(&request.task(row)) == row));
    }

    #[test]
    fn samples_without_a_reward_do_not_count() {
        let sample = |reward| EndedSample { outcome: SampleOutcome::Scored, reward, metrics: Vec::new() };
        let group = |rewards: &[Option<f64>]| EndedGroup {
            draw: 0,
            task: Task { dataset: 0, row: 0 },
            task_id: "t".into(),
            data_source: None,
            version: 0,
            samples: rewards.iter().copied().map(sample).collect(),
            dropped: None,
        };
        assert_eq!(group(&[Some(1.0), None, Some(0.5)]).mean_reward(), Some(0.75));
        assert_eq!(group(&[None]).mean_reward(), None);
    }

    #[test]
    fn random_numbers_follow_from_the_seed() {
        let numbers = |seed| {
            let mut random = Random::new(seed);
            [random.below(10), random.below(10), random.below(10), random.below(0)]
        };
        assert_eq!(numbers(7), numbers(7));
        assert_ne!(numbers(7), numbers(8));
        // The first number of the seed 1234567, as the reference implementation gives it.
        assert_eq!(Random::new(1_234_567).bits(), 6_457_827_717_110_365_317);
        let mut random = Random::new(3);
        let mean = (0..20_000).map(|_| random.uniform()).sum::<f64>() / 20_000.0;
        assert!((mean - 0.5).abs() < 0.01, "{mean}");
    }

    #[test]
    fn an_answer_has_what_was_added() {
        let answer = Answer::new(vec![Task { dataset: 0, row: 2 }]).refuse(4, "too-hard").state([1, 2]);
        assert_eq!((answer.draws.len(), answer.state), (1, vec![1, 2]));
        assert_eq!((answer.refusals[0].draw, answer.refusals[0].reason.as_str()), (4, "too-hard"));
    }
}
