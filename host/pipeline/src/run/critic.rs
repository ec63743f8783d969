//! The critic of a run with `gae`: a model with an optimiser of its own.

use crate::error::{PipelineError, Result};
use crate::ranks::Ranks;
use crate::run::reference::read_parameters;
use crate::run::trained::new_trainer;
use gavel_config::{Config, CriticTable, LearningConfig, ModelTable};
use gavel_data::seed::{Purpose, derive};
use gavel_policy::{Head, Model, ModelConfig, Phase, PolicyError, device, threads, write_tensors};
use gavel_runs::Checkpoints;
use gavel_train::{Experience, Schedule, TrainError, Trainer, UpdateStats, ValueLossConfig};
use std::path::Path;

/// The critic of a run.
pub(crate) struct Critic {
    model: Model,
    trainer: Trainer,
    loss: ValueLossConfig,
    learning_rate: Schedule,
}

impl Critic {
    /// The critic that `table` names, as the checkpoint in the folder `checkpoint` has it, if the run is resumed.
    ///
    /// # Errors
    /// Its files or its device cannot be used.
    pub(crate) fn open<T>(
        config: &Config<T>,
        table: &CriticTable,
        learning: &LearningConfig,
        checkpoint: Option<&Path>,
        ranks: &Ranks,
    ) -> Result<Self> {
        let (policy, seed) = (&config.model, config.seed);
        let model = threads::apart(|| load(table, policy, seed).map_err(|error| error.during(Phase::Loading)));
        let model = model.map_err(|error| PipelineError::Stopped(format!("train.critic: {error}")))?;
        let mut trainer = new_trainer(config, &model, table.optimizer.beside(&learning.optimizer), learning, ranks)?;
        if let Some(checkpoint) = checkpoint {
            read_parameters(&model, &Checkpoints::critic(checkpoint))?;
            trainer.load(&Checkpoints::critic_optimizer(checkpoint)).map_err(PipelineError::Optimizer)?;
        }
        tracing::info!("the critic is on {}", device::name(model.device()));
        let learning_rate = table.schedule(learning.steps)?;
        Ok(Self { model, trainer, loss: table.loss(), learning_rate })
    }

    /// The return that it expects before each response token of trajectories.
    pub(crate) fn values(&self, rows: &[Experience]) -> std::result::Result<Vec<Vec<f32>>, TrainError> {
        self.trainer.values(&self.model, rows)
    }

    /// Takes an optimiser step over a mini-batch of step `step` of the run.
    pub(crate) fn update(
        &mut self,
        step: u64,
        mini_batch: &[Experience],
    ) -> std::result::Result<UpdateStats, TrainError> {
        let learning_rate = self.learning_rate.at(step - 1);
        self.trainer.value_step(&self.model, mini_batch, &self.loss, learning_rate)
    }

    /// The optimiser steps that were begun.
    pub(crate) fn steps(&self) -> u64 {
        self.trainer.steps()
    }

    /// Sends this rank's share of its optimiser's state to rank 0, which writes it.
    pub(crate) fn send(&self) -> Result<()> {
        self.trainer.save(Path::new("")).map_err(PipelineError::Optimizer)
    }

    /// Writes its weights and its optimiser's state into the folder of a checkpoint.
    pub(crate) fn save(&self, into: &Path) -> Result<()> {
        write_tensors(&Checkpoints::critic(into), self.model.parameters(), None)?;
        self.trainer.save(&Checkpoints::critic_optimizer(into)).map_err(PipelineError::Optimizer)
    }
}

/// The sizes of the critic that `table` names, in a run whose policy has the sizes `policy`.
pub(crate) fn sizes(table: &CriticTable, policy: &ModelConfig) -> Result<ModelConfig> {
    let sizes = table.path.as_deref().map(ModelConfig::load).transpose()?.unwrap_or_else(|| policy.clone());
    Ok(ModelConfig { head: Head::Values { labels: 1 }, ..sizes })
}

fn load(table: &CriticTable, policy: &ModelTable, seed: u64) -> std::result::Result<Model, PolicyError> {
    let device = device::select(table.device.as_ref().unwrap_or(&policy.device))?;
    let kind = table.dtype.unwrap_or(policy.dtype).kind();
    if let Some(path) = table.path.as_ref().or(policy.path.as_ref()) {
        let model = Model::load_critic(path, kind, device)?;
        return match &table.lora {
            Some(lora) => model.adapt(lora, path, derive(seed, 0, 3, Purpose::Weights)),
            None => Ok(model),
        };
    }
    let sizes = policy.init.clone().ok_or_else(|| PolicyError::Config("the policy has no sizes".into()))?;
    let sizes = ModelConfig { head: Head::Values { labels: 1 }, ..sizes };
    let model = Model::random(sizes, derive(seed, 0, 0, Purpose::Weights), device)?;
    if model.kind() == kind { Ok(model) } else { model.to_kind(kind) }
}
