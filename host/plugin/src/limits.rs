//! What a call may use, and the part that keeps count of it.

use std::time::Duration;
use wasmtime::ResourceLimiter;

/// The budgets of one call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Wall-clock time, host calls included. A rule takes microseconds; 2 s is
    /// for the slow verifier that is not yet stuck.
    pub deadline: Duration,
    /// Bytes, summed over all linear memories and tables. A Python component
    /// with its packages needs about 100 MiB.
    pub memory: usize,
    /// Bytes that the plugin may hand to the host in one call: a verdict is
    /// small, and the host must hold it.
    pub output: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { deadline: Duration::from_secs(2), memory: 256 << 20, output: 4 << 20 }
    }
}

/// A table's element is a pointer in the host.
const TABLE_ELEMENT_BYTES: usize = size_of::<usize>();

/// Sums up memories and tables, and remembers a refusal: whatever the guest
/// returns after one, it did not get what it asked for.
pub(crate) struct MemoryMeter {
    limit: usize,
    used: usize,
    refused: Option<usize>,
}

impl MemoryMeter {
    pub(crate) fn new(limit: usize) -> Self {
        Self { limit, used: 0, refused: None }
    }

    /// Memory is never given back within a call, so the peak is what is used.
    pub(crate) fn peak(&self) -> usize {
        self.used
    }

    /// The total that was asked for when a growth was refused.
    pub(crate) fn refused(&self) -> Option<usize> {
        self.refused
    }

    fn grow(&mut self, current: usize, desired: usize) -> bool {
        let total = self.used.saturating_add(desired.saturating_sub(current));
        if total > self.limit {
            self.refused = Some(total);
            return false;
        }
        self.used = total;
        true
    }
}

impl ResourceLimiter for MemoryMeter {
    fn memory_growing(&mut self, current: usize, desired: usize, _: Option<usize>) -> wasmtime::Result<bool> {
        Ok(self.grow(current, desired))
    }

    fn table_growing(&mut self, current: usize, desired: usize, _: Option<usize>) -> wasmtime::Result<bool> {
        Ok(self.grow(current.saturating_mul(TABLE_ELEMENT_BYTES), desired.saturating_mul(TABLE_ELEMENT_BYTES)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memories_and_tables_share_one_budget() {
        let mut meter = MemoryMeter::new(1000);
        assert!(meter.memory_growing(0, 600, None).unwrap());
        assert!(meter.table_growing(0, 40, None).unwrap());
        assert!(!meter.memory_growing(0, 200, None).unwrap());
        assert!(meter.memory_growing(600, 680, None).unwrap());
        assert_eq!((meter.peak(), meter.refused()), (1000, Some(1120)));
    }
}
