//! The use of the limits at a point of time. Times are seconds since an instant that is the same for all processes that
//! share the limits.

use super::bucket::Bucket;
use super::table::LimiterTable;
use crate::reported::{Quota, Reported};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::num::NonZeroU64;

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
    pub(crate) fn new(table: &LimiterTable, now: f64) -> Self {
        let mut state = Self::default();
        state.configure(table, now);
        state
    }

    /// Sets the limits, and keeps their use.
    pub(crate) fn configure(&mut self, table: &LimiterTable, now: f64) {
        let tokens = table.tokens_per_minute.map(NonZeroU64::get);
        let keep = |old: &Option<Bucket>, new: Option<Bucket>| match (old, new) {
            (Some(old), Some(new)) => Some(old.with_limit_of(&new)),
            (_, new) => new,
        };
        // A rate below 1 is one request in a longer window.
        let requests = table.requests_per_second.map(|rate| Bucket::new(rate.max(1.0), (1.0 / rate).max(1.0), now));
        self.requests = keep(&self.requests, requests);
        self.tokens = keep(&self.tokens, tokens.map(|tokens| Bucket::new(tokens as f64, 60.0, now)));
        self.concurrency = table.concurrency.map(|concurrency| concurrency.get());
    }

    /// Takes the next place for a request of process `id` that costs `tokens`.
    pub(crate) fn book(&mut self, id: u32, tokens: f64, now: f64) -> Booked {
        let in_flight = self.in_flight.values().map(|each| each.requests).sum::<usize>();
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
        (mine.requests, mine.tokens) = (mine.requests + 1, mine.tokens + tokens);
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
            self.paused_until = self.paused_until.max(now + pause.as_secs_f64());
        }
        // The server may not have counted the other requests under way.
        let others = self
            .in_flight
            .values()
            .fold((0.0, 0.0), |(requests, tokens), each| (requests + each.requests as f64, tokens + each.tokens));
        let allow = |Quota { left, more_in }: Quota, used: f64| Allowance {
            left: left - used,
            until: now + more_in.as_secs_f64(),
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
        State::new(&toml::from_str(table).unwrap(), 0.0)
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
}
