//! Decides whether another attempt may help, and when.

use backon::{BackoffBuilder, ExponentialBackoff, ExponentialBuilder};
use reqwest::StatusCode;
use std::fmt::Display;
use std::time::Duration;
use tokio::time::sleep;

/// The first pause; each later one is twice as long.
const FIRST_PAUSE: Duration = Duration::from_millis(500);
/// The longest pause, unless the server asks for a longer one.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// The further attempts of a request: their pauses, and the time for all attempts together.
pub(crate) struct Attempts {
    pauses: ExponentialBackoff,
    left: Duration,
}

/// Why there is no further attempt.
pub(crate) enum NoAttempt {
    /// There were as many as there may be, or another one cannot help.
    Last,
    /// The time is over.
    TooLate,
}

impl Attempts {
    /// `retries` further attempts, within `deadline`.
    pub(crate) fn new(retries: usize, deadline: Duration) -> Self {
        let pauses = ExponentialBuilder::default()
            .with_min_delay(FIRST_PAUSE)
            .with_max_delay(LONGEST_PAUSE)
            .with_max_times(retries)
            .with_jitter();
        Self { pauses: pauses.build(), left: deadline }
    }

    /// The time that is left.
    pub(crate) fn left(&self) -> Duration {
        self.left
    }

    /// Pauses before the next attempt, for at least `again`, after one that took `taken` and failed with `error`.
    ///
    /// # Errors
    /// There is no further attempt. `again` is `None` where it cannot help.
    pub(crate) async fn pause(
        &mut self,
        error: &(dyn Display + Sync),
        again: Option<Duration>,
        taken: Duration,
    ) -> Result<(), NoAttempt> {
        let (Some(again), Some(pause)) = (again, self.pauses.next()) else { return Err(NoAttempt::Last) };
        let pause = pause.max(again);
        self.left = self.left.saturating_sub(taken);
        if pause >= self.left {
            sleep(self.left).await;
            return Err(NoAttempt::TooLate);
        }
        tracing::debug!("{error}; again in {:.1} s", pause.as_secs_f64());
        sleep(pause).await;
        self.left -= pause;
        Ok(())
    }
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
