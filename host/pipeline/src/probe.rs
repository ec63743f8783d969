//! What a run writes to and whom it asks is tried before its first step: the folder of its runs, and each reward on a
//! few rows.

use crate::config::{Config, TrainTable};
use crate::dry_run::Check;
use crate::error::{PipelineError, Result};
use crate::failure_rate::diagnosis;
use crate::prompts::Prompt;
use crate::setup::Setup;
use gavel_data::{Blame, Evaluation, Outcome, OutcomeKind, Shown, ShownLines, Task};
use gavel_runs::RunFolder;
use gavel_scoring::{PROBED_RESPONSE, Probe};
use std::sync::Arc;

/// What came of it.
#[derive(Default)]
pub(crate) struct Probed {
    /// What each reward said.
    pub(crate) checks: Vec<Check>,
    /// What failed and does not stop the run.
    pub(crate) warnings: Vec<String>,
}

/// Tries the rewards on rows of `train`, which is empty where they are for validation only, and of the validation set.
///
/// # Errors
/// The folder cannot be written, or more calls of a reward with a weight than `max_failure_rate` allows failed in a way
/// that no response could have caused.
pub(crate) fn probe<T: TrainTable>(config: &Config<T>, setup: &Setup, train: &[Prompt]) -> Result<Probed> {
    RunFolder::check(&config.log.folder())?;
    let tasks = |prompts: &[Prompt]| prompts.iter().map(|prompt| prompt.task.clone()).collect::<Vec<_>>();
    let names = [Some(&config.data.train), config.data.validation.as_ref()];
    let names = names.map(|dataset| dataset.map(ToString::to_string).unwrap_or_default());
    let datasets = [tasks(train), tasks(&setup.validation)];
    let probes = setup.scorer.probe(&datasets);
    let mut probed = Probed::default();
    for probe in setup.scorer.sandbox().handle().block_on(probes) {
        let dataset = &names[probe.dataset];
        probed.checks.push(Check { what: "reward tried", found: said(&probe, dataset) });
        let failed = |evaluation: &&(Arc<Task>, Evaluation)| !evaluation.1.ended_well();
        let Some(first) = probe.calls.iter().find(failed) else { continue };
        let message = message(&probe, dataset, first);
        let hopeless = probe.calls.iter().filter(|(_, evaluation)| is_hopeless(&probe, evaluation)).count();
        if probe.weight != 0.0 && hopeless as f64 > config.train.max_failure_rate() * probe.calls.len() as f64 {
            return Err(PipelineError::Stopped(format!(
                "{message}\nhint: repair the reward, or what it needs; a run whose calls may all fail has train.max_failure_rate = 1.0"
            )));
        }
        probed.warnings.push(message);
    }
    Ok(probed)
}

/// The same at the start of a run, which logs what failed and does not stop it.
pub(crate) fn try_rewards<T: TrainTable>(config: &Config<T>, setup: &Setup, train: &[Prompt]) -> Result<()> {
    if setup.scorer.plugins().next().is_some() {
        tracing::info!("trying each reward on a few rows");
    }
    probe(config, setup, train)?.warnings.iter().for_each(|warning| tracing::warn!("{warning}"));
    Ok(())
}

/// How often a reward said what: `letter: 4 rows of train.jsonl: 3 scored, 1 abstained (the first: no letter)`.
fn said(probe: &Probe, dataset: &str) -> String {
    let counts = OutcomeKind::ALL.into_iter().filter_map(|kind| {
        let mut of_kind = probe.calls.iter().filter(|(_, evaluation)| evaluation.outcome.kind() == kind);
        let (_, first) = of_kind.next()?;
        let reason = first.outcome.reason().filter(|_| kind != OutcomeKind::Scored);
        let reason = reason.map(|reason| format!(" (the first: {})", Shown(reason))).unwrap_or_default();
        Some(format!("{} {}{reason}", of_kind.count() + 1, kind.as_str()))
    });
    let counts = counts.collect::<Vec<_>>().join(", ");
    format!("{}: {} of {dataset}: {counts}", probe.plugin, rows(probe.calls.len()))
}

fn rows(count: usize) -> String {
    if count == 1 { "1 row".to_owned() } else { format!("{count} rows") }
}

fn message(probe: &Probe, dataset: &str, (task, evaluation): &(Arc<Task>, Evaluation)) -> String {
    let failed = probe.calls.iter().filter(|(_, evaluation)| !evaluation.ended_well()).count();
    format!(
        "the reward `{}` was tried with the response {PROBED_RESPONSE:?} and failed on {failed} of {} of {dataset}; the first: {}: {}{}",
        probe.plugin,
        rows(probe.calls.len()),
        Shown(&task.id),
        ShownLines(evaluation.outcome.reason().unwrap_or_default()),
        diagnosis(evaluation),
    )
}

/// Whether another response would fare no better: a bug of the plugin itself may be met by this response only, while a
/// model or a server that refuses one call refuses the others.
fn is_hopeless(probe: &Probe, evaluation: &Evaluation) -> bool {
    match evaluation.outcome {
        Outcome::Scored(_) | Outcome::Abstained(_) => false,
        Outcome::Unavailable(_) | Outcome::Fault { whose: Blame::Input | Blame::Host, .. } => true,
        Outcome::Fault { whose: Blame::Plugin, .. } | Outcome::OutOfBudget { .. } => probe.reaches_what_changes,
    }
}
