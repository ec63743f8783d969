//! A real agent under the harness: golden cases of attempts, over scripts.

use crate::common::{assert_shows, built, mismatches};
use gavel_harness::{CaseFile, CaseResults, Harness, HarnessError, PluginData, run};
use gavel_plugin::{Limits, PluginSpec};
use serde_json::{Value, json};
use snapbox::str;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

fn written(folder: &Path, lines: &[Value]) -> PathBuf {
    let path = folder.join("cases.jsonl");
    std::fs::write(&path, lines.iter().map(|line| format!("{line}\n")).collect::<String>()).unwrap();
    path
}

/// Runs cases of the guest `plugin`.
fn ran(plugin: &str, lines: &[Value]) -> Result<CaseResults, HarnessError> {
    let folder = tempfile::tempdir().unwrap();
    let file = CaseFile::read(&written(folder.path(), lines))?;
    let limits = Limits { cpu: Duration::from_secs(2), ..Limits::default() };
    let spec = PluginSpec { limits, ..PluginSpec::new(plugin, built(&format!("guests/{plugin}.wasm"))) };
    run(&Harness::new().unwrap(), &spec, &BTreeMap::new(), &file)
}

/// A case in which the agent does `act`.
fn act(act: &str, policy: Value, expect: Value) -> Value {
    json!({"case": act, "prompt": "2 + 3?", "settings": {"act": act}, "policy": policy, "expect": expect})
}

fn with(mut case: Value, name: &str, value: Value) -> Value {
    case[name] = value;
    case
}

#[test]
fn golden_cases_are_attempts() {
    let turns = json!(["one", "two"]);
    let forks =
        act("fork", json!(["one", "left! right?", "right"]), json!({"response": "left!right", "conversations": 3}));
    let tell = with(
        act(
            "tell",
            json!([]),
            json!({"response": r#"{"id":"7","source":"sums","index":0,"prompt":"2 + 3?","settings":{"act":"tell"}}"#, "conversations": 0}),
        ),
        "id",
        json!("7"),
    );
    let answers = "add: 4\nadd: 7\nnothing: error: there is no function `nothing`; there are: add\n";
    let calls = act("call", json!(["one"]), json!({"response": answers, "called": ["add {\"by\":2}", "nothing"]}));
    let results = ran(
        "acts",
        &[
            forks,
            with(tell, "data_source", json!("sums")),
            with(calls, "tools", json!({"add": ["4", "7"]})),
            // A sample that has used up its turns or tokens has not failed.
            with(act("turns", turns.clone(), json!({"response": "two", "asked": "More."})), "max_turns", json!(2)),
            with(act("turns", turns, json!({"response": "t"})), "max_tokens", json!(9)),
            act(
                "twice",
                json!([]),
                json!({"response": "a conversation has one turn at a timea conversation has one turn at a time"}),
            ),
            act("again", json!(["one"]), json!({"response": "there is no message to answer; append one"})),
            act("loop", json!(["one"]), json!({"budget": "cpu"})),
            act("trap", json!(["one"]), json!({"outcome": "fault", "reason": "as the row says"})),
            act("refuse", json!([]), json!({"outcome": "unavailable", "reason": "the row says so"})),
            json!({"case": "a typing error", "params": {"a": 1}, "expect": {"refused": "unknown field `a`"}}),
        ],
    );
    let results = results.unwrap();
    results.assert_pass();
    assert!(results.cases[0].usage().cpu_us > 0 && results.junit().unwrap().contains("testcase name=\"fork\""));
}

#[test]
fn what_is_not_in_the_script_or_not_asked_for_is_a_difference() {
    let response = |text: &str| json!({"response": text});
    let cases = [
        act("fork", json!(["one", "left"]), response("x")),
        act("again", json!(["one", "two"]), response("there is no message to answer; append one")),
        with(act("call", json!(["one"]), response("x")), "tools", json!({"add": ["4"]})),
        with(act("again", json!(["one"]), json!({"conversations": 1})), "tools", json!({"add": ["4", "5"]})),
        act("again", json!(["one"]), response("two")),
        act("again", json!(["one"]), json!({"conversations": 2, "asked": ["3?", "4?"], "called": "add"})),
        act("again", json!(["one"]), json!({"outcome": "fault"})),
        act("again", json!(["one"]), json!({"reason": "x"})),
        act("trap", json!(["one"]), json!({"reason": "as the column says"})),
        act("refuse", json!([]), json!({"budget": "cpu"})),
        act("refuse", json!([]), response("x")),
    ];
    let results = ran("acts", &cases).unwrap();
    let found = mismatches(&results);
    assert_eq!(
        found[..8],
        [
            "expected policy 2 turns, got asked for turn 3",
            "expected policy 2 turns, got 1 turn",
            "expected tools.add 1 call, got call 2 with {\"by\":3}",
            "expected tools.add 2 calls, got 0 calls",
            "expected response \"two\", got \"there is no message to answer; append one\"",
            "expected conversations 2, got 1; expected asked with \"4?\", got none; expected called with \"add\", got none",
            "expected outcome fault, got answered",
            "expected outcome with \"x\", got answered",
        ]
    );
    assert!(found[8].starts_with("expected reason with \"as the column says\", got \""), "{}", found[8]);
    assert_eq!(
        found[9..],
        ["expected outcome out-of-budget (cpu), got unavailable", "expected response \"x\", got unavailable"]
    );
    assert_shows(
        results.cases[2].to_string(),
        str![[r#"
  outcome   fault
  reason    [..]
  policy    conversation 1
  user      2 + 3?
  assistant one
...
"#]],
    );
}

#[test]
fn a_case_expects_the_object_beside_the_answer() {
    let again = "there is no message to answer; append one";
    let case = |extra: Value, expected: Value| {
        let expect = json!({"response": again, "extra": expected});
        with(act("again", json!(["one"]), expect), "settings", json!({"act": "again", "extra": extra}))
    };
    let cases = [
        case(json!({"plan": [1, null]}), json!({"plan": [1.0, null]})),
        act("again", json!(["one"]), json!({"extra": null})),
        case(json!({"plan": 1}), json!({"plan": 2})),
        case(json!({"plan": 1}), Value::Null),
        act("again", json!(["one"]), json!({"extra": {"plan": 1}})),
        act("refuse", json!([]), json!({"extra": {"plan": 1}})),
    ];
    let results = ran("acts", &cases).unwrap();
    let found = mismatches(&results);
    assert_eq!(
        found,
        [
            "",
            "",
            "expected extra {\"plan\":2}, got {\"plan\":1}",
            "expected extra none, got {\"plan\":1}",
            "expected extra {\"plan\":1}, got none",
            "expected extra {\"plan\":1}, got unavailable",
        ]
    );
    assert!(results.cases[2].to_string().contains("  extra     {\"plan\":1}\n"), "{}", results.cases[2]);
}

#[test]
fn an_update_writes_how_an_attempt_ended() {
    let folder = tempfile::tempdir().unwrap();
    let update = |cases: &[Value]| {
        let path = written(folder.path(), cases);
        let file = CaseFile::read(&path).unwrap();
        let spec = PluginSpec::new("acts", built("guests/acts.wasm"));
        let results = run(&Harness::new().unwrap(), &spec, &BTreeMap::new(), &file).unwrap();
        file.update(&results).map_err(|error| error.to_string()).map(|changes| {
            let text = std::fs::read_to_string(&path).unwrap();
            let expected = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()["expect"].take());
            (changes.len(), expected.collect::<Vec<_>>())
        })
    };
    let again = "there is no message to answer; append one";
    let beside = json!({"response": "x", "conversations": 3, "asked": ["3?", "4?"], "called": "add"});
    let cases = [
        act("again", json!(["one"]), Value::Null),
        act("again", json!(["one"]), beside),
        act("again", json!(["one"]), json!({"asked": "3?"})),
        act("refuse", json!([]), json!({"response": "x"})),
        act("refuse", json!([]), json!({"reason": "no"})),
        act("again", json!(["one"]), json!({"response": again, "extra": {"plan": 1}})),
    ];
    let expected = vec![
        json!({"response": again}),
        json!({"response": again, "conversations": 1, "asked": "3?"}),
        json!({"asked": "3?"}),
        json!({"outcome": "unavailable"}),
        json!({"outcome": "unavailable", "reason": "the row says so"}),
        json!({"response": again, "extra": null}),
    ];
    assert_eq!(update(&cases), Ok((5, expected)));
    let error = update(&[act("again", json!(["one", "two"]), Value::Null)]).unwrap_err();
    assert!(
        error.ends_with("line 1: expected policy 2 turns, got 1 turn\nhint: correct `policy` or `tools` of the case")
    );
}

#[test]
fn a_case_that_cannot_be_one_is_refused() {
    let of_agent = |name: &str, value: Value| with(act("tell", json!([]), json!({"response": "x"})), name, value);
    for (line, plugin, what) in [
        (json!({"response": "x", "expect": {"score": 1}}), "acts", "`acts` is an agent, which only attempts tasks"),
        (json!({"calls": [{"name": "add"}]}), "acts", "`calls` are for a tool, and `acts` is not one"),
        (of_agent("id", json!(1)), "obeys", "`obeys` is not one\nhint: give the case a `response`"),
        (of_agent("id", json!(1)), "toolbox", "`toolbox` is not one\nhint: give the case `calls`"),
        (of_agent("policy", json!("one")), "acts", "`policy` must be a list of turns, not \"one\""),
        (of_agent("policy", json!(["one", 2])), "acts", "`policy, turn 2` must be a text, or an object"),
        (of_agent("policy", json!([{"text": "x"}])), "acts", "`policy, turn 1`: unknown field `text`"),
        (of_agent("policy", json!([{"tool_calls": [{}]}])), "acts", "`policy, turn 1`: missing field `name`"),
        (of_agent("tools", json!({"add": "4"})), "acts", "`tools` must be an object with the answers of each function"),
        (of_agent("settings", json!(3)), "acts", "`settings` must be an object, not 3"),
        (of_agent("max_turns", json!(0)), "acts", "`max_turns` must be a whole number from 1, not 0"),
        (of_agent("prompt", Value::Null), "acts", "the row has neither `prompt` nor `messages`"),
        (of_agent("expect", json!({})), "acts", "`expect` states nothing"),
        (
            of_agent("expect", json!({"score": 1})),
            "acts",
            "`expect.score` does not exist\nhint: a case of an agent can expect",
        ),
        (
            of_agent("expect", json!({"outcome": "scored"})),
            "acts",
            "must be one of fault, out-of-budget, unavailable, not",
        ),
        (of_agent("expect", json!({"asked": []})), "acts", "`expect.asked` must be a text or a list of texts"),
        (of_agent("expect", json!({"conversations": -1})), "acts", "`expect.conversations` must be a whole number"),
        (of_agent("expect", json!({"response": "x", "reason": "y"})), "acts", "a response and why there is none"),
        (
            of_agent("expect", json!({"extra": [1]})),
            "acts",
            "`expect.extra` must be an object, or null for none, not [1]",
        ),
        (of_agent("expect", json!({"extra": {}, "outcome": "fault"})), "acts", "`expect.extra` goes with a `response`"),
        (
            of_agent("expect", json!({"budget": "cpu", "outcome": "fault"})),
            "acts",
            "`expect.budget` goes with the outcome",
        ),
    ] {
        let said = ran(plugin, std::slice::from_ref(&line)).expect_err("it is taken").to_string();
        assert!(said.contains(what), "{line}: {said}");
    }
}

#[test]
fn only_tests_run_attempts() {
    let folder = tempfile::tempdir().unwrap();
    let path = written(folder.path(), &[act("tell", json!([]), Value::Null)]);
    let error = PluginData::read(&path, 100).unwrap_err().to_string();
    assert!(error.contains("has cases of an agent, and only `gavel plugin test` runs them"), "{error}");
}
