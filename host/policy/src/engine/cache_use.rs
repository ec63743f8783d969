//! How much memory the key-value cache holds, and how much of it is used.

use super::slots::Slots;
use std::collections::HashSet;

/// The memory of keys and values, in bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CacheUse {
    /// What is allocated, for rows and for conversations that are kept.
    pub held: usize,
    /// The keys and values of rows under way, and of kept conversations of which no turn is under way.
    pub used: usize,
}

impl CacheUse {
    /// The memory of a cache in which a token takes `per_token` bytes.
    pub(super) fn of(slots: &Slots, per_token: usize) -> Self {
        let partial = slots.partial.as_ref().map_or(0, |partial| partial.done);
        let rows: usize = slots.rows.iter().map(|row| row.tokens() - 1).sum();
        let under_way: HashSet<u64> = slots.under_way().filter_map(|row| row.request.conversation).collect();
        let used = rows + partial + slots.cache.kept.tokens_without(&under_way);
        Self { held: slots.cache.places_held() * per_token, used: used * per_token }
    }
}
