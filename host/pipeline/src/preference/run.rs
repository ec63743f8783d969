//! The steps of a run that learns from pairs, in a thread of its own, which computes with libtorch.

use super::method::{Models, PairMethod};
use crate::commands::{DryRun, ShownRow, checks, first};
use crate::error::{PipelineError, Result};
use crate::memory::{Prediction, predict_pairs};
use crate::ranks::Ranks;
use crate::rows::{Drawable, Parted, StoredRow, TaskStream, dataset_rows};
use crate::run::{
    Control, Opening, Planned, Policy, Recorder, Setup, Start, Summary, Trained, components, find_run, open_folder,
    probe,
};
use gavel_config::{Config, ConfigError, Datasets};
use gavel_policy::{Model, threads};
use gavel_runs::{Checkpoints, Metrics, State};
use gavel_scoring::recording::{Grouping, KeptComponents};
use gavel_text::TextModel;
use gavel_torch::peers::Peers;
use gavel_train::{PairStats, Schedule, Trainer};
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Instant;

/// The pairs of a run.
struct Pairs<P: StoredRow> {
    train: Drawable<P>,
    held_out: Vec<P>,
    /// How many tokens both sides of the longest pair have in common, and how many its longer side has after these.
    longest: (usize, usize),
}

impl<P: StoredRow<Context = ()>> Pairs<P> {
    fn read<T: PairMethod<Pair = P>>(config: &Config<T>, setup: &Setup) -> Result<Self> {
        let mut longest = (0, 0);
        let tokens = |(common, rest): (usize, usize)| common + 2 * rest;
        let mut read = |datasets: &Datasets| {
            T::pairs(setup, dataset_rows(config, datasets, setup.scorer.sandbox()), |pair| {
                let lengths = T::lengths(pair);
                if tokens(lengths) >= tokens(longest) {
                    longest = lengths;
                }
            })
        };
        let train = read(&config.data.train)?;
        let held_out = config.data.validation.as_ref().map(read).transpose()?;
        let held_out = held_out.map(|drawable| drawable.rows.into_vec()).transpose()?.unwrap_or_default();
        Ok(Self { train, held_out, longest })
    }

    fn predict<T: PairMethod<Pair = P>>(&self, config: &Config<T>, setup: &Setup, ranks: usize) -> Result<Prediction> {
        let learning = config.train.learning(self.train.rows.len());
        predict_pairs(config, setup, &learning, self.longest, config.train.batch_size(), T::NEEDS_REFERENCE, ranks)
    }
}

/// Runs a command that learns from pairs, on each of its ranks.
pub(super) fn run<T: PairMethod>(
    config: &Config<T>,
    start: Start,
    peers: &Peers,
    control: &Control,
) -> Result<Summary> {
    threads::apart(|| {
        let ranks = &Ranks::of(peers, &config.reward_model)?;
        let found = find_run(config, start, ranks)?;
        let setup = Setup::new(config, &components(found.as_ref())?, ranks)?;
        let pairs = Pairs::read(config, &setup)?;
        let learning = config.train.learning(pairs.train.rows.len());
        let learning_rate = learning.schedule.over(learning.steps).map_err(ConfigError::from)?;
        pairs.predict(config, &setup, ranks.size())?.announce();
        if ranks.is_first() {
            probe(config, &setup, None)?;
        }
        let opening = Opening { config, setup: &setup, grouping: Grouping::default(), found, ranks };
        let opened = open_folder(opening)?;
        let load = || {
            let Trained { policy, trainer, .. } = Trained::open(config, &learning, &opened, ranks)?;
            let reference = match T::NEEDS_REFERENCE {
                true => Some(policy.reference(&config.model, &config.resources, config.seed)?),
                false => None,
            };
            Ok::<_, PipelineError>((policy, trainer, reference))
        };
        let (policy, trainer, reference) = opened.checked(load())?;
        let recorder = opened.into_recorder(config)?;
        let Policy { model, text } = policy;
        let whole = trainer.steps();
        let mut run = PairRun { config, ranks, pairs, model, text, reference, trainer, recorder, whole };
        run.begin().inspect_err(|error| run.recorder.record_failure(error))?;
        let taken = run.take_steps(learning.steps, &learning_rate, control);
        if taken.is_err() {
            run.leave_checkpoint();
        }
        run.recorder.record_end(&taken);
        let is_stopped = taken?;
        // Until rank 0 has written everything, the others stay.
        ranks.exchange(&())?;
        Ok(Summary { is_stopped, ..run.recorder.summary()? })
    })
}

/// Checks all that such a run would use. The prediction of memory is for each of the planned ranks.
pub(super) fn dry_run<T: PairMethod>(config: &Config<T>, Planned { ranks, gpu }: Planned) -> Result<DryRun> {
    let setup = Setup::of_dry_run(config, gpu)?;
    let pairs = Pairs::read(config, &setup)?;
    let probed = probe(config, &setup, None)?;
    let (train, held_out) = (pairs.train.rows.len(), pairs.held_out.len());
    Ok(DryRun {
        config: config.resolved()?,
        checks: checks(&setup, &config.data.train.to_string(), train, held_out),
        warnings: probed.warnings,
        memory: pairs.predict(config, &setup, ranks)?,
    })
}

/// The first `count` pairs.
pub(super) fn show<T: PairMethod>(config: &Config<T>, count: NonZeroUsize) -> Result<Vec<ShownRow>> {
    let setup = Setup::new(config, &KeptComponents::default(), &Ranks::alone())?;
    let parted = Parted::default();
    let shown = first(config, &config.data.train, &setup, count, |row, path| {
        let pair = T::of_row(&setup, row, path, &parted)?;
        pair.map_or(Ok(Vec::new()), |pair| T::shown(&pair, &setup.text))
    })?;
    parted.warn();
    Ok(shown)
}

/// A run under way.
struct PairRun<'a, T: PairMethod> {
    config: &'a Config<T>,
    ranks: &'a Ranks,
    pairs: Pairs<T::Pair>,
    model: Model,
    text: TextModel,
    reference: Option<Model>,
    trainer: Trainer,
    recorder: Recorder,
    /// The optimiser steps up to the end of the last step.
    whole: u64,
}

impl<T: PairMethod> PairRun<'_, T> {
    /// Records the model before its first step. A run that was resumed repeats the validation in which it stopped.
    fn begin(&mut self) -> Result<()> {
        let &State { step, lacks_validation, .. } = self.recorder.state();
        if lacks_validation {
            let mut metrics = Metrics::of_step(step);
            self.validate(step, &mut metrics)?;
            return self.recorder.log_validation(step, &metrics);
        }
        if !self.recorder.is_new() {
            return Ok(());
        }
        let mut metrics = Metrics::of_step(0);
        self.validate(0, &mut metrics)?;
        self.recorder.log(0, &metrics)
    }

    /// Takes the steps that are left. Returns whether the run was asked to end before its last step.
    fn take_steps(&mut self, steps: u64, learning_rate: &Schedule, control: &Control) -> Result<bool> {
        let mut stream = TaskStream::new(self.config.seed, self.config.data.shuffle, &self.pairs.train.shares);
        for step in self.recorder.state().step + 1..=steps {
            let is_checkpoint_due = self.step(step, &mut stream, learning_rate.at(step - 1))?;
            let is_stopping = self.ranks.exchange(&control.is_stopping())?.contains(&true);
            if is_checkpoint_due || is_stopping {
                self.save()?;
            }
            if is_stopping && step < steps {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Leaves a checkpoint of a run that stops by a failure: the model after its last step, unless an update has changed
    /// it since. With several ranks, nothing is saved: the others may be gone.
    fn leave_checkpoint(&mut self) {
        let logged = self.recorder.log_waiting();
        let is_whole = !self.ranks.are_several() && self.trainer.steps() == self.whole;
        let saved = if is_whole { logged.and_then(|()| self.save()) } else { logged };
        self.recorder.report_left(saved);
    }

    /// Takes a step, validates if it is time, and logs. Returns whether it is time for a checkpoint.
    fn step(&mut self, step: u64, stream: &mut TaskStream, learning_rate: f64) -> Result<bool> {
        let start = Instant::now();
        let size = self.config.train.batch_size() as u64;
        let draws = (step - 1) * size..step * size;
        let rows = &self.pairs.train.rows;
        let batch = draws.map(|ordinal| rows.get(stream.row(ordinal))).collect::<Result<Vec<_>>>()?;
        let share = self.ranks.own(batch.iter().map(|pair| T::row(pair)));
        let batch: Vec<T::Pair> = batch[share].iter().map(|pair| pair.clone().into_owned()).collect();
        let models = Models { model: &self.model, reference: self.reference.as_ref() };
        let stats = self.config.train.step(&mut self.trainer, models, &batch, learning_rate);
        let PairStats { statistics, grad_norm, tokens } =
            stats.map_err(|error| PipelineError::of_step(step, error, self.model.device()))?;
        let mut metrics = Metrics::of_step(step);
        statistics.iter().for_each(|(name, value)| metrics.set(name, value));
        grad_norm.into_iter().for_each(|norm| metrics.set("grad_norm", norm));
        metrics.set("learning_rate", learning_rate);
        metrics.count("tokens/read", tokens as u64);
        let seconds = metrics.time("update", start);
        metrics.set("perf/tokens_per_second", tokens as f64 / seconds);
        if self.ranks.is_first() && step.is_multiple_of(10) {
            let number = |name: &str| statistics.get(name).unwrap_or(f64::NAN);
            tracing::info!("step {step}: loss {:.4}, accuracy {:.3}", number("loss"), number("accuracy"));
        }
        let learning = self.config.train.learning(self.pairs.train.rows.len());
        let is_validated = step == learning.steps || step.is_multiple_of(learning.validate_every);
        self.recorder.end_step(step, &metrics, is_validated);
        self.whole = self.trainer.steps();
        let is_best = if is_validated { self.validate(step, &mut metrics)? } else { false };
        self.recorder.log(step, &metrics)?;
        self.recorder.end_validation();
        Ok(step == learning.steps || self.recorder.is_checkpoint_due(is_best))
    }

    /// Measures the held-out pairs. Returns whether their accuracy is the best so far.
    fn validate(&mut self, step: u64, metrics: &mut Metrics) -> Result<bool> {
        if self.pairs.held_out.is_empty() {
            return Ok(false);
        }
        let start = Instant::now();
        let models = Models { model: &self.model, reference: self.reference.as_ref() };
        let share = self.ranks.own(self.pairs.held_out.iter().map(T::row));
        let stats = self.config.train.measure(&self.trainer, models, &self.pairs.held_out[share]);
        let PairStats { statistics, .. } =
            stats.map_err(|error| PipelineError::of_step(step, error, self.model.device()))?;
        statistics.iter().for_each(|(name, value)| metrics.set(format!("val/{name}"), value));
        metrics.time("validate", start);
        let Some(accuracy) = statistics.get("accuracy") else { return Ok(false) };
        if self.ranks.is_first() {
            tracing::info!("step {step}: validation accuracy {accuracy:.3}");
        }
        Ok(self.recorder.note_accuracy(accuracy))
    }

    /// Saves a checkpoint: the model as it is now. All ranks call this, and only rank 0 has a folder: the others send it
    /// their share of the optimiser's state.
    fn save(&mut self) -> Result<()> {
        let Self { recorder, model, text, trainer, .. } = self;
        recorder.save(text, &[], |into| {
            let state = match into {
                Some(into) => {
                    model.save(into)?;
                    Checkpoints::optimizer(into)
                }
                None => PathBuf::new(),
            };
            trainer.save(&state).map_err(PipelineError::Optimizer)
        })
    }
}
