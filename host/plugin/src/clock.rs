//! The clocks that a plugin sees: they start at a fixed instant and move only
//! when they are read, so that a verdict repeats.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use wasmtime_wasi::{HostMonotonicClock, HostWallClock};

/// 2024-01-01T00:00:00Z.
const EPOCH: Duration = Duration::from_secs(1_704_067_200);
const READ_NS: u64 = 1_000;

pub(crate) struct VirtualWall;

impl HostWallClock for VirtualWall {
    fn resolution(&self) -> Duration {
        Duration::from_millis(1)
    }

    fn now(&self) -> Duration {
        EPOCH
    }
}

/// Each reading is a microsecond after the last, so that a guest that waits
/// for time to pass gets somewhere.
#[derive(Default)]
pub(crate) struct VirtualMonotonic(AtomicU64);

impl HostMonotonicClock for VirtualMonotonic {
    fn resolution(&self) -> u64 {
        READ_NS
    }

    fn now(&self) -> u64 {
        self.0.fetch_add(READ_NS, Ordering::Relaxed)
    }
}
