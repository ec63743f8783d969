//! Where rows have their keys and values: each row has a range of neighbouring places, as long as it needs, so that a long
//! row takes nothing from short ones.

use super::kv_cache_growth::{grown_room, room_for, with_spare};

/// A range of places.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Region {
    pub(super) start: usize,
    /// How many places there are.
    pub(super) room: usize,
}

impl Region {
    fn end(self) -> usize {
        self.start + self.room
    }

    pub(super) fn overlaps(self, other: Self) -> bool {
        self.start < other.end() && other.start < self.end()
    }
}

/// A row that needs room.
#[derive(Debug, Clone, Copy)]
pub(super) struct Need {
    /// Its slot, and the region that the slot has now.
    pub(super) slot: usize,
    pub(super) region: Region,
    /// The tokens whose keys and values it has.
    pub(super) computed: usize,
    /// The tokens that it needs room for.
    pub(super) tokens: usize,
}

impl Need {
    pub(super) fn is_met(&self) -> bool {
        self.tokens <= self.region.room
    }

    /// The room that it gets where there is enough, and the least.
    pub(super) fn rooms(&self) -> [usize; 2] {
        let most = if self.is_met() { self.region.room } else { grown_room(self.region.room, self.tokens) };
        [most, room_for(self.tokens)]
    }
}

/// The least places that rows of these numbers of tokens need.
pub(super) fn least_places(tokens: impl Iterator<Item = usize>) -> usize {
    tokens.map(room_for).fold(0, usize::saturating_add)
}

/// Regions of all rows, one after another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Arrangement {
    /// By slot, and in the order of the needs.
    pub(super) regions: Vec<(usize, Region)>,
    pub(super) places: usize,
}

impl Arrangement {
    /// From the most generous to the smallest: with room to grow in and spare places for rows that move, without spare
    /// places, and with the least room.
    pub(super) fn choices(needs: &[Need]) -> [Self; 3] {
        let all = |which: usize| Self::of(needs.iter().map(|need| (need.slot, need.rooms()[which])));
        let (roomy, least) = (all(0), all(1));
        [Self { places: with_spare(roomy.places), ..roomy.clone() }, roomy, least]
    }

    fn of(rooms: impl Iterator<Item = (usize, usize)>) -> Self {
        let mut places = 0;
        let region = |(slot, room)| {
            let start = places;
            places += room;
            (slot, Region { start, room })
        };
        let regions = rooms.map(region).collect();
        Self { regions, places }
    }
}

/// Finds regions among `places` for the needs that are not met, so that the others stay where they are: the changed
/// regions, with the needs. `None` if there is no such place for one of them. The region that a row leaves is free for
/// the rows after it.
pub(super) fn rearranged(needs: &[Need], places: usize) -> Option<Vec<(Need, Region)>> {
    let mut used: Vec<Region> = needs.iter().map(|need| need.region).filter(|region| region.room > 0).collect();
    used.sort_unstable_by_key(|region| region.start);
    let mut changed = Vec::new();
    for need in needs.iter().filter(|need| !need.is_met()) {
        let own = used.iter().position(|region| need.region.room > 0 && region.start == need.region.start);
        let free = own.map_or(0, |at| used.get(at + 1).map_or(places, |next| next.start) - need.region.start);
        let with_room = |room: usize| match free >= room {
            true => Some(Region { room, ..need.region }),
            false => hole(&used, room, places),
        };
        let region = need.rooms().into_iter().find_map(with_room)?;
        if let Some(at) = own {
            used.remove(at);
        }
        used.insert(used.partition_point(|other| other.start < region.start), region);
        changed.push((*need, region));
    }
    Some(changed)
}

/// The first free range of `room` places beside `used`, which are in order.
fn hole(used: &[Region], room: usize, places: usize) -> Option<Region> {
    let starts = std::iter::once(0).chain(used.iter().map(|region| region.end()));
    let ends = used.iter().map(|region| region.start).chain([places]);
    let start = starts.zip(ends).find(|(start, end)| start + room <= *end)?.0;
    Some(Region { start, room })
}

#[cfg(test)]
mod tests {
    use super::*;
    use gavel_data::seed;

    fn need(slot: usize, start: usize, room: usize, tokens: usize) -> Need {
        Need { slot, region: Region { start, room }, computed: room.min(tokens), tokens }
    }

    #[test]
    fn a_row_grows_where_it_is_or_moves_to_the_first_hole() {
        let regions = |needs: &[Need], places| {
            let changed = rearranged(needs, places)?;
            Some(changed.into_iter().map(|(of, region)| (of.slot, region.start, region.room)).collect::<Vec<_>>())
        };
        let beside = [need(0, 0, 64, 65), need(1, 256, 64, 9)];
        assert_eq!(regions(&beside, 320), Some(vec![(0, 0, 128)]));
        let blocked = [need(0, 0, 64, 65), need(1, 64, 64, 9)];
        assert_eq!(regions(&blocked, 256), Some(vec![(0, 128, 128)]));
        assert_eq!(regions(&blocked, 192), None);
        // The second row takes the place that the first one left.
        let both = [need(0, 0, 64, 65), need(1, 64, 64, 9), need(2, 0, 0, 30)];
        assert_eq!(regions(&both, 256), Some(vec![(0, 128, 128), (2, 0, 64)]));
    }

    #[test]
    fn regions_of_rows_that_come_grow_and_go_never_overlap() {
        let mut rows: Vec<Need> = Vec::new();
        let (mut places, mut moved, mut anew) = (0, 0, 0);
        for step in 0..5000u64 {
            rows.retain_mut(|row| {
                row.tokens += 1;
                seed::uniform(1, step * 100 + row.slot as u64) > 0.005
            });
            if rows.len() < 40 {
                let slot = (0..).find(|slot| rows.iter().all(|row| row.slot != *slot)).unwrap();
                rows.push(need(slot, 0, 0, 1 + (600.0 * seed::uniform(2, step)) as usize));
            }
            if rows.iter().all(Need::is_met) {
                continue;
            }
            let changed: Vec<(usize, Region)> = match rearranged(&rows, places) {
                Some(changed) => {
                    moved += 1;
                    changed.into_iter().map(|(of, region)| (of.slot, region)).collect()
                }
                None => {
                    anew += 1;
                    let [all, ..] = Arrangement::choices(&rows);
                    places = all.places;
                    all.regions
                }
            };
            for (slot, region) in changed {
                rows.iter_mut().filter(|row| row.slot == slot).for_each(|row| row.region = region);
            }
            assert!(rows.iter().all(|row| row.is_met() && row.region.end() <= places));
            for (at, row) in rows.iter().enumerate() {
                assert!(rows[..at].iter().all(|other| !row.region.overlaps(other.region)), "{rows:?}");
            }
        }
        // Most rows find their place without all being moved.
        assert!(anew > 5 && moved > 10 * anew, "{moved} and {anew}");
    }
}
