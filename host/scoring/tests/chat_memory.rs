//! The memory that requests and answers cost the host, against a real HTTP server. This test is alone in its process,
//! since it measures the memory of the process.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use axum::body::Body;
use axum::extract::Request;
use axum::http::HeaderMap;
use axum::response::IntoResponse;
use axum::routing::post;
use common::{asking, endpoint, run, sample, serve};
use futures::StreamExt;
use gavel_data::{Budget, ContentPart, Media, Outcome, SampleOutcome};
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::runtime::Runtime;

const MIB: u64 = 1 << 20;

/// Counts the bytes of a request, part by part, and answers 1 with `more` bytes.
async fn answer(request: Request, sent: Arc<AtomicU64>, more: usize) -> impl IntoResponse {
    let told: u64 = length(request.headers());
    let mut body = request.into_body().into_data_stream();
    let mut size = 0;
    while let Some(Ok(part)) = body.next().await {
        size += part.len() as u64;
    }
    assert_eq!(size, told);
    sent.fetch_add(size, Ordering::SeqCst);
    let head = json!({"choices": [{"message": {"role": "assistant", "content": "1"}}]}).to_string();
    // Space that is sent in parts, so that this side holds none of it either.
    let parts = std::iter::once(head.into_bytes()).chain((0..more >> 16).map(|_| vec![b' '; 1 << 16]));
    Body::from_stream(futures::stream::iter(parts.map(Ok::<_, std::convert::Infallible>)))
}

fn length(headers: &HeaderMap) -> u64 {
    headers["content-length"].to_str().unwrap().parse().unwrap()
}

/// Asks `questions` about an image of this size; returns the outcome, the bytes sent, and the growth of the process.
fn ask(questions: usize, image: usize, answer_bytes: usize) -> (SampleOutcome, u64, u64) {
    let (runtime, sent) = (Runtime::new().unwrap(), Arc::new(AtomicU64::new(0)));
    let counted = sent.clone();
    let address = serve(&runtime, post(move |request| answer(request, counted.clone(), answer_bytes)));
    let mut asks = asking("asks", "guests/asks.wasm", json!({"questions": questions}));
    asks.spec.limits.cpu = Duration::from_secs(30);
    let scorer = run(vec![asks], endpoint(address, json!({}))).unwrap();
    let bytes: Vec<u8> = (0..image).map(|index| (index % 251) as u8).collect();
    let image = Value::from(ContentPart::Media(Media { media_type: "image/png".into(), bytes: bytes.into() }));
    let sample = sample(json!({"prompt": [{"role": "user", "content": ["look", image]}]}), 0, "42");
    // Resets the peak of memory.
    std::fs::write("/proc/self/clear_refs", "5").unwrap();
    let before = resident("VmRSS");
    let outcome = scorer.wait(scorer.start_alone(sample, 1));
    (outcome, sent.load(Ordering::SeqCst), resident("VmHWM").saturating_sub(before))
}

/// Bytes of memory of this process.
fn resident(field: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with(field)).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() << 10
}

#[test]
fn memory_of_requests_and_answers_is_shared_or_charged() {
    // If they were copied and encoded before their turn, these would take 16 MiB each.
    let (found, sent, grown) = ask(100, 4 << 20, 0);
    assert_eq!(found.reward, Some(100.0), "{found:?}");
    assert!(sent > 100 * 5 * MIB && grown < 64 * MIB, "{sent} bytes sent, {grown} bytes more");

    // The parsed answer has no spaces, but the call is charged for all bytes of the answer.
    let (found, _, grown) = ask(64, 0, 15 << 20);
    let outcome = &found.plugins["asks"].outcome;
    assert!(matches!(outcome, Outcome::OutOfBudget { which: Budget::Memory, .. }), "{found:?}");
    assert!(grown < 640 * MIB, "{grown} bytes more");
}
