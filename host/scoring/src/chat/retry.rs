//! Decides whether another attempt may help, and when.

use reqwest::StatusCode;
use reqwest::header::{HeaderMap, RETRY_AFTER};
use std::time::{Duration, SystemTime};

/// The first pause; each later one is twice as long.
pub(super) const FIRST_PAUSE: Duration = Duration::from_millis(500);
/// The longest pause, unless the server asks for a longer one.
pub(super) const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// Whether the same request may succeed later.
pub fn may_help(status: StatusCode) -> bool {
    // Gateways answer 409 and 425 while a model is loading.
    status.is_server_error() || matches!(status.as_u16(), 408 | 409 | 425 | 429)
}

/// The wait that the server asks for in `Retry-After`: seconds or a date.
pub fn retry_after(headers: &HeaderMap, now: SystemTime) -> Option<Duration> {
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    match text.parse::<f64>() {
        Ok(seconds) => Duration::try_from_secs_f64(seconds).ok(),
        Err(_) => Some(httpdate::parse_http_date(text).ok()?.duration_since(now).unwrap_or_default()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_says_when_in_seconds_or_as_a_date() {
        let now = httpdate::parse_http_date("Sun, 06 Nov 1994 08:49:37 GMT").unwrap();
        let after = |text: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(RETRY_AFTER, text.parse().unwrap());
            retry_after(&headers, now)
        };
        assert_eq!(after("2"), Some(Duration::from_secs(2)));
        assert_eq!(after("0.25"), Some(Duration::from_millis(250)));
        assert_eq!(after("Sun, 06 Nov 1994 08:50:07 GMT"), Some(Duration::from_secs(30)));
        assert_eq!(after("Sun, 06 Nov 1994 08:49:07 GMT"), Some(Duration::ZERO));
        assert_eq!((after("soon"), after("-1"), after("1e300")), (None, None, None));
        assert_eq!(retry_after(&HeaderMap::new(), now), None);
    }

    #[test]
    fn a_wrong_request_stays_wrong() {
        let help = |status: u16| may_help(StatusCode::from_u16(status).unwrap());
        assert!([408, 409, 425, 429, 500, 502, 503, 504, 529].into_iter().all(help));
        assert!(![400, 401, 403, 404, 422].into_iter().any(help));
    }
}
