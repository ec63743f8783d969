//! A real tool under the harness: sessions, assertions, golden cases, checks and benchmarks.

use crate::common::{assert_shows, built, mismatches, panic_of};
use gavel_data::Budget;
use gavel_harness::check::{CheckReport, Kind, Severity, check};
use gavel_harness::{CaseFile, Harness, HarnessError, LoadedPlugin, PluginData, bench};
use gavel_plugin::{Limits, PluginSpec};
use serde_json::{Value, json};
use snapbox::str;
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

fn spec() -> PluginSpec {
    let limits = Limits { cpu: Duration::from_secs(2), memory: 16 << 20, ..Limits::default() };
    PluginSpec { limits, ..PluginSpec::new("toolbox", built("guests/toolbox.wasm")) }
}

fn toolbox() -> LoadedPlugin {
    Harness::new().unwrap().load(spec()).unwrap()
}

fn written(folder: &Path, lines: &[Value]) -> std::path::PathBuf {
    let path = folder.join("cases.jsonl");
    std::fs::write(&path, lines.iter().map(|line| format!("{line}\n")).collect::<String>()).unwrap();
    path
}

#[test]
fn what_holds_is_quiet() {
    let plugin = toolbox();
    let mut session = plugin.session(json!({"secret": 3})).unwrap();
    session.call("add", json!({"by": 2})).assert_answer("2");
    session.call("add", json!({"by": 3})).assert_answer("5");
    session.call("settings", json!({})).assert_answer(r#"{"secret":3}"#);
    session.call("fail", json!({"how": "wrong"})).assert_called_wrongly().assert_reason("that was wrong");
    session.call("fail", json!({"how": "away"})).assert_unavailable().assert_reason("error: nobody is there");
    session
        .call("fail", json!({"how": "broken"}))
        .assert_failed()
        .assert_reason("error: the tool failed: it is broken");
    let ended = plugin.session(json!({"finish": "away"})).unwrap();
    assert_eq!(ended.finish(), Ok(None), "it was not called");
    // The state is kept up to here.
    session.call("add", json!({"by": 1})).assert_answer("6");
    session.call("loop", json!({})).assert_out_of_budget(Budget::Cpu).assert_reason("what earlier calls left is gone");
    session.call("add", json!({"by": 1})).assert_answer("1");
    session.call("trap", json!({})).assert_failed().assert_printed("a trap");
    session.call("add", json!({"by": 4})).assert_answer("4");
    assert_eq!(session.finish(), Ok(Some(json!({"sum": 4}))));
}

#[test]
fn arguments_are_checked_as_an_episode_checks_them() {
    let plugin = toolbox();
    let mut session = plugin.session(json!({})).unwrap();
    session
        .call("add", json!({"by": "2"}))
        .assert_called_wrongly()
        .assert_reason("by: \"2\" is not of type \"integer\"");
    session.call("add", json!("{\"by\": 2")).assert_called_wrongly().assert_reason("are not a JSON object");
    session
        .call("sub", json!({}))
        .assert_called_wrongly()
        .assert_reason("there is no function `sub`; there are: add, ");
    session.call("add", json!("{\"by\": 2}")).assert_answer("2");
}

#[test]
fn an_assertion_that_fails_shows_all_that_is_known() {
    let plugin = toolbox();
    let mut session = plugin.session(json!({})).unwrap();
    let call = session.call("add", json!({"by": 2}));
    assert_shows(
        panic_of(|| {
            call.assert_answer("3");
        }),
        str![[r#"
tool `toolbox`: expected answer "3", got "2"
  call      add {"by":2}
  outcome   answered
  answer    2
  used      [..]

"#]],
    );
    let call = session.call("trap", json!({}));
    let shown = panic_of(|| {
        call.assert_unavailable();
    });
    assert!(shown.starts_with("tool `toolbox`: expected outcome unavailable, got failed\n"), "{shown}");
    assert!(shown.contains("  trapped  ") && shown.contains("  reason    error: the tool failed: "), "{shown}");
}

#[test]
fn a_session_needs_a_tool() {
    let plugin = Harness::new().unwrap().plugin(built("guests/obeys.wasm")).load().unwrap();
    assert!(matches!(plugin.session(json!({})), Err(HarnessError::NotATool(_))));
}

#[test]
fn golden_cases_are_sessions() {
    let folder = tempfile::tempdir().unwrap();
    let add = |by: i64, expect: Value| json!({"name": "add", "arguments": {"by": by}, "expect": expect});
    let cases = written(
        folder.path(),
        &[
            json!({"case": "state", "calls": [add(2, json!({"answer": "2"})), add(3, json!({"answer": "5"}))]}),
            json!({"case": "a session of its own", "calls": [add(1, json!({"answer": "1"}))]}),
            json!({"case": "pure", "params": {"pure": true}, "calls": [add(2, json!({"answer": "2"})), add(2, json!({"answer": "2"}))]}),
            json!({"case": "refused settings", "settings": {"refuse": 1}, "calls": [
                {"name": "settings", "expect": {"outcome": "failed", "reason": "`refuse` is set"}}
            ]}),
            json!({"case": "a typing error", "params": {"pur": 1}, "expect": {"refused": "unknown field `pur`"}}),
        ],
    );
    let harness = Harness::new().unwrap();
    let results = harness.plugin(built("guests/toolbox.wasm")).cases(&cases).unwrap();
    results.assert_pass();
    assert!(results.cases[0].usage().cpu_us > 0 && results.junit().unwrap().contains("testcase name=\"state\""));
}

#[test]
fn a_case_of_another_kind_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let calls = json!([{"name": "add", "arguments": {"by": 1}, "expect": {"answer": "1"}}]);
    let error = |line: Value, plugin: &str| {
        let path = written(folder.path(), &[line]);
        let file = CaseFile::read(&path).map_err(HarnessError::from);
        let harness = Harness::new().unwrap();
        let spec = PluginSpec::new(plugin, built(&format!("guests/{plugin}.wasm")));
        let run = file.and_then(|file| gavel_harness::run(&harness, &spec, &BTreeMap::new(), &file));
        run.expect_err("it is taken").to_string()
    };
    for (line, plugin, what) in [
        (json!({"response": "x", "expect": {"score": 1}}), "toolbox", "`toolbox` is a tool, which only answers calls"),
        (json!({"index": 0, "expect": {"row": {"a": 1}}}), "toolbox", "`toolbox` is a tool"),
        (json!({"calls": calls}), "obeys", "`calls` are for a tool, and `obeys` is not one"),
        (json!({"calls": calls, "level": 1}), "toolbox", "`level` does not go with `calls`"),
        (
            json!({"calls": calls, "expect": {"score": 1}}),
            "toolbox",
            "`expect.score` does not exist\nhint: a case of a tool can expect a state; each of its `calls`",
        ),
        (json!({"calls": calls, "expect": {"state": 1, "stat": 1}}), "toolbox", "`expect.stat` does not exist"),
        (json!({"calls": calls, "expect": {}}), "toolbox", "`expect` states nothing"),
        (json!({"calls": calls, "expect": 6}), "toolbox", "`expect` must be an object with `state`, not 6"),
        (json!({"calls": calls, "settings": 3}), "toolbox", "`settings` must be an object, not 3"),
        (json!({"calls": []}), "toolbox", "`calls` is empty"),
        (json!({"calls": {}}), "toolbox", "`calls` must be a list, not {}"),
        (json!({"calls": ["add"]}), "toolbox", "`calls, call 1` must be an object"),
        (json!({"calls": [{"name": "add", "args": {}}]}), "toolbox", "`calls, call 1`: unknown field `args`"),
        (
            json!({"calls": [{"name": "add", "expect": {"score": 1}}]}),
            "toolbox",
            "`calls, call 1, expect.score` does not exist",
        ),
        (json!({"calls": [{"name": "add", "expect": {}}]}), "toolbox", "`calls, call 1, expect` states nothing"),
        (
            json!({"calls": [{"name": "add", "expect": {"outcome": "fault"}}]}),
            "toolbox",
            "must be one of answered, called-wrongly,",
        ),
        (
            json!({"calls": [{"name": "add", "expect": {"answer": "1", "outcome": "failed"}}]}),
            "toolbox",
            "states an answer and why",
        ),
        (
            json!({"calls": [{"name": "add", "expect": {"budget": "cpu", "outcome": "failed"}}]}),
            "toolbox",
            "goes with the outcome",
        ),
    ] {
        let said = error(line.clone(), plugin);
        assert!(said.contains(what), "{line}: {said}");
    }
}

/// A session in which the tool adds `by`, with the row's settings and an expected state.
fn ending(settings: Value, by: i64, state: Value) -> Value {
    let call = json!({"name": "add", "arguments": {"by": by}, "expect": {"answer": by.to_string()}});
    json!({"settings": settings, "calls": [call], "expect": {"state": state}})
}

#[test]
fn a_case_expects_the_state_in_which_the_tool_ends() {
    let folder = tempfile::tempdir().unwrap();
    let none = json!({"finish": "none"});
    let loops = json!({"calls": [
        {"name": "add", "arguments": {"by": 2}, "expect": {"answer": "2"}},
        {"name": "loop", "expect": {"budget": "cpu"}},
    ], "expect": {"state": null}});
    let pure = json!({"params": {"pure": true}, "calls": [{"name": "add", "arguments": {"by": 2}, "expect": {"answer": "2"}}], "expect": {"state": null}});
    let cases = written(
        folder.path(),
        &[
            ending(json!({}), 2, json!({"sum": 2})),
            ending(json!({}), 2, json!({"sum": 2.0})),
            ending(none.clone(), 2, Value::Null),
            loops,
            pure,
            ending(json!({}), 2, json!({"sum": 3})),
            ending(json!({}), 2, Value::Null),
            ending(json!({}), 2, json!({"sum": 2, "total": 1})),
            ending(none, 2, json!({"sum": 2})),
            ending(json!({"finish": "away"}), 2, json!({"sum": 2})),
            json!({"settings": {"finish": "large"}, "calls": [{"name": "add", "arguments": {"by": 1}, "expect": {"answer": "1"}}]}),
        ],
    );
    let file = CaseFile::read(&cases).unwrap();
    let results = gavel_harness::run(&Harness::new().unwrap(), &spec(), &BTreeMap::new(), &file).unwrap();
    let found = mismatches(&results);
    assert_eq!(
        found,
        [
            "",
            "",
            "",
            "",
            "",
            "expected state {\"sum\":3}, got {\"sum\":2}",
            "expected state none, got {\"sum\":2}",
            "expected state {\"sum\":2,\"total\":1}, got {\"sum\":2}",
            "expected state {\"sum\":2}, got none",
            "expected state from the tool, got unavailable: nobody is there",
            "expected state from the tool, got fault: the state has 1048578 bytes, more than the 65536 allowed",
        ]
    );
    assert!(results.cases[0].to_string().contains("  state     {\"sum\":2}\n"), "{}", results.cases[0]);
    let error = file.update(&results).unwrap_err().to_string();
    assert!(
        error.contains("line 10: expected state from the tool, got unavailable: nobody is there\nhint: "),
        "{error}"
    );
}

#[test]
fn an_update_writes_a_state_that_a_case_expects() {
    let folder = tempfile::tempdir().unwrap();
    let without = json!({"calls": [{"name": "add", "arguments": {"by": 2}}]});
    let lines = [ending(json!({}), 2, json!({"sum": 3})), without, ending(json!({}), 2, json!({"sum": 2.0}))];
    let path = written(folder.path(), &lines);
    let file = CaseFile::read(&path).unwrap();
    assert_eq!(file.expectations(), 5);
    let results = gavel_harness::run(&Harness::new().unwrap(), &spec(), &BTreeMap::new(), &file).unwrap();
    let changes = file.update(&results).unwrap();
    let after: Vec<_> = changes.iter().map(|change| (change.line.get(), change.after.as_str())).collect();
    assert_eq!(after, [(1, r#"{"state":{"sum":2}}"#), (2, r#"{"answer":"2"}"#)]);
    let text = std::fs::read_to_string(&path).unwrap();
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines[0], ending(json!({}), 2, json!({"sum": 2})));
    assert_eq!(lines[1]["expect"], Value::Null);
    assert_eq!(lines[2], ending(json!({}), 2, json!({"sum": 2.0})));
}

fn checked(lines: &[Value]) -> CheckReport {
    let folder = tempfile::tempdir().unwrap();
    let data = PluginData::read(&written(folder.path(), lines), 100).unwrap();
    check(&Harness::new().unwrap(), &spec(), &BTreeMap::new(), &data).unwrap()
}

#[test]
fn a_check_makes_calls_again_and_with_other_arguments() {
    let by = |by: i64| json!({"name": "add", "arguments": {"by": by}, "expect": {"answer": by.to_string()}});
    let report = checked(&[json!({"calls": [by(2)]})]);
    // Two repetitions of one call; six other numbers, and none.
    assert_eq!((report.rows, report.compared, report.tried), (1, 2, 7));
    assert!(report.findings.is_empty(), "{:?}", report.findings);

    // A call that is expected to end without an answer is not counted, however long it took.
    let endless = json!({"name": "loop", "expect": {"budget": "cpu"}});
    let report = checked(&[json!({"calls": [endless, by(2)]})]);
    assert!(report.findings.is_empty(), "{:?}", report.findings);

    let flood = json!({"name": "grow", "arguments": {"bytes": 10}, "expect": {"answer": "10"}});
    let report = checked(&[json!({"case": "grows", "calls": [flood]})]);
    let found: Vec<_> =
        report.findings.iter().map(|finding| (finding.kind, finding.severity, finding.mutation)).collect();
    assert!(found.contains(&(Kind::Failure, Severity::High, Some("largest"))), "{:?}", report.findings);
    assert_eq!((report.findings[0].row.as_str(), report.findings[0].count), ("line 1, grows", 1));
}

#[test]
fn a_benchmark_measures_single_calls() {
    let folder = tempfile::tempdir().unwrap();
    let calls = json!([{"name": "add", "arguments": {"by": 2}}, {"name": "add", "arguments": {"by": "x"}}]);
    let sessions = written(folder.path(), &[json!({"calls": calls})]);
    let data = PluginData::read(&sessions, 100).unwrap();
    let report = bench(&spec(), &[], &data, Duration::from_millis(300)).unwrap();
    assert_eq!(report.inputs, 1);
    assert_eq!(report.outcomes["answered"], report.outcomes["called-wrongly"]);
    assert!(
        report.reuse.is_none() && report.advice.starts_with("an instance for each trajectory"),
        "{}",
        report.advice
    );
    assert!(report.calls_per_second > 0.0 && report.fuel.max > 0);

    let rows = PluginData::read(&written(folder.path(), &[json!({"prompt": "?", "response": "x"})]), 100).unwrap();
    let error = bench(&spec(), &[], &rows, Duration::from_millis(10)).unwrap_err();
    assert!(matches!(error, HarnessError::NoSessions(_)), "{error}");
}
