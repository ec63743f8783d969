//! How much memory the key-value cache holds, and how much of it is used.

use super::Engine;
use super::slots::Slots;
use crate::memory::Footprint;
use std::collections::HashSet;

/// The memory of keys and values, in bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CacheUse {
    /// What is allocated, for rows and for conversations that are kept.
    pub held: usize,
    /// The keys and values of rows under way, and of kept conversations of which no turn is under way.
    pub used: usize,
}

impl Engine {
    /// The memory of keys and values now.
    pub fn cache_use(&self) -> CacheUse {
        let slots = &self.scheduler.slots;
        let per_token = Footprint::new(&self.model, self.kind, self.device).cache_per_token() as usize;
        CacheUse { held: slots.cache.places_held() * per_token, used: tokens_used(slots) * per_token }
    }
}

fn tokens_used(slots: &Slots) -> usize {
    let partial = slots.partial.as_ref().map_or(0, |partial| partial.done);
    let rows: usize = slots.rows.iter().map(|row| row.tokens() - 1).sum();
    let under_way: HashSet<u64> = slots.under_way().filter_map(|row| row.request.conversation).collect();
    rows + partial + slots.cache.kept.tokens_without(&under_way)
}
