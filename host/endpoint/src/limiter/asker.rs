//! The asker of a request, which decides the order of turns.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The asker of a request. Turns are shared fairly between plugins, and between the samples of a group; older groups
/// come first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asker {
    /// The plugin, by its name in the run.
    pub plugin: Arc<str>,
    /// The group of the sample, as [`group_number`] counted it.
    pub group: u64,
    /// The sample in its group.
    pub sample: u32,
}

impl Asker {
    /// An asker in its own group.
    pub fn alone(plugin: &str) -> Self {
        Self { plugin: plugin.into(), group: group_number(), sample: 0 }
    }
}

impl Default for Asker {
    fn default() -> Self {
        Self::alone("")
    }
}

/// The number of a new group. A group that begins later has a larger one.
pub fn group_number() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    NEXT.fetch_add(1, Ordering::Relaxed)
}
