//! The key-value cache: keys and values of the tokens that the engine has seen, one slot for each active row.
//!
//! A token has a place, the same in each layer. The places of a slot are neighbours, as many as its row needs. So a row's
//! keys are a range of places, which attention reads where they are. A row that grows beyond its range moves to a free
//! one. If there is none, all rows move together: within their memory if enough of it is free, else to new memory.

use super::kept::{Kept, KeptLayers, KeptRow};
use super::kv_cache_growth::{CHUNK, with_spare};
use super::regions::{Need, Region, arranged, least_places, moves, rearranged};
use crate::config::ModelConfig;
use crate::error::{PolicyError, Result};
use crate::layer_parts::LayerParts;
use crate::memory::Footprint;
use crate::out_of_memory::Phase;
use crate::rotary::{Rotation, Unrotated};
use gavel_torch::attention::Stored;
use tch::{Device, Kind, Tensor};

/// The part of the places that should be free, one of so many: then all rows move seldom.
const SLACK: usize = 16;

/// The keys and values of the rows in its slots, layer by layer.
pub(super) struct KvCache {
    /// By layer.
    keys: Vec<Store>,
    values: Vec<Store>,
    /// The region of each slot, in every layer. A slot whose row is gone has its old one until another row gets the slot.
    regions: Vec<Region>,
    /// Places of all regions, free ones included.
    places: usize,
    /// How often all rows got new regions in new memory.
    pub(super) rebuilt: u64,
    /// More places than any row's region has.
    pub(super) longest_row: usize,
    /// Tokens that all rows together may have room for.
    budget: usize,
    /// Whether memory is given back when few places are used. Where graphs refer to the memory, it stays.
    shrinks: bool,
    /// The most places that there were.
    most_places: usize,
    /// The conversations that are kept beside the slots, in the room that these leave.
    pub(super) kept: Kept,
}

/// The keys or the values of a layer.
struct Store {
    /// `[places + 1, kv_heads, head_dim]`; the last place belongs to no slot.
    places: Tensor,
    /// Its own regions by slot, if it got them in an attempt that failed in another layer.
    regions: Option<Vec<Region>>,
}

impl Store {
    /// A store of zeros, of the kind and on the device of `like`, for `rows` rows.
    fn zeros(like: &Tensor, places: usize, rows: usize) -> Result<Self> {
        let shape = [&[places as i64 + 1], &like.size()[1..]].concat();
        let phase = || Phase::Cache { rows, tokens: places / rows.max(1) };
        let places = Tensor::f_zeros(shape, (like.kind(), like.device()))
            .map_err(|error| PolicyError::from(error).during(phase()))?;
        Ok(Self { places, regions: None })
    }

    /// The first `tokens` tokens of a region: `[tokens, kv_heads, head_dim]`, in the same memory.
    fn row(&self, region: Region, tokens: usize) -> Result<Tensor> {
        Ok(self.places.f_narrow(0, region.start as i64, tokens as i64)?)
    }
}

impl KvCache {
    pub(super) fn new(config: &ModelConfig, bytes: Option<usize>, kind: Kind, device: Device) -> Result<Self> {
        let like = Tensor::f_zeros([0, config.num_key_value_heads, config.head_dim], (kind, device))?;
        let empty = || (0..config.num_hidden_layers).map(|_| Store::zeros(&like, 0, 0)).collect::<Result<Vec<_>>>();
        let bytes_per_token = Footprint::new(config, kind, device).cache_per_token() as usize;
        Ok(Self {
            keys: empty()?,
            values: empty()?,
            regions: Vec::new(),
            places: 0,
            rebuilt: 0,
            longest_row: 0,
            budget: bytes.map_or(usize::MAX, |bytes| bytes / bytes_per_token),
            shrinks: device == Device::Cpu,
            most_places: 0,
            kept: Kept::default(),
        })
    }

    /// Whether rows of these numbers of tokens are within the budget.
    pub(super) fn fits(&self, tokens: impl Iterator<Item = usize>) -> bool {
        least_places(tokens) <= self.budget
    }

    /// The longest row that is within the budget, in tokens.
    pub(super) fn longest(&self) -> usize {
        self.budget / CHUNK * CHUNK
    }

    /// Whether there is memory for rows.
    pub(super) fn is_empty(&self) -> bool {
        self.places == 0
    }

    /// The tokens that memory is allocated for, in slots and in conversations that are kept.
    pub(super) fn places_held(&self) -> usize {
        self.keys.first().map_or(0, |store| store.places.size()[0] as usize) + self.kept.tokens()
    }

    /// The region of a slot.
    pub(super) fn region(&self, slot: usize) -> Region {
        self.regions.get(slot).copied().unwrap_or_default()
    }

    /// Gives a slot to another row, which has no region yet.
    pub(super) fn renew(&mut self, slot: usize) {
        if let Some(region) = self.regions.get_mut(slot) {
            *region = Region::default();
        }
    }

    /// Whether rows of these numbers of tokens leave a part of the budget, in which they can grow.
    pub(super) fn leaves_room(&self, tokens: impl Iterator<Item = usize>) -> bool {
        least_places(tokens) <= self.budget - self.budget / SLACK / CHUNK * CHUNK
    }

    /// Makes room for all rows, which must [fit](Self::fits).
    pub(super) fn reserve(&mut self, needs: &[Need]) -> Result<()> {
        if self.shrinks && !needs.is_empty() && 2 * self.places > 3 * self.target(needs) {
            return self.rebuild(needs);
        }
        if needs.iter().all(Need::is_met) || self.rearrange(needs)? {
            return Ok(());
        }
        let least = least_places(needs.iter().map(|need| need.tokens));
        if least <= self.places - self.places / SLACK || self.target(needs) <= self.places {
            return self.compact(needs);
        }
        self.rebuild(needs)
    }

    /// The places of new memory for rows: with room to grow in, as far as the budget and what is kept allow it. They take
    /// the least room that they need, and some spare places, even from what is kept, or all room where new memory is dear.
    fn target(&self, needs: &[Need]) -> usize {
        let sum = |room: fn(&Need) -> usize| with_spare(needs.iter().map(room).fold(0, usize::saturating_add));
        let free = self.budget.saturating_sub(self.kept.tokens());
        if !self.shrinks {
            // Graphs are recorded again for new memory.
            return sum(Need::most).min(self.budget);
        }
        sum(Need::grown).min(free).max(sum(Need::least).min(self.budget))
    }

    /// Finds room for rows in the memory that there is, where they stay or to which they are moved. Without such room
    /// nothing changes, and it returns false.
    pub(super) fn rearrange(&mut self, needs: &[Need]) -> Result<bool> {
        let Some(changed) = rearranged(needs, self.places) else { return Ok(false) };
        for (need, region) in changed {
            if region.start != need.region.start && need.computed > 0 {
                for store in self.keys.iter().chain(&self.values) {
                    store.row(region, need.computed)?.f_copy_(&store.row(need.region, need.computed)?)?;
                }
            }
            self.set_region(need.slot, region);
        }
        Ok(true)
    }

    /// The same, if graphs that were recorded for these rows can still be used.
    pub(super) fn rearrange_for_graphs(&mut self, needs: &[Need]) -> Result<bool> {
        let longest = needs.iter().filter(|need| !need.is_met()).map(Need::grown).max();
        Ok(longest.unwrap_or_default() <= self.longest_row && self.rearrange(needs)?)
    }

    fn set_region(&mut self, slot: usize, region: Region) {
        if slot >= self.regions.len() {
            self.regions.resize(slot + 1, Region::default());
        }
        self.regions[slot] = region;
        if region.room > self.longest_row {
            self.longest_row = region.room.max(self.longest_row * 3 / 2);
        }
    }

    /// Moves rows within the memory that there is, which must have enough places, so that all free places are used.
    fn compact(&mut self, needs: &[Need]) -> Result<()> {
        let regions = arranged(needs, self.places);
        let longest = moves(&regions).map(|(need, _)| need.computed).max().unwrap_or_default();
        let buffer = match self.keys.first() {
            Some(store) => Store::zeros(&store.places, longest, 1)?,
            None => return Ok(()),
        };
        for store in self.keys.iter().chain(&self.values) {
            for (need, region) in moves(&regions) {
                // A row may move by less than its length.
                let mut moved = buffer.places.f_narrow(0, 0, need.computed as i64)?;
                moved.f_copy_(&store.row(need.region, need.computed)?)?;
                store.row(*region, need.computed)?.f_copy_(&moved)?;
            }
        }
        regions.iter().for_each(|(need, region)| self.set_region(need.slot, *region));
        Ok(())
    }

    /// Moves all rows to new memory, with more room than they need if the budget, what is kept and the device allow it.
    fn rebuild(&mut self, needs: &[Need]) -> Result<()> {
        let (places, least) = (self.target(needs), least_places(needs.iter().map(|need| need.tokens)));
        self.kept.shrink(self.budget - places);
        // Held until the end: if memory runs out midway, freeing it leaves enough to start again.
        let spare = match self.keys.first().filter(|_| places > least) {
            Some(old) => Some(Store::zeros(&old.places, least, needs.len())?),
            None => None,
        };
        match self.take(places, needs) {
            Err(PolicyError::OutOfMemory { .. }) if spare.is_some() || self.kept.tokens() > 0 => {
                drop(spare);
                self.kept = Kept::default();
                self.take(least, needs)
            }
            taken => taken,
        }
    }

    /// Moves all rows to new memory of so many places. After a failure some layers may have it already, and another
    /// number can be tried.
    fn take(&mut self, places: usize, needs: &[Need]) -> Result<()> {
        let new = arranged(needs, places);
        let slots = new.iter().map(|(need, _)| need.slot + 1).max().unwrap_or_default();
        let mut regions = vec![Region::default(); slots];
        new.iter().for_each(|(need, region)| regions[need.slot] = *region);
        // Layer by layer, so that the whole old cache and the whole new cache
        // never exist at once.
        for old in self.keys.iter_mut().chain(&mut self.values) {
            let grown = Store { regions: Some(regions.clone()), ..Store::zeros(&old.places, places, needs.len())? };
            for need in needs.iter().filter(|need| need.computed > 0) {
                let own = old.regions.as_ref().and_then(|regions| regions.get(need.slot).copied());
                let from = old.row(own.unwrap_or(need.region), need.computed)?;
                grown.row(regions[need.slot], need.computed)?.f_copy_(&from)?;
            }
            *old = grown;
        }
        self.keys.iter_mut().chain(&mut self.values).for_each(|store| store.regions = None);
        (self.places, self.regions) = (places, Vec::new());
        new.iter().for_each(|(need, region)| self.set_region(need.slot, *region));
        self.rebuilt += 1;
        self.most_places = self.most_places.max(self.places);
        Ok(())
    }

    /// Frees the memory of all keys and values, and forgets the conversations that are kept.
    pub(super) fn release(&mut self) -> Result<()> {
        self.kept = Kept::default();
        self.keys.iter_mut().chain(&mut self.values).try_for_each(|store| {
            *store = Store::zeros(&store.places, 0, 0)?;
            Ok::<_, PolicyError>(())
        })?;
        (self.places, self.most_places, self.longest_row, self.regions) = (0, 0, 0, Vec::new());
        self.rebuilt += 1;
        Ok(())
    }

    /// Fills a slot with zeros, so that no value that is not finite stays there.
    pub(super) fn clear(&self, slot: usize) -> Result<()> {
        let region = self.region(slot);
        for store in self.keys.iter().chain(&self.values) {
            let _ = store.row(region, region.room)?.f_zero_()?;
        }
        Ok(())
    }

    /// Keeps the row in `slot`, whose tokens are `ids`, for the next turn of its conversation. It is forgotten if there
    /// is no room for it: the kept rows may take what the budget leaves beside the slots or, without a budget, as much
    /// as the slots at their most.
    pub(super) fn keep(&mut self, slot: usize, conversation: u64, ids: Vec<u32>) -> Result<()> {
        let room = match self.budget {
            usize::MAX => self.most_places,
            budget => budget.saturating_sub(self.places),
        };
        self.kept.forget(conversation);
        let Some(rest) = room.checked_sub(ids.len()) else { return Ok(()) };
        self.kept.shrink(rest);
        let region = self.region(slot);
        let copy = |store: &Store| -> Result<Tensor> {
            let part = store.row(region, ids.len())?;
            let mut copied = Tensor::f_empty(part.size(), (part.kind(), part.device()))?;
            copied.f_copy_(&part)?;
            Ok(copied)
        };
        let layers = self.keys.iter().zip(&self.values).map(|(keys, values)| Ok((copy(keys)?, copy(values)?)));
        match layers.collect::<Result<Vec<_>>>() {
            Ok(layers) => self.kept.add(KeptRow { conversation, ids: ids.into(), layers }),
            // Kept conversations only save time, so they are dropped.
            Err(PolicyError::OutOfMemory { .. }) => self.kept = Kept::default(),
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// Copies the first `tokens` keys and values that a row has from an earlier turn to its slot.
    pub(super) fn restore(&mut self, slot: usize, tokens: usize, layers: &KeptLayers) -> Result<()> {
        let region = self.region(slot);
        let stores = self.keys.iter().zip(&self.values);
        for ((keys, values), (kept_keys, kept_values)) in stores.zip(layers) {
            for (store, kept) in [(keys, kept_keys), (values, kept_values)] {
                store.row(region, tokens)?.f_copy_(&kept.f_narrow(0, 0, tokens as i64)?)?;
            }
        }
        Ok(())
    }

    /// The place of a token of a slot, by its position.
    pub(super) fn place(&self, slot: usize, position: usize) -> i64 {
        (self.region(slot).start + position) as i64
    }

    /// The place that belongs to no slot.
    pub(super) fn spare_place(&self) -> i64 {
        self.places as i64
    }

    /// Writes the keys and values of tokens, each `[tokens, kv_heads, head_dim]`, to `places`, `[tokens]`.
    pub(super) fn write(&mut self, layer: usize, places: &Tensor, key: &Tensor, value: &Tensor) -> Result<()> {
        for (store, new) in [(&mut self.keys[layer], key), (&mut self.values[layer], value)] {
            let _ = store.places.f_index_copy_(0, places, new)?;
        }
        Ok(())
    }

    /// Rotates the queries and keys of tokens and writes keys and values to `places`; gives the queries, `[tokens,
    /// queries, head_dim]`.
    pub(super) fn rotate_and_write(
        &mut self,
        layer: usize,
        places: &Tensor,
        unrotated: &Unrotated,
        parts: LayerParts,
        rotation: &Rotation,
    ) -> Result<Tensor> {
        if let Some(query) = parts.rotate_into(rotation, unrotated, places, self.stored(layer))? {
            return Ok(query);
        }
        let [query, key] = parts.rotate(rotation, &unrotated.turning)?;
        self.write(layer, places, &key, &unrotated.value)?;
        Ok(query)
    }

    /// All keys and values of a layer.
    pub(super) fn stored(&self, layer: usize) -> Stored<'_> {
        Stored { keys: &self.keys[layer].places, values: &self.values[layer].places }
    }

    /// The keys and values of the first `tokens` tokens of a slot, each `[1, kv_heads, tokens, head_dim]`.
    pub(super) fn row(&self, layer: usize, slot: usize, tokens: usize) -> Result<[Tensor; 2]> {
        let region = self.region(slot);
        let part = |store: &Store| Ok::<_, PolicyError>(store.row(region, tokens)?.f_transpose(0, 1)?.f_unsqueeze(0)?);
        Ok([part(&self.keys[layer])?, part(&self.values[layer])?])
    }

    /// Copies the tokens in some places to others, `[tokens]` each, in one layer.
    pub(super) fn copy_layer(&mut self, layer: usize, from: &Tensor, to: &Tensor) -> Result<()> {
        for store in [&mut self.keys[layer], &mut self.values[layer]] {
            let moved = store.places.f_index_select(0, from)?;
            let _ = store.places.f_index_copy_(0, to, &moved)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gavel_data::seed::uniform;

    fn cache() -> KvCache {
        cache_of(None)
    }

    /// With a budget in tokens.
    fn cache_of(budget: Option<usize>) -> KvCache {
        let json = r#"{"model_type":"qwen2","vocab_size":50,"hidden_size":16,"intermediate_size":24,"num_hidden_layers":3,"num_attention_heads":4,"num_key_value_heads":2,"head_dim":8}"#;
        let config: ModelConfig = serde_json::from_str(json).unwrap();
        KvCache::new(&config, budget.map(|tokens| tokens * 3 * 2 * 2 * 8 * 4), Kind::Float, Device::Cpu).unwrap()
    }

    /// The needs of rows with these tokens, all of which are computed but the last.
    fn needs(cache: &KvCache, tokens: &[usize]) -> Vec<Need> {
        let need = |(slot, &tokens): (usize, &usize)| {
            let region = cache.region(slot);
            Need { slot, region, computed: tokens.saturating_sub(1).min(region.room), tokens }
        };
        tokens.iter().enumerate().map(need).collect()
    }

    #[test]
    fn growth_that_stopped_midway_is_taken_up_with_another_shape() {
        let mut cache = cache();
        cache.reserve(&needs(&cache, &[64, 64])).unwrap();
        for store in cache.keys.iter_mut().chain(&mut cache.values) {
            let _ = store.places.fill_(3.0);
        }
        // The state after memory ran out behind the first layer's keys.
        let grown = needs(&cache, &[65, 65, 10]);
        let (keys, values) = (cache.keys.split_off(1), std::mem::take(&mut cache.values));
        let (places, regions) = (cache.places, cache.regions.clone());
        cache.take(6 * 64, &grown).unwrap();
        let own = cache.regions.clone();
        cache.keys.iter_mut().for_each(|store| store.regions = Some(own.clone()));
        cache.keys.extend(keys);
        cache.values = values;
        (cache.places, cache.regions) = (places, regions);
        cache.take(5 * 64, &grown).unwrap();
        for store in cache.keys.iter().chain(&cache.values) {
            assert_eq!(store.places.size()[0], 2 * 128 + 64 + 1);
            for slot in 0..2 {
                assert_eq!(store.row(cache.region(slot), 64).unwrap().min().double_value(&[]), 3.0);
            }
            // The rest is zeros.
            assert_eq!(store.places.sum(Kind::Double).double_value(&[]), 3.0 * f64::from(2 * 64 * 2 * 8));
        }
    }

    #[test]
    fn a_long_row_takes_nothing_from_short_ones_and_gives_its_memory_back() {
        let mut cache = cache();
        let mut tokens = [10; 8];
        cache.reserve(&needs(&cache, &tokens)).unwrap();
        for (slot, number) in (0..8).zip(1..) {
            let _ = cache.keys[1].row(cache.region(slot), 9).unwrap().fill_(f64::from(number));
        }
        for length in 10..3000 {
            tokens[3] = length;
            cache.reserve(&needs(&cache, &tokens)).unwrap();
            let region = cache.region(3);
            let _ = cache.keys[1].row(region, length).unwrap().narrow(0, length as i64 - 1, 1).fill_(4.0);
            let used = length + 7 * 64;
            assert!(cache.places >= used && cache.places <= 2 * used + 64, "{} for {used}", cache.places);
        }
        for (slot, number) in (0..8).zip(1..) {
            let row = cache.keys[1].row(cache.region(slot), if slot == 3 { 2999 } else { 9 }).unwrap();
            assert_eq!([row.min(), row.max()].map(|x| x.double_value(&[])), [f64::from(number); 2]);
        }
        tokens[3] = 10;
        cache.renew(3);
        cache.reserve(&needs(&cache, &tokens)).unwrap();
        assert_eq!(cache.places, 8 * 64 + 64);
    }

    /// Rows that grow by a token a step, and come where others have ended.
    #[test]
    fn rows_that_fill_the_budget_are_seldom_moved() {
        const BUDGET: usize = 64 * 60;
        for shrinks in [true, false] {
            let mut cache = KvCache { shrinks, ..cache_of(Some(BUDGET)) };
            // What is kept has taken all of the budget but a little.
            cache.reserve(&needs(&cache, &[64])).unwrap();
            (0..59).for_each(|conversation| cache.keep(0, conversation, vec![5; 64]).unwrap());
            assert_eq!(cache.kept.tokens() + cache.places, BUDGET);
            cache.renew(0);
            let mut rows: Vec<Need> = Vec::new();
            let (mut copied, mut used, mut slots) = (0, 0, 0);
            for step in 0..3000u64 {
                rows.retain(|row| uniform(1, 100 * step + row.slot as u64) > 0.004);
                rows.iter_mut().for_each(|row| (row.computed, row.tokens) = (row.tokens, row.tokens + 1));
                while !cache.fits(rows.iter().map(|row| row.tokens)) {
                    rows.pop();
                }
                let prompt = 1 + (90.0 * uniform(2, step)) as usize;
                if rows.len() < 24 && cache.leaves_room(rows.iter().map(|row| row.tokens).chain([prompt])) {
                    let slot = (0..).find(|slot| rows.iter().all(|row| row.slot != *slot)).unwrap();
                    cache.renew(slot);
                    rows.push(Need { slot, region: Region::default(), computed: 0, tokens: prompt });
                    slots = slots.max(slot);
                }
                let rebuilt = cache.rebuilt;
                cache.reserve(&rows).unwrap();
                for row in &mut rows {
                    let region = cache.region(row.slot);
                    if cache.rebuilt > rebuilt || region.start != row.region.start {
                        copied += row.computed;
                    }
                    row.region = region;
                    assert!(row.is_met() && region.start + region.room <= cache.places);
                    used += row.tokens;
                }
                assert!(cache.places + cache.kept.tokens() <= BUDGET);
            }
            // Each step reads all tokens that are used.
            assert!(slots > 8 && used > 2000 * 3000 && copied < used / 8, "{slots} slots, {copied} for {used}");
            // Graphs are recorded again seldom.
            assert!(shrinks || cache.rebuilt < 20, "{}", cache.rebuilt);
        }
    }

    #[test]
    fn memory_that_stays_is_taken_anew_by_at_least_a_quarter() {
        let mut cache = KvCache { shrinks: false, ..cache() };
        for length in 1..3000 {
            let tokens: Vec<usize> = (0..32).map(|row| length + 7 * row).collect();
            cache.reserve(&needs(&cache, &tokens)).unwrap();
        }
        assert!(cache.rebuilt < 18, "{}", cache.rebuilt);
        let places = cache.places;
        (1..32).for_each(|slot| cache.renew(slot));
        cache.reserve(&needs(&cache, &[3000])).unwrap();
        assert_eq!(cache.places, places);
    }

    #[test]
    fn a_cache_that_is_released_has_no_memory_and_can_grow_again() {
        let mut cache = cache();
        let bytes = |cache: &KvCache| {
            let stores = cache.keys.iter().chain(&cache.values);
            let rows = cache.kept.tokens() * 3 * 2 * 2 * 8 * 4;
            stores.map(|store| store.places.numel() * 4).sum::<usize>() + rows
        };
        let empty = bytes(&cache);
        cache.reserve(&needs(&cache, &[100; 4])).unwrap();
        cache.keep(1, 7, vec![5; 40]).unwrap();
        assert!(bytes(&cache) > 4 * 100 * 3 * 2 * 2 * 8 * 4);
        cache.release().unwrap();
        assert_eq!((bytes(&cache), cache.is_empty()), (empty, true));
        cache.reserve(&needs(&cache, &[64; 2])).unwrap();
        assert!(cache.keys.iter().all(|store| store.places.abs().max().double_value(&[]) == 0.0));
        assert_eq!((cache.places, cache.region(1)), (128, Region { start: 64, room: 64 }));
    }
}
