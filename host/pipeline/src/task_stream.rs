//! Which row is drawn when, and the seeds of its samples: functions of the run's seed and of the number of the draw.

use gavel_data::seed::{Purpose, derive, derive_retry, permutation};

/// The rows of a dataset as a run draws them: each once an epoch, in an order of the epoch's own.
pub(crate) struct TaskStream {
    seed: u64,
    rows: usize,
    /// The epoch of the last draw, with its order.
    order: Option<(u64, Vec<usize>)>,
}

impl TaskStream {
    /// The stream of a dataset with this many rows, at least one.
    pub(crate) fn new(seed: u64, rows: usize) -> Self {
        Self { seed, rows, order: None }
    }

    /// The row of draw `ordinal`, from 0 over the whole run.
    pub(crate) fn row(&mut self, ordinal: u64) -> usize {
        let epoch = ordinal / self.rows as u64;
        let order = match &mut self.order {
            Some((current, order)) if *current == epoch => order,
            other => {
                let order = permutation(derive(self.seed, epoch, 0, Purpose::Shuffle), self.rows);
                &mut other.insert((epoch, order)).1
            }
        };
        order[(ordinal % self.rows as u64) as usize]
    }
}

/// The seeds of a sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Seeds {
    /// Of what the policy draws.
    pub(crate) sampling: u64,
    /// Of what its plugins see as random.
    pub(crate) plugin: u64,
}

/// How the draws of a run are numbered.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Numbering {
    pub(crate) seed: u64,
    pub(crate) prompts_per_step: usize,
    pub(crate) group_size: usize,
}

impl Numbering {
    /// The draws that are planned for step `step`, from 1.
    pub(crate) fn of_step(&self, step: u64) -> std::ops::Range<u64> {
        let count = self.prompts_per_step as u64;
        (step - 1) * count..step * count
    }

    /// The step that a draw is planned for, and its number among the draws of that step.
    pub(crate) fn place(&self, ordinal: u64) -> (u64, u64) {
        let count = self.prompts_per_step as u64;
        (ordinal / count + 1, ordinal % count)
    }

    /// The seeds of sample `index` of draw `ordinal`, drawn for the `retry`-th time (0 is the first): those of the step
    /// that the draw is planned for, whichever step trains on it.
    pub(crate) fn seeds(&self, ordinal: u64, index: usize, retry: u32) -> Seeds {
        let (step, number) = self.place(ordinal);
        let at = number * self.group_size as u64 + index as u64;
        Seeds {
            sampling: derive_retry(self.seed, step, at, retry, Purpose::Rollout),
            plugin: derive_retry(self.seed, step, at, retry, Purpose::Plugin),
        }
    }
}

/// The seeds of answer `answer` to the validation set, counted over all rows.
pub(crate) fn validation_seeds(seed: u64, answer: usize) -> Seeds {
    Seeds {
        sampling: derive(seed, 0, answer as u64, Purpose::Validation),
        plugin: derive(seed, 0, answer as u64, Purpose::Plugin),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_comes_once_an_epoch() {
        let mut stream = TaskStream::new(7, 10);
        let mut seen: Vec<usize> = (0..30).map(|ordinal| stream.row(ordinal)).collect();
        assert_ne!(seen[..10], seen[10..20]);
        // Resuming gives the same.
        assert_eq!(TaskStream::new(7, 10).row(25), seen[25]);
        for epoch in seen.chunks_mut(10) {
            epoch.sort_unstable();
            assert_eq!(epoch, (0..10).collect::<Vec<_>>());
        }
    }

    #[test]
    fn a_draw_has_the_seeds_of_the_step_that_it_is_planned_for() {
        let numbering = Numbering { seed: 7, prompts_per_step: 3, group_size: 4 };
        assert_eq!(numbering.of_step(2), 3..6);
        let seeds = numbering.seeds(4, 2, 0);
        assert_eq!(seeds.sampling, derive(7, 2, 6, Purpose::Rollout));
        assert_eq!(seeds.plugin, derive(7, 2, 6, Purpose::Plugin));
        let again = [1, 2].map(|retry| numbering.seeds(4, 2, retry).sampling);
        assert!(again[0] != again[1] && !again.contains(&seeds.sampling));
    }
}
