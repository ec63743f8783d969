//! `check` finds the weaknesses of rewards that have them, and nothing in a
//! sound one.

use crate::common::built;
use gavel_harness::check::{CheckReport, Kind, Severity, check};
use gavel_harness::{Harness, HarnessError, PluginData, bench};
use gavel_plugin::{Grants, Limits, PluginSpec, ProgramSpec};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::Duration;

fn spec(guest: &str, params: Value) -> PluginSpec {
    let params = serde_json::from_value(params).unwrap();
    PluginSpec { params, ..PluginSpec::new("subject", built(guest)) }
}

fn rows(lines: &[Value]) -> PluginData {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("rows.jsonl");
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    std::fs::write(&path, text).unwrap();
    PluginData::read(&path, 100).unwrap()
}

fn sums() -> PluginData {
    rows(&[
        json!({"prompt": "What is 17 + 25?", "answer": "42", "response": "17 + 25 makes\nAnswer: 42"}),
        json!({"prompt": "What is 8 + 9?", "answer": "17"}),
        json!({"prompt": "The answer is 12. What is 6 + 6?", "answer": "12", "response": "I give up."}),
    ])
}

fn found(spec: &PluginSpec, rows: &PluginData) -> CheckReport {
    check(&Harness::new().unwrap(), spec, &BTreeMap::new(), rows).unwrap()
}

/// The mutations that were accepted, in order.
fn accepted(report: &CheckReport) -> Vec<&str> {
    let false_accepts = report.findings.iter().filter(|finding| finding.kind == Kind::FalseAccept);
    let mut names: Vec<&str> = false_accepts.filter_map(|finding| finding.mutation).collect();
    names.sort_unstable();
    names
}

#[test]
fn a_strict_reward_has_nothing_to_be_found() {
    let report = found(&spec("guests/gullible.wasm", json!({"pure": true})), &sums());
    assert_eq!(report.findings, [], "{report:#?}");
    assert_eq!(report.golden, BTreeMap::from([("response".to_owned(), 1), ("Answer:".to_owned(), 2)]));
    assert_eq!((report.mutated, report.ignores_truth), (3, 0));
    assert!(report.tried > 60, "{}", report.tried);
    assert!(report.peak_memory > 0 && report.cpu_us.count == 2);
}

#[test]
fn an_answer_that_may_stand_anywhere_is_a_false_accept() {
    let report = found(&spec("guests/gullible.wasm", json!({"anywhere": true})), &sums());
    let names = accepted(&report);
    for name in ["every candidate", "candidates in one", "prompt copied", "wrong answer added"] {
        assert!(names.contains(&name), "{name} is not among {names:?}");
    }
    for name in ["empty", "nonsense", "wrong answer"] {
        assert!(!names.contains(&name), "{name} is among {names:?}");
    }
    let copied = report.findings.iter().find(|finding| finding.mutation == Some("prompt copied")).unwrap();
    assert_eq!((copied.severity, copied.count), (Severity::High, 1));
    assert!(copied.row.ends_with("line 3") && copied.example.starts_with("The answer is 12."), "{copied:?}");
    assert_eq!(report.findings[0].severity, Severity::High, "the worst come first");
}

#[test]
fn a_reward_that_does_not_look_at_the_truth_is_not_asked_for_it() {
    let report = found(&spec("guests/gullible.wasm", json!({"any": true})), &sums());
    assert_eq!(report.ignores_truth, 3);
    assert_eq!(accepted(&report), Vec::<&str>::new(), "{report:#?}");
}

#[test]
fn what_scores_more_than_the_golden_answer_is_found() {
    let report = found(&spec("guests/gullible.wasm", json!({"counts": true})), &sums());
    assert_eq!(accepted(&report), ["repeated"], "{report:#?}");
}

#[test]
fn a_long_answer_that_crashes_is_found() {
    let report = found(&spec("guests/gullible.wasm", json!({"brittle": true})), &sums());
    let failures: Vec<_> = report.findings.iter().filter(|finding| finding.kind == Kind::Failure).collect();
    let mut names: Vec<_> = failures.iter().filter_map(|finding| finding.mutation).collect();
    names.sort_unstable();
    assert_eq!(names, ["followed", "nonsense without end", "padded"], "{failures:#?}");
    assert!(failures.iter().all(|finding| finding.severity == Severity::High && finding.count == 3));
}

#[test]
fn a_verdict_that_changes_is_found() {
    let dice = |pure| found(&spec("guests/gullible.wasm", json!({"dice": true, "pure": pure})), &sums());
    let kinds = |report: &CheckReport| report.findings.iter().map(|finding| finding.kind).collect::<Vec<_>>();
    let claimed = dice(true);
    assert!(kinds(&claimed).contains(&Kind::NonDeterminism), "{claimed:#?}");
    assert!(claimed.findings.iter().any(|finding| finding.what.starts_with("another seed")), "{claimed:#?}");
    let honest = dice(false);
    assert!(!kinds(&honest).contains(&Kind::NonDeterminism), "{honest:#?}");
    assert!(honest.notes.iter().any(|note| note.contains("depend on the seed")), "{:?}", honest.notes);
    let remembers = found(&spec("guests/gullible.wasm", json!({"remembers": true, "pure": true})), &sums());
    let what: Vec<_> = remembers.findings.iter().map(|finding| finding.what.as_str()).collect();
    assert!(what.iter().any(|what| what.contains("has answered others")), "{what:?}");
}

#[test]
fn a_grant_that_nothing_needs_is_found() {
    let mut spec = spec("guests/gullible.wasm", json!({}));
    spec.grants = Grants { chat: vec!["judge".into()], ..Grants::default() };
    let chat = BTreeMap::from([("judge".to_owned(), gavel_harness::FakeChatTable::default())]);
    let report = check(&Harness::new().unwrap(), &spec, &chat, &sums()).unwrap();
    let grants: Vec<_> = report.findings.iter().filter(|finding| finding.kind == Kind::Grant).collect();
    assert_eq!(grants.len(), 1, "{grants:?}");
    assert!(grants[0].what.contains("`chat` is not needed"), "{grants:?}");
}

#[test]
fn a_plugin_with_programs_is_compared_where_they_are() {
    let harness = Harness::new().unwrap();
    let limits = Limits::default();
    harness.program(ProgramSpec { name: "child".into(), path: built("guests/child.wasm"), limits }).unwrap();
    let mut spec = spec("guests/runs.wasm", json!({"pure": true}));
    spec.grants = Grants { exec: vec!["child".into()], ..Grants::default() };
    let rows = rows(&[json!({"prompt": "?", "response": "echo"})]);
    let report = check(&harness, &spec, &BTreeMap::new(), &rows).unwrap();
    assert_eq!(report.findings, [], "{report:#?}");
    // Again, beside others, in an instance that has answered others, with another seed.
    assert_eq!(report.compared, 4);
    assert!(report.notes.iter().any(|note| note.contains("only in this sandbox")), "{:?}", report.notes);
}

#[test]
fn replies_of_an_endpoint_that_is_not_granted_are_no_grant() {
    let mut spec = spec("guests/asks.wasm", json!({}));
    spec.grants = Grants { chat: vec!["judge".into()], ..Grants::default() };
    let rows = rows(&[json!({"response": "x", "replies": {"judge": ["1"], "jugde": ["1"]}, "expect": {"score": 1}})]);
    let report = check(&Harness::new().unwrap(), &spec, &BTreeMap::new(), &rows).unwrap();
    assert!(!report.findings.iter().any(|finding| finding.kind == Kind::Grant), "{report:#?}");
}

#[test]
fn a_judger_is_shown_the_golden_answer_beside_the_mutated_one() {
    // The shorter answer wins, whatever it says: "I do not know." beats nothing here.
    let rows = rows(&[json!({"prompt": "2 + 2?", "answer": "4", "response": "4"})]);
    let report = found(&spec("guests/shortest.wasm", json!({})), &rows);
    assert_eq!(report.mutated, 1);
    let names = accepted(&report);
    assert!(names.contains(&"wrong answer") && !names.contains(&"nonsense"), "{names:?}");
}

#[test]
fn where_nothing_is_accepted_nothing_is_mutated() {
    let rows = rows(&[json!({"prompt": "2 + 2?", "answer": "4", "response": "5"})]);
    let report = found(&spec("guests/abstain.wasm", json!({})), &rows);
    assert_eq!((report.mutated, report.without_golden.len()), (0, 1));
}

#[test]
fn a_benchmark_measures_what_it_says() {
    let report =
        bench(&spec("guests/gullible.wasm", json!({"pure": true})), &[], &sums(), Duration::from_millis(300)).unwrap();
    assert_eq!(report.inputs, 2, "the row without a completion is no call");
    assert!(report.latency_us.count >= 8 && report.fuel.count == 2 && report.fuel.p50 > 0, "{report:#?}");
    assert!(report.load_cold_us > 0 && report.load_cached_us > 0 && report.calls_per_second > 0.0);
    let reuse = report.reuse.unwrap();
    assert!(reuse.same_verdicts && reuse.factor > 0.0);
    let state = json!({"pure": true, "remembers": true});
    let liar = bench(&spec("guests/gullible.wasm", state), &[], &sums(), Duration::from_millis(300)).unwrap();
    assert!(!liar.reuse.unwrap().same_verdicts);
    assert!(liar.advice.contains("plugin check"), "{}", liar.advice);
    let impure = bench(&spec("guests/gullible.wasm", json!({})), &[], &sums(), Duration::from_millis(50)).unwrap();
    assert!(impure.reuse.is_none() && impure.advice.contains("does not declare itself pure"));
    assert!(impure.advice.contains("`reuse = 64`"), "{}", impure.advice);
    let mut asks = spec("guests/asks.wasm", json!({}));
    asks.grants = Grants { chat: vec!["judge".into()], ..Grants::default() };
    let error = bench(&asks, &[], &sums(), Duration::from_millis(50)).unwrap_err();
    assert!(matches!(error, HarnessError::AsksModels(_)), "{error}");
}
