//! The derivation of all seeds. Nothing draws from libtorch's single global
//! generator. Each random choice is a function of the run's seed and of its
//! purpose, and does not depend on other choices.

/// The purpose of a seed; two purposes never share a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u64)]
pub enum Purpose {
    /// Initial weights of a random model.
    Weights = 1,
    /// The order of tasks.
    Shuffle = 2,
    /// Sampling a response.
    Rollout = 3,
    /// The random numbers of a plugin.
    Plugin = 4,
    /// Sampling a response in validation.
    Validation = 5,
    /// The order of trajectories within an update.
    Update = 6,
    /// The dataset that a draw is from.
    Mixture = 7,
    /// Sampling a turn after the first one of an episode.
    Turn = 8,
    /// The random numbers of a tool.
    Tool = 9,
    /// The choices of a sampler.
    Sampler = 10,
}

/// The seed for `purpose` at `step` and `sample` of a run.
pub fn derive(run: u64, step: u64, sample: u64, purpose: Purpose) -> u64 {
    [step, sample, purpose as u64].into_iter().fold(mix(run), |state, word| mix(state ^ mix(word)))
}

/// The seed for `purpose` of the `retry`-th retry of `sample`. Retry 0 is the
/// first draw, with the seed of [`derive`].
pub fn derive_retry(run: u64, step: u64, sample: u64, retry: u32, purpose: Purpose) -> u64 {
    let seed = derive(run, step, sample, purpose);
    if retry == 0 { seed } else { mix(seed ^ mix(u64::from(retry))) }
}

/// The uniform number in `[0, 1)` at `position` of the stream `seed`.
pub fn uniform(seed: u64, position: u64) -> f64 {
    let bits = mix(seed ^ mix(position));
    (bits >> 11) as f64 / (1u64 << 53) as f64
}

/// A permutation of `0..len`.
pub fn permutation(seed: u64, len: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..len).collect();
    for last in (1..len).rev() {
        let pick = (uniform(seed, last as u64) * (last + 1) as f64) as usize;
        order.swap(last, pick);
    }
    order
}

/// SplitMix64's step and finaliser (Steele, Lea and Flood, "Fast splittable
/// pseudorandom number generators", 2014).
fn mix(value: u64) -> u64 {
    let mut z = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_are_apart_and_uniform() {
        let seeds = [(0, 0), (0, 1), (1, 0), (1, 1)].map(|(step, sample)| derive(7, step, sample, Purpose::Rollout));
        for (i, a) in seeds.iter().enumerate() {
            assert!(seeds[i + 1..].iter().all(|b| a != b));
        }
        assert_ne!(derive(7, 0, 0, Purpose::Rollout), derive(7, 0, 0, Purpose::Plugin));
        let mean = (0..20_000).map(|position| uniform(seeds[0], position)).sum::<f64>() / 20_000.0;
        assert!((mean - 0.5).abs() < 0.01, "{mean}");
    }

    #[test]
    fn a_permutation_has_every_index_once() {
        let mut order = permutation(3, 1000);
        assert_ne!(order, (0..1000).collect::<Vec<_>>());
        order.sort_unstable();
        assert_eq!(order, (0..1000).collect::<Vec<_>>());
    }
}
