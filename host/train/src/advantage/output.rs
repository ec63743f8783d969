//! The output of an estimator: the advantage of a sample.

use super::group::ScoredTrajectory;

/// How much better a sample was than expected.
#[derive(Debug, Clone, PartialEq)]
pub enum Advantage {
    /// The same for all its tokens.
    Sample(f64),
    /// One for each of its trajectories, the same for all tokens of the trajectory.
    Trajectories(Vec<f64>),
    /// One for each response token of each of its trajectories.
    Tokens(Vec<Vec<f64>>),
}

impl Advantage {
    /// The advantage of each of the `tokens` response tokens of the sample's
    /// trajectory number `index`.
    pub fn of_trajectory(&self, index: usize, tokens: usize) -> Vec<f32> {
        match self {
            Self::Sample(advantage) => vec![*advantage as f32; tokens],
            Self::Trajectories(all) => {
                all.get(index).map(|&advantage| vec![advantage as f32; tokens]).unwrap_or_default()
            }
            Self::Tokens(all) => all.get(index).into_iter().flatten().map(|&advantage| advantage as f32).collect(),
        }
    }

    /// Whether it is 0 for all tokens.
    pub fn is_zero(&self) -> bool {
        match self {
            Self::Sample(advantage) => *advantage == 0.0,
            Self::Trajectories(all) => all.iter().all(|advantage| *advantage == 0.0),
            Self::Tokens(all) => all.iter().flatten().all(|advantage| *advantage == 0.0),
        }
    }

    /// The advantage of the whole sample: the mean over the tokens of its trajectories that are learned from.
    pub fn mean(&self, trajectories: &[ScoredTrajectory]) -> f64 {
        match self {
            Self::Sample(advantage) => *advantage,
            Self::Trajectories(all) => {
                let spread = |(value, of): (&f64, &ScoredTrajectory)| vec![*value; of.loss_mask.len()];
                let all = all.iter().zip(trajectories).map(spread).collect();
                Self::Tokens(all).mean(trajectories)
            }
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
            Self::Trajectories(all) => all.clone(),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_advantage_of_trajectories_is_the_same_for_all_tokens_of_each() {
        let of_tokens = |learned: &[bool]| ScoredTrajectory { loss_mask: learned.to_vec(), ..Default::default() };
        let trajectories = [of_tokens(&[true, false]), of_tokens(&[true, true, true])];
        let advantage = Advantage::Trajectories(vec![2.0, -1.0]);
        let of_each = [advantage.of_trajectory(0, 2), advantage.of_trajectory(1, 3), advantage.of_trajectory(2, 1)];
        assert_eq!(of_each, [vec![2.0; 2], vec![-1.0; 3], vec![]]);
        assert_eq!((advantage.mean(&trajectories), advantage.means(&trajectories)), (-0.25, vec![2.0, -1.0]));
        assert!(!advantage.is_zero() && Advantage::Trajectories(vec![0.0, -0.0]).is_zero());
    }
}
