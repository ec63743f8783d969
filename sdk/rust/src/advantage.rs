//! Advantages: how much better than expected each sample of a step was.

pub use crate::bindings::advantage::{
    Estimates, Group, Part, SampleAdvantage, ScoredSample, Span, TokenCredit, Trajectory,
};

use crate::{Failure, Info};
use serde::de::DeserializeOwned;

/// An estimator that turns the rewards of whole groups into advantages. It sees
/// numbers, and no text.
///
/// ```
/// use gavel_sdk::advantage::{Estimates, Group};
/// use gavel_sdk::{Advantage, Failure, Info, NoParams};
///
/// /// The reward minus the mean of the group (Dr. GRPO).
/// struct Centred;
///
/// impl Advantage for Centred {
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
///     fn estimate(&self, _step: u64, groups: &[Group], _state: &[u8]) -> Result<Estimates, Failure> {
///         Ok(Estimates::of_samples(groups, |group| {
///             let rewards = group.rewards();
///             let mean = rewards.iter().sum::<f64>() / rewards.len() as f64;
///             rewards.iter().map(|reward| reward - mean).collect()
///         }))
///     }
/// }
///
/// gavel_sdk::export_advantage!(Centred);
/// # fn main() {}
/// ```
pub trait Advantage: Sized + 'static {
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

    /// Gives the advantages of all groups that the policy learns from at once.
    /// `step` is the step, from 1. `state` is what the last call returned, and
    /// empty in the first call of a run.
    ///
    /// # Errors
    /// With a [`Failure`], the step is not taken and the run stops.
    fn estimate(&self, step: u64, groups: &[Group], state: &[u8]) -> Result<Estimates, Failure>;
}

impl Estimates {
    /// Advantages without a state: for each group, one for each sample.
    pub fn new(advantages: Vec<Vec<SampleAdvantage>>) -> Self {
        Self { advantages, state: Vec::new() }
    }

    /// The same advantage for all tokens of a sample: `of_group` gives one for
    /// each sample of a group.
    pub fn of_samples(groups: &[Group], mut of_group: impl FnMut(&Group) -> Vec<f64>) -> Self {
        let of_group = |group| of_group(group).into_iter().map(SampleAdvantage::Sample).collect();
        Self::new(groups.iter().map(of_group).collect())
    }

    /// Adds the state that the next call gets.
    #[must_use]
    pub fn state(mut self, state: impl Into<Vec<u8>>) -> Self {
        self.state = state.into();
        self
    }
}

impl Group {
    /// The reward of each sample.
    pub fn rewards(&self) -> Vec<f64> {
        self.samples.iter().map(|sample| sample.reward).collect()
    }
}

impl Trajectory {
    /// The number of tokens that are learned from.
    pub fn learned_tokens(&self) -> usize {
        self.learned.iter().map(|tokens| tokens.end.saturating_sub(tokens.start) as usize).sum()
    }

    /// The same value for all learned tokens, and 0 for the others.
    pub fn spread(&self, value: f64) -> Vec<f64> {
        let mut values = vec![0.0; self.response_tokens as usize];
        for Span { start, end } in &self.learned {
            values[*start as usize..*end as usize].fill(value);
        }
        values
    }
}

/// Makes a type that implements [`Advantage`] the component's advantage. Use it
/// once in a crate of the type `cdylib`.
#[macro_export]
macro_rules! export_advantage {
    ($advantage:ty) => {
        const _: () = {
            $crate::__export_plugin!($advantage as $crate::Advantage);

            impl $crate::bindings::advantage::Guest for Component {
                fn estimate(
                    step: u64,
                    groups: ::std::vec::Vec<$crate::advantage::Group>,
                    state: ::std::vec::Vec<u8>,
                ) -> ::std::result::Result<$crate::advantage::Estimates, $crate::Failure> {
                    INSTANCE.with(|instance| $crate::Advantage::estimate(instance.get()?, step, &groups, &state))
                }
            }

            #[cfg(target_family = "wasm")]
    $crate::bindings::advantage::__export_advantage!(Component with_types_in $crate::bindings::advantage);

            #[cfg(not(target_family = "wasm"))]
            const _: () = {
                let _ = <Component as $crate::bindings::advantage::Guest>::estimate;
            };
        };
    };
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::FinishReason;

    fn trajectory() -> Trajectory {
        Trajectory {
            index: 0,
            finish_reason: FinishReason::Stop,
            prompt_tokens: 3,
            response_tokens: 6,
            learned: vec![Span { start: 0, end: 2 }, Span { start: 3, end: 5 }],
            credit: Vec::new(),
            penalty: 0.0,
            logprob: -1.0,
            oldest_version: Some(0),
            newest_version: Some(1),
        }
    }

    #[test]
    fn a_value_is_spread_over_learned_tokens() {
        assert_eq!(trajectory().learned_tokens(), 4);
        assert_eq!(trajectory().spread(0.5), [0.5, 0.5, 0.0, 0.5, 0.5, 0.0]);
    }

    #[test]
    fn each_sample_has_its_advantage() {
        let sample = |reward| ScoredSample { index: 0, reward, parts: Vec::new(), trajectories: vec![trajectory()] };
        let samples = vec![sample(1.0), sample(0.25)];
        let group = Group { task_id: "t".into(), data_source: None, speaker: String::new(), samples };
        let Estimates { advantages, state } = Estimates::of_samples(&[group], Group::rewards).state([1, 2]);
        let values: Vec<f64> = advantages[0]
            .iter()
            .map(|advantage| match advantage {
                SampleAdvantage::Sample(value) => *value,
                other => unreachable!("{other:?}"),
            })
            .collect();
        assert_eq!((values, state), (vec![1.0, 0.25], vec![1, 2]));
    }
}
