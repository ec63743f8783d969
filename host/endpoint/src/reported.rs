//! The limits that a server reports, in the headers of an answer.

use http::HeaderMap;
use http::header::RETRY_AFTER;
use serde::{Deserialize, Serialize};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The limits that a server reports.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Reported {
    /// The wait that it asks for in `Retry-After`.
    pub(crate) retry_after: Option<Duration>,
    /// The rest of its limit of requests.
    pub(crate) requests: Option<Quota>,
    /// The rest of its limit of tokens.
    pub(crate) tokens: Option<Quota>,
}

/// The rest of a server's limit.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) struct Quota {
    /// The rest.
    pub(crate) left: f64,
    /// The time until there is more.
    pub(crate) more_in: Duration,
}

impl Reported {
    /// The wait that it asks for in `Retry-After`.
    pub fn retry_after(&self) -> Option<Duration> {
        self.retry_after
    }

    /// The same report, with no wait longer than `most`.
    pub fn at_most(self, most: Duration) -> Self {
        let quota = |quota: Quota| Quota { more_in: quota.more_in.min(most), ..quota };
        Self {
            retry_after: self.retry_after.map(|wait| wait.min(most)),
            requests: self.requests.map(quota),
            tokens: self.tokens.map(quota),
        }
    }

    /// Reads `Retry-After` and the headers `x-ratelimit-*`, as OpenAI, vLLM's gateways and most hosted servers send
    /// them.
    pub fn read(headers: &HeaderMap, now: SystemTime) -> Self {
        let of = |what| quota(headers, what, now);
        Self { retry_after: retry_after(headers, now), requests: of("-requests").or(of("")), tokens: of("-tokens") }
    }
}

/// The wait that a server asks for in `Retry-After`: seconds or a date.
pub fn retry_after(headers: &HeaderMap, now: SystemTime) -> Option<Duration> {
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    match text.parse::<f64>() {
        Ok(seconds) => Duration::try_from_secs_f64(seconds).ok(),
        Err(_) => Some(httpdate::parse_http_date(text).ok()?.duration_since(now).unwrap_or_default()),
    }
}

fn quota(headers: &HeaderMap, what: &str, now: SystemTime) -> Option<Quota> {
    let text = |name: &str| headers.get(format!("x-ratelimit-{name}{what}"))?.to_str().ok().map(str::trim);
    let number = |name: &str| text(name)?.parse::<f64>().ok().filter(|number| number.is_finite());
    let (left, reset) = (number("remaining")?, until(text("reset")?, now)?);
    // `-requests` and `-tokens` come from servers that refill continuously; their reset is the time until nothing is
    // used. Other servers count in windows, which start again at the reset.
    let more_in = match number("limit").map(|limit| limit - left) {
        Some(used) if used >= 1.0 && !what.is_empty() => reset.div_f64(used),
        _ => reset,
    };
    Some(Quota { left, more_in })
}

/// The time until a reset: a duration such as `6m0s`, seconds, or seconds since 1970.
fn until(text: &str, now: SystemTime) -> Option<Duration> {
    /// The seconds of the year 2001: no wait is that long.
    const EPOCH: f64 = 1e9;
    match text.parse::<f64>() {
        Ok(seconds) if seconds >= EPOCH => {
            let reset = UNIX_EPOCH.checked_add(Duration::try_from_secs_f64(seconds).ok()?)?;
            Some(reset.duration_since(now).unwrap_or_default())
        }
        Ok(seconds) => Duration::try_from_secs_f64(seconds).ok(),
        // Go writes `8.64s`, which humantime does not read.
        Err(_) => go_duration(text),
    }
}

/// A duration as Go prints it: `1h2m3.5s`, `120ms`.
fn go_duration(text: &str) -> Option<Duration> {
    const UNITS: [(&str, f64); 6] = [("ms", 1e-3), ("us", 1e-6), ("ns", 1e-9), ("h", 3600.0), ("m", 60.0), ("s", 1.0)];
    let (mut rest, mut seconds) = (text, 0.0);
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let number: f64 = rest[..digits].parse().ok()?;
        let (unit, factor) = UNITS.into_iter().find(|(unit, _)| rest[digits..].starts_with(unit))?;
        seconds += number * factor;
        rest = &rest[digits + unit.len()..];
    }
    Duration::try_from_secs_f64(seconds).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(lines: &[(&'static str, &str)]) -> HeaderMap {
        lines.iter().map(|(name, value)| (http::HeaderName::from_static(name), value.parse().unwrap())).collect()
    }

    #[test]
    fn a_server_says_when_in_seconds_or_as_a_date() {
        let now = httpdate::parse_http_date("Sun, 06 Nov 1994 08:49:37 GMT").unwrap();
        let after = |text: &str| retry_after(&headers(&[("retry-after", text)]), now);
        assert_eq!(after("2"), Some(Duration::from_secs(2)));
        assert_eq!(after("0.25"), Some(Duration::from_millis(250)));
        assert_eq!(after("Sun, 06 Nov 1994 08:50:07 GMT"), Some(Duration::from_secs(30)));
        assert_eq!(after("Sun, 06 Nov 1994 08:49:07 GMT"), Some(Duration::ZERO));
        assert_eq!((after("soon"), after("-1"), after("1e300")), (None, None, None));
        assert_eq!(retry_after(&HeaderMap::new(), now), None);
    }

    #[test]
    fn limits_are_read_as_servers_write_them() {
        let now = UNIX_EPOCH + Duration::from_secs(2_000_000_000);
        let read = |lines: &[(&'static str, &str)]| Reported::read(&headers(lines), now);
        // A server that refills continuously: 60 of 500 are used, and one comes back each 0.2 s.
        let openai = read(&[
            ("x-ratelimit-limit-requests", "500"),
            ("x-ratelimit-remaining-requests", "440"),
            ("x-ratelimit-reset-requests", "12s"),
            ("x-ratelimit-remaining-tokens", "0"),
            ("x-ratelimit-reset-tokens", "1m0.5s"),
        ]);
        assert_eq!(openai.requests, Some(Quota { left: 440.0, more_in: Duration::from_millis(200) }));
        assert_eq!(openai.tokens, Some(Quota { left: 0.0, more_in: Duration::from_millis(60_500) }));
        // A server that counts in windows.
        for (reset, seconds) in [("7", 7), ("2000000030", 30), ("1999999999", 0)] {
            let window = read(&[("x-ratelimit-remaining", "0"), ("x-ratelimit-reset", reset)]);
            assert_eq!(window.requests, Some(Quota { left: 0.0, more_in: Duration::from_secs(seconds) }));
        }
        assert_eq!(read(&[("x-ratelimit-remaining", "many"), ("x-ratelimit-reset", "1")]), Reported::default());
        assert_eq!(go_duration("1h2m3.5s"), Some(Duration::from_millis(3_723_500)));
        assert_eq!((go_duration("120ms"), go_duration("soon")), (Some(Duration::from_millis(120)), None));
    }
}
