//! Two processes with eight judges each, which share one limit of an endpoint through a folder:
//! `cargo bench -p gavel-scoring --bench shared_limit`.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout)]

#[allow(dead_code, reason = "it has more than this needs")]
#[path = "../tests/common/mod.rs"]
mod common;
#[allow(dead_code, reason = "it has more than this needs")]
#[path = "../tests/common/limited.rs"]
mod limited;

use common::{asking, endpoint, run, sample};
use gavel_scoring::PendingGroup;
use limited::LimitedServer;
use serde_json::json;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use tokio::runtime::Runtime;

const PROCESSES: usize = 2;
const JUDGES: usize = 8;
const GROUPS: usize = 15;
const GROUP: usize = 8;
const RATE: f64 = 100.0;

/// A process: all of its samples at once. Prints the seconds of each judge's slowest and median call.
fn judge(address: SocketAddr, folder: &Path) {
    let limited = endpoint(address, json!({"requests_per_second": RATE, "concurrency": 64, "share": folder}));
    let plugins = (0..JUDGES).map(|number| asking(&format!("judge-{number}"), "guests/asks.wasm", json!({})));
    let scorer = run(plugins.collect(), limited).unwrap();
    let start = Instant::now();
    let started: Vec<_> = (0..GROUPS)
        .flat_map(|_| {
            let (group, scorer) = (PendingGroup::new(GROUP), &scorer);
            (0..GROUP as u32).map(move |index| scorer.start(&group, sample(json!({"prompt": "?"}), index, "2"), 1))
        })
        .collect();
    let mut times: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    for pending in started {
        let outcome = scorer.wait(pending);
        assert_eq!(outcome.reward, Some(JUDGES as f64));
        for (judge, seconds) in outcome.timing.latency {
            times.entry(judge).or_default().push(seconds);
        }
    }
    let median = |times: &mut Vec<f64>| {
        times.sort_by(f64::total_cmp);
        times[times.len() / 2]
    };
    let medians: Vec<f64> = times.values_mut().map(median).collect();
    let (least, most) = (medians.iter().copied().fold(f64::MAX, f64::min), medians.iter().copied().fold(0.0, f64::max));
    println!("{:.2} {least:.2} {most:.2}", start.elapsed().as_secs_f64());
}

fn main() {
    let args: Vec<String> = std::env::args().collect();
    if let [_, address, folder] = args.as_slice()
        && let Ok(address) = address.parse()
    {
        return judge(address, Path::new(folder));
    }
    let folder = tempfile::tempdir().unwrap();
    let runtime = Runtime::new().unwrap();
    let server = LimitedServer::new(RATE, usize::MAX, Duration::from_millis(50));
    let address = server.start(&runtime).to_string();
    let child = |_| {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.arg(&address).arg(folder.path()).stdout(Stdio::piped()).spawn().unwrap()
    };
    let children: Vec<_> = (0..PROCESSES).map(child).collect();
    for child in children {
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success());
        println!(
            "a process: seconds in all, least and most median of a judge's calls: {}",
            String::from_utf8_lossy(&output.stdout).trim()
        );
    }
    let counts = server.counts();
    println!("{counts:?}; used {:.1} % of the limit", 100.0 * counts.rate / RATE);
    assert_eq!((counts.refused, counts.requests), (0, PROCESSES * JUDGES * GROUPS * GROUP));
}
