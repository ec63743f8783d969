//! Who updates: the optimiser and the reference, on the thread of the policy's device.

use crate::error::{PipelineError, Result};
use gavel_policy::Model;
use gavel_rollout::AsyncEngine;
use gavel_train::{Experience, LossConfig, SftRow, SftStats, Trainer, UpdateStats};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Updates the policy that `engine` decodes with. Decoding waits meanwhile.
pub(crate) struct Updater {
    engine: AsyncEngine,
    parts: Arc<Mutex<UpdateParts>>,
}

/// What an update needs besides the policy.
struct UpdateParts {
    trainer: Trainer,
    /// What a KL penalty is taken to: the policy that the run started from.
    reference: Option<Model>,
}

impl Updater {
    pub(crate) fn new(engine: AsyncEngine, trainer: Trainer, reference: Option<Model>) -> Self {
        Self { engine, parts: Arc::new(Mutex::new(UpdateParts { trainer, reference })) }
    }

    /// Sets the proximal log-probabilities of the mini-batches of step `step`: those under the policy as it is now.
    pub(crate) async fn set_proximal(
        &self,
        step: u64,
        mut mini_batches: Vec<Vec<Experience>>,
        temperature: f64,
    ) -> Result<Vec<Vec<Experience>>> {
        let parts = self.parts.clone();
        let work = move |model: &Model| {
            let UpdateParts { trainer, .. } = &*lock(&parts);
            for mini_batch in &mut mini_batches {
                trainer.set_proximal(model, mini_batch, temperature)?;
            }
            Ok(mini_batches)
        };
        self.engine.run(work).await?.map_err(|source| PipelineError::Train { step, source })
    }

    /// Takes an optimiser step over a mini-batch of step `step`; `temperature` is that of its rollout.
    pub(crate) async fn update(
        &self,
        step: u64,
        mini_batch: Vec<Experience>,
        loss: LossConfig,
        temperature: f64,
        learning_rate: f64,
    ) -> Result<UpdateStats> {
        let parts = self.parts.clone();
        let work = move |model: &Model| {
            let UpdateParts { trainer, reference } = &mut *lock(&parts);
            trainer.update(model, reference.as_ref(), &mini_batch, &loss, temperature, learning_rate)
        };
        self.engine.run(work).await?.map_err(|source| PipelineError::Train { step, source })
    }

    /// Copies the weights to another device's model.
    pub(crate) async fn publish(&self, to: &AsyncEngine) -> Result<()> {
        let parameters = self.engine.run(Model::parameters).await?;
        Ok(to.run(move |model| model.set_parameters(&parameters)).await??)
    }

    /// Takes step `step` over rows to imitate.
    pub(crate) fn sft_step(&self, step: u64, rows: Vec<SftRow>, learning_rate: f64) -> Result<SftStats> {
        self.on_device(move |model, parts| parts.trainer.sft_step(model, &rows, learning_rate))?
            .map_err(|source| PipelineError::Train { step, source })
    }

    /// Writes the weights into the folder `weights`, and the optimiser's state to the file `optimizer`.
    pub(crate) fn save(&self, weights: PathBuf, optimizer: PathBuf) -> Result<()> {
        self.on_device(move |model, parts| {
            model.save(&weights)?;
            parts.trainer.save(&optimizer).map_err(PipelineError::Optimizer)
        })?
    }

    fn on_device<R: Send + 'static>(
        &self,
        work: impl FnOnce(&Model, &mut UpdateParts) -> R + Send + 'static,
    ) -> Result<R> {
        let parts = self.parts.clone();
        Ok(self.engine.run_blocking(move |model| work(model, &mut lock(&parts)))?)
    }
}

fn lock(parts: &Mutex<UpdateParts>) -> MutexGuard<'_, UpdateParts> {
    parts.lock().unwrap_or_else(PoisonError::into_inner)
}
