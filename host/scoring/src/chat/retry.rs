//! Decides whether another attempt may help, and when.

use reqwest::StatusCode;
use std::time::Duration;

/// The first pause; each later one is twice as long.
pub(super) const FIRST_PAUSE: Duration = Duration::from_millis(500);
/// The longest pause, unless the server asks for a longer one.
pub(super) const LONGEST_PAUSE: Duration = Duration::from_secs(30);

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
