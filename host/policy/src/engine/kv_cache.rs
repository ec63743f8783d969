//! The key-value cache: keys and values of the tokens that the engine has seen,
//! one slot for each active row.

use super::kept::{Kept, KeptRow};
use super::kv_cache_growth::{CHUNK, grown_room, room_for};
use super::prefill::Restored;
use crate::config::ModelConfig;
use crate::error::{PolicyError, Result};
use crate::memory::Footprint;
use crate::out_of_memory::Phase;
use gavel_torch::scalar::arange;
use tch::{Device, Kind, Tensor};

/// The keys and values of the rows in its slots, layer by layer.
pub(super) struct KvCache {
    /// By layer: `[slots, kv_heads, capacity, head_dim]`.
    keys: Vec<Tensor>,
    values: Vec<Tensor>,
    slots: usize,
    max_slots: usize,
    kv_heads: i64,
    /// Tokens that a slot has room for.
    capacity: usize,
    /// Tokens that all slots together may have room for.
    budget: usize,
    /// The conversations that are kept beside the slots, in the room that these leave.
    pub(super) kept: Kept,
}

impl KvCache {
    pub(super) fn new(
        config: &ModelConfig,
        max_slots: usize,
        bytes: Option<usize>,
        kind: Kind,
        device: Device,
    ) -> Result<Self> {
        let empty = || -> Result<Vec<Tensor>> {
            let shape = [0, config.num_key_value_heads, 0, config.head_dim];
            (0..config.num_hidden_layers).map(|_| Ok(Tensor::f_zeros(shape, (kind, device))?)).collect()
        };
        let bytes_per_token = Footprint::new(config, kind, device).cache_per_token() as usize;
        Ok(Self {
            keys: empty()?,
            values: empty()?,
            slots: 0,
            max_slots,
            kv_heads: config.num_key_value_heads,
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
        let spare = self.keys.first().map(|old| zeros_for(old, slots, least)).transpose()?;
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
            let grown = zeros_for(old, slots, capacity)?;
            let part = |x: &Tensor| x.f_narrow(0, 0, kept[0])?.f_narrow(2, 0, kept[1]);
            part(&grown)?.f_copy_(&part(old)?)?;
            *old = grown;
        }
        (self.slots, self.capacity) = (slots, capacity);
        Ok(())
    }

    /// Fills a slot with zeros. A value that is not finite would reach the
    /// slot's next row even through masked places, as 0 times NaN is NaN.
    pub(super) fn clear(&mut self, slot: usize) -> Result<()> {
        for store in self.keys.iter().chain(&self.values) {
            let _ = store.f_select(0, slot as i64)?.f_zero_()?;
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
        let copy = |store: &Tensor| -> Result<Tensor> {
            let part = store.f_select(0, slot as i64)?.f_narrow(1, 0, ids.len() as i64)?;
            let mut copied = Tensor::f_empty(part.size(), (part.kind(), part.device()))?;
            copied.f_copy_(&part)?;
            Ok(copied)
        };
        let layers = self.keys.iter().zip(&self.values).map(|(keys, values)| Ok((copy(keys)?, copy(values)?)));
        match layers.collect::<Result<Vec<_>>>() {
            Ok(layers) => self.kept.add(KeptRow { conversation, ids, layers }),
            // Kept conversations only save time, so they are dropped.
            Err(PolicyError::OutOfMemory { .. }) => self.kept = Kept::default(),
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// Copies the keys and values that a row has from an earlier turn to its slot.
    pub(super) fn restore(&mut self, Restored { slot, tokens, layers }: &Restored) -> Result<()> {
        let stores = self.keys.iter().zip(&self.values);
        for ((keys, values), (kept_keys, kept_values)) in stores.zip(layers.iter()) {
            for (store, kept) in [(keys, kept_keys), (values, kept_values)] {
                let tokens = *tokens as i64;
                let mut place = store.f_select(0, *slot as i64)?.f_narrow(1, 0, tokens)?;
                place.f_copy_(&kept.f_narrow(1, 0, tokens)?)?;
            }
        }
        Ok(())
    }

    /// Stores the keys and values, each `[rows * time, kv_heads, head_dim]`, of
    /// the tokens from `start` on in `slots`, `[rows]`.
    pub(super) fn store(
        &mut self,
        layer: usize,
        slots: &Tensor,
        start: i64,
        key: &Tensor,
        value: &Tensor,
    ) -> Result<()> {
        for (store, new) in [(&self.keys[layer], key), (&self.values[layer], value)] {
            let new = new.f_unflatten(0, [slots.size()[0], -1])?.f_transpose(1, 2)?;
            let _ = store.f_narrow(2, start, new.size()[2])?.f_index_copy_(0, slots, &new)?;
        }
        Ok(())
    }

    /// The keys and values of the first `tokens` tokens in `slots`, `[rows]`:
    /// each `[rows, kv_heads, tokens, head_dim]`.
    pub(super) fn gather(&self, layer: usize, slots: &Tensor, tokens: i64) -> Result<(Tensor, Tensor)> {
        let part = |store: &Tensor| store.f_narrow(2, 0, tokens)?.f_index_select(0, slots);
        Ok((part(&self.keys[layer])?, part(&self.values[layer])?))
    }

    /// Where the next key of each row goes: for slots `0..rows`, whose next
    /// positions are `positions`, `[rows]`. Gives `[rows * kv_heads]`.
    pub(super) fn places(&self, positions: &Tensor) -> Result<Tensor> {
        let (heads, capacity) = (positions.size()[0] * self.kv_heads, self.capacity as i64);
        let first = arange(0, heads * capacity, capacity, positions.device())?;
        Ok(first.f_unflatten(0, [-1, self.kv_heads])?.f_add(&positions.f_unsqueeze(1)?)?.f_flatten(0, 1)?)
    }

    /// Stores one key and value of each row, each `[rows, kv_heads, head_dim]`,
    /// at `places`.
    pub(super) fn append(&mut self, layer: usize, places: &Tensor, key: &Tensor, value: &Tensor) -> Result<()> {
        for (store, new) in [(&self.keys[layer], key), (&self.values[layer], value)] {
            let _ = store.f_flatten(0, 2)?.f_index_copy_(0, places, &new.f_flatten(0, 1)?)?;
        }
        Ok(())
    }

    /// The keys and values of the first `tokens` positions in `rows` slots from
    /// `first` on, each `[rows * kv_heads, tokens, head_dim]`.
    pub(super) fn read(&self, layer: usize, first: i64, rows: i64, tokens: i64) -> Result<(Tensor, Tensor)> {
        let heads = [first, rows].map(|slots| slots * self.kv_heads);
        let part = |x: &Tensor| x.f_flatten(0, 1)?.f_narrow(0, heads[0], heads[1])?.f_narrow(1, 0, tokens);
        Ok((part(&self.keys[layer])?, part(&self.values[layer])?))
    }

    /// Pairs of slots on the device, each side `[pairs]`.
    pub(super) fn pairs(pairs: &[(usize, usize)], device: Device) -> Result<(Tensor, Tensor)> {
        let side = |pick: fn(&(usize, usize)) -> usize| -> Result<Tensor> {
            let slots: Vec<i64> = pairs.iter().map(|pair| pick(pair) as i64).collect();
            Ok(Tensor::f_from_slice(&slots)?.f_to_device(device)?)
        };
        Ok((side(|pair| pair.0)?, side(|pair| pair.1)?))
    }

    /// Copies the first `tokens` positions of slots to others, all at once:
    /// pairs of (from, to).
    pub(super) fn copy(&mut self, pairs: &[(usize, usize)], tokens: usize) -> Result<()> {
        if pairs.is_empty() || tokens == 0 {
            return Ok(());
        }
        let (from, to) = Self::pairs(pairs, self.keys[0].device())?;
        (0..self.keys.len()).try_for_each(|layer| self.copy_layer(layer, &from, &to, tokens))
    }

    /// [`copy`](Self::copy) in one layer.
    pub(super) fn copy_layer(&mut self, layer: usize, from: &Tensor, to: &Tensor, tokens: usize) -> Result<()> {
        for store in [&self.keys[layer], &self.values[layer]] {
            let mut part = store.f_narrow(2, 0, tokens as i64)?;
            let moved = part.f_index_select(0, from)?;
            let _ = part.f_index_copy_(0, to, &moved)?;
        }
        Ok(())
    }
}

/// The replacement of `old`, with this many slots and tokens. It is filled with
/// zeros, as masked places are still multiplied by a weight of 0, and 0 times
/// NaN is NaN.
fn zeros_for(old: &Tensor, slots: usize, capacity: usize) -> Result<Tensor> {
    let [_, heads, _, width] = <[i64; 4]>::try_from(old.size()).unwrap_or_default();
    Tensor::f_zeros([slots as i64, heads, capacity as i64, width], (old.kind(), old.device()))
        .map_err(|error| PolicyError::from(error).during(Phase::Cache { rows: slots, tokens: capacity }))
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
            let _ = store.fill_(3.0);
        }
        // The state after memory ran out behind the first layer's keys.
        let (keys, values) = (cache.keys.split_off(1), std::mem::take(&mut cache.values));
        cache.grow(4, 192).unwrap();
        cache.keys.extend(keys);
        cache.values = values;
        (cache.slots, cache.capacity) = (2, 64);
        cache.grow(3, 128).unwrap();
        for store in cache.keys.iter().chain(&cache.values) {
            assert_eq!(store.size(), [3, 2, 128, 8]);
            assert_eq!(store.narrow(0, 0, 2).narrow(2, 0, 64).min().double_value(&[]), 3.0);
            // The rest is zeros.
            assert_eq!(store.sum(Kind::Double).double_value(&[]), 3.0 * f64::from(2 * 2 * 64 * 8));
        }
    }
}
