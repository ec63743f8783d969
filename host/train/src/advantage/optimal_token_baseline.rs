//! The optimal token baseline (Li et al., "The optimal token baseline: variance reduction for long-horizon LLM-RL",
//! 2026, <https://richardli.xyz/optimal-token-baseline>): each token has a baseline of its own, the mean of the returns
//! of the group at that token, weighted by the size of the gradient that each trajectory has accumulated until then.

use super::group::{ScoredGroup, ScoredSample, ScoredTrajectory};
use super::output::Advantage;

/// Added to the sum of weights before a division, the same as in verl.
const EPSILON: f64 = 1e-8;

/// Which tokens of two trajectories are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Alignment {
    /// Tokens at the same place in the response.
    Position,
    /// Tokens before which the policy wrote equally many tokens: in a response with several turns, the tokens of tools
    /// do not count.
    Learned,
}

/// A trajectory of the group, place by place of the alignment.
struct Row {
    /// At each place: the token's position, its return, and the sum of the gradient's squared norms up to it; nothing
    /// where the token is not learned from.
    places: Vec<Option<(usize, f64, f64)>>,
    learned: usize,
}

impl Row {
    fn new(trajectory: &ScoredTrajectory, reward: f64, alignment: Alignment) -> Self {
        let returns = trajectory.returns(reward, 1.0);
        let mut weight = 0.0;
        let place = |(at, &learned): (usize, &bool)| {
            learned.then(|| {
                weight += trajectory.gradient_norms.get(at).copied().unwrap_or(0.0);
                (at, returns[at], weight)
            })
        };
        let mut places: Vec<_> = trajectory.loss_mask.iter().enumerate().map(place).collect();
        if alignment == Alignment::Learned {
            places.retain(Option::is_some);
        }
        Self { places, learned: trajectory.learned() }
    }
}

/// `return − Σ return · W / Σ W` for each token, over the trajectories of its group, with
/// `W = Σ (1 − 2 p + Σ p²)` over the tokens up to this one.
pub(super) fn advantages(groups: &[ScoredGroup], alignment: Alignment) -> Vec<Vec<Advantage>> {
    groups.iter().map(|group| of_group(group, alignment)).collect()
}

fn of_group(group: &ScoredGroup, alignment: Alignment) -> Vec<Advantage> {
    let rows: Vec<Vec<Row>> = group
        .samples
        .iter()
        .map(|sample| sample.trajectories.iter().map(|one| Row::new(one, sample.reward, alignment)).collect())
        .collect();
    let all = || rows.iter().flatten().filter(|row| row.learned > 0);
    let is_single = all().count() < 2;
    let mut lengths: Vec<usize> = all().map(|row| row.learned).collect();
    lengths.sort_unstable_by(|a, b| b.cmp(a));
    let baseline = |place: usize| {
        let (sum, weights) = all()
            .filter_map(|row| *row.places.get(place)?)
            .fold((0.0, 0.0), |(sum, weights), (_, value, weight)| (sum + value * weight, weights + weight));
        sum / (weights + EPSILON)
    };
    let places = all().map(|row| row.places.len()).max().unwrap_or(0);
    let baselines: Vec<f64> = (0..places).map(baseline).collect();
    let of_row = |(row, trajectory): (&Row, &ScoredTrajectory)| {
        let mut advantages = vec![0.0; trajectory.loss_mask.len()];
        // Beyond the ends of all others, a trajectory would be its own baseline.
        let alone = match lengths[..] {
            [longest, second, ..] if row.learned == longest && longest > second => second,
            _ => usize::MAX,
        };
        for (place, token) in row.places.iter().enumerate() {
            if let Some((at, value, _)) = token {
                let has_baseline = !is_single && place < alone;
                advantages[*at] = value - if has_baseline { baselines[place] } else { 0.0 };
            }
        }
        advantages
    };
    let of_sample = |(rows, sample): (&Vec<Row>, &ScoredSample)| {
        Advantage::Tokens(rows.iter().zip(&sample.trajectories).map(of_row).collect())
    };
    rows.iter().zip(&group.samples).map(of_sample).collect()
}
