//! The key-value cache: keys and values of the tokens that the engine has seen, one slot for each active row.
//!
//! A token has a place, the same in each layer. The places of a slot are neighbours. So a row's keys are a range of
//! places, which attention reads where they are.

use super::kept::{Kept, KeptLayers, KeptRow};
use super::kv_cache_growth::{CHUNK, grown_room, room_for};
use crate::config::ModelConfig;
use crate::error::{PolicyError, Result};
use crate::layer_parts::LayerParts;
use crate::memory::Footprint;
use crate::out_of_memory::Phase;
use crate::rotary::{Rotation, Unrotated};
use gavel_torch::attention::Stored;
use tch::{Device, Kind, Tensor};

/// The keys and values of the rows in its slots, layer by layer.
pub(super) struct KvCache {
    /// By layer.
    keys: Vec<Store>,
    values: Vec<Store>,
    pub(super) slots: usize,
    max_slots: usize,
    /// Tokens that a slot has room for.
    pub(super) capacity: usize,
    /// Tokens that all slots together may have room for.
    budget: usize,
    /// The conversations that are kept beside the slots, in the room that these leave.
    pub(super) kept: Kept,
}

/// The keys or the values of a layer.
struct Store {
    /// `[slots * capacity + 1, kv_heads, head_dim]`; the last place belongs to no slot.
    places: Tensor,
    slots: usize,
    capacity: usize,
}

impl Store {
    /// A store of zeros, of the kind and on the device of `like`. Places that no token has are still multiplied by a
    /// weight of 0 where attention has a mask, and 0 times NaN is NaN.
    fn zeros(like: &Tensor, slots: usize, capacity: usize) -> Result<Self> {
        let shape = [&[(slots * capacity) as i64 + 1], &like.size()[1..]].concat();
        let places = Tensor::f_zeros(shape, (like.kind(), like.device()))
            .map_err(|error| PolicyError::from(error).during(Phase::Cache { rows: slots, tokens: capacity }))?;
        Ok(Self { places, slots, capacity })
    }

    /// `[slots, capacity, kv_heads, head_dim]`, in the same memory.
    fn by_slot(&self) -> Result<Tensor> {
        let (slots, capacity) = (self.slots as i64, self.capacity as i64);
        let shape = [&[slots, capacity], &self.places.size()[1..]].concat();
        Ok(self.places.f_narrow(0, 0, slots * capacity)?.f_view(shape.as_slice())?)
    }

    /// The first `tokens` tokens of a slot: `[tokens, kv_heads, head_dim]`, in the same memory.
    fn row(&self, slot: usize, tokens: usize) -> Result<Tensor> {
        Ok(self.places.f_narrow(0, (slot * self.capacity) as i64, tokens as i64)?)
    }
}

impl KvCache {
    pub(super) fn new(
        config: &ModelConfig,
        max_slots: usize,
        bytes: Option<usize>,
        kind: Kind,
        device: Device,
    ) -> Result<Self> {
        let like = Tensor::f_zeros([0, config.num_key_value_heads, config.head_dim], (kind, device))?;
        let empty = || (0..config.num_hidden_layers).map(|_| Store::zeros(&like, 0, 0)).collect::<Result<Vec<_>>>();
        let bytes_per_token = Footprint::new(config, kind, device).cache_per_token() as usize;
        Ok(Self {
            keys: empty()?,
            values: empty()?,
            slots: 0,
            max_slots,
            capacity: 0,
            budget: bytes.map_or(usize::MAX, |bytes| bytes / bytes_per_token),
            kept: Kept::default(),
        })
    }

    /// Whether `slots` rows of `tokens` tokens are within the budget.
    pub(super) fn fits(&self, slots: usize, tokens: usize) -> bool {
        slots.saturating_mul(room_for(tokens)) <= self.budget
    }

    /// The longest row that is within the budget, in tokens.
    pub(super) fn longest(&self) -> usize {
        self.budget / CHUNK * CHUNK
    }

    /// The tokens that memory is allocated for, in slots and in conversations that are kept.
    pub(super) fn places_held(&self) -> usize {
        self.keys.first().map_or(0, |store| store.places.size()[0] as usize) + self.kept.tokens()
    }

    /// Makes room for `slots` rows of `tokens` tokens, which must
    /// [fit](Self::fits). Takes more, by [`grown_room`], if the budget, what is kept and the device allow it.
    pub(super) fn reserve(&mut self, slots: usize, tokens: usize) -> Result<()> {
        if slots <= self.slots && tokens <= self.capacity {
            return Ok(());
        }
        let least = room_for(tokens);
        let capacity = if tokens > self.capacity { grown_room(self.capacity, tokens) } else { self.capacity };
        let more = if slots > self.slots { slots.max(self.slots * 2).min(self.max_slots) } else { self.slots };
        let shapes = [(more, capacity), (slots, capacity), (more, least), (slots, least)];
        let free = self.budget.saturating_sub(self.kept.tokens());
        let fitting = shapes.into_iter().find(|&(slots, capacity)| slots.saturating_mul(capacity) <= free);
        let Some((more, capacity)) = fitting.filter(|&shape| shape != (slots, least)) else {
            self.kept.shrink(self.budget.saturating_sub(slots * least));
            return match self.grow(slots, least) {
                Err(PolicyError::OutOfMemory { .. }) if self.kept.tokens() > 0 => {
                    self.kept = Kept::default();
                    self.grow(slots, least)
                }
                grown => grown,
            };
        };
        // Held until the end: if memory runs out midway, freeing it leaves enough to start again.
        let spare = self.keys.first().map(|old| Store::zeros(&old.places, slots, least)).transpose()?;
        match self.grow(more, capacity) {
            Err(PolicyError::OutOfMemory { .. }) => {
                drop(spare);
                self.kept = Kept::default();
                self.grow(slots, least)
            }
            grown => grown,
        }
    }

    /// Makes room for this many slots and tokens. After a failure some layers
    /// may have it already, and another shape can be tried.
    fn grow(&mut self, slots: usize, capacity: usize) -> Result<()> {
        let kept = [self.slots.min(slots) as i64, self.capacity.min(capacity) as i64];
        // Layer by layer, so that the whole old cache and the whole new cache
        // never exist at once.
        for old in self.keys.iter_mut().chain(&mut self.values) {
            let grown = Store::zeros(&old.places, slots, capacity)?;
            let part = |store: &Store| -> Result<Tensor> {
                Ok(store.by_slot()?.f_narrow(0, 0, kept[0])?.f_narrow(1, 0, kept[1])?)
            };
            part(&grown)?.f_copy_(&part(old)?)?;
            *old = grown;
        }
        (self.slots, self.capacity) = (slots, capacity);
        Ok(())
    }

    /// Frees the memory of all keys and values, and forgets the conversations that are kept.
    pub(super) fn release(&mut self) -> Result<()> {
        self.kept = Kept::default();
        self.keys.iter_mut().chain(&mut self.values).try_for_each(|store| {
            *store = Store::zeros(&store.places, 0, 0)?;
            Ok::<_, PolicyError>(())
        })?;
        (self.slots, self.capacity) = (0, 0);
        Ok(())
    }

    /// Fills a slot with zeros. A value that is not finite would reach the slot's next row through masked places, as 0
    /// times NaN is NaN.
    pub(super) fn clear(&self, slot: usize) -> Result<()> {
        for store in self.keys.iter().chain(&self.values).filter(|store| slot < store.slots) {
            let _ = store.row(slot, store.capacity)?.f_zero_()?;
        }
        Ok(())
    }

    /// Keeps the row in `slot`, whose tokens are `ids`, for the next turn of its conversation. It is forgotten if there
    /// is no room for it: the kept rows may take what the budget leaves beside the slots or, without a budget, as much
    /// as the slots.
    pub(super) fn keep(&mut self, slot: usize, conversation: u64, ids: Vec<u32>) -> Result<()> {
        let slots = self.slots * self.capacity;
        let room = if self.budget == usize::MAX { slots } else { self.budget.saturating_sub(slots) };
        self.kept.forget(conversation);
        let Some(rest) = room.checked_sub(ids.len()) else { return Ok(()) };
        self.kept.shrink(rest);
        let copy = |store: &Store| -> Result<Tensor> {
            let part = store.row(slot, ids.len())?;
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
        let stores = self.keys.iter().zip(&self.values);
        for ((keys, values), (kept_keys, kept_values)) in stores.zip(layers) {
            for (store, kept) in [(keys, kept_keys), (values, kept_values)] {
                store.row(slot, tokens)?.f_copy_(&kept.f_narrow(0, 0, tokens as i64)?)?;
            }
        }
        Ok(())
    }

    /// The place of a token of a slot, by its position.
    pub(super) fn place(&self, slot: usize, position: usize) -> i64 {
        (slot * self.capacity + position) as i64
    }

    /// The place that belongs to no slot.
    pub(super) fn spare_place(&self) -> i64 {
        self.place(self.slots, 0)
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
        let part = |store: &Store| Ok::<_, PolicyError>(store.row(slot, tokens)?.f_transpose(0, 1)?.f_unsqueeze(0)?);
        Ok([part(&self.keys[layer])?, part(&self.values[layer])?])
    }

    /// Copies the first `tokens` tokens of some slots to others, `[slots]` each, in one layer.
    pub(super) fn copy_layer(&mut self, layer: usize, from: &Tensor, to: &Tensor, tokens: usize) -> Result<()> {
        for store in [&self.keys[layer], &self.values[layer]] {
            let mut part = store.by_slot()?.f_narrow(1, 0, tokens as i64)?;
            let moved = part.f_index_select(0, from)?;
            let _ = part.f_index_copy_(0, to, &moved)?;
        }
        Ok(())
    }

    /// Copies the first `tokens` tokens of a slot, as far as it has room for them, to another.
    pub(super) fn move_row(&mut self, from: usize, to: usize, tokens: usize) -> Result<()> {
        let tokens = tokens.min(self.capacity);
        for store in self.keys.iter().chain(&self.values) {
            store.row(to, tokens)?.f_copy_(&store.row(from, tokens)?)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn growth_that_stopped_midway_is_taken_up_with_another_shape() {
        let json = r#"{"model_type":"qwen2","vocab_size":50,"hidden_size":16,"intermediate_size":24,"num_hidden_layers":3,"num_attention_heads":4,"num_key_value_heads":2,"head_dim":8}"#;
        let config: ModelConfig = serde_json::from_str(json).unwrap();
        let mut cache = KvCache::new(&config, 8, None, Kind::Float, Device::Cpu).unwrap();
        cache.reserve(2, 64).unwrap();
        for store in cache.keys.iter_mut().chain(&mut cache.values) {
            let _ = store.places.fill_(3.0);
        }
        // The state after memory ran out behind the first layer's keys.
        let (keys, values) = (cache.keys.split_off(1), std::mem::take(&mut cache.values));
        cache.grow(4, 192).unwrap();
        cache.keys.extend(keys);
        cache.values = values;
        (cache.slots, cache.capacity) = (2, 64);
        cache.grow(3, 128).unwrap();
        for store in cache.keys.iter().chain(&cache.values) {
            let slots = store.by_slot().unwrap();
            assert_eq!((slots.size(), store.places.size()[0]), (vec![3, 128, 2, 8], 3 * 128 + 1));
            assert_eq!(slots.narrow(0, 0, 2).narrow(1, 0, 64).min().double_value(&[]), 3.0);
            // The rest is zeros.
            assert_eq!(store.places.sum(Kind::Double).double_value(&[]), 3.0 * f64::from(2 * 2 * 64 * 8));
        }
    }

    #[test]
    fn a_cache_that_is_released_has_no_memory_and_can_grow_again() {
        let json = r#"{"model_type":"qwen2","vocab_size":50,"hidden_size":16,"intermediate_size":24,"num_hidden_layers":3,"num_attention_heads":4,"num_key_value_heads":2,"head_dim":8}"#;
        let config: ModelConfig = serde_json::from_str(json).unwrap();
        let mut cache = KvCache::new(&config, 8, None, Kind::Float, Device::Cpu).unwrap();
        let bytes = |cache: &KvCache| {
            let stores = cache.keys.iter().chain(&cache.values);
            let rows = cache.kept.tokens() * 3 * 2 * 2 * 8 * 4;
            stores.map(|store| store.places.numel() * 4).sum::<usize>() + rows
        };
        let empty = bytes(&cache);
        cache.reserve(4, 100).unwrap();
        cache.keep(1, 7, vec![5; 40]).unwrap();
        assert!(bytes(&cache) > 4 * 100 * 3 * 2 * 2 * 8 * 4);
        cache.release().unwrap();
        assert_eq!((bytes(&cache), cache.slots, cache.capacity), (empty, 0, 0));
        cache.reserve(2, 64).unwrap();
        assert!(cache.keys.iter().all(|store| store.places.abs().max().double_value(&[]) == 0.0));
        assert_eq!((cache.slots, cache.capacity), (2, 64));
    }
}
