//! The model that a run trains, with its trainer.

use crate::error::{PipelineError, Result};
use crate::ranks::Ranks;
use crate::run::policy::Policy;
use crate::run::resume::Opened;
use gavel_config::{Config, LearningConfig, ModelTable, TrainTable};
use gavel_policy::Model;
use gavel_runs::check_weights;
use gavel_train::{OptimizerConfig, Trainer};

/// The model that a run trains, with its trainer.
pub(crate) struct Trained {
    /// Where the weights are from: `[model]`, or the checkpoint that the run resumes from.
    pub(crate) table: ModelTable,
    pub(crate) policy: Policy,
    pub(crate) trainer: Trainer,
}

impl Trained {
    /// Loads the model at the start of a run or from its checkpoint. All ranks call this.
    ///
    /// # Errors
    /// The weights or the optimiser's state cannot be loaded, or a rank is gone.
    pub(crate) fn open<T: TrainTable>(
        config: &Config<T>,
        learning: &LearningConfig,
        opened: &Opened,
        ranks: &Ranks,
    ) -> Result<Self> {
        let mut table = config.model.clone();
        if let Some(checkpoint) = opened.checkpoint() {
            (table.path, table.init, table.lora) = (Some(checkpoint.to_owned()), None, None);
        } else if let Some(path) = &table.path {
            check_weights(path)?;
        }
        let policy = Policy::load(&table, T::MODEL, &config.resources, config.seed)?;
        policy.report(&config.model)?;
        let mut trainer = new_trainer(config, &policy.model, learning.optimizer, learning, ranks)?;
        if let Some(state) = opened.optimizer() {
            trainer.load(&state).map_err(PipelineError::Optimizer)?;
        }
        Ok(Self { table, policy, trainer })
    }
}

/// A trainer of `model` with the settings of a run. All ranks call this.
///
/// # Errors
/// The model cannot be trained, or a rank is gone.
pub(crate) fn new_trainer<T>(
    config: &Config<T>,
    model: &Model,
    optimizer: OptimizerConfig,
    learning: &LearningConfig,
    ranks: &Ranks,
) -> Result<Trainer> {
    let (tokens, held) = (learning.max_tokens_per_micro_batch, config.ranks.parameters);
    let trainer =
        Trainer::with_peers(model, optimizer, tokens, ranks.peers(), held).map_err(PipelineError::Optimizer)?;
    let trainer = trainer.gradient_checkpointing(learning.gradient_checkpointing);
    Ok(trainer.deterministic(config.resources.deterministic))
}
