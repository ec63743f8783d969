//! The use of the limits at a point of time. Times are seconds since an instant that is the same for all processes that
//! share the limits.

use super::bucket::Bucket;
use super::table::LimiterTable;
use crate::reported::{Quota, Reported};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::num::NonZeroU64;

/// The longest pause that a server is granted, in seconds.
const LONGEST_PAUSE: f64 = 3600.0;
/// A clock that goes back by less than these seconds is adjusted as clocks are.
const ADJUSTED: f64 = 1.0;
/// The most tokens that requests under way can have: the highest limit.
const MOST_TOKENS: f64 = u64::MAX as f64;

/// What is wrong with a shared state.
const SET_BACK: &str = "the clock was set back since the last change; no wait is longer for it";
const OWED: [&str; 2] = [
    "`requests` has a level that no use leaves; it is ignored",
    "`tokens` has a level that no use leaves; it is ignored",
];
const AHEAD: [&str; 3] = [
    "`paused_until` is more than an hour ahead; it is ignored",
    "`reported_requests` ends more than an hour ahead; it is ignored",
    "`reported_tokens` ends more than an hour ahead; it is ignored",
];

/// The use of the limits. Processes that share them are told apart by their ids.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct State {
    requests: Option<Bucket>,
    tokens: Option<Bucket>,
    concurrency: Option<usize>,
    /// Unanswered requests of each process.
    pub(crate) in_flight: BTreeMap<u32, InFlight>,
    /// The rest of its limit that the server reported last.
    reported_requests: Option<Allowance>,
    reported_tokens: Option<Allowance>,
    /// When the server may be asked again, by its `Retry-After`.
    paused_until: f64,
    /// The time of the last change.
    #[serde(default)]
    pub(crate) at: f64,
}

/// The unanswered requests of a process.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct InFlight {
    requests: usize,
    tokens: f64,
}

/// The requests or tokens that may still be used until a point of time, by the server's report.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
struct Allowance {
    left: f64,
    until: f64,
}

/// When a request may be sent.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Booked {
    /// At this time; its place is taken.
    At(f64),
    /// Once another request has ended.
    Full,
}

impl State {
    /// Limits that nobody has used.
    pub(crate) fn new(table: &LimiterTable) -> Self {
        let tokens = table.tokens_per_minute.map(NonZeroU64::get);
        Self {
            // A rate below 1 is one request in a longer window.
            requests: table.requests_per_second.map(|rate| Bucket::new(rate.max(1.0), (1.0 / rate).max(1.0), 0.0)),
            tokens: tokens.map(|tokens| Bucket::new(tokens as f64, 60.0, 0.0)),
            concurrency: table.concurrency.map(|concurrency| concurrency.get()),
            ..Self::default()
        }
    }

    /// Takes over the use in `shared`, which process `id` found at the time `now`, and whose author is not known. The
    /// limits stay what this process was configured with. Returns what is wrong with it, in words.
    pub(crate) fn adopt(&mut self, mut shared: Self, id: u32, now: f64) -> Vec<&'static str> {
        let mut wrong = Vec::new();
        let back = shared.at - now;
        if back > 0.0 {
            shared.shift(-back);
        }
        if back > ADJUSTED {
            wrong.push(SET_BACK);
        }
        for (own, found, what) in
            [(&mut self.requests, &shared.requests, OWED[0]), (&mut self.tokens, &shared.tokens, OWED[1])]
        {
            if let (Some(own), Some(found)) = (own, found)
                && !own.adopt(found)
            {
                wrong.push(what);
            }
        }
        // A second more than the longest is an error of rounding.
        let is_possible = |until: f64| until - now <= LONGEST_PAUSE + 1.0;
        match is_possible(shared.paused_until) {
            true => self.paused_until = shared.paused_until,
            false => wrong.push(AHEAD[0]),
        }
        for (own, found, what) in [
            (&mut self.reported_requests, shared.reported_requests, AHEAD[1]),
            (&mut self.reported_tokens, shared.reported_tokens, AHEAD[2]),
        ] {
            match found.is_none_or(|found| is_possible(found.until)) {
                true => *own = found,
                false => wrong.push(what),
            }
        }
        self.adopt_in_flight(shared.in_flight, id);
        wrong
    }

    fn adopt_in_flight(&mut self, found: BTreeMap<u32, InFlight>, id: u32) {
        // This process knows its own requests, and an earlier one with its number has ended.
        let own = self.in_flight.get(&id).copied().unwrap_or_default();
        self.in_flight = found;
        self.in_flight.values_mut().for_each(|each| each.tokens = each.tokens.clamp(0.0, MOST_TOKENS));
        match self.in_flight.get_mut(&id) {
            Some(_) if own.requests == 0 => drop(self.in_flight.remove(&id)),
            Some(found) if found.requests > own.requests => *found = own,
            _ => {}
        }
    }

    /// The same use, at times that are `by` seconds later.
    fn shift(&mut self, by: f64) {
        self.requests.iter_mut().chain(&mut self.tokens).for_each(|bucket| bucket.shift(by));
        let reported = self.reported_requests.iter_mut().chain(&mut self.reported_tokens);
        // A sum may be less than any number, which no file can have.
        reported.for_each(|allowance| allowance.until = (allowance.until + by).max(0.0));
        self.paused_until = (self.paused_until + by).max(0.0);
    }

    /// Takes the next place for a request of process `id` that costs `tokens`.
    pub(crate) fn book(&mut self, id: u32, tokens: f64, now: f64) -> Booked {
        let in_flight = self.in_flight.values().fold(0, |sum: usize, each| sum.saturating_add(each.requests));
        if self.concurrency.is_some_and(|most| in_flight >= most) {
            return Booked::Full;
        }
        let mut wait = (self.paused_until - now).max(0.0);
        for (bucket, cost) in [(&mut self.requests, 1.0), (&mut self.tokens, tokens)] {
            wait = bucket.as_mut().map_or(wait, |bucket| bucket.ready_in(cost, now).max(wait));
        }
        for (allowance, cost) in [(&mut self.reported_requests, 1.0), (&mut self.reported_tokens, tokens)] {
            if let Some(Allowance { left, until }) = allowance.filter(|allowance| now + wait < allowance.until) {
                match left >= cost {
                    true => *allowance = Some(Allowance { left: left - cost, until }),
                    false => wait = until - now,
                }
            }
        }
        self.take(1.0, tokens);
        let mine = self.in_flight.entry(id).or_default();
        (mine.requests, mine.tokens) = (mine.requests.saturating_add(1), mine.tokens + tokens);
        Booked::At(now + wait)
    }

    /// The further wait of a booked request, if the server has asked for a pause since.
    pub(crate) fn paused_for(&self, now: f64) -> f64 {
        (self.paused_until - now).max(0.0)
    }

    /// Hands a booked place over to another request.
    pub(crate) fn exchange(&mut self, id: u32, booked: f64, tokens: f64) {
        self.take(0.0, tokens - booked);
        self.in_flight.entry(id).or_default().tokens += tokens - booked;
    }

    /// Gives back a place that nobody used.
    pub(crate) fn cancel(&mut self, id: u32, tokens: f64) {
        self.take(-1.0, -tokens);
        self.leave(id, tokens);
    }

    /// Notes the end of a request that was expected to cost `booked` tokens and did cost `spent`, and the server's
    /// report.
    pub(crate) fn end(&mut self, id: u32, booked: f64, spent: f64, reported: &Reported, now: f64) {
        self.take(0.0, spent - booked);
        self.leave(id, booked);
        if let Some(pause) = reported.retry_after {
            self.paused_until = self.paused_until.max(now + pause.as_secs_f64().min(LONGEST_PAUSE));
        }
        // The server may not have counted the other requests under way.
        let others = self
            .in_flight
            .values()
            .fold((0.0, 0.0), |(requests, tokens), each| (requests + each.requests as f64, tokens + each.tokens));
        let allow = |Quota { left, more_in }: Quota, used: f64| Allowance {
            left: left - used,
            until: now + more_in.as_secs_f64().min(LONGEST_PAUSE),
        };
        self.reported_requests = reported.requests.map(|quota| allow(quota, others.0)).or(self.reported_requests);
        self.reported_tokens = reported.tokens.map(|quota| allow(quota, others.1)).or(self.reported_tokens);
    }

    fn take(&mut self, requests: f64, tokens: f64) {
        self.requests.iter_mut().for_each(|bucket| bucket.take(requests));
        self.tokens.iter_mut().for_each(|bucket| bucket.take(tokens));
    }

    fn leave(&mut self, id: u32, tokens: f64) {
        if let Some(mine) = self.in_flight.get_mut(&id) {
            (mine.requests, mine.tokens) = (mine.requests.saturating_sub(1), mine.tokens - tokens);
            if mine.requests == 0 {
                self.in_flight.remove(&id);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn state(table: &str) -> State {
        State::new(&toml::from_str(table).unwrap())
    }

    fn at(booked: Booked) -> f64 {
        match booked {
            Booked::At(time) => time,
            Booked::Full => panic!("it is full"),
        }
    }

    #[test]
    fn the_strictest_limit_counts() {
        let mut state = state("requests_per_second = 10\ntokens_per_minute = 6000");
        let first = at(state.book(1, 1000.0, 0.0));
        // The requests alone would have let it pass after a tenth of a second, the tokens after 8 s.
        let second = at(state.book(1, 1000.0, 0.0));
        assert!(first == 0.0 && (8.0..11.0).contains(&second), "{second}");
        // The first one cost less than was expected.
        state.end(1, 1000.0, 100.0, &Reported::default(), 1.0);
        state.end(1, 1000.0, 100.0, &Reported::default(), 1.0);
        let third = at(state.book(1, 100.0, 1.0));
        assert!(third < 2.5, "{third}");
    }

    #[test]
    fn a_rate_below_one_is_a_request_now_and_then() {
        let mut state = state("requests_per_second = 0.1");
        let times: Vec<f64> = (0..3).map(|_| at(state.book(1, 0.0, 0.0))).collect();
        assert!(times[0] == 0.0 && times[1] >= 10.0 && times[2] >= 20.0 && times[2] < 21.1, "{times:?}");
    }

    #[test]
    fn requests_of_all_processes_are_under_way_together() {
        let mut state = state("concurrency = 2");
        assert_eq!((at(state.book(1, 0.0, 0.0)), at(state.book(2, 0.0, 0.0))), (0.0, 0.0));
        assert_eq!(state.book(1, 0.0, 0.0), Booked::Full);
        state.end(2, 0.0, 0.0, &Reported::default(), 0.0);
        assert_eq!(state.book(1, 0.0, 0.0), Booked::At(0.0));
        // A process that has ended has nothing under way.
        state.in_flight.remove(&1);
        assert_eq!(state.book(2, 0.0, 0.0), Booked::At(0.0));
    }

    #[test]
    fn the_server_s_own_limits_are_kept() {
        let mut state = state("");
        state.book(1, 0.0, 0.0);
        state.book(1, 0.0, 0.0);
        let quota = |left| Some(Quota { left, more_in: Duration::from_secs(5) });
        // Two are left, and one is under way.
        state.end(1, 0.0, 0.0, &Reported { requests: quota(2.0), ..Reported::default() }, 1.0);
        assert_eq!((at(state.book(1, 0.0, 1.0)), at(state.book(1, 0.0, 1.0))), (1.0, 6.0));
        // After the reset, the report is old.
        assert_eq!(at(state.book(1, 0.0, 6.5)), 6.5);
        let busy = Reported { retry_after: Some(Duration::from_secs(3)), ..Reported::default() };
        state.end(1, 0.0, 0.0, &busy, 7.0);
        assert_eq!((at(state.book(1, 0.0, 8.0)), state.paused_for(8.0), state.paused_for(11.0)), (10.0, 2.0, 0.0));
    }

    #[test]
    fn a_place_that_nobody_used_is_free_again() {
        let mut state = state("requests_per_second = 1\ntokens_per_minute = 60\nconcurrency = 1");
        let before = state.clone();
        state.book(1, 5.0, 0.0);
        state.exchange(1, 5.0, 2.0);
        state.cancel(1, 2.0);
        assert_eq!(state.in_flight, before.in_flight);
        assert_eq!(state.book(1, 5.0, 0.0), Booked::At(0.0));
    }

    /// What is left of `text` after a process with these limits has found it, whose earlier state is `own`.
    fn adopted(own: &State, text: &str, now: f64) -> (State, Vec<&'static str>) {
        let mut state = own.clone();
        let wrong = state.adopt(serde_json::from_str(text).unwrap(), 1, now);
        (state, wrong)
    }

    /// A state in a file.
    fn written(requests: &str, paused_until: f64, reported: &str, in_flight: &str, at: f64) -> String {
        format!(
            r#"{{"requests":{requests},"tokens":null,"concurrency":null,"in_flight":{in_flight},
            "reported_requests":{reported},"reported_tokens":null,"paused_until":{paused_until:?},"at":{at:?}}}"#
        )
    }

    #[test]
    fn values_that_no_process_writes_are_ignored() {
        let own = state("requests_per_second = 10\nconcurrency = 3");
        let now = 1.7e9;
        let bucket = |level: f64| format!(r#"{{"rate":1e-300,"capacity":-1e308,"level":{level:?},"at":1e308}}"#);
        let year_2030 = 1.893e9;
        for (text, what) in [
            (written("null", 1e308, "null", "{}", now), vec![AHEAD[0]]),
            (written("null", year_2030, "null", "{}", now), vec![AHEAD[0]]),
            (written("null", -1e308, "null", "{}", now), vec![]),
            (written("null", 0.0, r#"{"left":0.0,"until":1e308}"#, "{}", now), vec![AHEAD[1]]),
            (written("null", 0.0, r#"{"left":-1e308,"until":-1e308}"#, "{}", now), vec![]),
            (written(&bucket(-1e308), 0.0, "null", "{}", now), vec![OWED[0]]),
            (written(&bucket(1e308), 0.0, "null", "{}", now), vec![]),
            (written("null", 0.0, "null", r#"{"1":{"requests":18446744073709551615,"tokens":1e308}}"#, now), vec![]),
            (written("null", 1e308, "null", "{}", 1e308), vec![SET_BACK]),
            (written("null", -1e308, r#"{"left":0.0,"until":-1e308}"#, "{}", f64::MAX), vec![SET_BACK]),
        ] {
            let (mut state, wrong) = adopted(&own, &text, now);
            // What becomes of it can be read again.
            assert!(serde_json::from_value::<State>(serde_json::to_value(&state).unwrap()).is_ok(), "{text}");
            assert_eq!((wrong, at(state.book(1, 0.0, now))), (what, now), "{text}");
        }
        // Only its process knows how many requests are under way, and a sum has no end.
        let many = r#"{"2":{"requests":18446744073709551615,"tokens":1e308},"3":{"requests":5,"tokens":1e308}}"#;
        let (mut state, _) = adopted(&own, &written("null", 0.0, "null", many, now), now);
        assert_eq!(state.book(1, 0.0, now), Booked::Full);
        let reported = Reported {
            requests: Some(Quota { left: 1.0, more_in: Duration::MAX }),
            retry_after: Some(Duration::MAX),
            ..Reported::default()
        };
        state.end(1, 0.0, 0.0, &reported, now);
        assert_eq!(state.paused_for(now), LONGEST_PAUSE);
    }

    #[test]
    fn what_another_process_writes_is_adopted() {
        let table = "requests_per_second = 10\ntokens_per_minute = 6000\nconcurrency = 9";
        let (mut own, mut other) = (state(table), state(table));
        own.book(1, 7.0, 100.0);
        other.in_flight = own.in_flight.clone();
        let busy = Reported {
            retry_after: Some(Duration::from_secs(9000)),
            tokens: Some(Quota { left: 5.0, more_in: Duration::from_secs(9000) }),
            ..Reported::default()
        };
        other.book(2, 100.0, 100.0);
        other.book(2, 100.0, 100.0);
        other.end(2, 100.0, 1e9, &busy, 100.0);
        other.at = 100.0;
        let (mut found, wrong) = adopted(&own, &serde_json::to_string(&other).unwrap(), 100.0);
        assert_eq!(wrong, Vec::<&str>::new());
        found.at = other.at;
        assert_eq!(found, other);
    }

    #[test]
    fn a_clock_that_is_set_back_makes_no_wait_longer() {
        let mut earlier = state("requests_per_second = 1");
        let _ = [(); 5].map(|()| earlier.book(2, 0.0, 10_000.0));
        let busy = Reported { retry_after: Some(Duration::from_secs(60)), ..Reported::default() };
        earlier.end(2, 0.0, 0.0, &busy, 10_000.0);
        earlier.at = 10_000.0;
        let text = serde_json::to_string(&earlier).unwrap();
        let own = state("requests_per_second = 1");
        // In the same second, later, and two hours earlier.
        for (now, waits, what) in [(9_999.5, 60.0, vec![]), (10_020.0, 40.0, vec![]), (2_800.0, 60.0, vec![SET_BACK])] {
            let (mut state, wrong) = adopted(&own, &text, now);
            assert_eq!((state.paused_for(now), wrong), (waits, what));
            assert_eq!(at(state.book(1, 0.0, now)), now + waits);
        }
    }
}
