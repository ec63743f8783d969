//! A run of a million short trajectories: how long its index, filters and search take. `cargo bench -p gavel-view`.
//! An argument is another number of trajectories; a second one keeps the run in that folder, for a browser.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout, missing_docs)]

use gavel_view::{Filter, PageRequest, Sort, View};
use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::Path;
use std::time::{Duration, Instant};

/// Trajectories of a step.
const STEP: u64 = 4096;

fn main() {
    let mut arguments = std::env::args().skip(1).filter(|argument| !argument.starts_with("--"));
    let count: u64 = arguments.next().map_or(1_000_000, |count| count.parse().unwrap());
    let temporary = tempfile::tempdir().unwrap();
    let folder = arguments.next().map_or(temporary.path().join("million"), Into::into);
    if !folder.is_dir() {
        make(&folder, count);
    }
    let view = View::open(std::slice::from_ref(&folder)).unwrap();
    let start = Instant::now();
    view.wait_for_index(0).unwrap();
    println!("{:<46} {:>9.1} ms", format!("index of {count} trajectories"), ms(start.elapsed()));
    let page = |name: &str, request: PageRequest| {
        let best = (0..5).map(|_| {
            let start = Instant::now();
            let page = view.samples(0, &request).unwrap();
            (start.elapsed(), page.matched)
        });
        let (time, matched) = best.min().unwrap();
        println!("{name:<46} {:>9.1} ms  {matched} rows", ms(time));
    };
    let all = PageRequest::default();
    page("no filter", all.clone());
    page("no filter, by reward", PageRequest { sort: Sort::Reward, descending: true, ..all.clone() });
    page("no filter, by length, page 10,000", PageRequest { sort: Sort::Length, offset: 499_950, ..all.clone() });
    let with = |filter: Filter| PageRequest { filter, sort: Sort::Reward, descending: true, ..all.clone() };
    page("reward from 0.9", with(Filter { reward_min: Some(0.9), ..Filter::default() }));
    page("outcome fault", with(Filter { outcomes: vec!["fault".into()], ..Filter::default() }));
    page(
        "steps, reward, source and end",
        with(Filter {
            step_min: Some(10),
            step_max: Some(200),
            reward_max: Some(0.5),
            sources: vec!["math".into()],
            finish: vec!["length".into()],
            ..Filter::default()
        }),
    );
    for (name, text, ignore_case) in [
        ("text, rare", "the 999983rd try", false),
        ("text, rare, either case", "THE 999983RD TRY", true),
        ("text, in all", "try", false),
    ] {
        let request = with(Filter { text: text.into(), ignore_case, ..Filter::default() });
        let start = Instant::now();
        loop {
            let page = view.samples(0, &request).unwrap();
            if page.search.is_some_and(|search| search.is_complete) {
                println!("{name:<46} {:>9.1} ms  {} rows", ms(start.elapsed()), page.matched);
                break;
            }
        }
    }
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

fn make(run: &Path, count: u64) {
    fs::create_dir_all(run.join("trajectories")).unwrap();
    fs::write(run.join("config.toml"), "seed = 1\n").unwrap();
    let mut metrics = BufWriter::new(File::create(run.join("metrics.jsonl")).unwrap());
    for step in 1..=count.div_ceil(STEP) {
        writeln!(metrics, "{{\"step\":{step},\"reward/mean\":{},\"time/timestamp\":{step}}}", step as f64 / 300.0)
            .unwrap();
        let mut file = BufWriter::new(File::create(run.join(format!("trajectories/step-{step:06}.jsonl"))).unwrap());
        for number in 0..STEP.min(count - (step - 1) * STEP) {
            let all = (step - 1) * STEP + number;
            let (group, sample) = (number / 8, number % 8);
            // A number that looks drawn, the same in each run.
            let drawn = all.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
            let outcome = if drawn.is_multiple_of(50) { "fault" } else { "scored" };
            let reward =
                if outcome == "scored" { format!("{}", (drawn % 1001) as f64 / 1000.0) } else { "null".into() };
            let (source, end) = (
                ["math", "code", "chat"][(drawn % 3) as usize],
                ["stop", "length"][usize::from(drawn.is_multiple_of(9))],
            );
            let length = drawn % 2048;
            writeln!(
                file,
                "{{\"id\":\"{step}.{group}.{sample}\",\"task\":\"00\",\"task_id\":\"train/{group}\",\"data_source\":\"{source}\",\"step\":{step},\"trained_step\":{step},\"group\":{group},\"sample\":{sample},\"trajectory\":0,\"prompt\":[{{\"role\":\"user\",\"content\":\"Put {drawn} in words, and say which try it is.\"}}],\"status\":\"completed\",\"messages\":[{{\"role\":\"assistant\",\"content\":\"This is the {all}rd try of many, and the answer is {drawn}.\"}}],\"finish_reason\":\"{end}\",\"response\":\"This is the {all}rd try of many, and the answer is {drawn}.\",\"turns\":1,\"prompt_length\":20,\"response_length\":{length},\"advantage\":{reward},\"reward\":{reward},\"outcome\":\"{outcome}\",\"reason\":null,\"plugins\":{{\"answer\":{{\"outcome\":\"{outcome}\",\"score\":{reward},\"metrics\":{{}},\"reason\":null,\"elapsed_us\":{drawn},\"cpu_us\":1,\"fuel\":null,\"peak_memory\":1}}}}}}"
            )
            .unwrap();
        }
    }
}
