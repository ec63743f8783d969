//! The check of a tool: calls that fail, answers that change, descriptions that the policy cannot use.

use super::determinism::REUSED;
use super::finding::{CheckReport, Finding, Findings, Kind, Severity};
use super::grants;
use crate::distribution::Distribution;
use crate::endpoints::Endpoints;
use crate::error::HarnessError;
use crate::golden::{CallCase, Case, FakeChatTable, Question, SessionCase};
use crate::harness::Harness;
use crate::plugin::LoadedPlugin;
use crate::plugins::Plugins;
use crate::tool::{CallExpectation, FunctionCall};
use gavel_data::ToolEnding;
use gavel_plugin::PluginSpec;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// Bytes of an argument that does not end.
const LONG: usize = 2 << 20;

/// Checks the tool of `spec` over the sessions of `cases`.
pub(super) fn check(
    harness: &Harness,
    spec: &PluginSpec,
    chat: &BTreeMap<String, FakeChatTable>,
    cases: &[Case],
) -> Result<CheckReport, HarnessError> {
    let endpoints = Endpoints::new(harness, chat, cases.iter().flat_map(|case| case.replies.keys()));
    let params = || cases.iter().map(|case| (case.params.as_ref(), format!("line {}", case.line)));
    let subjects = Plugins::load(harness, spec, params())?;
    if subjects.any().tool().is_none() {
        return Err(HarnessError::NotATool(spec.name.clone()));
    }
    let mut report = CheckReport::of(subjects.any(), spec, cases.len());
    let mut findings = Findings::default();
    describe(subjects.any(), &mut findings);
    let run = |subjects: &Plugins, case: &Case, session: &SessionCase| {
        endpoints.restart(&case.replies);
        session.run(subjects.of(case.params.as_ref()), case.seed).map(|session| session.calls)
    };
    let elsewhere = match spec.grants.exec.is_empty() && !spec.grants.asks_models() {
        true => Some(Plugins::load(&Harness::new()?, spec, params())?),
        false => None,
    };
    let kept = match subjects.any().info().pure && !spec.grants.asks_models() {
        true => Some(Plugins::load(harness, &PluginSpec { reuse: Some(REUSED), ..spec.clone() }, params())?),
        false => None,
    };
    let mut usages = Vec::new();
    for case in cases {
        let Question::Session(session) = &case.question else { continue };
        let first = run(&subjects, case, session)?;
        for (call, expected) in first.iter().zip(&session.calls) {
            if !expected.expected.as_ref().is_some_and(CallExpectation::is_of_failure) {
                usages.push(*call.usage());
                failed(&mut findings, case, None, call);
            }
        }
        let mut compare = |what: &str, again: Vec<FunctionCall>| {
            for (first, again) in first.iter().zip(&again) {
                report.compared += 1;
                differs(&mut findings, case, what, first, again);
            }
        };
        compare("the same calls twice", run(&subjects, case, session)?);
        if let Some(elsewhere) = &elsewhere {
            compare("the same calls in another sandbox", run(elsewhere, case, session)?);
        }
        if let Some(kept) = &kept {
            compare("the same calls in an instance that has answered others", run(kept, case, session)?);
        }
        for (mutation, call) in mutated(session) {
            let tried = SessionCase { settings: session.settings.clone(), calls: vec![call], state: None };
            for call in run(&subjects, case, &tried)? {
                report.tried += 1;
                report.worst_cpu_us = report.worst_cpu_us.max(call.usage().cpu_us);
                failed(&mut findings, case, Some(mutation), &call);
            }
        }
    }
    report.cpu_us = Distribution::of(usages.iter().map(|usage| usage.cpu_us));
    report.peak_memory = usages.iter().map(|usage| usage.peak_memory).max().unwrap_or_default();
    findings.cost(&report, &spec.limits);
    grants::check(harness, spec, &endpoints, &mut findings, &mut report)?;
    report.findings = findings.into_list();
    Ok(report)
}

/// Descriptions from which a policy cannot learn how to call a function.
fn describe(plugin: &LoadedPlugin, findings: &mut Findings) {
    let mut add = |what: String| {
        let (row, example) = (String::new(), String::new());
        findings.add(Finding {
            severity: Severity::Medium,
            kind: Kind::Description,
            mutation: None,
            what,
            count: 1,
            row,
            example,
        });
    };
    for function in plugin.tool().into_iter().flat_map(|tool| tool.functions()) {
        let spec = function.spec();
        let name = function.name();
        if spec.description.trim().is_empty() {
            add(format!("`{name}` has no description"));
        }
        if spec.parameters.get("type").and_then(Value::as_str) != Some("object") {
            add(format!("`{name}`: its schema does not say that the arguments are an object"));
        }
        let empty = Map::new();
        let arguments = spec.parameters.get("properties").and_then(Value::as_object).unwrap_or(&empty);
        for (argument, schema) in arguments {
            if schema.as_object().is_some_and(Map::is_empty) {
                add(format!("`{name}.{argument}`: its schema allows anything"));
            }
        }
    }
}

/// The calls of a session with other arguments, each alone: texts that are empty or long, numbers at the ends of their
/// range, arguments that are missing. Most are refused, and none may bring the tool down.
fn mutated(session: &SessionCase) -> Vec<(&'static str, CallCase)> {
    let mut made = Vec::new();
    for call in &session.calls {
        let Ok(arguments) = serde_json::from_str::<Map<String, Value>>(&call.arguments) else { continue };
        for (name, value) in &arguments {
            for (mutation, other) in others(value) {
                let mut arguments = arguments.clone();
                arguments.insert(name.clone(), other);
                let arguments = Value::Object(arguments).to_string();
                made.push((mutation, CallCase { arguments, expected: None, ..call.clone() }));
            }
            let mut fewer = arguments.clone();
            fewer.remove(name);
            let arguments = Value::Object(fewer).to_string();
            made.push(("missing", CallCase { arguments, expected: None, ..call.clone() }));
        }
    }
    made
}

/// Other values for an argument.
fn others(value: &Value) -> Vec<(&'static str, Value)> {
    match value {
        Value::String(text) => vec![
            ("empty", "".into()),
            ("white space", " \n\t\u{a0}".into()),
            ("control characters", format!("\0\u{1b}[31m{text}\u{202e}\0").into()),
            ("two megabytes", "x".repeat(LONG).into()),
            ("open brackets", "(".repeat(100_000).into()),
            ("other scripts", "不知道 👍🏽 ٤٢".into()),
        ],
        Value::Number(_) => vec![
            ("zero", 0.into()),
            ("negative", (-1).into()),
            ("largest", i64::MAX.into()),
            ("smallest", i64::MIN.into()),
            ("larger than 64 bits", json!(1e300)),
            ("fraction", json!(0.1)),
        ],
        Value::Array(_) => vec![("empty", json!([]))],
        Value::Object(_) => vec![("empty", json!({}))],
        Value::Bool(value) => vec![("negated", (!value).into())],
        Value::Null => Vec::new(),
    }
}

/// Adds a call that ended without an answer, unless the policy is to blame.
fn failed(findings: &mut Findings, case: &Case, mutation: Option<&'static str>, call: &FunctionCall) {
    let severity = match call.report().ending() {
        ToolEnding::Answered | ToolEnding::CalledWrongly => return,
        // There are few scripted replies, and none for mutated arguments.
        ToolEnding::Unavailable if mutation.is_some() => return,
        // Exceeding a budget with extreme arguments is what the limits are for.
        ToolEnding::OutOfBudget if mutation.is_some() => Severity::Low,
        ToolEnding::OutOfBudget | ToolEnding::Unavailable => Severity::Medium,
        ToolEnding::Failed => Severity::High,
    };
    let (function, arguments) = call.asked();
    let text = call.text();
    let what = format!("{}, {function}: {}", call.report().ending().as_str(), text.lines().next().unwrap_or_default());
    add(findings, case, Kind::Failure, severity, mutation, what, arguments);
}

/// Adds a call whose repetition gave another result.
fn differs(findings: &mut Findings, case: &Case, what: &str, first: &FunctionCall, again: &FunctionCall) {
    let is_by_the_clock = |call: &FunctionCall| call.report().ending() == ToolEnding::OutOfBudget;
    if first.text() == again.text() || is_by_the_clock(first) || is_by_the_clock(again) {
        return;
    }
    let (function, arguments) = first.asked();
    let what = format!("{what}, {function}: {:?} and then {:?}", first.text(), again.text());
    add(findings, case, Kind::NonDeterminism, Severity::High, None, what, arguments);
}

fn add(
    findings: &mut Findings,
    case: &Case,
    kind: Kind,
    severity: Severity,
    mutation: Option<&'static str>,
    what: String,
    arguments: &str,
) {
    let row = format!("line {}, {}", case.line, case.name);
    findings.add(Finding { severity, kind, mutation, what, count: 1, row, example: arguments.to_owned() });
}
