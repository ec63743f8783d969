//! Decides whether another attempt may help, and when.

use backon::{BackoffBuilder, ExponentialBackoff, ExponentialBuilder};
use reqwest::StatusCode;
use std::time::Duration;

/// The first pause; each later one is twice as long.
const FIRST_PAUSE: Duration = Duration::from_millis(500);
/// The longest pause, unless the server asks for a longer one.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// The pauses before `retries` further attempts.
pub fn pauses(retries: usize) -> ExponentialBackoff {
    ExponentialBuilder::default()
        .with_min_delay(FIRST_PAUSE)
        .with_max_delay(LONGEST_PAUSE)
        .with_max_times(retries)
        .with_jitter()
        .build()
}

/// Whether the same request may succeed later.
pub fn may_help(status: StatusCode) -> bool {
    // Gateways answer 409 and 425 while a model is loading.
    status.is_server_error() || matches!(status.as_u16(), 408 | 409 | 425 | 429)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_request_stays_wrong() {
        let help = |status: u16| may_help(StatusCode::from_u16(status).unwrap());
        assert!([408, 409, 425, 429, 500, 502, 503, 504, 529].into_iter().all(help));
        assert!(![400, 401, 403, 404, 422].into_iter().any(help));
    }
}
