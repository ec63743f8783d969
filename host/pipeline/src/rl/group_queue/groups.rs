//! The groups of a queue, with what a step asks of all of them: it asks after each event, so no answer looks at each group.

use super::started::StartedGroup;
use std::collections::BTreeMap;

/// Groups under way and whole groups, by the numbers of their draws.
#[derive(Default)]
pub(super) struct Groups {
    by_draw: BTreeMap<u64, Entry>,
    /// How many of them were started under each version.
    versions: BTreeMap<u64, usize>,
    /// The draws whose groups are whole, by version and by the place in the order in which they became whole.
    whole: BTreeMap<(u64, u64), u64>,
    became_whole: u64,
}

struct Entry {
    group: StartedGroup,
    /// Its place in the order in which groups became whole.
    whole: Option<u64>,
}

impl Groups {
    pub(super) fn len(&self) -> usize {
        self.by_draw.len()
    }

    pub(super) fn whole_len(&self) -> usize {
        self.whole.len()
    }

    /// In the order of their draws.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u64, &StartedGroup)> {
        self.by_draw.iter().map(|(draw, entry)| (*draw, &entry.group))
    }

    pub(super) fn get(&self, draw: u64) -> Option<&StartedGroup> {
        self.by_draw.get(&draw).map(|entry| &entry.group)
    }

    pub(super) fn get_mut(&mut self, draw: u64) -> Option<&mut StartedGroup> {
        self.by_draw.get_mut(&draw).map(|entry| &mut entry.group)
    }

    /// Adds a group that is not whole, in place of an earlier one of this draw.
    pub(super) fn insert(&mut self, draw: u64, group: StartedGroup) {
        self.remove(draw);
        *self.versions.entry(group.version).or_default() += 1;
        self.by_draw.insert(draw, Entry { group, whole: None });
    }

    pub(super) fn remove(&mut self, draw: u64) -> Option<StartedGroup> {
        let Entry { group, whole } = self.by_draw.remove(&draw)?;
        if let Some(place) = whole {
            self.whole.remove(&(group.version, place));
        }
        if let Some(count) = self.versions.get_mut(&group.version) {
            *count -= 1;
            if *count == 0 {
                self.versions.remove(&group.version);
            }
        }
        Some(group)
    }

    /// Declares a group whole.
    pub(super) fn set_whole(&mut self, draw: u64) {
        let Some(entry) = self.by_draw.get_mut(&draw).filter(|entry| entry.whole.is_none()) else { return };
        entry.whole = Some(self.became_whole);
        self.whole.insert((entry.group.version, self.became_whole), draw);
        self.became_whole += 1;
    }

    pub(super) fn is_whole(&self, draw: u64) -> bool {
        self.by_draw.get(&draw).is_some_and(|entry| entry.whole.is_some())
    }

    /// How many groups were started under each version.
    pub(super) fn versions(&self) -> &BTreeMap<u64, usize> {
        &self.versions
    }

    /// The draw of the oldest group, if it is whole.
    pub(super) fn oldest_whole(&self) -> Option<u64> {
        let (draw, entry) = self.by_draw.first_key_value()?;
        entry.whole.map(|_| *draw)
    }

    /// The draw of the group that became whole first, among those whose version `may_take` allows.
    pub(super) fn first_whole(&self, may_take: impl Fn(u64) -> bool) -> Option<u64> {
        let versions = self.versions.keys().filter(|version| may_take(**version));
        let first = |version: &u64| self.whole.range((*version, 0)..=(*version, u64::MAX)).next();
        versions.filter_map(first).min_by_key(|((_, place), _)| *place).map(|(_, draw)| *draw)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::prompt;
    use gavel_scoring::PendingGroup;

    fn group(version: u64) -> StartedGroup {
        StartedGroup {
            prompt: prompt(),
            row: 0,
            is_here: true,
            version,
            judged_together: PendingGroup::new(0),
            samples: Vec::new(),
        }
    }

    #[test]
    fn what_became_whole_first_is_found_among_the_versions_that_may_be_taken() {
        let mut groups = Groups::default();
        (0..6).for_each(|draw| groups.insert(draw, group(draw / 2)));
        assert_eq!(groups.versions(), &BTreeMap::from([(0, 2), (1, 2), (2, 2)]));
        assert_eq!((groups.first_whole(|_| true), groups.oldest_whole()), (None, None));
        [5, 2, 4, 0, 5].into_iter().for_each(|draw| groups.set_whole(draw));
        assert_eq!((groups.whole_len(), groups.is_whole(4), groups.is_whole(3)), (4, true, false));
        let firsts = [2, 1, 0].map(|most| groups.first_whole(|version| version <= most));
        assert_eq!((firsts, groups.oldest_whole()), ([Some(5), Some(2), Some(0)], Some(0)));
        assert!(groups.remove(5).is_some() && groups.remove(0).is_some() && groups.remove(0).is_none());
        assert_eq!((groups.first_whole(|_| true), groups.oldest_whole()), (Some(2), None));
        assert_eq!(groups.versions(), &BTreeMap::from([(0, 1), (1, 2), (2, 1)]));
        // A group that is drawn again is not whole.
        groups.insert(2, group(1));
        assert_eq!((groups.first_whole(|_| true), groups.len(), groups.whole_len()), (Some(4), 4, 1));
        assert_eq!(groups.iter().map(|(draw, _)| draw).collect::<Vec<_>>(), [1, 2, 3, 4]);
    }
}
