//! The updater: the optimiser and the references, on the thread of the policy's device.

use crate::error::{PipelineError, Result};
use crate::run::critic::Critic;
use crate::run::reference::References;
use crate::run::token_measures::{Measuring, TokenMeasures};
use gavel_policy::{Model, PolicyError};
use gavel_rollout::{AsyncEngine, CacheDuring, Probe, Weights};
use gavel_runs::Checkpoints;
use gavel_train::{Asked, Experience, LossConfig, PolicyUpdate, SftRow, SftStats, TrainError, Trainer, UpdateStats};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tch::{TchError, Tensor};

/// Updates the policy that `engine` decodes with. Decoding waits meanwhile.
pub(crate) struct Updater {
    engine: AsyncEngine,
    /// What becomes of the engine's keys and values in updates, and in the passes before them.
    cache: CacheDuring,
    parts: Arc<Mutex<UpdateParts>>,
}

/// What an update needs besides the policy.
struct UpdateParts {
    trainer: Trainer,
    /// The references, from which penalties and distillation measure the distance.
    references: Option<References>,
    critic: Option<Critic>,
    before_step: Option<BeforeStep>,
    /// The optimiser steps of the policy and of the critic up to the end of the last step.
    whole: [u64; 2],
}

impl UpdateParts {
    /// The optimiser steps that were begun, of the policy and of the critic.
    fn optimizer_steps(&self) -> [u64; 2] {
        [self.trainer.steps(), self.critic.as_ref().map_or(0, Critic::steps)]
    }
}

/// The policy before the first update of a step, for mini-batches that come after it.
struct BeforeStep {
    step: u64,
    parameters: Vec<(String, Tensor)>,
}

impl BeforeStep {
    fn keep(step: u64, model: &Model) -> std::result::Result<Self, TchError> {
        let mut parameters = model.parameters();
        for (_, parameter) in &mut parameters {
            let own = parameter.f_detach()?;
            *parameter = own.f_empty_like()?;
            parameter.f_copy_(&own)?;
        }
        Ok(Self { step, parameters })
    }
}

impl Updater {
    pub(crate) fn new(
        engine: AsyncEngine,
        cache: CacheDuring,
        trainer: Trainer,
        references: Option<References>,
        critic: Option<Critic>,
    ) -> Self {
        let mut parts = UpdateParts { trainer, references, critic, before_step: None, whole: [0; 2] };
        parts.whole = parts.optimizer_steps();
        Self { engine, cache, parts: Arc::new(Mutex::new(parts)) }
    }

    /// Notes that the weights are now those after a whole step.
    pub(crate) fn note_whole(&self) {
        let mut parts = lock(&self.parts);
        parts.whole = parts.optimizer_steps();
    }

    /// Whether the weights are still those after the last whole step, once the update under way has ended.
    pub(crate) fn is_whole(&self) -> Result<bool> {
        self.on_device(CacheDuring::Kept, Weights::Unchanged, |_, parts| parts.whole == parts.optimizer_steps())
    }

    /// Sets the proximal log-probabilities of the next mini-batches of step `step`: those under the policy before its
    /// first update. `is_last` says that no others follow.
    pub(crate) async fn set_proximal(
        &self,
        step: u64,
        mut mini_batches: Vec<Vec<Experience>>,
        temperature: f64,
        is_last: bool,
    ) -> Result<Vec<Vec<Experience>>> {
        let parts = self.parts.clone();
        let work = move |model: &Model| {
            let UpdateParts { trainer, before_step, .. } = &mut *lock(&parts);
            let mut set = |model: &Model| {
                let mut mini_batches = mini_batches.iter_mut();
                mini_batches.try_for_each(|mini_batch| trainer.set_proximal(model, mini_batch, temperature))
            };
            match before_step {
                Some(before) if before.step == step => model.with_parameters(&before.parameters, set)??,
                _ => {
                    // Frees this copy first: the next one needs its memory.
                    *before_step = None;
                    if !is_last {
                        *before_step = Some(BeforeStep::keep(step, model)?);
                    }
                    set(model)?;
                }
            }
            Ok(mini_batches)
        };
        self.engine.run_with(self.cache, in_step(step, work)).await?
    }

    /// Asks the references which tokens they find most probable in the next mini-batches of step `step`.
    pub(crate) async fn set_taught(
        &self,
        step: u64,
        mut mini_batches: Vec<Vec<Experience>>,
        top_k: usize,
        temperature: f64,
    ) -> Result<Vec<Vec<Experience>>> {
        let parts = self.parts.clone();
        let work = move |model: &Model| {
            let UpdateParts { trainer, references, .. } = &*lock(&parts);
            let references = references.as_ref().ok_or(TrainError::NoReference)?;
            let asked = Asked { top_k, vocabulary: references.vocabulary(model), temperature };
            for mini_batch in &mut mini_batches {
                let taught = references.ask(mini_batch, |teacher, rows| trainer.taught(teacher, rows, asked))?;
                mini_batch.iter_mut().zip(taught).for_each(|(row, taught)| row.taught = Some(taught));
            }
            Ok(mini_batches)
        };
        self.engine.run_with(self.cache, in_step(step, work)).await?
    }

    /// Measures the tokens of trajectories of step `step`, before its update. `of_reference` are their log-probabilities
    /// under a reference that a server has.
    pub(crate) async fn measure(
        &self,
        step: u64,
        rows: Vec<Experience>,
        of_reference: Option<Vec<Vec<f32>>>,
        measuring: Measuring,
        temperature: f64,
    ) -> Result<Vec<TokenMeasures>> {
        let parts = self.parts.clone();
        let work = move |model: &Model| {
            let UpdateParts { trainer, references, critic, .. } = &*lock(&parts);
            let mut measures = vec![TokenMeasures::default(); rows.len()];
            if measuring.gradient_norms {
                let norms = trainer.gradient_norms(model, &rows, temperature)?;
                measures.iter_mut().zip(norms).for_each(|(measures, norms)| measures.gradient_norms = norms);
            }
            if measuring.values {
                let critic = critic.as_ref().ok_or(TrainError::NoCritic)?;
                let values = critic.values(&rows)?;
                measures.iter_mut().zip(values).for_each(|(measures, values)| measures.values = values);
            }
            if let Some(estimator) = measuring.kl {
                let logprobs = match of_reference {
                    Some(logprobs) => logprobs,
                    None => {
                        let references = references.as_ref().ok_or(TrainError::NoReference)?;
                        references.ask(&rows, |model, rows| trainer.log_probs(model, rows, temperature))?
                    }
                };
                for ((measures, row), frozen) in measures.iter_mut().zip(&rows).zip(logprobs) {
                    let difference = |(drawn, frozen): (&f32, &f32)| f64::from(*drawn) - f64::from(*frozen);
                    measures.kl =
                        row.logprobs.iter().zip(&frozen).map(difference).map(|d| estimator.of_difference(d)).collect();
                }
            }
            Ok(measures)
        };
        self.engine.run_with(self.cache, in_step(step, work)).await?
    }

    /// Takes an optimiser step over a mini-batch of step `step`; `temperature` is the temperature of its rollout. With
    /// `is_last`, the weights then have the version `step`.
    pub(crate) async fn update(
        &self,
        step: u64,
        mini_batch: Arc<Vec<Experience>>,
        loss: LossConfig,
        temperature: f64,
        learning_rate: f64,
        is_last: bool,
    ) -> Result<UpdateStats> {
        let parts = self.parts.clone();
        let work = move |model: &Model| {
            let UpdateParts { trainer, references, .. } = &mut *lock(&parts);
            let reference = references.as_ref().and_then(References::for_all);
            let mini_batch = &mini_batch;
            trainer.update(PolicyUpdate { model, reference, mini_batch, loss: &loss, temperature, learning_rate })
        };
        let after = if is_last { Weights::OfVersion(step) } else { Weights::Changed };
        self.engine.change(self.cache, after, in_step(step, work)).await?
    }

    /// Takes an optimiser step of the critic over a mini-batch of step `step`.
    pub(crate) async fn update_critic(&self, step: u64, mini_batch: Arc<Vec<Experience>>) -> Result<UpdateStats> {
        let parts = self.parts.clone();
        let work = move |_: &Model| match &mut lock(&parts).critic {
            Some(critic) => critic.update(step, &mini_batch),
            None => Err(TrainError::NoCritic),
        };
        self.engine.run_with(self.cache, in_step(step, work)).await?
    }

    /// Lets the reference follow the policy after step `step`, if the run asks for it.
    pub(crate) async fn end_step(&self, step: u64) -> Result<()> {
        let parts = self.parts.clone();
        let work = move |model: &Model| match &lock(&parts).references {
            Some(references) => references.follow(model, step),
            None => Ok(()),
        };
        Ok(self.engine.run(work).await??)
    }

    /// Copies the weights, which have the version `version`, to another device's model.
    pub(crate) async fn publish(&self, to: &AsyncEngine, version: u64) -> Result<()> {
        let parameters = self.engine.run(Model::parameters).await?;
        let copy = move |model: &Model| model.set_parameters(&parameters);
        Ok(to.change(CacheDuring::Kept, Weights::OfVersion(version), copy).await??)
    }

    /// The positions of the policy.
    pub(crate) fn positions(&self) -> usize {
        self.engine.model().positions() as usize
    }

    /// Whether the output head of the policy is its embedding of tokens.
    pub(crate) fn ties_embeddings(&self) -> bool {
        self.engine.model().tie_word_embeddings
    }

    /// Writes the weights into the folder `into`, for servers that draw. Returns their checksums, and what the policy says
    /// of the prompt of a probe.
    pub(crate) async fn export(&self, into: PathBuf, prompt: Arc<[u32]>) -> Result<(BTreeMap<String, String>, Probe)> {
        let work = move |model: &Model| {
            model.save(&into)?;
            let logprobs = model.next_logprobs(&prompt)?.into();
            Ok::<_, PolicyError>((model.checksums()?, Probe { prompt, logprobs }))
        };
        Ok(self.engine.run(work).await??)
    }

    /// Takes step `step` over rows to imitate.
    pub(crate) fn sft_step(&self, step: u64, rows: Vec<SftRow>, learning_rate: f64) -> Result<SftStats> {
        let parts = self.parts.clone();
        let work = move |model: &Model| lock(&parts).trainer.sft_step(model, &rows, learning_rate);
        self.engine.run_blocking(self.cache, Weights::OfVersion(step), in_step(step, work))?
    }

    /// Writes the weights and the optimiser's state into the folder `into` of a checkpoint, with the weights of a
    /// reference that follows the policy, and with the critic. All ranks call this, and only rank 0 has a folder: the
    /// others send it their share of the optimiser's state.
    pub(crate) fn save(&self, into: Option<PathBuf>) -> Result<()> {
        self.on_device(CacheDuring::Kept, Weights::Unchanged, move |model, parts| {
            let Some(into) = into else {
                parts.critic.as_ref().map_or(Ok(()), Critic::send)?;
                return parts.trainer.save(Path::new("")).map_err(PipelineError::Optimizer);
            };
            model.save(&into)?;
            if let Some(references) = &parts.references {
                references.save(&Checkpoints::reference(&into))?;
            }
            if let Some(critic) = &parts.critic {
                critic.save(&into)?;
            }
            parts.trainer.save(&Checkpoints::optimizer(&into)).map_err(PipelineError::Optimizer)
        })?
    }

    fn on_device<R: Send + 'static>(
        &self,
        cache: CacheDuring,
        after: Weights,
        work: impl FnOnce(&Model, &mut UpdateParts) -> R + Send + 'static,
    ) -> Result<R> {
        let parts = self.parts.clone();
        Ok(self.engine.run_blocking(cache, after, move |model| work(model, &mut lock(&parts)))?)
    }
}

/// The work of step `step`, whose errors name it, and a device that has failed.
fn in_step<R>(
    step: u64,
    work: impl FnOnce(&Model) -> std::result::Result<R, TrainError>,
) -> impl FnOnce(&Model) -> Result<R> {
    move |model| work(model).map_err(|error| PipelineError::of_step(step, error, model.device()))
}

fn lock(parts: &Mutex<UpdateParts>) -> MutexGuard<'_, UpdateParts> {
    parts.lock().unwrap_or_else(PoisonError::into_inner)
}
