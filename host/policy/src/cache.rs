//! Keys and values of the tokens that the engine has seen, one slot for each
//! active row.

use crate::config::ModelConfig;
use crate::error::Result;
use tch::{Device, Kind, Tensor};

/// Room for tokens is added in steps of this many.
const CHUNK: i64 = 64;

pub(crate) struct Cache {
    /// Keys, then values: `[layers, 2, slots, kv_heads, capacity, head_dim]`.
    all: Tensor,
    /// Views into `all`, by layer: `[slots * kv_heads, capacity, head_dim]`.
    keys: Vec<Tensor>,
    values: Vec<Tensor>,
    slots: i64,
    max_slots: i64,
    kv_heads: i64,
    capacity: i64,
}

impl Cache {
    pub(crate) fn new(config: &ModelConfig, max_slots: usize, kind: Kind, device: Device) -> Result<Self> {
        let shape = [config.num_hidden_layers, 2, 0, config.num_key_value_heads, 0, config.head_dim()];
        Ok(Self {
            all: Tensor::f_zeros(shape, (kind, device))?,
            keys: Vec::new(),
            values: Vec::new(),
            slots: 0,
            max_slots: max_slots as i64,
            kv_heads: config.num_key_value_heads,
            capacity: 0,
        })
    }

    /// Makes room for `slots` rows of `tokens` tokens. Grows by half at least,
    /// so that a long response is not copied once a chunk.
    pub(crate) fn reserve(&mut self, slots: usize, tokens: usize) -> Result<()> {
        let (slots, tokens) = (slots as i64, tokens as i64);
        if slots <= self.slots && tokens <= self.capacity {
            return Ok(());
        }
        let old = [self.slots, self.capacity];
        if slots > self.slots {
            self.slots = slots.max(self.slots * 2).min(self.max_slots);
        }
        if tokens > self.capacity {
            self.capacity = (tokens.max(self.capacity * 3 / 2) as u64).next_multiple_of(CHUNK as u64) as i64;
        }
        let mut shape = self.all.size();
        (shape[2], shape[4]) = (self.slots, self.capacity);
        // Zeros: what is masked is still multiplied by a weight of 0, which must not meet a NaN.
        let grown = Tensor::f_zeros(&shape, (self.all.kind(), self.all.device()))?;
        grown.f_narrow(2, 0, old[0])?.f_narrow(4, 0, old[1])?.f_copy_(&self.all)?;
        let view = |layer: i64, which: i64| -> Result<Tensor> {
            Ok(grown.f_select(0, layer)?.f_select(0, which)?.f_flatten(0, 1)?)
        };
        self.keys = (0..shape[0]).map(|layer| view(layer, 0)).collect::<Result<_>>()?;
        self.values = (0..shape[0]).map(|layer| view(layer, 1)).collect::<Result<_>>()?;
        self.all = grown;
        Ok(())
    }

    /// Stores the keys and values, each `[rows * time, kv_heads, head_dim]`, of
    /// whole prompts in `slots`, `[rows]`.
    pub(crate) fn store(&mut self, layer: usize, slots: &Tensor, key: &Tensor, value: &Tensor) -> Result<()> {
        for (which, new) in [key, value].into_iter().enumerate() {
            let new = new.f_unflatten(0, [slots.size()[0], -1])?.f_transpose(1, 2)?;
            let here = self.all.f_select(0, layer as i64)?.f_select(0, which as i64)?;
            let _ = here.f_narrow(2, 0, new.size()[2])?.f_index_copy_(0, slots, &new)?;
        }
        Ok(())
    }

    /// Where the next key of each row goes: for slots `0..rows`, whose next
    /// positions are `positions`, `[rows]`. Gives `[rows * kv_heads]`.
    pub(crate) fn places(&self, positions: &Tensor) -> Result<Tensor> {
        let heads = positions.size()[0] * self.kv_heads;
        let first =
            Tensor::f_arange_start_step(0, heads * self.capacity, self.capacity, (Kind::Int64, positions.device()))?;
        Ok(first.f_unflatten(0, [-1, self.kv_heads])?.f_add(&positions.f_unsqueeze(1)?)?.f_flatten(0, 1)?)
    }

    /// Stores one key and value of each row, each `[rows, kv_heads, head_dim]`,
    /// at `places`.
    pub(crate) fn append(&mut self, layer: usize, places: &Tensor, key: &Tensor, value: &Tensor) -> Result<()> {
        for (store, new) in [(&self.keys[layer], key), (&self.values[layer], value)] {
            let _ = store.f_flatten(0, 1)?.f_index_copy_(0, places, &new.f_flatten(0, 1)?)?;
        }
        Ok(())
    }

    /// The keys and values of the first `rows` slots and `tokens` positions,
    /// each `[rows * kv_heads, tokens, head_dim]`.
    pub(crate) fn read(&self, layer: usize, rows: i64, tokens: i64) -> Result<(Tensor, Tensor)> {
        let part = |x: &Tensor| x.f_narrow(0, 0, rows * self.kv_heads)?.f_narrow(1, 0, tokens);
        Ok((part(&self.keys[layer])?, part(&self.values[layer])?))
    }

    /// Copies the first `tokens` positions of slots to others, all at once:
    /// pairs of (from, to).
    pub(crate) fn copy(&mut self, pairs: &[(usize, usize)], tokens: usize) -> Result<()> {
        if pairs.is_empty() || tokens == 0 {
            return Ok(());
        }
        let side = |pick: fn(&(usize, usize)) -> usize| -> Result<Tensor> {
            let slots: Vec<i64> = pairs.iter().map(|pair| pick(pair) as i64).collect();
            Ok(Tensor::f_from_slice(&slots)?.f_to_device(self.all.device())?)
        };
        let (from, to) = (side(|pair| pair.0)?, side(|pair| pair.1)?);
        let mut part = self.all.f_narrow(4, 0, tokens as i64)?;
        let moved = part.f_index_select(2, &from)?;
        let _ = part.f_index_copy_(2, &to, &moved)?;
        Ok(())
    }
}
