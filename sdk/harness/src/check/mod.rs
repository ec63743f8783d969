//! Looks for problems of a plugin before training: wrong answers that score,
//! verdicts that change, calls that fail or cost too much, grants that the
//! plugin does not need.

mod advantage;
mod answer;
mod decision;
mod determinism;
mod finding;
mod golden;
mod grants;
mod mutation;
mod sampler;
mod tool;
mod trial;

pub use finding::{CheckReport, Finding, Kind, Severity};

use crate::distribution::Distribution;
use crate::endpoints::Endpoints;
use crate::error::HarnessError;
use crate::golden::FakeChatTable;
use crate::harness::Harness;
use crate::plugins::Plugins;
use crate::rows::{DataRow, PluginData};
use advantage::Advantage;
use answer::Answers;
use finding::Findings;
use gavel_data::{Blame, Evaluation, Outcome};
use gavel_plugin::PluginSpec;
use golden::{Golden, find_golden};
use mutation::{Must, mutations};
use sampler::Sampler;
use std::collections::BTreeMap;
use trial::Trial;

/// The most golden answers that are mutated; each is tried two dozen times.
const MUTATED: usize = 25;

/// Checks the plugin of `spec` over `data`, each row or session with its own
/// parameters or the parameters of `spec`. `chat` has the replies of the
/// endpoints that it is granted.
///
/// # Errors
/// The plugin does not load, or has no function for this data.
pub fn check(
    harness: &Harness,
    spec: &PluginSpec,
    chat: &BTreeMap<String, FakeChatTable>,
    data: &PluginData,
) -> Result<CheckReport, HarnessError> {
    match data {
        PluginData::Rows(rows) => check_rows(harness, spec, chat, rows),
        PluginData::Sessions(cases) => tool::check(harness, spec, chat, cases),
        PluginData::Batches(cases) => decision::check::<Advantage>(harness, spec, cases),
        PluginData::Requests(cases) => decision::check::<Sampler>(harness, spec, cases),
    }
}

fn check_rows(
    harness: &Harness,
    spec: &PluginSpec,
    chat: &BTreeMap<String, FakeChatTable>,
    rows: &[DataRow],
) -> Result<CheckReport, HarnessError> {
    let endpoints = Endpoints::new(harness, chat, rows.iter().flat_map(|row| row.replies.keys()));
    let subjects = Plugins::load(harness, spec, rows.iter().map(|row| (row.params.as_ref(), row.place.clone())))?;
    if subjects.any().tool().is_some() {
        return Err(HarnessError::NoSessions(spec.name.clone()));
    }
    if subjects.any().is_advantage() && !subjects.any().scores() {
        return Err(HarnessError::NoGroups(spec.name.clone()));
    }
    if subjects.any().is_sampler() && !subjects.any().scores() {
        return Err(HarnessError::NoRequests(spec.name.clone()));
    }
    if !subjects.any().scores() {
        return Err(HarnessError::ScoresNothing(spec.name.clone()));
    }
    let answers = Answers::of(rows);
    let mut report = CheckReport::of(subjects.any(), spec, rows.len());
    let mut findings = Findings::default();

    let mut usages = Vec::new();
    for row in rows {
        let trial = Trial { plugin: subjects.of(row.params.as_ref()), row, endpoints: &endpoints };
        if let Some(input) = row.input() {
            let said = trial.own(&input);
            if !row.expects_no_score {
                failed(&mut findings, row, None, &said, &input.sample.response());
            }
            usages.push(said.usage);
        }
        match find_golden(&trial) {
            Some(golden) => {
                *report.golden.entry(golden.form.to_owned()).or_default() += 1;
                if report.mutated < MUTATED {
                    report.mutated += 1;
                    let judged = trial.looks_at_truth(&golden);
                    report.ignores_truth += u64::from(!judged);
                    mutate(&trial, &golden, judged, &answers, &mut findings, &mut report);
                }
            }
            None => report.without_golden.push(row.place.clone()),
        }
    }
    report.cpu_us = Distribution::of(usages.iter().map(|usage| usage.cpu_us));
    report.peak_memory = usages.iter().map(|usage| usage.peak_memory).max().unwrap_or_default();
    findings.cost(&report, &spec.limits);
    determinism::check(harness, &subjects, spec, rows, &endpoints, &mut findings, &mut report)?;
    grants::check(harness, spec, &endpoints, &mut findings, &mut report)?;
    report.findings = findings.into_list();
    Ok(report)
}

/// Tries every mutation of a golden answer; `judged` is whether its score
/// depends on the ground truth.
fn mutate(
    trial: &Trial<'_>,
    golden: &Golden,
    judged: bool,
    answers: &Answers,
    findings: &mut Findings,
    report: &mut CheckReport,
) {
    for mutation in mutations(golden, trial.row, answers) {
        let (best, said) = trial.against(golden, &mutation.response);
        report.tried += 1;
        report.worst_cpu_us = report.worst_cpu_us.max(said.usage.cpu_us);
        failed(findings, trial.row, Some(mutation.name), &said, &mutation.response);
        let (Some(best), Some(score)) = (best.outcome.score(), said.outcome.score()) else { continue };
        let wrong = match mutation.must {
            Must::ScoreLess => score >= best,
            Must::ScoreLessIfJudged => judged && score >= best,
            Must::NotScoreMore => score > best,
        };
        if wrong {
            findings.add(Finding {
                severity: mutation.severity,
                kind: Kind::FalseAccept,
                mutation: Some(mutation.name),
                what: format!("{} scores {score}; the golden answer scores {best}", mutation.what),
                count: 1,
                row: trial.row.place.clone(),
                example: mutation.response.clone(),
            });
        }
    }
}

/// Adds a failed call, unless the plugin cannot be blamed for it.
fn failed(findings: &mut Findings, row: &DataRow, mutation: Option<&'static str>, said: &Evaluation, response: &str) {
    let severity = match &said.outcome {
        Outcome::Scored(_) | Outcome::Abstained(_) => return,
        // There are few scripted replies, and none for mutated answers.
        Outcome::Unavailable(_) if mutation.is_some() => return,
        Outcome::Fault { whose: Blame::Input, .. } | Outcome::OutOfBudget { .. } | Outcome::Unavailable(_) => {
            Severity::Medium
        }
        Outcome::Fault { .. } => Severity::High,
    };
    let kind = said.outcome.kind().as_str();
    let detail = said.detail().map(|detail| format!(" ({detail})")).unwrap_or_default();
    let reason = said.outcome.reason().unwrap_or_default();
    let reason = reason.lines().next().unwrap_or_default();
    findings.add(Finding {
        severity,
        kind: Kind::Failure,
        mutation,
        what: format!("{kind}{detail}: {reason}"),
        count: 1,
        row: row.place.clone(),
        example: response.to_owned(),
    });
}
