//! What was asked outside: requests to endpoints, their waits, and answers from caches.

use gavel_endpoint::Waits;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What endpoints and limiters have done. Several processes may add theirs up.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct OutsideUse {
    /// By the name of the endpoint.
    pub(crate) endpoints: BTreeMap<String, EndpointUse>,
    /// By the name of the limiter.
    pub(crate) limiters: BTreeMap<String, Waits>,
}

/// What an endpoint has done.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct EndpointUse {
    /// The turns of its requests; absent if a limiter with a name gives them.
    pub(crate) waits: Option<Waits>,
    /// Requests that its cache answered.
    pub(crate) hits: u64,
    /// Requests that its cache did not answer.
    pub(crate) misses: u64,
}

impl OutsideUse {
    /// Adds what the same endpoints and limiters have done elsewhere.
    pub fn add(&mut self, other: Self) {
        for (name, EndpointUse { waits, hits, misses }) in other.endpoints {
            let own = self.endpoints.entry(name).or_default();
            (own.hits, own.misses) = (own.hits + hits, own.misses + misses);
            if let Some(waits) = waits {
                own.waits.get_or_insert_default().join(waits);
            }
        }
        for (name, waits) in other.limiters {
            self.limiters.entry(name).or_default().join(waits);
        }
    }

    /// The metrics of all this, by name.
    pub fn metrics(&self) -> Vec<(String, f64)> {
        let mut metrics = Vec::new();
        let mut set = |name: String, value: f64| metrics.push((name, value));
        for (name, EndpointUse { waits, hits, misses }) in &self.endpoints {
            let prefix = format!("chat/{name}");
            if let Some(waits) = waits {
                set(format!("{prefix}/requests"), waits.turns as f64);
                set_waits(&prefix, waits, &mut set);
            }
            if hits + misses > 0 {
                set(format!("{prefix}/cache_hits"), *hits as f64 / (hits + misses) as f64);
            }
        }
        for (name, waits) in &self.limiters {
            let prefix = format!("limiter/{name}");
            set(format!("{prefix}/turns"), waits.turns as f64);
            set_waits(&prefix, waits, &mut set);
        }
        metrics
    }
}

fn set_waits(prefix: &str, waits: &Waits, set: &mut impl FnMut(String, f64)) {
    set(format!("{prefix}/wait_mean"), waits.mean().as_secs_f64());
    set(format!("{prefix}/wait_max"), waits.longest.as_secs_f64());
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn counts_are_added_means_are_weighted_and_the_longest_wait_stays() {
        let waits = |turns, total, longest| Waits {
            turns,
            total: Duration::from_secs(total),
            longest: Duration::from_secs(longest),
        };
        let of = |waits: Waits, hits, misses| OutsideUse {
            endpoints: [("judge".to_owned(), EndpointUse { waits: Some(waits), hits, misses })].into(),
            limiters: [("gate".to_owned(), waits)].into(),
        };
        let mut all = of(waits(3, 6, 4), 1, 2);
        all.add(of(waits(1, 10, 10), 0, 1));
        all.add(OutsideUse::default());
        let metrics = BTreeMap::from_iter(all.metrics());
        let expected = [
            ("chat/judge/cache_hits", 0.25),
            ("chat/judge/requests", 4.0),
            ("chat/judge/wait_max", 10.0),
            ("chat/judge/wait_mean", 4.0),
            ("limiter/gate/turns", 4.0),
            ("limiter/gate/wait_max", 10.0),
            ("limiter/gate/wait_mean", 4.0),
        ];
        assert_eq!(metrics, expected.map(|(name, value)| (name.to_owned(), value)).into());
    }
}
