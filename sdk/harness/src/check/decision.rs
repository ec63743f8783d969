//! The check of a component that decides what is learned: calls that fail, also with questions that a run may have and
//! authors do not think of, and answers that change.

use super::finding::{CheckReport, Finding, Findings, Kind, Severity};
use crate::distribution::Distribution;
use crate::error::HarnessError;
use crate::expectation::Expectation;
use crate::golden::Case;
use crate::harness::Harness;
use crate::plugin::LoadedPlugin;
use crate::plugins::Plugins;
use gavel_data::Outcome;
use gavel_plugin::{Decision, PluginSpec};
use std::fmt::Debug;
use std::sync::Arc;

/// A kind of decision.
pub(super) trait Decider {
    type Question;
    type Answer: Debug;

    /// What differs if an answer changes.
    const DIFFERENT: &str;

    /// Refuses a plugin that makes no such decisions.
    fn check(plugin: &LoadedPlugin) -> Result<(), HarnessError>;

    fn question(case: &Case) -> Option<&Arc<Self::Question>>;

    /// Asks with the seed of a case, or with another one.
    fn ask(plugin: &LoadedPlugin, question: &Arc<Self::Question>, seed: u64) -> Decision<Self::Answer>;

    /// Whether random numbers depend on the seed of a case alone, so that a pure plugin ignores it.
    const IS_SEEDED_BESIDE: bool;

    /// Whether a case expects an answer.
    fn is_answer(expected: &Expectation) -> bool;

    /// Questions as a run may have them, each with what was changed.
    fn mutated(question: &Self::Question) -> Vec<(&'static str, Self::Question)>;
}

/// Checks the plugin of `spec` over the questions of `cases`.
pub(super) fn check<D: Decider>(
    harness: &Harness,
    spec: &PluginSpec,
    cases: &[Case],
) -> Result<CheckReport, HarnessError> {
    let params = || cases.iter().map(|case| (case.params.as_ref(), format!("line {}", case.line)));
    let subjects = Plugins::load(harness, spec, params())?;
    D::check(subjects.any())?;
    let elsewhere = Plugins::load(&Harness::new()?, spec, params())?;
    let ignores_seed = D::IS_SEEDED_BESIDE && subjects.any().info().pure;
    let mut report = CheckReport::of(subjects.any(), spec, cases.len());
    let mut findings = Findings::default();
    let mut usages = Vec::new();
    for case in cases {
        let Some(question) = D::question(case) else { continue };
        let of = |subjects: &Plugins, seed: u64| D::ask(subjects.of(case.params.as_ref()), question, seed);
        let first = of(&subjects, case.seed);
        usages.push(first.usage);
        let may_fail = case.expected.as_ref().is_some_and(|expected| !D::is_answer(expected));
        if !may_fail {
            failed(&mut findings, case, None, &first);
        }
        let mut compare = |what: &str, again: &Decision<D::Answer>| {
            report.compared += 1;
            differs(&mut findings, case, &format!("{what}: {}", D::DIFFERENT), &first, again);
        };
        compare("the same question twice", &of(&subjects, case.seed));
        compare("the same question in another sandbox", &of(&elsewhere, case.seed));
        if ignores_seed {
            compare("another seed, though the plugin declares itself pure", &of(&subjects, !case.seed));
        }
        for (mutation, question) in D::mutated(question) {
            let tried = D::ask(subjects.of(case.params.as_ref()), &Arc::new(question), case.seed);
            report.tried += 1;
            report.worst_cpu_us = report.worst_cpu_us.max(tried.usage.cpu_us);
            if !may_fail {
                failed(&mut findings, case, Some(mutation), &tried);
            }
        }
    }
    report.cpu_us = Distribution::of(usages.iter().map(|usage| usage.cpu_us));
    report.peak_memory = usages.iter().map(|usage| usage.peak_memory).max().unwrap_or_default();
    findings.cost(&report, &spec.limits);
    report.findings = findings.into_list();
    Ok(report)
}

/// Adds a call that gave no answer.
fn failed<T>(findings: &mut Findings, case: &Case, mutation: Option<&'static str>, call: &Decision<T>) {
    let Err(outcome) = &call.answer else { return };
    let severity = match outcome {
        Outcome::OutOfBudget { .. } | Outcome::Unavailable(_) => Severity::Medium,
        _ => Severity::High,
    };
    let reason = outcome.reason().unwrap_or_default();
    let what = format!("{}: {}", outcome.kind().as_str(), reason.lines().next().unwrap_or_default());
    add(findings, case, Kind::Failure, severity, mutation, what);
}

/// Adds a call whose repetition gave other bits.
fn differs<T: Debug>(findings: &mut Findings, case: &Case, what: &str, first: &Decision<T>, again: &Decision<T>) {
    let (Ok(one), Ok(other)) = (&first.answer, &again.answer) else { return };
    // The text of a number has all of its bits.
    let (one, other) = (format!("{one:?}"), format!("{other:?}"));
    if one != other {
        add(findings, case, Kind::NonDeterminism, Severity::High, None, what.to_owned());
    }
}

fn add(
    findings: &mut Findings,
    case: &Case,
    kind: Kind,
    severity: Severity,
    mutation: Option<&'static str>,
    what: String,
) {
    let row = format!("line {}, {}", case.line, case.name);
    findings.add(Finding { severity, kind, mutation, what, count: 1, row, example: String::new() });
}
