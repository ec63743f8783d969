//! What estimators and penalties need to know of each token, from forward passes before the update.

use crate::error::Result;
use crate::ranks::unreadable;
use crate::run::experience::experience;
use gavel_config::RlTable;
use gavel_data::{Group, Trajectory};
use gavel_train::{Experience, KlEstimator};
use std::collections::BTreeMap;

/// What to measure of tokens.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Measuring {
    /// Whether to measure gradient norms.
    pub(crate) gradient_norms: bool,
    /// Whether to measure the critic's values.
    pub(crate) values: bool,
    /// How to measure the distance from the reference, if at all.
    pub(crate) kl: Option<KlEstimator>,
}

impl Measuring {
    /// The measures that the algorithm of a run needs, if any.
    pub(crate) fn of(table: &RlTable) -> Option<Self> {
        let kl = table.kl_reward.map(|kl| kl.estimator);
        let gradient_norms = table.algorithm().needs_gradient_norms();
        let values = table.algorithm().needs_critic();
        (gradient_norms || values || kl.is_some()).then_some(Self { gradient_norms, values, kl })
    }
}

/// The measures of the response tokens of a trajectory.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct TokenMeasures {
    /// The gradient norm of each; empty if they were not measured.
    pub(crate) gradient_norms: Vec<f64>,
    /// The return that the critic expects before each; empty without a critic.
    pub(crate) values: Vec<f32>,
    /// The distance of each from the reference; empty if it was not measured.
    pub(crate) kl: Vec<f64>,
}

/// A trajectory: the numbers of its group, of its sample and of itself.
pub(crate) type Place = (usize, usize, usize);

/// The measures, by trajectory.
pub(crate) type Measures = BTreeMap<Place, TokenMeasures>;

/// The trajectories of groups that have tokens, with their numbers.
pub(crate) fn rows(groups: &[&Group], table: &RlTable) -> Vec<(Place, Experience)> {
    let mut rows = Vec::new();
    for (number, group) in groups.iter().enumerate() {
        let reference = table.reference_of(group.task.data_source.as_deref());
        for (index, member) in group.members.iter().enumerate() {
            let of_trajectory = |(at, trajectory): (usize, &Trajectory)| {
                let row = experience(trajectory, table)?;
                Some(((number, index, at), Experience { reference, ..row }))
            };
            rows.extend(member.sample.trajectories.iter().enumerate().filter_map(of_trajectory));
        }
    }
    rows
}

/// The mean over trajectories of the mean distance of their learned tokens; nothing if there are none.
pub(crate) fn mean_kl(rows: &[(Place, Experience)], measures: &Measures) -> Option<f64> {
    let of_row = |(key, row): &(Place, Experience)| {
        let kl = &measures.get(key)?.kl;
        let learned: Vec<f64> = row.loss_mask.iter().zip(kl).filter(|(mask, _)| **mask).map(|(_, kl)| *kl).collect();
        (!learned.is_empty()).then(|| gavel_runs::metrics::mean(&learned))
    };
    let means: Vec<f64> = rows.iter().filter_map(of_row).collect();
    (!means.is_empty()).then(|| gavel_runs::metrics::mean(&means))
}

/// The measures of trajectories as bytes, bit for bit.
pub(crate) fn written(measures: &[TokenMeasures]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for TokenMeasures { gradient_norms, values, kl } in measures {
        let values: Vec<f64> = values.iter().map(|value| f64::from(*value)).collect();
        for numbers in [gradient_norms, &values, kl] {
            bytes.extend((numbers.len() as u64).to_le_bytes());
            bytes.extend(numbers.iter().flat_map(|number| number.to_le_bytes()));
        }
    }
    bytes
}

/// The measures that all ranks have written, rank after rank.
///
/// # Errors
/// The bytes of a rank are cut.
pub(crate) fn read(all: &[Vec<u8>]) -> Result<Vec<TokenMeasures>> {
    let mut measures = Vec::new();
    for (rank, bytes) in all.iter().enumerate() {
        let mut rest = bytes.as_slice();
        while !rest.is_empty() {
            let mut next = || numbers(&mut rest).ok_or_else(|| unreadable(rank, "measures of tokens that are cut"));
            let (gradient_norms, values, kl) = (next()?, next()?, next()?);
            let values = values.into_iter().map(|value| value as f32).collect();
            measures.push(TokenMeasures { gradient_norms, values, kl });
        }
    }
    Ok(measures)
}

fn numbers(from: &mut &[u8]) -> Option<Vec<f64>> {
    let (count, rest) = from.split_first_chunk()?;
    let count = usize::try_from(u64::from_le_bytes(*count)).ok()?;
    let (numbers, rest) = rest.split_at_checked(count.checked_mul(8)?)?;
    *from = rest;
    Some(numbers.chunks_exact(8).filter_map(|bytes| Some(f64::from_le_bytes(bytes.try_into().ok()?))).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn measures_are_exchanged_bit_for_bit() {
        let first = TokenMeasures { gradient_norms: vec![0.1, f64::MIN_POSITIVE], values: vec![], kl: vec![-0.0] };
        let second = TokenMeasures { values: vec![0.1, -3.5e-20], ..Default::default() };
        let all = [written(&[first.clone(), second.clone()]), written(&[]), written(std::slice::from_ref(&second))];
        assert_eq!(read(&all).unwrap(), [first, second.clone(), second]);
        let cut = &all[0][..all[0].len() - 1];
        assert!(read(&[vec![], cut.to_vec()]).unwrap_err().to_string().starts_with("rank 1 sent what cannot be read"));
    }
}
