//! Whether the same input gives the same verdict.

use super::finding::{CheckReport, Finding, Findings, Kind, Severity};
use crate::endpoints::Endpoints;
use crate::error::HarnessError;
use crate::harness::Harness;
use crate::plugins::Plugins;
use crate::rows::DataRow;
use gavel_data::{Budget, Evaluation, EvaluationRecord, SampleInput};
use gavel_plugin::PluginSpec;
use gavel_scoring::replay::mismatches;
use std::num::NonZeroU32;

/// Calls of a reused instance.
pub(super) const REUSED: NonZeroU32 = NonZeroU32::MIN.saturating_add(15);

/// Calls the plugin on each row again: at once, in another sandbox, beside the
/// other rows, with another seed and, if the plugin declares itself pure, in an
/// instance that has answered others.
pub(super) fn check(
    harness: &Harness,
    subjects: &Plugins,
    spec: &PluginSpec,
    rows: &[DataRow],
    endpoints: &Endpoints<'_>,
    findings: &mut Findings,
    report: &mut CheckReport,
) -> Result<(), HarnessError> {
    let rows: Vec<(&DataRow, SampleInput)> = rows.iter().filter_map(|row| Some((row, row.input()?))).collect();
    if rows.is_empty() {
        return Ok(());
    }
    let ask = |subjects: &Plugins, row: &DataRow, input: &SampleInput, seed: u64| {
        endpoints.restart(&row.replies);
        subjects.of(row.params.as_ref()).evaluate(input, seed)
    };
    let first: Vec<Evaluation> = rows.iter().map(|(row, sample)| ask(subjects, row, sample, row.seed)).collect();
    let pure = subjects.any().info().pure;
    let CheckReport { compared, notes, .. } = report;
    let mut compare = |what: &str, severity, again: Vec<Evaluation>| {
        let mut differs = 0;
        for (((row, input), first), again) in rows.iter().zip(&first).zip(&again) {
            *compared += 1;
            let Some(different) = difference(first, again) else { continue };
            differs += 1;
            if let Some(severity) = severity {
                let (row, example) = (row.place.clone(), input.sample.response());
                let what = format!("{what}: {different}");
                let kind = Kind::NonDeterminism;
                findings.add(Finding { severity, kind, mutation: None, what, count: 1, row, example });
            }
        }
        differs
    };

    let again = rows.iter().map(|(row, sample)| ask(subjects, row, sample, row.seed)).collect();
    compare("the same input twice", Some(Severity::High), again);

    if !spec.grants.asks_models() {
        let together =
            rows.iter().rev().map(|(row, sample)| (subjects.of(row.params.as_ref()), sample.clone(), row.seed));
        let mut again = subjects.any().evaluate_together(together.collect());
        again.reverse();
        compare("the same input beside others", Some(Severity::High), again);
        let params = || rows.iter().map(|(row, _)| (row.params.as_ref(), row.place.clone()));
        if spec.grants.exec.is_empty() {
            let elsewhere = Plugins::load(&Harness::new()?, spec, params())?;
            let again = rows.iter().map(|(row, sample)| ask(&elsewhere, row, sample, row.seed)).collect();
            compare("the same input in another sandbox", Some(Severity::High), again);
        } else {
            notes.push(
                "its programs are only in this sandbox: verdicts were not compared with those of another one".into(),
            );
        }
        if pure {
            let reused = PluginSpec { reuse: Some(REUSED), ..spec.clone() };
            let kept = Plugins::load(harness, &reused, params())?;
            let again = rows.iter().map(|(row, sample)| ask(&kept, row, sample, row.seed)).collect();
            compare("the same input in an instance that has answered others", Some(Severity::High), again);
        }
    }

    let severity = pure.then_some(Severity::High);
    let again = rows.iter().map(|(row, sample)| ask(subjects, row, sample, !row.seed)).collect();
    let what = "another seed, though the plugin declares itself pure";
    let differs = compare(what, severity, again);
    match (pure, differs) {
        (false, 0) => {
            notes.push(
                "no verdict depends on the seed: it could declare itself pure, so that its instances are reused".into(),
            );
        }
        (false, differs) => {
            notes.push(format!("{differs} of {} verdicts depend on the seed; it does not claim otherwise", rows.len()));
        }
        (true, _) => {}
    }
    Ok(())
}

/// The first difference between two verdicts, apart from times.
fn difference(first: &Evaluation, again: &Evaluation) -> Option<String> {
    let (first, again) = (EvaluationRecord::from(first), EvaluationRecord::from(again));
    let by_the_clock = |said: &EvaluationRecord| matches!(said.budget, Some(Budget::Cpu | Budget::Deadline));
    if by_the_clock(&first) || by_the_clock(&again) {
        return None;
    }
    let found = mismatches(&first, &again).into_iter().next()?;
    Some(format!("{} was {} and then {}", found.what, found.recorded, found.replayed))
}
