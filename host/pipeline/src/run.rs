//! What `gavel sft` and `gavel train` have in common: a run is opened or taken
//! up again, validated, recorded and kept.

use crate::config::{Config, MAY_DIFFER, TrainTable};
use crate::error::{PipelineError, Result};
use crate::learner::Learner;
use crate::setup::Setup;
use crate::validation::validate;
use crate::{Start, Summary};
use gavel_data::seed::{Purpose, derive, permutation};
use gavel_plugin::Tape;
use gavel_policy::Engine;
use gavel_runs::{Checkpoints, Metrics, RunFolder, State, layout};
use gavel_scoring::recording::{Grouping, RecordingError, keep_plugin_set};
use gavel_train::{OptimizerConfig, Trainer};
use serde::Serialize;

/// A run under way.
pub(crate) struct Run<'a, T> {
    pub(crate) config: &'a Config<T>,
    pub(crate) setup: Setup,
    pub(crate) learner: Learner,
    pub(crate) engine: Engine,
    pub(crate) trainer: Trainer,
    pub(crate) folder: RunFolder,
    pub(crate) state: State,
    /// Where answers that plugins get from outside are kept.
    tape: Tape,
    validate_every: u64,
    steps: u64,
}

/// What a run takes from its `[train]` table.
pub(crate) struct Shape {
    pub(crate) optimizer: OptimizerConfig,
    pub(crate) max_tokens_per_micro_batch: usize,
    pub(crate) gradient_checkpointing: bool,
    /// Responses that a step draws.
    pub(crate) drawn: usize,
    pub(crate) validate_every: u64,
    pub(crate) steps: u64,
    pub(crate) grouping: Grouping,
}

impl<'a, T: TrainTable + Serialize> Run<'a, T> {
    /// Starts a run in a folder of its own, or goes on where a checkpoint of the
    /// last one is. What the run has of later steps is dropped once all that it
    /// needs is loaded.
    pub(crate) fn open(config: &'a Config<T>, setup: Setup, shape: Shape, start: Start) -> Result<Self> {
        let mut folder = match start {
            Start::New => RunFolder::create(&config.log.folder(), &config.resolved()?)?,
            Start::Resume { .. } => RunFolder::resume(&config.log.folder(), &config.resolved()?, &MAY_DIFFER)?,
        };
        let (checkpoint, allow_changes) = match start {
            Start::New => (None, false),
            Start::Resume { from, allow_changed_plugins } => {
                (Some(folder.checkpoints().find(from)?), allow_changed_plugins)
            }
        };
        let step = checkpoint.as_ref().map_or(0, |(_, state)| state.step);
        keep_plugin_set(folder.path(), &setup.scorer, shape.grouping, step + 1, allow_changes).map_err(|error| {
            match error {
                RecordingError::Changed { .. } => PipelineError::ChangedPlugins(error),
                other => other.into(),
            }
        })?;
        let tape = Tape::record(layout::tape(folder.path()));
        setup.scorer.use_tape(tape.clone());
        let mut model = config.model.clone();
        if let Some((path, _)) = &checkpoint {
            (model.path, model.init, model.lora) = (Some(path.clone()), None, None);
        }
        let learner = Learner::new(&model, &config.resources, config.seed)?;
        learner.tell(&config.model)?;
        let mut trainer = Trainer::new(&learner.model, shape.optimizer, shape.max_tokens_per_micro_batch)
            .map_err(PipelineError::Optimizer)?
            .gradient_checkpointing(shape.gradient_checkpointing);
        if let Some((path, _)) = &checkpoint {
            trainer.load(&Checkpoints::optimizer(path)).map_err(PipelineError::Optimizer)?;
        }
        let engine = Engine::new(&learner.model, config.rollout.engine(shape.drawn.max(setup.validation.len())))?;
        let state = match checkpoint {
            Some((_, state)) => {
                folder.keep_config(&config.resolved()?)?;
                rewind(&mut folder, state.step)?;
                state
            }
            None => {
                tracing::info!("run folder {}", folder.path().display());
                State::default()
            }
        };
        let Shape { validate_every, steps, .. } = shape;
        Ok(Self { config, setup, learner, engine, trainer, folder, state, tape, validate_every, steps })
    }

    /// Records the policy before its first step; nothing to do in a run that
    /// was taken up again.
    pub(crate) fn begin(&mut self) -> Result<()> {
        if self.state != State::default() {
            return Ok(());
        }
        let mut metrics = Metrics::of_step(0);
        if let Some(accuracy) = self.validate(&mut metrics)? {
            self.state.first_accuracy = Some(accuracy);
            self.state.last_accuracy = Some(accuracy);
            tracing::info!("step 0: validation accuracy {accuracy:.3}");
        }
        Ok(self.folder.log(0, &metrics)?)
    }

    /// Ends a step: validates if it is time, logs, and keeps a checkpoint. The
    /// policy is now the one after `step` steps. Gives the accuracy, where it
    /// was looked at.
    pub(crate) fn end_step(&mut self, step: u64, mut metrics: Metrics) -> Result<Option<f64>> {
        let last = step == self.steps;
        self.state.step = step;
        let mut accuracy = None;
        let mut is_best = false;
        if last || step.is_multiple_of(self.validate_every) {
            accuracy = self.validate(&mut metrics)?;
            if let Some(accuracy) = accuracy {
                tracing::info!("step {step}: validation accuracy {accuracy:.3}");
                self.state.last_accuracy = Some(accuracy);
                is_best = self.state.best.is_none_or(|(_, best)| accuracy > best);
                if is_best {
                    self.state.best = Some((step, accuracy));
                }
            }
        }
        self.folder.log(step, &metrics)?;
        let table = &self.config.checkpoint;
        if last || step.is_multiple_of(table.every) || (is_best && table.keep_best) {
            self.save()?;
        }
        Ok(accuracy)
    }

    /// Keeps the policy as it is now, and all that led to it.
    pub(crate) fn save(&mut self) -> Result<()> {
        let Self { config, state, learner, trainer, folder, tape, .. } = self;
        folder.save_checkpoint(state, config.checkpoint.retention(), |into| {
            tape.sync()?;
            learner.model.save(into)?;
            learner.text.save(into)?;
            trainer.save(&Checkpoints::optimizer(into)).map_err(PipelineError::Optimizer)
        })
    }

    fn validate(&mut self, metrics: &mut Metrics) -> Result<Option<f64>> {
        if self.setup.validation.is_empty() {
            return Ok(None);
        }
        let found = validate(self.config, &self.learner, &mut self.engine, &self.setup.scorer, &self.setup.validation)?;
        let accuracy = found.get("val/accuracy");
        metrics.extend(found);
        Ok(accuracy)
    }

    /// What the run came to.
    pub(crate) fn summary(&self) -> Result<Summary> {
        let checkpoints = self.folder.checkpoints();
        Ok(Summary {
            folder: self.folder.path().to_owned(),
            step: self.state.step,
            accuracy: self.state.first_accuracy.zip(self.state.last_accuracy),
            checkpoint: checkpoints.newest()?,
            best: self.state.best.map(|(step, _)| checkpoints.path(step)).filter(|path| path.exists()),
            outcomes: self.state.outcomes.clone(),
        })
    }
}

/// Removes what a run has of the steps after `step`, since it continues from
/// there, and says what that was.
fn rewind(folder: &mut RunFolder, step: u64) -> Result<()> {
    let rewound = folder.rewind(step)?;
    tracing::info!("resuming {} after step {step}", folder.path().display());
    if let Some(later) = rewound.later() {
        tracing::info!("dropped what the run had of later steps: {later}");
    }
    if rewound.damaged > 0 {
        tracing::warn!("dropped {} damaged lines of metrics", rewound.damaged);
    }
    Ok(())
}

/// The rows of step `step` (from 1): `count` of `rows`, each once an epoch, in
/// an order of the epoch's own.
pub(crate) fn rows_of_step(seed: u64, step: u64, count: usize, rows: usize) -> Vec<usize> {
    let first = (step - 1) * count as u64;
    let mut order: Option<(u64, Vec<usize>)> = None;
    (first..first + count as u64)
        .map(|at| {
            let epoch = at / rows as u64;
            let order = match &mut order {
                Some((current, order)) if *current == epoch => order,
                other => &mut other.insert((epoch, permutation(derive(seed, epoch, 0, Purpose::Shuffle), rows))).1,
            };
            order[(at % rows as u64) as usize]
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_comes_once_an_epoch() {
        let mut seen: Vec<usize> = (1..=10).flat_map(|step| rows_of_step(7, step, 3, 10)).collect();
        assert_eq!(seen.len(), 30);
        for epoch in seen.chunks_mut(10) {
            epoch.sort_unstable();
            assert_eq!(epoch, (0..10).collect::<Vec<_>>());
        }
        assert_ne!(rows_of_step(7, 1, 10, 10), rows_of_step(7, 2, 10, 10));
    }
}
