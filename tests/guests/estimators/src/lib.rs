//! An advantage that repeats built-in algorithms, bit for bit: `grpo`, `rloo` and `gdpo`. `running` subtracts the mean
//! of all rewards of the run so far, which it keeps in its state. `fails` gives NaN from the second step on, and
//! `careless` divides by a deviation that may be 0.

use gavel_sdk::advantage::{Estimates, Group, SampleAdvantage, ScoredSample, Trajectory};
use gavel_sdk::{Advantage, Failure, Info};

struct Estimators {
    params: Params,
}

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Params {
    estimator: Estimator,
}

#[derive(Clone, Copy, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
enum Estimator {
    Grpo,
    Rloo,
    Gdpo,
    Running,
    Fails,
    Careless,
}

impl Advantage for Estimators {
    type Params = Params;

    fn new(params: Params) -> Result<Self, String> {
        Ok(Self { params })
    }

    fn info(&self) -> Info {
        Info::new(env!("CARGO_PKG_NAME"), env!("CARGO_PKG_VERSION")).pure()
    }

    fn estimate(&self, step: u64, groups: &[Group], state: &[u8]) -> Result<Estimates, Failure> {
        Ok(match self.params.estimator {
            Estimator::Grpo => Estimates::of_samples(groups, grpo),
            Estimator::Rloo => Estimates::of_samples(groups, rloo),
            Estimator::Gdpo => gdpo(groups),
            Estimator::Running => running(groups, state)?,
            Estimator::Fails if step == 1 => Estimates::of_samples(groups, grpo),
            Estimator::Careless => Estimates::of_samples(groups, careless),
            Estimator::Fails => Estimates::of_samples(groups, |group| vec![f64::NAN; group.samples.len()]),
        })
    }
}

gavel_sdk::export_advantage!(Estimators);

fn grpo(group: &Group) -> Vec<f64> {
    let rewards = group.rewards();
    let divisor = deviation(&rewards) + 1e-6;
    centred(&rewards).into_iter().map(|difference| difference / divisor).collect()
}

fn careless(group: &Group) -> Vec<f64> {
    let rewards = group.rewards();
    let (mean, deviation) = (mean(&rewards), deviation(&rewards));
    rewards.iter().map(|reward| (reward - mean) / deviation).collect()
}

fn rloo(group: &Group) -> Vec<f64> {
    let count = group.samples.len() as f64;
    let factor = count / (count - 1.0).max(1.0);
    centred(&group.rewards()).into_iter().map(|difference| difference * factor).collect()
}

/// Each reward is normalised by itself, and then the sums over all learned tokens of the batch.
fn gdpo(groups: &[Group]) -> Estimates {
    let sums: Vec<Vec<f64>> = groups.iter().map(sums).collect();
    let each = groups.iter().zip(&sums).flat_map(|(group, sums)| group.samples.iter().zip(sums));
    let of_tokens = each.flat_map(|(sample, sum)| std::iter::repeat_n(*sum, learned(sample)));
    let all: Vec<f64> = of_tokens.collect();
    let count = all.len() as f64;
    let mean = all.iter().sum::<f64>() / count.max(1.0);
    let variance = all.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (count - 1.0).max(1.0);
    let scale = 1.0 / (variance + 1e-8).sqrt();
    let of_sample = |(sample, sum): (&ScoredSample, &f64)| {
        let of_trajectory = |trajectory: &Trajectory| trajectory.spread((sum - mean) * scale);
        SampleAdvantage::Tokens(sample.trajectories.iter().map(of_trajectory).collect())
    };
    let of_group = |(group, sums): (&Group, &Vec<f64>)| group.samples.iter().zip(sums).map(of_sample).collect();
    Estimates::new(groups.iter().zip(&sums).map(of_group).collect())
}

fn learned(sample: &ScoredSample) -> usize {
    sample.trajectories.iter().map(Trajectory::learned_tokens).sum()
}

/// `Σ weight · (score − mean) / deviation` of each reward's scores in the group.
fn sums(group: &Group) -> Vec<f64> {
    let parts = |sample: &ScoredSample| -> Vec<(f64, f64)> {
        // The reward of a speaker is not divided.
        if !group.speaker.is_empty() {
            return vec![(1.0, sample.reward)];
        }
        let weighted = sample.parts.iter().filter(|part| part.weight != 0.0);
        weighted.map(|part| (part.weight, part.counted)).collect()
    };
    let parts: Vec<Vec<(f64, f64)>> = group.samples.iter().map(parts).collect();
    let mut sums = vec![0.0; parts.len()];
    for reward in 0..parts.first().map_or(0, Vec::len) {
        let scores: Vec<f64> = parts.iter().map(|parts| parts[reward].1).collect();
        let divisor = deviation(&scores) + 1e-6;
        for ((sum, difference), parts) in sums.iter_mut().zip(centred(&scores)).zip(&parts) {
            *sum += parts[reward].0 * difference / divisor;
        }
    }
    sums
}

/// The reward minus the mean of all rewards so far, of which the state has the number and the sum.
fn running(groups: &[Group], state: &[u8]) -> Result<Estimates, Failure> {
    let number = |at: usize| Some(f64::from_le_bytes(state.get(at..at + 8)?.try_into().ok()?));
    let (mut count, mut sum) = match state {
        [] => (0.0, 0.0),
        _ => number(0).zip(number(8)).ok_or_else(|| Failure::internal("the state is not its own"))?,
    };
    for reward in groups.iter().flat_map(Group::rewards) {
        count += 1.0;
        sum += reward;
    }
    let centred = |group: &Group| group.rewards().into_iter().map(|reward| reward - sum / count).collect();
    let state = [count.to_le_bytes(), sum.to_le_bytes()].concat();
    Ok(Estimates::of_samples(groups, centred).state(state))
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// The sample standard deviation; 0 for a single value.
fn deviation(values: &[f64]) -> f64 {
    let mean = mean(values);
    let squares = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>();
    (squares / (values.len() as f64 - 1.0).max(1.0)).sqrt()
}

/// Each value minus the mean; exactly 0 if all are the same.
fn centred(values: &[f64]) -> Vec<f64> {
    if values.windows(2).all(|pair| pair[0] == pair[1]) {
        return vec![0.0; values.len()];
    }
    let mean = mean(values);
    values.iter().map(|value| value - mean).collect()
}
