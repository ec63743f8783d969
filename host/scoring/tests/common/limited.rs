//! A server of completions that counts its requests and refuses those above its limit.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use serde_json::json;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tokio::runtime::Runtime;
use tokio::time::sleep;

/// A server that lets through `rate` requests a second and refuses the others with 429.
#[derive(Clone)]
pub struct LimitedServer {
    rate: f64,
    /// Of this many requests, one fails with 500.
    fails_every: usize,
    delay: Duration,
    is_down: Arc<AtomicBool>,
    seen: Arc<Mutex<Seen>>,
}

#[derive(Default)]
struct Seen {
    arrivals: Vec<Instant>,
    refused: usize,
    failed: usize,
    /// The requests that may come at once, and when they were counted.
    bucket: Option<(f64, Instant)>,
}

/// What a server has counted.
#[derive(Debug, Clone, PartialEq)]
pub struct Counts {
    /// All requests.
    pub requests: usize,
    /// Requests above the limit.
    pub refused: usize,
    /// Requests that failed by chance.
    pub failed: usize,
    /// The most requests in any second.
    pub most_in_a_second: usize,
    /// Requests a second, from the first to the last.
    pub rate: f64,
}

/// The tolerance of the server: requests of a fifth of a second may arrive together.
const BURST_SECONDS: f64 = 0.2;

impl LimitedServer {
    pub fn new(rate: f64, fails_every: usize, delay: Duration) -> Self {
        Self { rate, fails_every, delay, is_down: Arc::default(), seen: Arc::default() }
    }

    pub fn start(&self, runtime: &Runtime) -> SocketAddr {
        crate::common::serve(runtime, post(answer).with_state(self.clone()))
    }

    /// Lets it fail for every request, or work again.
    pub fn set_down(&self, is_down: bool) {
        self.is_down.store(is_down, Ordering::Relaxed);
    }

    pub fn counts(&self) -> Counts {
        let seen = self.seen.lock().unwrap();
        let arrivals = &seen.arrivals;
        assert!(!arrivals.is_empty(), "it was never asked");
        let within = |first: usize| {
            let end = arrivals[first] + Duration::from_secs(1);
            arrivals[first..].iter().take_while(|arrival| **arrival < end).count()
        };
        let span = arrivals[arrivals.len() - 1].duration_since(arrivals[0]).as_secs_f64();
        Counts {
            requests: arrivals.len(),
            refused: seen.refused,
            failed: seen.failed,
            most_in_a_second: (0..arrivals.len()).map(within).max().unwrap(),
            rate: (arrivals.len() - 1) as f64 / span,
        }
    }

    /// Counts a request, and decides on it.
    fn admit(&self) -> Result<(), StatusCode> {
        let now = Instant::now();
        let mut seen = self.seen.lock().unwrap();
        seen.arrivals.push(now);
        if self.is_down.load(Ordering::Relaxed) {
            return Err(StatusCode::SERVICE_UNAVAILABLE);
        }
        let most = (self.rate * BURST_SECONDS).max(1.0);
        let (level, since) = seen.bucket.unwrap_or((most, now));
        let level = (level + (now - since).as_secs_f64() * self.rate).min(most);
        if level < 1.0 {
            seen.bucket = Some((level, now));
            seen.refused += 1;
            return Err(StatusCode::TOO_MANY_REQUESTS);
        }
        seen.bucket = Some((level - 1.0, now));
        if seen.arrivals.len().is_multiple_of(self.fails_every) {
            seen.failed += 1;
            return Err(StatusCode::INTERNAL_SERVER_ERROR);
        }
        Ok(())
    }
}

async fn answer(State(server): State<LimitedServer>) -> Response {
    let admitted = server.admit();
    sleep(server.delay).await;
    match admitted {
        Ok(()) => {
            json!({"choices": [{"message": {"content": "1"}}], "usage": {"prompt_tokens": 40, "completion_tokens": 1}})
                .to_string()
                .into_response()
        }
        Err(status) => status.into_response(),
    }
}
