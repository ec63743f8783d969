//! The ledger: every second in which the device had nothing to do is charged to what it waited for.

use crate::run::LongWait;
use gavel_agent::{PolicyWait, WaitsFor};
use gavel_data::LastCall;
use gavel_runs::Metrics;
use std::collections::BTreeMap;
use std::time::Instant;

/// How many of the longest waits are kept.
const WORST: usize = 5;

/// What ended a wait: the judge of a sample that answered last.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Cause {
    /// What the sample waited for, such as `reward/math`, with the share of the time.
    pub(crate) waits: Vec<(String, f64)>,
    /// The sample's id.
    pub(crate) sample: String,
}

impl Cause {
    /// The cause, from the last call of a sample. The time in which the plugin waited for a language model is charged
    /// to the endpoint.
    pub(crate) fn new(last: &LastCall, sample: String) -> Self {
        let endpoints = last.endpoints.iter().map(|(name, share)| {
            // `reward_model/NAME` and `limiter/NAME` already have a prefix.
            let name = if name.contains('/') { name.clone() } else { format!("chat/{name}") };
            (name, *share)
        });
        let own = 1.0 - last.endpoints.values().fold(0.0, |sum, share| sum + share);
        let plugin = (format!("reward/{}", last.plugin), own.max(0.0));
        Self { waits: std::iter::once(plugin).chain(endpoints).collect(), sample }
    }

    /// The cause of a wait for an episode that did something other than ask the policy. Calls of one turn share the
    /// time.
    pub(crate) fn of_episode(PolicyWait { what, episode, .. }: PolicyWait) -> Self {
        let names = match what {
            WaitsFor::Policy => Vec::new(),
            WaitsFor::Memory => vec!["memory".to_owned()],
            WaitsFor::Place | WaitsFor::Agent => vec!["agent".to_owned()],
            // Calls that could not be read are answered at once.
            WaitsFor::Tools(names) if names.is_empty() => vec!["tool/unknown".to_owned()],
            WaitsFor::Tools(names) => names.iter().map(|name| format!("tool/{name}")).collect(),
        };
        let share = 1.0 / names.len().max(1) as f64;
        Self { waits: names.into_iter().map(|name| (name, share)).collect(), sample: episode }
    }

    /// What the sample waited for longest.
    fn longest(&self) -> &str {
        self.waits.iter().max_by(|a, b| a.1.total_cmp(&b.1)).map_or("", |(name, _)| name)
    }
}

/// What the device waited for.
pub(crate) struct Ledger {
    /// Seconds since the last step ended, by name.
    step: BTreeMap<String, f64>,
    step_began: Instant,
    /// Seconds of a wait that has not ended yet.
    open: f64,
    last: Option<Cause>,
    worst: Vec<LongWait>,
}

impl Ledger {
    pub(crate) fn new() -> Self {
        Self { step: BTreeMap::new(), step_began: Instant::now(), open: 0.0, last: None, worst: Vec::new() }
    }

    /// Adds seconds in which the device had nothing to do; `cause` is what happened at their end.
    pub(crate) fn wait(&mut self, seconds: f64, cause: Option<Cause>) {
        self.open += seconds;
        self.last = cause.or(self.last.take());
    }

    /// Ends a wait, because the device continues: charges it to the last cause.
    pub(crate) fn end_wait(&mut self) {
        let seconds = std::mem::take(&mut self.open);
        let Some(cause) = self.last.take().filter(|_| seconds > 0.0) else { return };
        for (name, share) in cause.waits.iter().filter(|(_, share)| *share > 0.0) {
            *self.step.entry(name.clone()).or_default() += share * seconds;
        }
        self.worst.push(LongWait { seconds, name: cause.longest().to_owned(), sample: cause.sample });
        self.worst.sort_by(|a, b| b.seconds.total_cmp(&a.seconds));
        self.worst.truncate(WORST);
    }

    /// Charges seconds to something other than a sample.
    pub(crate) fn charge(&mut self, name: &str, seconds: f64) {
        *self.step.entry(name.to_owned()).or_default() += seconds;
    }

    /// Sets the metrics of the seconds since the last step ended, and gives these seconds by name.
    pub(crate) fn end_step(&mut self, metrics: &mut Metrics) -> BTreeMap<String, f64> {
        let waits = std::mem::take(&mut self.step);
        let total = waits.values().fold(0.0, |sum, seconds| sum + seconds);
        for (name, seconds) in &waits {
            metrics.set(format!("device_wait/{name}"), *seconds);
        }
        metrics.set("device_wait/total", total);
        let elapsed = std::mem::replace(&mut self.step_began, Instant::now()).elapsed().as_secs_f64();
        metrics.set("perf/device_idle", total / elapsed.max(f64::MIN_POSITIVE));
        waits
    }

    /// The longest waits of the run, the longest first.
    pub(crate) fn worst(&self) -> &[LongWait] {
        &self.worst
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cause(name: &str, sample: &str) -> Option<Cause> {
        Some(Cause { waits: vec![(name.to_owned(), 1.0)], sample: sample.to_owned() })
    }

    #[test]
    fn a_wait_is_charged_to_what_ended_it() {
        let mut ledger = Ledger::new();
        ledger.wait(2.0, cause("reward/a", "1.0.0"));
        ledger.wait(1.0, cause("reward/b", "1.0.1"));
        ledger.end_wait();
        // There was no wait since then.
        ledger.end_wait();
        ledger.wait(0.5, cause("reward/a", "1.1.0"));
        ledger.end_wait();
        ledger.charge("saving", 4.0);
        let mut metrics = Metrics::default();
        let waits = ledger.end_step(&mut metrics);
        let expected = [("reward/a", 0.5), ("reward/b", 3.0), ("saving", 4.0)];
        assert_eq!(waits, expected.map(|(name, seconds)| (name.to_owned(), seconds)).into());
        assert_eq!(metrics.get("device_wait/total"), Some(7.5));
        assert_eq!(metrics.get("device_wait/reward/b"), Some(3.0));
        assert_eq!(ledger.worst()[0], LongWait { seconds: 3.0, name: "reward/b".into(), sample: "1.0.1".into() });
        assert!(ledger.end_step(&mut metrics).is_empty());
    }

    #[test]
    fn the_tools_of_a_turn_share_its_wait() {
        let of = |what| Cause::of_episode(PolicyWait { seconds: 1.0, what, episode: "1.0.0".into() });
        let tools = of(WaitsFor::Tools(vec!["add".into(), "add".into(), "find".into(), "find".into()]));
        let mut ledger = Ledger::new();
        ledger.wait(4.0, Some(tools));
        ledger.end_wait();
        ledger.wait(1.0, Some(of(WaitsFor::Agent)));
        ledger.end_wait();
        let waits = ledger.end_step(&mut Metrics::default());
        let expected = [("agent", 1.0), ("tool/add", 2.0), ("tool/find", 2.0)];
        assert_eq!(waits, expected.map(|(name, seconds)| (name.to_owned(), seconds)).into());
    }

    #[test]
    fn a_plugin_s_wait_for_a_language_model_is_the_endpoint_s() {
        let last = LastCall { plugin: "quality".into(), endpoints: [("a".into(), 0.75), ("b".into(), 0.0)].into() };
        let mut ledger = Ledger::new();
        ledger.wait(4.0, Some(Cause::new(&last, "1.0.0".into())));
        ledger.end_wait();
        let expected = [("chat/a", 3.0), ("reward/quality", 1.0)];
        let waits = ledger.end_step(&mut Metrics::default());
        assert_eq!(waits, expected.map(|(name, seconds)| (name.to_owned(), seconds)).into());
        assert_eq!(ledger.worst()[0].name, "chat/a");
    }
}
