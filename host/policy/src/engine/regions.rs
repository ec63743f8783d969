//! Where rows have their keys and values: each row has a range of neighbouring places, as long as it needs, so that a
//! long row takes nothing from short ones.

use super::kv_cache_growth::{CHUNK, grown_room, most_room, room_for};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

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

    /// The least room that it can have.
    pub(super) fn least(&self) -> usize {
        room_for(self.tokens)
    }

    /// The room that it gets where there is enough: more than the least if it has grown beyond its own.
    pub(super) fn grown(&self) -> usize {
        if self.is_met() { self.least() } else { grown_room(self.region.room, self.tokens) }
    }

    /// The most room that it can have.
    pub(super) fn most(&self) -> usize {
        most_room(self.tokens)
    }
}

/// The least places that rows of these numbers of tokens need.
pub(super) fn least_places(tokens: impl Iterator<Item = usize>) -> usize {
    tokens.map(room_for).fold(0, usize::saturating_add)
}

/// Regions of all rows among `places`, one after another, in the order of the regions that they have; rows without a
/// region come last. Beyond its least room, places go to the row that would fill its room first, chunk by chunk.
pub(super) fn arranged(needs: &[Need], places: usize) -> Vec<(Need, Region)> {
    let mut needs = needs.to_vec();
    needs.sort_by_key(|need| (need.region.room == 0, need.region.start));
    let mut rooms: Vec<usize> = needs.iter().map(Need::least).collect();
    let mut rest = places.saturating_sub(rooms.iter().sum());
    let until_full = |at: usize, room: usize| Reverse((room - needs[at].tokens, at));
    let mut first: BinaryHeap<_> = rooms.iter().enumerate().map(|(at, &room)| until_full(at, room)).collect();
    while rest >= CHUNK
        && let Some(Reverse((_, at))) = first.pop()
    {
        if rooms[at] + CHUNK <= needs[at].most() {
            rooms[at] += CHUNK;
            rest -= CHUNK;
            first.push(until_full(at, rooms[at]));
        }
    }
    let mut start = 0;
    let region = |room: usize| {
        start += room;
        Region { start: start - room, room }
    };
    let regions: Vec<Region> = rooms.into_iter().map(region).collect();
    needs.into_iter().zip(regions).collect()
}

/// The rows of an [arrangement](arranged) that move to it within the memory that they are in, in an order in which none
/// is written over before it has moved: first those that move to the front, the first of them first, then those that
/// move to the end, the last of them first.
pub(super) fn moves(arranged: &[(Need, Region)]) -> impl Iterator<Item = &(Need, Region)> {
    let to_front = arranged.iter().filter(|(need, region)| region.start < need.region.start);
    let to_end = arranged.iter().rev().filter(|(need, region)| region.start > need.region.start);
    to_front.chain(to_end).filter(|(need, _)| need.computed > 0)
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
        let region = [need.grown(), need.least()].into_iter().find_map(with_room)?;
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

    fn overlap(rows: &[Need]) -> bool {
        let overlaps = |(at, row): (usize, &Need)| rows[..at].iter().any(|other| row.region.overlaps(other.region));
        rows.iter().enumerate().any(overlaps)
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
            let changed = rearranged(&rows, places).unwrap_or_else(|| {
                anew += 1;
                let least = least_places(rows.iter().map(|row| row.tokens));
                places = places.max(least * 9 / 8 / CHUNK * CHUNK);
                arranged(&rows, places)
            });
            moved +=
                changed.iter().filter(|(of, region)| of.region.room > 0 && of.region.start != region.start).count();
            for (of, region) in changed {
                rows.iter_mut().filter(|row| row.slot == of.slot).for_each(|row| row.region = region);
            }
            assert!(rows.iter().all(|row| row.is_met() && row.region.end() <= places) && !overlap(&rows), "{rows:?}");
        }
        // Most rows find their place without all being moved.
        assert!(anew > 5 && anew < 1000 && moved < 20_000, "{moved} and {anew}");
    }

    #[test]
    fn places_go_to_rows_that_fill_theirs_first() {
        let rows = [need(0, 256, 64, 60), need(1, 0, 128, 70), need(2, 0, 0, 128), need(3, 128, 64, 1)];
        let regions = |places| -> Vec<(usize, usize, usize)> {
            arranged(&rows, places).iter().map(|(of, region)| (of.slot, region.start, region.room)).collect()
        };
        assert_eq!(regions(384), [(1, 0, 128), (3, 128, 64), (0, 192, 64), (2, 256, 128)]);
        assert_eq!(regions(448), [(1, 0, 128), (3, 128, 64), (0, 192, 64), (2, 256, 192)]);
        assert_eq!(regions(512), [(1, 0, 128), (3, 128, 64), (0, 192, 128), (2, 320, 192)]);
        // None gets more than a quarter more than it needs, in whole chunks.
        let most = regions(100_000);
        assert_eq!(most, [(1, 0, 192), (3, 192, 128), (0, 320, 128), (2, 448, 192)]);
    }

    #[test]
    fn rows_that_move_within_their_memory_stay_whole() {
        for round in 0..2000u64 {
            let random = |below: usize, at: u64| (below as f64 * seed::uniform(round, at)) as usize;
            let mut start = 0;
            let mut rows: Vec<Need> = Vec::new();
            for slot in 0..1 + random(12, 1) {
                let at = 10 * slot as u64;
                start += CHUNK * random(3, at + 2);
                let room = CHUNK * (1 + random(4, at + 3));
                let computed = random(room + 1, at + 4);
                rows.push(Need {
                    slot,
                    region: Region { start, room },
                    computed,
                    tokens: computed + 1 + random(99, at + 5),
                });
                start += room;
            }
            let places = start.max(least_places(rows.iter().map(|row| row.tokens))) + CHUNK * random(4, 6);
            let mut memory = vec![None; places];
            let tokens = |row: &Need| (0..row.computed).map(|at| Some((row.slot, at))).collect::<Vec<_>>();
            rows.iter().for_each(|row| memory[row.region.start..][..row.computed].clone_from_slice(&tokens(row)));
            let arranged = arranged(&rows, places);
            for (row, to) in moves(&arranged) {
                memory.copy_within(row.region.start..row.region.start + row.computed, to.start);
            }
            for (row, region) in &arranged {
                assert!(region.room >= row.tokens && region.end() <= places);
                assert_eq!(memory[region.start..][..row.computed], tokens(row), "{arranged:?}");
            }
        }
    }
}
