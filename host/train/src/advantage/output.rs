//! The output of an estimator: the advantage of a sample.

use super::group::ScoredTrajectory;

/// How much better a sample was than expected.
#[derive(Debug, Clone, PartialEq)]
pub enum Advantage {
    /// The same for all its tokens.
    Sample(f64),
    /// One for each response token of each of its trajectories.
    Tokens(Vec<Vec<f64>>),
}

impl Advantage {
    /// The advantage of each of the `tokens` response tokens of the sample's
    /// trajectory number `index`.
    pub fn of_trajectory(&self, index: usize, tokens: usize) -> Vec<f32> {
        match self {
            Self::Sample(advantage) => vec![*advantage as f32; tokens],
            Self::Tokens(all) => all.get(index).into_iter().flatten().map(|&advantage| advantage as f32).collect(),
        }
    }

    /// Whether it is 0 for all tokens.
    pub fn is_zero(&self) -> bool {
        match self {
            Self::Sample(advantage) => *advantage == 0.0,
            Self::Tokens(all) => all.iter().flatten().all(|advantage| *advantage == 0.0),
        }
    }

    /// The advantage of the whole sample: the mean over the tokens of its trajectories that are learned from.
    pub fn mean(&self, trajectories: &[ScoredTrajectory]) -> f64 {
        match self {
            Self::Sample(advantage) => *advantage,
            Self::Tokens(all) => {
                let masks = trajectories.iter().flat_map(|trajectory| &trajectory.loss_mask);
                mean(all.iter().flatten(), masks)
            }
        }
    }

    /// The advantage of each of its trajectories: the mean over the trajectory's learned tokens.
    pub fn means(&self, trajectories: &[ScoredTrajectory]) -> Vec<f64> {
        match self {
            Self::Sample(advantage) => vec![*advantage; trajectories.len()],
            Self::Tokens(all) => all.iter().zip(trajectories).map(|(tokens, of)| mean(tokens, &of.loss_mask)).collect(),
        }
    }
}

/// The mean over the tokens that are learned from; 0 without any.
fn mean<'a>(tokens: impl IntoIterator<Item = &'a f64>, loss_mask: impl IntoIterator<Item = &'a bool>) -> f64 {
    let learned = tokens.into_iter().zip(loss_mask).filter(|(_, learned)| **learned);
    let (sum, count) = learned.fold((0.0, 0.0), |(sum, count), (value, _)| (sum + value, count + 1.0));
    sum / f64::max(count, 1.0)
}
