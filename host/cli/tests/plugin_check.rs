//! `gavel plugin check`, `bench` and `diff` as a user runs them.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod project;

use project::{Project, built, stderr};
use serde_json::Value;
use std::process::Output;

const ROWS: &str = r#"{"prompt": "What is 17 + 25?", "answer": "42", "response": "17 + 25 makes\nAnswer: 42"}
{"prompt": "What is 8 + 9?", "answer": "17", "response": "Answer: 18"}
"#;

fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn gavel(project: &Project, args: &[&str]) -> Output {
    let guest = built("guests/gullible.wasm").display().to_string();
    project.run(&args.iter().map(|arg| if *arg == "GUEST" { guest.as_str() } else { arg }).collect::<Vec<_>>())
}

#[test]
fn a_check_reports_findings_for_people_and_machines() {
    let project = Project::empty();
    project.write("rows.jsonl", ROWS);
    let clean = gavel(&project, &["plugin", "check", "GUEST", "--data", "rows.jsonl"]);
    assert_eq!(clean.status.code(), Some(0), "{}{}", stdout(&clean), stderr(&clean));
    assert!(stdout(&clean).ends_with("nothing found\n"), "{}", stdout(&clean));
    let weak = ["plugin", "check", "GUEST", "--data", "rows.jsonl", "--params", r#"{"anywhere": true}"#];
    let output = gavel(&project, &weak);
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    let text = stdout(&output);
    for part in ["high: false accept (every candidate)", "rows.jsonl, line 1", "the golden answer scores 1"] {
        assert!(text.contains(part), "{part:?} is not in {text}");
    }
    let output = gavel(&project, &[&weak[..], &["--json"]].concat());
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["findings"][0]["severity"], "high");
    for (args, said) in [
        (&["plugin", "check", "GUEST"][..], "name them with --data"),
        (&["plugin", "check", "GUEST", "--data", "none.jsonl"][..], "none.jsonl"),
        (&["plugin", "check", "gone.wasm", "--data", "rows.jsonl"][..], "cannot read gone.wasm"),
        (&["plugin", "check", "GUEST", "--data", "rows.jsonl", "--params", "1"][..], "--params is not a JSON object"),
    ] {
        let output = gavel(&project, args);
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        assert!(stderr(&output).contains(said), "{args:?}: {}", stderr(&output));
    }
}

#[test]
fn an_advantage_is_checked_and_measured_with_groups() {
    let project = Project::empty();
    let guest = built("guests/estimators.wasm").display().to_string();
    let case = |params: &str| {
        format!(
            "{{\"groups\": [[1, 0, 0.5], [1]], \"params\": {{\"estimator\": {params:?}}}, \"expect\": {{\"advantages\": []}}}}\n"
        )
    };
    project.write("cases.jsonl", &case("grpo"));
    let params = r#"{"estimator": "grpo"}"#;
    let check = |file: &str| project.run(&["plugin", "check", &guest, "--data", file, "--params", params]);
    let clean = check("cases.jsonl");
    let text = stdout(&clean);
    assert!(clean.status.success() && text.ends_with("nothing found\n"), "{text}{}", stderr(&clean));
    assert!(text.contains("  mutations   5 calls with other groups\n  compared    3 advantages with their"), "{text}");
    project.write("fails.jsonl", &case("fails").replace("\"params\"", "\"step\": 2, \"params\""));
    let output = check("fails.jsonl");
    let text = stdout(&output);
    assert_eq!(output.status.code(), Some(1), "{text}{}", stderr(&output));
    let found = "high: failure\n  fault: group 0 (task 0), sample 0: the advantage is NaN\n  case  line 1, line 1\n";
    assert!(text.contains(found), "{text}");
    let bench = ["plugin", "bench", &guest, "--data", "cases.jsonl", "--params", params, "--seconds", "1", "--json"];
    let output = project.run(&bench);
    let report: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", stderr(&output)));
    assert!(report["outcomes"]["advantages"].as_u64() > Some(0) && report["reuse"].is_null(), "{report}");
    // It scores nothing.
    project.write("rows.jsonl", ROWS);
    let output = check("rows.jsonl");
    assert_eq!(output.status.code(), Some(2));
    assert!(
        stderr(&output).contains("turns rewards into advantages, and the file has no groups\nhint: give it golden"),
        "{}",
        stderr(&output)
    );
}

#[test]
fn a_sampler_is_checked_and_measured_with_requests() {
    let project = Project::empty();
    let guest = built("guests/draws.wasm").display().to_string();
    let case = |how: &str| {
        let ended = r#"[{"task": 2, "samples": [1, 0.5, null]}]"#;
        format!(
            "{{\"datasets\": [4, 3], \"wanted\": 2, \"ended\": {ended}, \"params\": {{\"how\": {how:?}}}, \"expect\": {{\"draws\": []}}}}\n"
        )
    };
    project.write("cases.jsonl", &case("hashes"));
    let params = r#"{"how": "hashes"}"#;
    let check = |file: &str| project.run(&["plugin", "check", &guest, "--data", file, "--params", params]);
    let clean = check("cases.jsonl");
    let text = stdout(&clean);
    assert!(clean.status.success() && text.ends_with("nothing found\n"), "{text}{}", stderr(&clean));
    assert!(text.contains("  mutations   8 calls with other requests\n  compared    2 answers with their"), "{text}");
    project.write("fails.jsonl", &case("fails"));
    let output = check("fails.jsonl");
    let text = stdout(&output);
    assert_eq!(output.status.code(), Some(1), "{text}{}", stderr(&output));
    let found = "high: failure\n  fault: task 0 is of dataset 2, and there are 2 datasets\n  case  line 1, line 1\n";
    assert!(text.contains(found), "{text}");
    let bench = ["plugin", "bench", &guest, "--data", "cases.jsonl", "--params", params, "--seconds", "1", "--json"];
    let output = project.run(&bench);
    let report: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", stderr(&output)));
    assert!(report["outcomes"]["draws"].as_u64() > Some(0) && report["reuse"].is_null(), "{report}");
    // It scores nothing.
    project.write("rows.jsonl", ROWS);
    let output = check("rows.jsonl");
    assert_eq!(output.status.code(), Some(2));
    let says = "draws tasks, and the file has no requests\nhint: give it golden";
    assert!(stderr(&output).contains(says), "{}", stderr(&output));
}

#[test]
fn a_benchmark_gives_advice() {
    let project = Project::empty();
    project.write("rows.jsonl", ROWS);
    let output = gavel(
        &project,
        &["plugin", "bench", "GUEST", "--data", "rows.jsonl", "--params", r#"{"pure": true}"#, "--seconds", "1"],
    );
    assert!(output.status.success(), "{}", stderr(&output));
    for part in ["throughput", "latency, reuse = 64", "fuel", "from the cache", "advice"] {
        assert!(stdout(&output).contains(part), "{part:?} is not in {}", stdout(&output));
    }
}

#[test]
fn what_is_wrong_with_the_rows_is_told_before_a_build() {
    let project = Project::empty();
    std::fs::create_dir(project.path("asks")).unwrap();
    let manifest = "[plugin]\nname = \"asks\"\nlanguage = \"c\"\nexports = [\"reward\"]\nimports = [\"chat\"]\n[test.grant]\nchat = [\"judge\"]\n";
    project.write("asks/plugin.toml", manifest);
    for (command, said) in [
        ("check", "cannot open dataset none.jsonl"),
        ("bench", "cannot open dataset none.jsonl"),
        ("diff", "asks language models"),
    ] {
        let mut args = vec!["plugin", command, "asks", "--data", "none.jsonl"];
        if command == "diff" {
            args.insert(3, "asks");
        }
        let output = gavel(&project, &args);
        assert_eq!(output.status.code(), Some(2), "{command}");
        assert!(stderr(&output).contains(said) && !stderr(&output).contains("building"), "{}", stderr(&output));
    }
}

#[test]
fn two_versions_are_compared() {
    let project = Project::empty();
    project.write("rows.jsonl", ROWS);
    let same = gavel(&project, &["plugin", "diff", "GUEST", "GUEST", "--data", "rows.jsonl"]);
    assert_eq!(same.status.code(), Some(0), "{}{}", stdout(&same), stderr(&same));
    assert!(stdout(&same).contains("agreement        2 (100.0 %) of 2 samples"), "{}", stdout(&same));
    let other = built("plugins/exact-answer.wasm").display().to_string();
    let output = gavel(&project, &["plugin", "diff", "GUEST", &other, "--data", "rows.jsonl", "--json"]);
    let found: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", stderr(&output)));
    assert_eq!(found["plugins"][0]["samples"], 2);
    assert!(found["new"]["cpu_us"].as_u64().unwrap() > 0);
    project.write("broken.jsonl", "{\"prompt\": \"x\"}\n");
    let output = gavel(&project, &["plugin", "diff", "GUEST", "GUEST", "--data", "broken.jsonl"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("broken.jsonl, line 1"), "{}", stderr(&output));
}

#[test]
fn a_tool_is_checked_and_measured_over_its_sessions() {
    let project = Project::empty();
    let calculator = built("plugins/calculator.wasm").display().to_string();
    let call = r#"{"name": "calculator", "arguments": {"expression": "2 + 2"}, "expect": {"answer": "4"}}"#;
    project.write("cases.jsonl", &format!("{{\"calls\": [{call}]}}\n"));
    project.write("rows.jsonl", ROWS);
    let clean = project.run(&["plugin", "check", &calculator, "--data", "cases.jsonl"]);
    assert_eq!(clean.status.code(), Some(0), "{}{}", stdout(&clean), stderr(&clean));
    let said = stdout(&clean);
    assert!(said.contains("7 calls with other arguments") && said.ends_with("nothing found\n"), "{said}");
    let bench = project.run(&["plugin", "bench", &calculator, "--data", "cases.jsonl", "--seconds", "1"]);
    let said = stdout(&bench);
    assert!(said.contains(" answered\n") && said.contains("latency, reuse = 64"), "{said}{}", stderr(&bench));
    for command in ["check", "bench"] {
        let wrong = project.run(&["plugin", command, &calculator, "--data", "rows.jsonl"]);
        assert_eq!(wrong.status.code(), Some(2));
        assert!(stderr(&wrong).contains("is a tool, and the file has no sessions"), "{}", stderr(&wrong));
    }
}
