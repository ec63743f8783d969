//! Tries what a run depends on before its first step: the folder of its runs, each reward on a few rows, and the plugins
//! that turn rewards into advantages and draw tasks.

use crate::error::{PipelineError, Result};
use crate::metrics::diagnosis;
use crate::rows::{Prompt, Prompts};
use crate::run::check::Check;
use crate::run::setup::Setup;
use crate::run::try_advantage::try_advantage;
use crate::run::try_sampler::try_sampler;
use gavel_config::{Config, TrainTable};
use gavel_data::{Blame, Evaluation, Outcome, OutcomeKind, RowSources, Shown, ShownLines, Task};
use gavel_runs::RunFolder;
use gavel_scoring::{PROBED_RESPONSE, Probe, ProbedRow, Scorer};
use gavel_tracking::check_environment;
use std::sync::Arc;

/// The results.
#[derive(Default)]
pub(crate) struct Probed {
    /// The outcomes of each reward.
    pub(crate) checks: Vec<Check>,
    /// What failed and does not stop the run.
    pub(crate) warnings: Vec<String>,
}

/// Tries the rewards on rows of `train`, which is absent where they are for validation only, and of the validation set.
///
/// # Errors
/// The folder cannot be written, or more calls of a reward with a weight than `max_failure_rate` allows failed in a way
/// that no response could have caused.
pub(crate) fn probe<T: TrainTable>(config: &Config<T>, setup: &Setup, train: Option<&Prompts>) -> Result<Probed> {
    RunFolder::check(&config.log.folder())?;
    check_environment(&config.log.trackers)?;
    let mut probed = probe_on(config, &setup.scorer, train, &tasks(&setup.validation))?;
    let tried_sampler = train.and_then(|train| try_sampler(config, setup, train));
    for (check, warning) in try_advantage(config, setup).into_iter().chain(tried_sampler) {
        probed.checks.push(check);
        probed.warnings.extend(warning);
    }
    Ok(probed)
}

/// The data sources of tasks.
pub(crate) fn sources(tasks: &[Arc<Task>]) -> RowSources {
    tasks.iter().map(|task| task.data_source.as_deref()).collect()
}

/// The tasks of prompts.
pub(crate) fn tasks(prompts: &[Prompt]) -> Vec<Arc<Task>> {
    prompts.iter().map(|prompt| prompt.task.clone()).collect()
}

/// Tries the rewards on tasks of `data.train` and of `data.validation`.
fn probe_on<T: TrainTable>(
    config: &Config<T>,
    scorer: &Scorer,
    train: Option<&Prompts>,
    validation: &[Arc<Task>],
) -> Result<Probed> {
    let names = [Some(&config.data.train), config.data.validation.as_ref()];
    let names = names.map(|dataset| dataset.map(ToString::to_string).unwrap_or_default());
    let (none, of_validation) = (RowSources::default(), sources(validation));
    let datasets = [train.map_or(&none, |train| &train.sources), &of_validation];
    let probes = scorer.probe(&datasets, |dataset, row| match train.filter(|_| dataset == 0) {
        Some(train) => Ok::<_, PipelineError>(train.rows.get(row)?.task.clone()),
        None => Ok(validation[row].clone()),
    });
    let mut probed = Probed::default();
    for probe in scorer.sandbox().handle().block_on(probes)? {
        let dataset = &names[probe.dataset];
        probed.checks.push(Check { what: "reward tried", found: said(&probe, dataset) });
        let Some(first) = probe.calls.iter().find(|row| !row.evaluation.ended_well()) else { continue };
        let message = message(&probe, dataset, first);
        let hopeless = probe.calls.iter().filter(|row| is_hopeless(&probe, &row.evaluation)).count();
        if probe.weight != 0.0 && hopeless as f64 > config.train.max_failure_rate() * probe.calls.len() as f64 {
            return Err(PipelineError::Stopped(format!(
                "{message}\nhint: repair the reward, or what it needs; to run although all of its calls may fail, set train.max_failure_rate = 1.0"
            )));
        }
        probed.warnings.push(message);
    }
    Ok(probed)
}

/// The same at the start of a run, which logs what failed and does not stop it.
pub(crate) fn try_rewards<T: TrainTable>(config: &Config<T>, setup: &Setup, train: Option<&Prompts>) -> Result<()> {
    announce(&setup.scorer);
    warn(&probe(config, setup, train)?);
    Ok(())
}

/// Tries the rewards on tasks of the validation set before an evaluation.
///
/// # Errors
/// As [`probe`].
pub(crate) fn try_rewards_on<T: TrainTable>(
    config: &Config<T>,
    scorer: &Scorer,
    validation: &[Arc<Task>],
) -> Result<()> {
    announce(scorer);
    warn(&probe_on(config, scorer, None, validation)?);
    Ok(())
}

fn announce(scorer: &Scorer) {
    if scorer.plugins().next().is_some() {
        tracing::info!("trying each reward on a few rows");
    }
}

fn warn(probed: &Probed) {
    probed.warnings.iter().for_each(|warning| tracing::warn!("{warning}"));
}

/// How often a reward had each outcome: `letter: 4 rows of train.jsonl: 3 scored, 1 abstained (the first: no letter)`.
fn said(probe: &Probe, dataset: &str) -> String {
    let counts = OutcomeKind::ALL.into_iter().filter_map(|kind| {
        let mut of_kind = probe.calls.iter().filter(|row| row.evaluation.outcome.kind() == kind);
        let first = &of_kind.next()?.evaluation;
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

fn message(probe: &Probe, dataset: &str, first: &ProbedRow) -> String {
    let failed = probe.calls.iter().filter(|row| !row.evaluation.ended_well()).count();
    let response = match first.is_ground_truth {
        true => "the row's ground truth as the response".to_owned(),
        false => format!("the response {PROBED_RESPONSE:?}"),
    };
    format!(
        "the reward `{}` was tried with {response} and failed on {failed} of {} of {dataset}; the first: {}: {}{}",
        probe.plugin,
        rows(probe.calls.len()),
        Shown(&first.task.id),
        ShownLines(first.evaluation.outcome.reason().unwrap_or_default()),
        diagnosis(&first.evaluation),
    )
}

/// Whether repairing the row, the host or the endpoint is the only way to a score. A bug of the plugin may appear with
/// this response only, but a model or a server that refuses one call refuses the others.
fn is_hopeless(probe: &Probe, evaluation: &Evaluation) -> bool {
    match evaluation.outcome {
        Outcome::Scored(_) | Outcome::Abstained(_) => false,
        Outcome::Unavailable(_) | Outcome::Fault { whose: Blame::Input | Blame::Host, .. } => true,
        Outcome::Fault { whose: Blame::Plugin, .. } | Outcome::OutOfBudget { .. } => probe.reaches_what_changes,
    }
}
