//! 2,000 samples against an endpoint that lets through 50 requests a second and fails for one in 20, and their replay
//! without a server: `cargo bench -p gavel-scoring --bench limited_endpoint`.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout)]

#[allow(dead_code, reason = "it has more than this needs")]
#[path = "../tests/common/mod.rs"]
mod common;
#[allow(dead_code, reason = "it has more than this needs")]
#[path = "../tests/common/limited.rs"]
mod limited;

use common::{asking, endpoint, sample};
use gavel_data::SampleOutcome;
use gavel_plugin::{SandboxConfig, Tape};
use gavel_scoring::{InFlight, PendingGroup, Scorer, ScorerConfig};
use limited::LimitedServer;
use serde_json::json;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::path::Path;
use std::time::{Duration, Instant};
use tokio::runtime::Runtime;

const SAMPLES: usize = 2000;
const GROUP: usize = 8;
const RATE: f64 = 50.0;

fn scorer(address: SocketAddr, tape: Tape) -> Scorer {
    let limited = endpoint(address, json!({"requests_per_second": RATE, "concurrency": 64}));
    let config = ScorerConfig {
        chat: BTreeMap::from([("judge".to_owned(), limited)]),
        ..SandboxConfig::with_threads(NonZeroUsize::new(2).unwrap()).into()
    };
    Scorer::with_tape(vec![asking("judge", "guests/asks.wasm", json!({}))], config, Some(tape)).unwrap()
}

/// The outcomes, and the seconds from the start of each sample to its outcome.
fn score(scorer: &Scorer) -> Vec<(SampleOutcome, f64)> {
    let (mut in_flight, mut scored) = (InFlight::default(), Vec::new());
    let wait = |(start, pending): (Instant, _)| {
        let outcome = scorer.wait(pending);
        (outcome, start.elapsed().as_secs_f64())
    };
    for number in 0..SAMPLES / GROUP {
        let group = PendingGroup::new(GROUP);
        let started: Vec<_> = (0..GROUP)
            .map(|index| {
                let columns = json!({"prompt": format!("{number} + 1?")});
                (
                    Instant::now(),
                    scorer.start(&group, sample(columns, index as u32, "2"), (number * GROUP + index) as u64),
                )
            })
            .collect();
        scored.extend(in_flight.start(started).map(wait));
    }
    scored.extend(in_flight.into_iter().map(wait));
    scored
}

fn main() {
    let folder = tempfile::tempdir().unwrap();
    let runtime = Runtime::new().unwrap();
    let server = LimitedServer::new(RATE, 20, Duration::from_millis(150));
    let address = server.start(&runtime);
    let start = Instant::now();
    let live = score(&scorer(address, Tape::record(folder.path().into())));
    let seconds = start.elapsed().as_secs_f64();
    drop(runtime);

    let counts = server.counts();
    println!("{SAMPLES} samples in {seconds:.1} s; {counts:?}");
    println!("used {:.1} % of the limit", 100.0 * counts.rate / RATE);
    let mut waits: Vec<f64> = live.iter().flat_map(|(outcome, _)| outcome.timing.latency.values().copied()).collect();
    waits.sort_by(f64::total_cmp);
    let at = |share: f64| waits[((waits.len() - 1) as f64 * share) as usize];
    println!("time of a call: p50 {:.2} s, p99 {:.2} s, longest {:.2} s", at(0.5), at(0.99), at(1.0));

    let start = Instant::now();
    let replayed = score(&scorer(address, Tape::replay(Path::new(folder.path())).unwrap()));
    let verdict = |(outcome, _): &(SampleOutcome, f64)| {
        let outcomes = outcome.plugins.values().map(|evaluation| evaluation.outcome.clone()).collect::<Vec<_>>();
        (outcome.reward, outcomes)
    };
    let same = live.iter().zip(&replayed).filter(|(live, replayed)| verdict(live) == verdict(replayed)).count();
    let scored = live.iter().filter(|(outcome, _)| outcome.reward == Some(1.0)).count();
    println!(
        "{scored} scored; {same} verdicts are the same without a server, in {:.1} s",
        start.elapsed().as_secs_f64()
    );
    assert_eq!((counts.refused, scored, same), (0, SAMPLES, SAMPLES));
}
