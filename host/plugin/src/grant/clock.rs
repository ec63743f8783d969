//! `clock`: the time that a plugin sees, and its timers.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::time::Instant;
use wasmtime::component::{HasData, Resource, ResourceTable};
use wasmtime_wasi::p2::bindings::clocks::monotonic_clock;
use wasmtime_wasi::p2::{DynPollable, Pollable, subscribe};
use wasmtime_wasi::{HostWallClock, async_trait};

/// 2024-01-01T00:00:00Z, when virtual time starts.
const START: Duration = Duration::from_secs(1_704_067_200);
/// The time between two readings, so that a guest that polls the clock makes
/// progress.
const READ_NS: u64 = 1_000;

/// Nanoseconds since the call began, by a clock that moves when it is read and
/// when the guest sleeps. So verdicts are reproducible, and a sleep costs
/// nothing.
#[derive(Clone, Default)]
pub(super) struct VirtualTime(Arc<AtomicU64>);

impl VirtualTime {
    fn now(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    fn read(&self) -> u64 {
        let tick = |now: u64| Some(now.saturating_add(READ_NS));
        self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, tick).unwrap_or_else(|now| now)
    }

    fn advance_to(&self, instant: u64) {
        self.0.fetch_max(instant, Ordering::Relaxed);
    }
}

impl HostWallClock for VirtualTime {
    fn resolution(&self) -> Duration {
        Duration::from_nanos(READ_NS)
    }

    fn now(&self) -> Duration {
        START + Duration::from_nanos(self.read())
    }
}

/// The clock of one call.
pub(super) enum Clock {
    /// The machine's time, since the call began.
    Real(Instant),
    /// Virtual time, and the time at which each timer of the guest is due, by
    /// the timer's handle.
    Virtual(VirtualTime, HashMap<u32, u64>),
}

impl Clock {
    pub(super) fn real() -> Self {
        Self::Real(Instant::now())
    }

    pub(super) fn starting_at_zero(time: VirtualTime) -> Self {
        Self::Virtual(time, HashMap::new())
    }

    fn read(&self) -> u64 {
        match self {
            // 64 bits hold 584 years.
            Self::Real(start) => start.elapsed().as_nanos() as u64,
            Self::Virtual(time, _) => time.read(),
        }
    }

    /// Called where the guest waits for the first of these to be ready. If all are
    /// timers, virtual time moves to the earliest at once. If it also waits for
    /// something else, its timers run in real time.
    pub(super) fn wait(&self, pollables: impl Iterator<Item = u32>) {
        if let Self::Virtual(time, timers) = self
            && let Some(Some(first)) = pollables.map(|each| timers.get(&each)).min()
        {
            time.advance_to(*first);
        }
    }

    /// Whether a timer is due; `None` if it depends on real time.
    pub(super) fn due(&self, pollable: u32) -> Option<bool> {
        match self {
            Self::Real(_) => None,
            Self::Virtual(time, timers) => timers.get(&pollable).map(|due| time.read() >= *due),
        }
    }

    pub(super) fn forget(&mut self, pollable: u32) {
        if let Self::Virtual(_, timers) = self {
            timers.remove(&pollable);
        }
    }
}

/// The host's side of a timer that a guest waits for.
enum Timer {
    /// Due at this time; `None` if no clock reaches it.
    Real(Option<Instant>),
    /// Due at a virtual time. If it must be waited for in real time, that begins
    /// at the first wait.
    Virtual { time: VirtualTime, due: u64, wakes: Option<Instant> },
}

#[async_trait]
impl Pollable for Timer {
    async fn ready(&mut self) {
        match self {
            Self::Real(Some(wakes)) => tokio::time::sleep_until(*wakes).await,
            Self::Real(None) => std::future::pending().await,
            Self::Virtual { time, due, .. } if time.now() >= *due => {}
            Self::Virtual { time, due, wakes } => {
                let left = Duration::from_nanos(*due - time.now());
                *wakes = wakes.or_else(|| Instant::now().checked_add(left));
                match wakes {
                    Some(wakes) => tokio::time::sleep_until(*wakes).await,
                    None => std::future::pending().await,
                }
                time.advance_to(*due);
            }
        }
    }
}

/// The host's side of `wasi:clocks/monotonic-clock`.
pub(crate) struct MonotonicClock<'a> {
    pub(super) clock: &'a mut Clock,
    pub(super) table: &'a mut ResourceTable,
}

/// The type by which a linker finds it.
pub(crate) struct HasMonotonicClock;

impl HasData for HasMonotonicClock {
    type Data<'a> = MonotonicClock<'a>;
}

impl monotonic_clock::Host for MonotonicClock<'_> {
    fn now(&mut self) -> wasmtime::Result<u64> {
        Ok(self.clock.read())
    }

    fn resolution(&mut self) -> wasmtime::Result<u64> {
        Ok(match self.clock {
            Clock::Real(_) => 1,
            Clock::Virtual(..) => READ_NS,
        })
    }

    fn subscribe_instant(&mut self, when: u64) -> wasmtime::Result<Resource<DynPollable>> {
        let timer = match &self.clock {
            Clock::Real(start) => Timer::Real(start.checked_add(Duration::from_nanos(when))),
            Clock::Virtual(time, _) => Timer::Virtual { time: time.clone(), due: when, wakes: None },
        };
        let timer = self.table.push(timer)?;
        let pollable = subscribe(self.table, timer)?;
        if let Clock::Virtual(_, timers) = self.clock {
            timers.insert(pollable.rep(), when);
        }
        Ok(pollable)
    }

    fn subscribe_duration(&mut self, after: u64) -> wasmtime::Result<Resource<DynPollable>> {
        let now = self.clock.read();
        self.subscribe_instant(now.saturating_add(after))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_wait_for_nothing_but_timers_moves_virtual_time() {
        let clock = Clock::Virtual(VirtualTime::default(), HashMap::from([(1, 5_000_000), (2, 3_000_000)]));
        clock.wait([1, 9].into_iter());
        assert_eq!(clock.due(2), Some(false));
        clock.wait([1, 2].into_iter());
        assert_eq!((clock.due(2), clock.due(1), clock.due(9)), (Some(true), Some(false), None));
        clock.wait([1].into_iter());
        assert_eq!(clock.due(1), Some(true));
    }

    #[test]
    fn virtual_time_never_wraps() {
        let time = VirtualTime::default();
        time.advance_to(u64::MAX);
        assert_eq!((time.read(), time.read()), (u64::MAX, u64::MAX));
        assert!(HostWallClock::now(&time) > START);
    }
}
