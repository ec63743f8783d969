//! The same reward in every language: size, start, cost of a call, memory.
//!
//! `cargo bench --workspace --bench languages` creates the templates of `gavel
//! plugin new` in a temporary folder and builds them with the tools that they
//! name: npm, and componentize-py and ziglang in the first Python on the path.
//! It prints the table of docs/speed.md.
#![allow(clippy::print_stdout, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use gavel_harness::sample;
use gavel_plugin::{Plugin, PluginSpec, Sandbox, SandboxConfig};
use gavel_project::{Kind, New, Template, build, create};
use std::num::NonZeroUsize;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

const CALLS: usize = 2000;

fn main() {
    let folder = tempfile::tempdir().unwrap();
    println!("| language | size | first start | later start | a call | memory |\n|---|---|---|---|---|---|");
    for (name, title) in [("rust", "Rust"), ("c", "C"), ("js", "JavaScript"), ("python", "Python")] {
        let template: Template = name.parse().unwrap();
        let made = create(New { name, template, kind: Kind::Reward }, folder.path()).unwrap();
        if name == "js" {
            let install = Command::new("npm").args(["install", "--silent"]).current_dir(&made.project.folder).status();
            assert!(install.expect("npm is needed").success());
        }
        let built = build(&made.project, &mut |_| ()).unwrap();
        let size = std::fs::metadata(&built.component).unwrap().len();
        let cache = folder.path().join(format!("cache-{name}"));
        let (first, _) = load(&built.component, &cache);
        let (later, (sandbox, plugin)) = load(&built.component, &cache);
        let (call, memory) = calls(&sandbox, &plugin);
        println!(
            "| {title} | {} | {} | {} | {} | {:.1} MiB |",
            bytes(size),
            time(first),
            time(later),
            time(call),
            memory as f64 / f64::from(1 << 20)
        );
    }
}

/// The time from nothing to a loaded plugin.
fn load(component: &Path, cache: &Path) -> (Duration, (Sandbox, Plugin)) {
    let config = SandboxConfig { cache: Some(cache.to_owned()), ..SandboxConfig::with_threads(NonZeroUsize::MIN) };
    let sandbox = Sandbox::new(config).unwrap();
    let start = Instant::now();
    let plugin = sandbox.handle().block_on(Plugin::load(&sandbox, PluginSpec::new("x", component))).unwrap();
    (start.elapsed(), (sandbox, plugin))
}

/// The median processor time of a call on a response of 2 KB, in a fresh
/// instance, and the highest memory of a call.
fn calls(sandbox: &Sandbox, plugin: &Plugin) -> (Duration, u64) {
    let response = format!("{}\nAnswer: 42", "Let us think about it. ".repeat(90));
    let sample = Arc::new(sample(response).ground_truth("42").build());
    let mut usage: Vec<_> = (0..CALLS as u64)
        .map(|seed| {
            let evaluation = sandbox.handle().block_on(plugin.score(&sample, seed));
            assert_eq!(evaluation.outcome.score(), Some(1.0), "{evaluation:?}");
            evaluation.usage
        })
        .collect();
    usage.sort_by_key(|usage| usage.cpu_us);
    let memory = usage.iter().map(|usage| usage.peak_memory).max().unwrap_or(0);
    (Duration::from_micros(usage[CALLS / 2].cpu_us), memory)
}

fn bytes(size: u64) -> String {
    if size < 1 << 20 { format!("{} KiB", size >> 10) } else { format!("{:.1} MiB", size as f64 / f64::from(1 << 20)) }
}

fn time(time: Duration) -> String {
    match time.as_micros() {
        micros @ 0..1000 => format!("{micros} µs"),
        micros @ 1000..1_000_000 => format!("{:.1} ms", micros as f64 / 1e3),
        micros => format!("{:.1} s", micros as f64 / 1e6),
    }
}
