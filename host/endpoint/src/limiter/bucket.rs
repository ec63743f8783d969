//! A budget that refills at a constant rate.

use serde::{Deserialize, Serialize};

/// The part of a limit that is used. The rest is a reserve, since requests bunch up on the way to the server.
const USED: f64 = 0.97;
/// The most that may be caught up on at once, as a part of the window. `USED · (1 + BURST) < 1`, so no window has more
/// than the limit.
const BURST: f64 = 0.03;
/// The longest that a debt keeps requests from their turns, in seconds, unless the windows are long.
const LONGEST_DEBT: f64 = 3600.0;
/// The same in windows: where a request comes each hour, several may have their places.
const DEBT_WINDOWS: f64 = 60.0;

/// A budget of requests or tokens, which refills at a constant rate. Times are seconds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Bucket {
    /// The gain per second.
    rate: f64,
    /// The most that it holds.
    capacity: f64,
    /// The current level; negative if more was booked than it held.
    level: f64,
    /// The time of this level.
    at: f64,
}

impl Bucket {
    /// A full bucket. No window of `window` seconds has more than `limit` taken from it, plus at most one cost that is
    /// larger than the bucket.
    pub(crate) fn new(limit: f64, window: f64, now: f64) -> Self {
        let rate = USED * limit / window;
        let capacity = rate * window * BURST;
        Self { rate, capacity, level: capacity, at: now }
    }

    /// Takes over the level of another bucket, whoever wrote it. Returns whether a bucket with this limit can have it;
    /// if not, nothing has changed.
    pub(crate) fn adopt(&mut self, other: &Self) -> bool {
        // Numbers in a file may be rounded.
        let is_possible = other.level >= -1.001 * self.most_debt();
        if is_possible {
            (self.level, self.at) = (other.level.min(self.capacity), other.at);
        }
        is_possible
    }

    /// The same level, at times that are `by` seconds later.
    pub(crate) fn shift(&mut self, by: f64) {
        self.at = (self.at + by).max(0.0);
    }

    /// The most that may be owed. Windows are long past what was used beyond it.
    fn most_debt(&self) -> f64 {
        (LONGEST_DEBT * self.rate).max(DEBT_WINDOWS * self.capacity / BURST)
    }

    /// The seconds from `now` until `cost` can be taken. A cost that it can never hold is taken from a full bucket.
    pub(crate) fn ready_in(&mut self, cost: f64, now: f64) -> f64 {
        self.refill(now);
        let wait = (cost.min(self.capacity) - self.level) / self.rate;
        // Less than this is an error of rounding.
        if wait > 1e-9 { wait } else { 0.0 }
    }

    /// Takes `cost`, whether it is there or not, up to an hour's debt; a negative cost is a refund.
    pub(crate) fn take(&mut self, cost: f64) {
        self.level = (self.level - cost).max(-self.most_debt()).min(self.capacity);
    }

    fn refill(&mut self, now: f64) {
        // A clock may be set back.
        let gained = (now - self.at).max(0.0) * self.rate;
        (self.level, self.at) = ((self.level + gained).min(self.capacity), now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The times at which costs are taken as soon as they can be.
    fn taken(limit: f64, costs: impl IntoIterator<Item = f64>) -> Vec<f64> {
        let (mut bucket, mut now) = (Bucket::new(limit, 1.0, 0.0), 0.0);
        let take = |cost: f64| {
            now += bucket.ready_in(cost, now);
            bucket.take(cost);
            now
        };
        costs.into_iter().map(take).collect()
    }

    #[test]
    fn no_window_has_more_than_the_limit_and_most_of_it_is_used() {
        for limit in [1.0, 2.0, 3.0, 10.0, 50.0, 100.0, 1000.0] {
            let count = (limit * 20.0) as usize;
            let times = taken(limit, vec![1.0; count]);
            let most = times
                .iter()
                .enumerate()
                .map(|(first, start)| times[first..].iter().take_while(|time| **time < start + 1.0 - 1e-9).count());
            assert!(most.max().unwrap() as f64 <= limit, "{limit}");
            let used = (count - 1) as f64 / limit / times[count - 1];
            assert!(used >= 0.95, "{limit}: {used}");
        }
    }

    #[test]
    fn a_cost_larger_than_the_bucket_is_paid_off_afterwards() {
        let times = taken(100.0, [250.0, 1.0]);
        assert_eq!(times[0], 0.0);
        assert!(times[1] > 2.5, "{times:?}");
        // Unused tokens come back.
        let mut bucket = Bucket::new(100.0, 1.0, 0.0);
        bucket.take(250.0);
        bucket.take(-250.0);
        assert_eq!(bucket.ready_in(1.0, 0.0), 0.0);
    }

    #[test]
    fn a_late_request_is_caught_up_on_within_the_burst() {
        let mut bucket = Bucket::new(100.0, 1.0, 0.0);
        // Two seconds without a request leave no more than the burst.
        let mut at_once = 0;
        while bucket.ready_in(1.0, 2.0) == 0.0 {
            bucket.take(1.0);
            at_once += 1;
        }
        assert_eq!(at_once, 2);
    }

    #[test]
    fn a_debt_keeps_nobody_waiting_for_longer_than_an_hour() {
        let debt = |limit: f64, window: f64| {
            let mut bucket = Bucket::new(limit, window, 0.0);
            (0..1000).for_each(|_| bucket.take(limit));
            bucket.ready_in(0.0, 0.0)
        };
        assert!((3599.0..3601.0).contains(&debt(6e5, 60.0)), "{}", debt(6e5, 60.0));
        // A request a day: all processes that wait have their places.
        assert!((59.0 * 86_400.0..63.0 * 86_400.0).contains(&debt(1.0, 86_400.0)), "{}", debt(1.0, 86_400.0));
    }

    #[test]
    fn a_level_that_no_use_leaves_is_not_adopted() {
        let (fresh, mut used) = (Bucket::new(100.0, 1.0, 5.0), Bucket::new(100.0, 1.0, 5.0));
        used.take(50.0);
        let mut own = fresh.clone();
        assert!(own.adopt(&used) && own == used);
        for level in [-1e308, -1e6] {
            assert!(!own.adopt(&Bucket { level, ..used.clone() }) && own == used, "{level}");
        }
        // The limit is what this process was configured with.
        let written = Bucket { rate: 0.0, capacity: -1.0, level: 1e308, at: -1e308 };
        assert!(own.adopt(&written));
        assert_eq!(own, Bucket { at: -1e308, ..fresh });
        assert_eq!(own.ready_in(1.0, 6.0), 0.0);
    }
}
