//! The pace of a run: staleness stays within `max_staleness` because the number of groups that are started is bounded.
//! No finished work is thrown away, and slow groups are trained on as often as quick ones.

use std::collections::BTreeMap;

/// A number of groups for each step, and the versions that a group may be behind.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pace {
    pub(crate) groups_per_step: usize,
    pub(crate) max_staleness: u64,
}

impl Pace {
    /// How many groups may be started, if a step has taken `taken` groups, and `under_way` others are started and not
    /// taken: as many as there are free places in the steps that may train on them.
    pub(crate) fn room(&self, taken: usize, under_way: usize) -> usize {
        let places = (self.max_staleness as usize).saturating_add(1).saturating_mul(self.groups_per_step);
        places.saturating_sub(taken + under_way)
    }

    /// The last step that may train on a group that was started under `version`.
    fn deadline(&self, version: u64) -> u64 {
        (version + 1).saturating_add(self.max_staleness)
    }

    /// Whether `step`, which has taken `taken` groups, may take a group of `version` now. It may if the other groups
    /// under way can then still be trained on in time. `under_way` has the number of groups of each version.
    pub(crate) fn may_take(&self, step: u64, taken: usize, version: u64, under_way: &BTreeMap<u64, usize>) -> bool {
        let mut due = 0;
        under_way.iter().all(|(other, count)| {
            let last = self.deadline(*other).max(step);
            // Steps after the group's own deadline are no matter of the group.
            if last >= self.deadline(version) {
                return true;
            }
            due += count;
            due < (last - step + 1) as usize * self.groups_per_step - taken
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gavel_data::seed::uniform;

    /// The number of groups of each of these versions.
    fn counts(versions: impl IntoIterator<Item = u64>) -> BTreeMap<u64, usize> {
        let mut counts = BTreeMap::new();
        versions.into_iter().for_each(|version| *counts.entry(version).or_default() += 1);
        counts
    }

    /// Runs `steps` steps whose groups end in an order drawn from `seed`; gives the staleness of each that was taken.
    fn run(pace: Pace, steps: u64, seed: u64) -> Vec<u64> {
        let (mut under_way, mut staleness, mut draws) = (Vec::new(), Vec::new(), 0);
        let mut random = || {
            draws += 1;
            uniform(seed, draws)
        };
        for step in 1..=steps {
            let mut taken = 0;
            for _ in 0..pace.room(taken, under_way.len()) {
                under_way.push((step - 1, false));
            }
            while taken < pace.groups_per_step {
                // Some group ends; the newest more often than chance would have it.
                let open: Vec<usize> = (0..under_way.len()).filter(|at| !under_way[*at].1).collect();
                if let Some(last) = open.len().checked_sub(1) {
                    let at = open[(random().sqrt() * (last + 1) as f64) as usize];
                    under_way[at].1 = true;
                }
                let mut at = 0;
                while at < under_way.len() && taken < pace.groups_per_step {
                    let (version, ended): (u64, bool) = under_way[at];
                    if ended && pace.may_take(step, taken, version, &counts(under_way.iter().map(|(v, _)| *v))) {
                        under_way.remove(at);
                        taken += 1;
                        staleness.push(step - 1 - version);
                    } else {
                        at += 1;
                    }
                }
                assert!(taken == pace.groups_per_step || under_way.iter().any(|(_, ended)| !ended), "stuck");
            }
        }
        staleness
    }

    #[test]
    fn nothing_is_staler_than_allowed_and_no_step_is_stuck() {
        for max_staleness in 0..5 {
            for seed in 0..50 {
                let pace = Pace { groups_per_step: 1 + seed as usize % 4, max_staleness };
                let staleness = run(pace, 30, seed);
                assert_eq!(staleness.len(), 30 * pace.groups_per_step);
                assert!(staleness.iter().all(|found| *found <= max_staleness), "{pace:?}: {staleness:?}");
                assert!(max_staleness == 0 || staleness.contains(&1), "{pace:?} never ran ahead");
            }
        }
    }

    #[test]
    fn a_group_waits_where_an_older_one_needs_the_place() {
        let pace = Pace { groups_per_step: 2, max_staleness: 1 };
        assert_eq!((pace.room(0, 0), pace.room(1, 2), pace.room(2, 3)), (4, 1, 0));
        // Step 5 must still take both of version 3.
        assert!(!pace.may_take(5, 0, 4, &counts([4, 3, 3, 4])));
        assert!(pace.may_take(5, 0, 4, &counts([4, 3, 4])));
        assert!(!pace.may_take(5, 1, 4, &counts([4, 3])));
        assert!(pace.may_take(5, 1, 3, &counts([3, 4, 4])));
    }
}
