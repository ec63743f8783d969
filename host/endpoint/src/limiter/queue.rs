//! The order of turns.

use super::asker::Asker;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// Every n-th turn goes to the request that has waited longest, so that no request waits forever.
const OLDEST_EVERY: u64 = 4;
/// Groups without a waiting request whose counts are remembered.
const IDLE_GROUPS: usize = 256;

/// Requests that wait for their turn.
///
/// A turn goes to the plugin that has had the fewest, there to the oldest group, and there to the sample that has had
/// the fewest. Every fourth turn goes to the request that has waited longest. A request with `n` others before it has
/// its turn after at most `4 (n + 1)` turns.
pub(crate) struct Queue<T> {
    waiting: BTreeMap<u64, (Asker, T)>,
    plugins: BTreeMap<Arc<str>, PluginTurns>,
    arrivals: u64,
    turns: u64,
}

#[derive(Default)]
struct PluginTurns {
    had: u64,
    groups: BTreeMap<u64, BTreeMap<u32, SampleTurns>>,
    waiting: usize,
}

#[derive(Default)]
struct SampleTurns {
    had: u64,
    arrivals: VecDeque<u64>,
}

impl<T> Default for Queue<T> {
    fn default() -> Self {
        Self { waiting: BTreeMap::new(), plugins: BTreeMap::new(), arrivals: 0, turns: 0 }
    }
}

impl<T> Queue<T> {
    /// Adds a request.
    pub(crate) fn push(&mut self, asker: Asker, request: T) {
        let arrival = self.arrivals;
        self.arrivals += 1;
        let active = self.plugins.values().filter(|plugin| plugin.waiting > 0);
        let fewest = active.map(|plugin| plugin.had).min().unwrap_or(0);
        let plugin = self.plugins.entry(asker.plugin.clone()).or_default();
        if plugin.waiting == 0 {
            // An idle time gives it no advantage.
            plugin.had = plugin.had.max(fewest);
        }
        plugin.waiting += 1;
        plugin.groups.entry(asker.group).or_default().entry(asker.sample).or_default().arrivals.push_back(arrival);
        self.waiting.insert(arrival, (asker, request));
    }

    /// The request whose turn is next.
    pub(crate) fn next(&self) -> Option<&T> {
        self.waiting.get(&self.next_arrival()?).map(|(_, request)| request)
    }

    /// Removes the request whose turn is next. `is_served` decides whether it counts as a turn.
    pub(crate) fn pop(&mut self, is_served: impl FnOnce(&T) -> bool) -> Option<T> {
        let (asker, request) = self.waiting.remove(&self.next_arrival()?)?;
        let turn = u64::from(is_served(&request));
        self.turns += turn;
        if let Some(plugin) = self.plugins.get_mut(&asker.plugin) {
            plugin.leave(&asker, turn);
        }
        Some(request)
    }

    fn next_arrival(&self) -> Option<u64> {
        let oldest = *self.waiting.keys().next()?;
        if self.turns % OLDEST_EVERY == OLDEST_EVERY - 1 {
            return Some(oldest);
        }
        let plugins = self.plugins.values().filter(|plugin| plugin.waiting > 0);
        plugins.min_by_key(|plugin| (plugin.had, plugin.first())).and_then(PluginTurns::first)
    }
}

impl PluginTurns {
    /// The arrival of its next request.
    fn first(&self) -> Option<u64> {
        self.groups.values().find_map(|samples| {
            let waiting = samples.values().filter_map(|sample| Some((sample.had, *sample.arrivals.front()?)));
            waiting.min().map(|(_, arrival)| arrival)
        })
    }

    /// Removes the first request of this asker. The oldest request of all is the first of its asker, too.
    fn leave(&mut self, asker: &Asker, turn: u64) {
        self.had += turn;
        self.waiting -= 1;
        if let Some(sample) = self.groups.get_mut(&asker.group).and_then(|samples| samples.get_mut(&asker.sample)) {
            sample.had += turn;
            sample.arrivals.pop_front();
        }
        if self.groups.len() > IDLE_GROUPS {
            let is_idle = |samples: &BTreeMap<u32, SampleTurns>| samples.values().all(|each| each.arrivals.is_empty());
            if let Some(idle) = self.groups.iter().find_map(|(group, samples)| is_idle(samples).then_some(*group)) {
                self.groups.remove(&idle);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asker(plugin: &str, group: u64, sample: u32) -> Asker {
        Asker { plugin: plugin.into(), group, sample }
    }

    fn order(queue: &mut Queue<&'static str>, count: usize) -> Vec<&'static str> {
        (0..count).filter_map(|_| queue.pop(|_| true)).collect()
    }

    #[test]
    fn the_oldest_group_comes_first_and_its_samples_take_turns() {
        let mut queue = Queue::default();
        for (group, sample, name) in [(7, 0, "young"), (3, 0, "a1"), (3, 0, "a2"), (3, 1, "b1"), (3, 1, "b2")] {
            queue.push(asker("judge", group, sample), name);
        }
        assert_eq!(queue.next(), Some(&"a1"));
        // The fourth turn goes to the request that has waited longest.
        assert_eq!(order(&mut queue, 5), ["a1", "b1", "a2", "young", "b2"]);
    }

    #[test]
    fn a_chatty_sample_does_not_keep_the_others_waiting() {
        let mut queue = Queue::default();
        for _ in 0..1000 {
            queue.push(asker("judge", 0, 0), "chatty");
        }
        queue.push(asker("judge", 0, 1), "quiet");
        queue.push(asker("judge", 9, 0), "young");
        let order = order(&mut queue, 1002);
        let turn = |name| order.iter().position(|other| *other == name).unwrap();
        assert_eq!(turn("quiet"), 1);
        assert!(order[1001] == "young");
        // Requests that arrive later do not push it back.
        let mut queue = Queue::default();
        queue.push(asker("judge", 9, 0), "young");
        let turn = (0..).find(|_| {
            queue.push(asker("judge", 0, 0), "chatty");
            queue.pop(|_| true) == Some("young")
        });
        assert_eq!(turn, Some(OLDEST_EVERY as usize - 1));
    }

    #[test]
    fn plugins_take_turns_and_a_pause_is_no_advantage() {
        let mut queue = Queue::default();
        for _ in 0..8 {
            queue.push(asker("a", 0, 0), "a");
        }
        assert_eq!(order(&mut queue, 4), ["a"; 4]);
        for _ in 0..4 {
            queue.push(asker("b", 1, 0), "b");
        }
        let order = order(&mut queue, 8);
        assert!(order[..4].iter().filter(|name| **name == "b").count() <= 2, "{order:?}");
        assert!(queue.next().is_none());
    }

    #[test]
    fn a_request_that_was_given_up_is_not_a_turn() {
        let mut queue = Queue::default();
        for name in ["gone", "a", "b", "c"] {
            queue.push(asker("judge", 0, 0), name);
        }
        assert_eq!(queue.pop(|name| *name != "gone"), Some("gone"));
        assert_eq!(queue.turns, 0);
    }

    #[test]
    fn counts_of_old_groups_are_forgotten() {
        let mut queue = Queue::default();
        for group in 0..2000 {
            queue.push(asker("judge", group, 0), "x");
            queue.pop(|_| true);
        }
        assert!(queue.plugins["judge"].groups.len() <= IDLE_GROUPS + 1);
    }
}
