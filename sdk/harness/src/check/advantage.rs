//! The check of an advantage: calls that fail, also over groups that a run may have and authors do not think of, and
//! advantages that change.

use super::finding::{CheckReport, Finding, Findings, Kind, Severity};
use crate::distribution::Distribution;
use crate::error::HarnessError;
use crate::golden::{Case, Question};
use crate::harness::Harness;
use crate::plugin::LoadedPlugin;
use crate::plugins::Plugins;
use gavel_data::Outcome;
use gavel_plugin::PluginSpec;
use gavel_plugin::advantage::{Batch, EstimateCall, ScoredSample};
use std::sync::Arc;

/// Checks the advantage of `spec` over the groups of `cases`.
pub(super) fn check(harness: &Harness, spec: &PluginSpec, cases: &[Case]) -> Result<CheckReport, HarnessError> {
    let params = || cases.iter().map(|case| (case.params.as_ref(), format!("line {}", case.line)));
    let subjects = Plugins::load(harness, spec, params())?;
    if !subjects.any().is_advantage() {
        return Err(HarnessError::NotAnAdvantage(spec.name.clone()));
    }
    let elsewhere = Plugins::load(&Harness::new()?, spec, params())?;
    let pure = subjects.any().info().pure;
    let mut report = CheckReport::of(subjects.any(), spec, cases.len());
    let mut findings = Findings::default();
    let mut usages = Vec::new();
    for case in cases {
        let Question::Batch(batch) = &case.question else { continue };
        let of = |subjects: &Plugins, seed: u64| estimate(subjects.of(case.params.as_ref()), batch, seed);
        let first = of(&subjects, case.seed);
        usages.push(first.usage);
        let may_fail = case.expected.as_ref().is_some_and(|expected| expected.advantages.is_none());
        if !may_fail {
            failed(&mut findings, case, None, &first);
        }
        let mut compare = |what: &str, again: &EstimateCall| {
            report.compared += 1;
            differs(&mut findings, case, what, &first, again);
        };
        compare("the same groups twice", &of(&subjects, case.seed));
        compare("the same groups in another sandbox", &of(&elsewhere, case.seed));
        if pure {
            compare("another seed, though the plugin declares itself pure", &of(&subjects, !case.seed));
        }
        for (mutation, batch) in mutated(batch) {
            let tried = estimate(subjects.of(case.params.as_ref()), &Arc::new(batch), case.seed);
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

fn estimate(plugin: &LoadedPlugin, batch: &Arc<Batch>, seed: u64) -> EstimateCall {
    plugin.block_on(plugin.plugin().estimate_call(batch.clone(), seed))
}

/// Groups as a run may have them: of one sample, of equal rewards, of very large ones, and with nothing to learn from.
fn mutated(batch: &Batch) -> Vec<(&'static str, Batch)> {
    let with = |change: &dyn Fn(&mut Vec<ScoredSample>)| {
        let mut batch = batch.clone();
        batch.groups.iter_mut().for_each(|group| change(&mut group.samples));
        batch
    };
    let rewarded = |reward: fn(f64) -> f64| {
        with(&|samples| {
            for sample in samples {
                sample.reward = reward(sample.reward);
                sample.parts.iter_mut().for_each(|part| part.counted = reward(part.counted));
            }
        })
    };
    let unlearned = with(&|samples| {
        let trajectories = samples.iter_mut().flat_map(|sample| &mut sample.trajectories);
        trajectories.for_each(|trajectory| trajectory.learned.clear());
    });
    let without_score = with(&|samples| {
        samples.iter_mut().flat_map(|sample| &mut sample.parts).for_each(|part| part.score = None);
    });
    vec![
        ("one sample", with(&|samples| samples.truncate(1))),
        ("equal rewards", rewarded(|_| 0.5)),
        ("large rewards", rewarded(|reward| if reward > 0.0 { 1e6 } else { -1e6 })),
        ("no score", without_score),
        ("nothing to learn from", unlearned),
    ]
}

/// Adds a call that gave no advantages.
fn failed(findings: &mut Findings, case: &Case, mutation: Option<&'static str>, call: &EstimateCall) {
    let Err(outcome) = &call.estimates else { return };
    let severity = match outcome {
        Outcome::OutOfBudget { .. } | Outcome::Unavailable(_) => Severity::Medium,
        _ => Severity::High,
    };
    let reason = outcome.reason().unwrap_or_default();
    let what = format!("{}: {}", outcome.kind().as_str(), reason.lines().next().unwrap_or_default());
    add(findings, case, Kind::Failure, severity, mutation, what);
}

/// Adds a call whose repetition gave other bits.
fn differs(findings: &mut Findings, case: &Case, what: &str, first: &EstimateCall, again: &EstimateCall) {
    let (Ok(one), Ok(other)) = (&first.estimates, &again.estimates) else { return };
    // The text of a number has all of its bits.
    let (one, other) = (format!("{one:?}"), format!("{other:?}"));
    if one != other {
        let what = format!("{what}: the advantages or the state differ");
        add(findings, case, Kind::NonDeterminism, Severity::High, None, what);
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
