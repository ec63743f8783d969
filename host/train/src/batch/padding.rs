//! Batches for libraries that need equal shapes. Gavel's own trainer takes any number of rows and makes none up.

use crate::experience::{Experience, SampleId};
use std::num::NonZeroUsize;

/// A batch that divides by a number of ranks and by mini-batches, filled with rows that nothing is learned from.
#[derive(Debug, Clone, PartialEq)]
pub struct PaddedBatch {
    /// The rows as they were, then the padding.
    pub rows: Vec<Experience>,
    /// For each row, whether it is padding. Such a row counts for throughput alone: not for reward, accuracy or length.
    pub is_padding: Vec<bool>,
}

impl PaddedBatch {
    /// The fewest rows that divide by each of `divisors`: the number of ranks and the size of every mini-batch, of the
    /// policy and of the critic. A batch without rows stays empty.
    ///
    /// A row of padding has the prompt `token` and the response `token`, which its loss mask excludes. It has the same
    /// fields as the other rows. Each is a group of its own, so that it changes no advantage.
    pub fn new(mut rows: Vec<Experience>, divisors: &[NonZeroUsize], token: u32) -> Self {
        let (real, multiple) = (rows.len(), divisors.iter().fold(1, |multiple, size| lcm(multiple, size.get())));
        let group = rows.iter().map(|row| row.sample.group + 1).max().unwrap_or_default();
        let has = |field: fn(&Experience) -> &Vec<f32>| match rows.iter().any(|row| !field(row).is_empty()) {
            true => vec![0.0],
            false => Vec::new(),
        };
        let padding = Experience {
            sample: SampleId::default(),
            prompt: vec![token],
            response: vec![token],
            loss_mask: vec![false],
            logprobs: vec![0.0],
            proximal: has(|row| &row.proximal),
            // The newest, so that it is not stale.
            versions: rows.iter().flat_map(|row| &row.versions).max().copied().into_iter().collect(),
            advantages: vec![0.0],
            values: has(|row| &row.values),
            returns: has(|row| &row.returns),
            ..Experience::default()
        };
        let missing = real.next_multiple_of(multiple) - real;
        rows.extend((0..missing).map(|at| {
            let sample = SampleId { group: group + at, ..SampleId::default() };
            Experience { sample, ..padding.clone() }
        }));
        let is_padding = (0..rows.len()).map(|row| row >= real).collect();
        Self { rows, is_padding }
    }

    /// The rows that are not padding, for metrics.
    pub fn real(&self) -> impl Iterator<Item = &Experience> {
        self.rows.iter().zip(&self.is_padding).filter(|(_, is_padding)| !**is_padding).map(|(row, _)| row)
    }

    /// How many tokens the rows have, including the tokens of the padding, for throughput.
    pub fn tokens(&self) -> usize {
        self.rows.iter().map(|row| row.prompt.len() + row.response.len()).sum()
    }
}

/// The least common multiple of two numbers above 0.
fn lcm(a: usize, b: usize) -> usize {
    let (mut gcd, mut rest) = (a, b);
    while rest != 0 {
        (gcd, rest) = (rest, gcd % rest);
    }
    a / gcd * b
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{experiences, policy_update, tiny};
    use crate::{LossConfig, OptimizerConfig, Trainer};
    use tch::Tensor;

    /// A batch of trajectories in groups of 8, the last of which may be cut.
    fn trajectories(count: usize) -> Vec<Experience> {
        let sample = |row: usize| SampleId { group: row / 8, index: row % 8, trajectory: 0 };
        let row = |row: usize| Experience {
            sample: sample(row),
            prompt: vec![5; 3],
            response: vec![6; 2],
            loss_mask: vec![true; 2],
            logprobs: vec![-0.5; 2],
            versions: vec![3, 4],
            advantages: vec![1.0; 2],
            ..Default::default()
        };
        (0..count).map(row).collect()
    }

    fn padded(rows: Vec<Experience>, divisors: &[usize]) -> PaddedBatch {
        let divisors: Vec<NonZeroUsize> = divisors.iter().map(|size| NonZeroUsize::new(*size).unwrap()).collect();
        PaddedBatch::new(rows, &divisors, 9)
    }

    #[test]
    fn a_batch_divides_by_ranks_and_mini_batches() {
        for (ranks, count, expected) in [
            (1, 45, 45),
            (2, 45, 60),
            (3, 45, 45),
            (8, 45, 120),
            (1, 90, 90),
            (2, 90, 90),
            (3, 90, 90),
            (8, 90, 120),
            (2, 1, 30),
            (8, 0, 0),
        ] {
            let (rows, batch) = (trajectories(count), padded(trajectories(count), &[ranks, 15]));
            assert_eq!((batch.rows.len(), batch.is_padding.len()), (expected, expected), "{ranks} ranks, {count} rows");
            assert_eq!(batch.real().cloned().collect::<Vec<_>>(), rows);
            assert_eq!(batch.tokens(), 5 * count + 2 * (expected - count), "padding counts for throughput");
            let mut groups: Vec<usize> = batch.rows[count..].iter().map(|row| row.sample.group).collect();
            assert!(groups.iter().all(|group| rows.iter().all(|row| row.sample.group != *group)));
            groups.dedup();
            assert_eq!(groups.len(), expected - count, "a row of padding shares a group");
        }
        // The critic's mini-batches are of another size.
        assert_eq!(padded(trajectories(45), &[2, 15, 9]).rows.len(), 90);
        assert_eq!(padded(trajectories(45), &[]).rows.len(), 45);
    }

    #[test]
    fn padding_has_the_fields_of_the_rows() {
        let bare = padded(trajectories(45), &[2]).rows.pop().unwrap();
        let expected = Experience {
            sample: SampleId { group: 6, index: 0, trajectory: 0 },
            prompt: vec![9],
            response: vec![9],
            loss_mask: vec![false],
            logprobs: vec![0.0],
            versions: vec![4],
            advantages: vec![0.0],
            ..Default::default()
        };
        assert_eq!(bare, expected);
        let mut rows = trajectories(45);
        for row in &mut rows {
            (row.proximal, row.values, row.returns) = (vec![-0.5; 2], vec![0.5; 2], vec![1.0; 2]);
        }
        let [proximal, values, returns] = [(); 3].map(|()| vec![0.0]);
        assert_eq!(padded(rows, &[2]).rows.pop().unwrap(), Experience { proximal, values, returns, ..expected });
    }

    #[test]
    fn padding_changes_neither_gradient_nor_statistics() {
        let rows = experiences(&tiny(1), 0.7);
        let updated = |rows: &[Experience]| {
            let model = tiny(1);
            let mut trainer = Trainer::new(&model, OptimizerConfig::default(), 24).unwrap();
            let stats = trainer.update(policy_update(&model, None, rows, &LossConfig::default(), 0.7, 1e-2)).unwrap();
            (stats, model.parameters())
        };
        let (plain, filled) = (updated(&rows), updated(&padded(rows.clone(), &[8, 15]).rows));
        assert_eq!(plain.0, filled.0);
        assert!(plain.1.iter().zip(&filled.1).all(|((_, a), (_, b))| Tensor::equal(a, b)));
    }
}
