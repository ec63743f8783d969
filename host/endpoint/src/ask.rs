//! Asks the servers of an endpoint, until one of them answers.

use crate::retry::{Attempts, NoAttempt};
use crate::servers::{Down, Servers};
use std::fmt::Display;
use std::time::{Duration, Instant};
use tokio::time::timeout;

/// A request that any server of an endpoint may answer.
pub trait Request: Sync {
    /// What the servers answer.
    type Answer: Send;
    /// Why they do not.
    type Error: Display + Send + Sync;
    /// What an attempt holds while it is under way, such as a turn of a limiter.
    type Turn: Send;

    /// Waits for the turn of an attempt. The time does not count.
    fn turn(&self) -> impl Future<Output = Self::Turn> + Send;

    /// Asks the server at `url` once.
    fn attempt(
        &self,
        url: &str,
        turn: &mut Self::Turn,
    ) -> impl Future<Output = Result<Self::Answer, Failed<Self::Error>>> + Send;

    /// Waits until a server of an endpoint that is down may be asked again. The time does not count.
    fn until_up(&self, servers: &Servers) -> impl Future<Output = Result<bool, Down>> + Send;

    /// The error while the endpoint is down.
    fn down(&self, down: &Down) -> Self::Error;

    /// The error once the time of all attempts is over, the last of which asked `url`.
    fn too_late(&self, url: &str) -> Self::Error;
}

/// A failed attempt.
#[derive(Debug)]
pub struct Failed<E> {
    /// Why it failed.
    pub error: E,
    /// The shortest pause before another attempt; `None` if another attempt cannot help.
    pub again: Option<Duration>,
    /// Whether the server failed, and not the request.
    pub is_of_server: bool,
    /// Whether the server itself answered that it failed, perhaps for this request alone.
    pub is_answer: bool,
    /// Whether the server does not take the request as it is, perhaps for one of its fields.
    pub is_bad_request: bool,
}

/// A failure of the request, for which another attempt cannot help.
impl<E> From<E> for Failed<E> {
    fn from(error: E) -> Self {
        Self { error, again: None, is_of_server: false, is_answer: false, is_bad_request: false }
    }
}

/// Sends `request` to the servers at `urls`, one after another, until one answers: at most `retries` times after the
/// first, within `deadline`. Waits for turns, and for servers of an endpoint that is down, do not count.
///
/// # Errors
/// The last attempt failed, another one cannot help, or the endpoint is down and requests do not wait.
pub async fn ask<R: Request>(
    servers: &Servers,
    urls: &[String],
    retries: usize,
    deadline: Duration,
    request: &R,
) -> Result<R::Answer, Failed<R::Error>> {
    let all = || Attempts::new(retries, deadline);
    let mut attempts = all();
    let mut failed_answers = 0;
    loop {
        if request.until_up(servers).await.map_err(|down| request.down(&down))? {
            attempts = all();
        }
        let mut turn = request.turn().await;
        // The endpoint may have gone down meanwhile.
        let Ok(server) = servers.choose() else { continue };
        let (start, url) = (Instant::now(), &urls[server.number]);
        let answer = timeout(attempts.left(), request.attempt(url, &mut turn)).await;
        drop(turn);
        let too_late = || Failed::from(request.too_late(url));
        let answer = answer.unwrap_or_else(|_| Err(Failed { is_of_server: true, ..too_late() }));
        match &answer {
            Err(Failed { error, is_of_server: true, .. }) => server.failed(error),
            _ => server.answered(),
        }
        let failed = match answer {
            Ok(answer) => return Ok(answer),
            Err(failed) => failed,
        };
        failed_answers += usize::from(failed.is_answer);
        if failed.is_of_server && servers.hold_requests() {
            // A request that a server fails at whenever it answers must not hold the others forever.
            if failed_answers > retries {
                return Err(failed);
            }
            continue;
        }
        match attempts.pause(&failed.error, failed.again, start.elapsed()).await {
            Ok(()) => {}
            Err(NoAttempt::Last) => return Err(failed),
            Err(NoAttempt::TooLate) => return Err(too_late()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::on_endpoint_down::OnEndpointDown;
    use std::sync::atomic::{AtomicUsize, Ordering};

    /// A request that a server fails at whenever it is asked.
    #[derive(Default)]
    struct Poison {
        asked: AtomicUsize,
    }

    impl Request for Poison {
        type Answer = ();
        type Error = &'static str;
        type Turn = ();

        async fn turn(&self) {}

        async fn attempt(&self, _: &str, (): &mut ()) -> Result<(), Failed<&'static str>> {
            self.asked.fetch_add(1, Ordering::Relaxed);
            Err(Failed { again: Some(Duration::ZERO), is_of_server: true, is_answer: true, ..Failed::from("500") })
        }

        async fn until_up(&self, servers: &Servers) -> Result<bool, Down> {
            servers.trial_now();
            servers.until_up().await
        }

        fn down(&self, _: &Down) -> &'static str {
            "down"
        }

        fn too_late(&self, _: &str) -> &'static str {
            "too late"
        }
    }

    #[tokio::test]
    async fn a_request_that_a_server_always_fails_at_does_not_wait_forever() {
        let (servers, poison) = (Servers::down_before(OnEndpointDown::Pause), Poison::default());
        let failed = ask(&servers, &[String::new()], 2, Duration::from_secs(60), &poison).await.unwrap_err();
        assert_eq!((failed.error, poison.asked.into_inner()), ("500", 3));
    }
}
