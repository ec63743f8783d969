//! What `gavel sft` and `gavel train` have in common: a run is opened, validated, recorded and checkpointed.

use crate::error::{PipelineError, Result};
use crate::metrics::sample_name;
use crate::ranks::Ranks;
use crate::reward_model::RewardModels;
use crate::rows::{Numbering, Prompt};
use crate::run::critic::Critic;
use crate::run::policy::Policy;
use crate::run::published::PublishedFolder;
use crate::run::recorder::Recorder;
use crate::run::reference::References;
use crate::run::resume::{Found, Opened, Opening, open_folder};
use crate::run::setup::Setup;
use crate::run::summary::Summary;
use crate::run::trained::Trained;
use crate::run::updater::Updater;
use crate::run::validation::{Validation, validate};
use crate::samples::{Rollout, ValidationWaits};
use gavel_agent::PolicyWait;
use gavel_config::{Config, LearningConfig, ModelTable, TrainTable};
use gavel_data::{Group, Member, ShownLines};
use gavel_policy::EngineConfig;
use gavel_rollout::{AsyncEngine, CacheDuring, RolloutEngine, RolloutError, ServedEngine};
use gavel_runs::{Metrics, QueuedGroup};
use gavel_scoring::recording::Grouping;
use serde::Serialize;
use std::path::Path;
use std::sync::Arc;

/// A run under way: its rollout, its updater and its recorder.
pub(crate) struct Run<'a, T> {
    pub(crate) config: &'a Config<T>,
    pub(crate) ranks: Ranks,
    pub(crate) rollout: Rollout,
    pub(crate) updater: Updater,
    pub(crate) reward_models: RewardModels,
    pub(crate) recorder: Recorder,
    /// The groups in the checkpoint that the run is resumed from.
    pub(crate) queued: Vec<QueuedGroup>,
    /// Where servers that draw find the weights, if they draw.
    published: Option<PublishedFolder>,
    validation: Vec<Prompt>,
    pub(crate) learning: LearningConfig,
}

/// How a step ended.
pub(crate) struct StepEnd {
    /// The accuracy, if the step was validated.
    pub(crate) accuracy: Option<f64>,
    /// Whether it is time for a checkpoint.
    pub(crate) is_checkpoint_due: bool,
    /// Seconds that the validation waited for its rewards alone.
    pub(crate) validation_wait: f64,
    /// The times in the validation in which the policy had nothing to do, because its episodes waited for something
    /// else.
    pub(crate) validation_waits: Vec<PolicyWait>,
}

/// What a command asks of its run.
pub(crate) struct RunShape {
    pub(crate) learning: LearningConfig,
    /// Responses that a step draws.
    pub(crate) drawn: usize,
    pub(crate) grouping: Grouping,
    /// Whether a penalty needs a reference.
    pub(crate) needs_reference: bool,
    /// What becomes of keys and values in updates.
    pub(crate) cache: CacheDuring,
}

/// What a run loads before anything in its folder is dropped.
struct Loaded {
    rollout: Rollout,
    updater: Updater,
    reward_models: RewardModels,
    published: Option<PublishedFolder>,
    validation: Vec<Prompt>,
}

impl Loaded {
    fn new<T: TrainTable + Serialize>(
        config: &Config<T>,
        setup: Setup,
        shape: RunShape,
        opened: &Opened,
        ranks: &Ranks,
    ) -> Result<Self> {
        let RunShape { learning, drawn, needs_reference, cache, .. } = shape;
        let Trained { table, policy, trainer } = Trained::open(config, &learning, opened, ranks)?;
        let references = match needs_reference {
            true => Some(References::open(config, &policy, opened.checkpoint())?),
            false => None,
        };
        let critic = config.train.critic();
        let critic =
            critic.map(|table| Critic::open(config, table, &learning, opened.checkpoint(), ranks)).transpose()?;
        let Setup { scorer, mut reward_models, constraint, validation, limit, episode_kinds, .. } = setup;
        let Policy { model, text } = policy;
        if config.rollout.engine.is_some() && model.is_adapted() {
            return Err(PipelineError::Stopped(
                "rollout.engine: servers get whole weights, and model.path has an adapter\nhint: merge it into its base first: gavel merge".into(),
            ));
        }
        let answers = config.data.validation_samples * validation.len();
        let decoding = EngineConfig {
            recompute_cache: config.schedule.recompute_cache,
            ..config.rollout.engine(drawn.max(answers))
        };
        let turns = reward_models.turns(model.device());
        let mut published = None;
        let (engine, trained) = match (&config.rollout.engine, &config.rollout.device) {
            (Some(table), _) => {
                let vocabulary = model.config().vocab_size as usize;
                let masks = config.train.records_masks(&config.rollout).then_some(vocabulary);
                // The engine of the device that trains draws nothing.
                let idle = EngineConfig::default();
                let trained = AsyncEngine::start_sharing(model, text, idle, Arc::new(()), turns)?;
                let (recompute, max_pause) = (config.schedule.recompute_cache, config.train.max_pause());
                let asked = table.config(config.model.dtype, recompute, masks, max_pause);
                let servers = ServedEngine::new(asked, trained.shared_text()).map_err(RolloutError::from)?;
                published = Some(PublishedFolder::create(&table.weights, servers.clone(), config.model.dtype)?);
                (RolloutEngine::Served(servers), trained)
            }
            (None, None) => {
                let engine = AsyncEngine::start_sharing(model, text, decoding, Arc::new(()), turns)?;
                (RolloutEngine::Own(engine.clone()), engine)
            }
            (None, Some(device)) => {
                let resources = config.resources.half(&table.device, device);
                let rollout =
                    Policy::load(&ModelTable { device: device.clone(), ..table }, T::MODEL, &resources, config.seed)?;
                tracing::info!("responses are drawn on {}", gavel_policy::device::name(rollout.model.device()));
                let of_rollout = reward_models.turns(rollout.model.device());
                let (drawing, idle) = (rollout.model, EngineConfig::default());
                let engine = AsyncEngine::start_sharing(drawing, rollout.text, decoding, Arc::new(()), of_rollout)?;
                // The engine of the device that trains draws nothing.
                let trained = AsyncEngine::start_sharing(model, text, idle, Arc::new(()), turns)?;
                (RolloutEngine::Own(engine), trained)
            }
        };
        let (scorer, table) = (Arc::new(scorer), config.rollout.clone());
        episode_kinds.listen(scorer.sandbox())?;
        let (records_masks, validating) = (config.train.records_masks(&config.rollout), ValidationWaits::default());
        let rollout = Rollout { engine, scorer, table, records_masks, constraint, episode_kinds, limit, validating };
        let updater = Updater::new(trained, cache, trainer, references, critic);
        Ok(Self { rollout, updater, reward_models, published, validation })
    }
}

impl<'a, T: TrainTable + Serialize> Run<'a, T> {
    /// Starts a run in a new folder, or resumes the run that was found.
    pub(crate) fn open(
        config: &'a Config<T>,
        setup: Setup,
        shape: RunShape,
        found: Option<Found>,
        ranks: &Ranks,
    ) -> Result<Self> {
        if config.rollout.engine.is_some() && ranks.are_several() {
            return Err(PipelineError::Stopped(
                "rollout.engine is for a run in one process, not yet for several ranks\nhint: start the run without torchrun".into(),
            ));
        }
        if ranks.are_several() && (config.gateway.address.port() != 0 || config.gateway.url.is_some()) {
            return Err(PipelineError::Stopped(
                "gateway.address has a port, or gateway.url is set, and each of several ranks has a gateway of its own\nhint: set port 0, with which each has a free one, and leave gateway.url out".into(),
            ));
        }
        let (learning, grouping) = (shape.learning, shape.grouping.clone());
        let opened = open_folder(Opening { config, setup: &setup, grouping, found, ranks })?;
        let loaded = Loaded::new(config, setup, shape, &opened, ranks);
        let Loaded { rollout, updater, reward_models, published, validation } = opened.checked(loaded)?;
        // Only once everything is loaded, because later steps of a resumed run are dropped here.
        let queued = opened.queue()?;
        let recorder = opened.into_recorder(config)?;
        Ok(Self {
            config,
            ranks: ranks.clone(),
            rollout,
            updater,
            reward_models,
            recorder,
            queued,
            published,
            validation,
            learning,
        })
    }

    /// Whether responses are drawn elsewhere than on the device that trains.
    pub(crate) fn draws_elsewhere(&self) -> bool {
        self.config.rollout.draws_elsewhere()
    }

    /// Declares that the weights on the device that draws have the version `version`. On a device that also trains they
    /// already have it, if the step had an update.
    pub(crate) async fn publish(&self, version: u64) -> Result<()> {
        match (&self.rollout.engine, &self.published) {
            (RolloutEngine::Own(engine), _) if self.draws_elsewhere() => self.updater.publish(engine, version).await,
            (RolloutEngine::Own(engine), _) => Ok(engine.set_version(version)?),
            (RolloutEngine::Served(_), Some(published)) => published.publish(&self.updater, version).await,
            // Both are made together.
            (RolloutEngine::Served(_), None) => Ok(()),
        }
    }

    /// Adds what happened at the servers that draw to the metrics of a step.
    pub(crate) fn describe_servers(&self, metrics: &mut Metrics) {
        if let Some(published) = &self.published {
            published.describe(metrics);
        }
    }

    /// The steps that the run still takes.
    pub(crate) fn steps(&self) -> impl Iterator<Item = u64> + use<T> {
        self.recorder.state().step + 1..=self.learning.steps
    }

    /// How many groups were started before the first of these steps.
    pub(crate) fn started_groups(&self, numbering: &Numbering) -> u64 {
        let state = self.recorder.state();
        // Older checkpoints lack this number.
        state.draws.max(numbering.of_step(state.step + 1).start)
    }

    /// Records the policy before its first step. A run that was resumed repeats the validation in which it stopped.
    pub(crate) async fn begin(&mut self) -> Result<()> {
        if self.recorder.state().lacks_validation {
            return self.repeat_validation().await;
        }
        if !self.recorder.is_new() {
            return Ok(());
        }
        let mut metrics = Metrics::of_step(0);
        if let (Some(accuracy), ..) = self.validate(&mut metrics).await? {
            self.recorder.note_accuracy(accuracy);
            self.report_accuracy(0, accuracy);
        }
        self.recorder.keep_calls(0);
        self.recorder.log(0, &metrics)
    }

    async fn repeat_validation(&mut self) -> Result<()> {
        let step = self.recorder.state().step;
        self.publish(step).await?;
        let mut metrics = Metrics::of_step(step);
        let (accuracy, ..) = self.validate_after(step, &mut metrics).await?;
        self.note_validation(step, accuracy);
        self.recorder.log_validation(step, &metrics)
    }

    /// Whether the policy is validated after `step`.
    pub(crate) fn is_validated(&self, step: u64) -> bool {
        step == self.learning.steps || step.is_multiple_of(self.learning.validate_every)
    }

    /// Notes that the policy is now the one after `step` steps: if the run stops before it has
    /// [ended the step](Self::end_step), it leaves a checkpoint of it.
    pub(crate) fn note_step(&mut self, step: u64, metrics: &Metrics) {
        self.recorder.end_step(step, metrics, self.is_validated(step));
        self.updater.note_whole();
    }

    /// Ends a step that was [noted](Self::note_step): validates if it is time, and logs.
    pub(crate) async fn end_step(&mut self, step: u64, mut metrics: Metrics) -> Result<StepEnd> {
        let is_last = step == self.learning.steps;
        let is_validated = self.is_validated(step);
        let (mut accuracy, mut validation_wait, mut validation_waits, mut is_best) = (None, 0.0, Vec::new(), false);
        if is_validated {
            (accuracy, validation_wait, validation_waits) = self.validate_after(step, &mut metrics).await?;
            is_best = self.note_validation(step, accuracy);
        }
        self.recorder.keep_calls(step);
        self.recorder.log(step, &metrics)?;
        self.recorder.end_validation();
        let is_checkpoint_due = is_last || self.recorder.is_checkpoint_due(is_best);
        Ok(StepEnd { accuracy, is_checkpoint_due, validation_wait, validation_waits })
    }

    /// As [`validate`](Self::validate), after a step.
    async fn validate_after(
        &mut self,
        step: u64,
        metrics: &mut Metrics,
    ) -> Result<(Option<f64>, f64, Vec<PolicyWait>)> {
        let validated = self.validate(metrics).await?;
        // Answers that no judge could score are no measure of the policy.
        match self.must_stop() {
            Some(why) => Err(PipelineError::Stopped(format!(
                "validation after step {step}: {why}\nhint: once it answers, continue with --resume"
            ))),
            None => Ok(validated),
        }
    }

    /// Notes the accuracy after a step, if there is one. Returns whether it is the best so far.
    fn note_validation(&mut self, step: u64, accuracy: Option<f64>) -> bool {
        let Some(accuracy) = accuracy else { return false };
        self.report_accuracy(step, accuracy);
        self.recorder.note_accuracy(accuracy)
    }

    fn report_accuracy(&self, step: u64, accuracy: f64) {
        if self.ranks.is_first() {
            tracing::info!("step {step}: validation accuracy {accuracy:.3}");
        }
    }

    /// Saves a checkpoint: the policy as it is now, and the groups that it has not been trained on yet.
    pub(crate) fn save(&mut self, queue: &[QueuedGroup]) -> Result<()> {
        let Self { recorder, updater, rollout, .. } = self;
        recorder.save(rollout.engine.text(), queue, |into| updater.save(into.map(Path::to_owned)))
    }

    /// Saves a checkpoint of a run that stops by a failure: the policy after its last step, unless an update has changed
    /// it since.
    pub(crate) fn save_if_whole(&mut self, queue: &[QueuedGroup]) -> Result<()> {
        if self.updater.is_whole()? { self.save(queue) } else { Ok(()) }
    }

    /// Why the run must stop: an endpoint is down, and the run does not wait for it, or no longer.
    pub(crate) fn must_stop(&self) -> Option<String> {
        self.rollout.scorer.must_stop().or_else(|| self.reward_models.must_stop())
    }

    /// The accuracy, the seconds in which the device waited for rewards alone, and the waits for tools and agents.
    async fn validate(&mut self, metrics: &mut Metrics) -> Result<(Option<f64>, f64, Vec<PolicyWait>)> {
        if self.validation.is_empty() {
            return Ok((None, 0.0, Vec::new()));
        }
        let Validation { metrics: found, groups, waited } =
            validate(self.config, &self.rollout, &self.ranks, &self.validation).await?;
        let accuracy = found.get("val/accuracy");
        if let (None, Some(name)) = (accuracy, self.config.accuracy_reward()) {
            tracing::warn!(
                "validation: no answer to {} rows had a score of `{name}`{}",
                self.validation.len(),
                first_without_score(&groups, name)
            );
        }
        metrics.extend(found);
        if self.config.log.trajectories {
            self.recorder.keep_validation(self.recorder.state().step, &groups, self.rollout.engine.text())?;
        }
        Ok((accuracy, waited, self.rollout.validating.policy.take()))
    }

    /// The results of the run.
    pub(crate) fn summary(&self) -> Result<Summary> {
        self.recorder.summary()
    }
}

/// The first answer that a reward did not score, and why: `; the first: sample 0 of validation/3: …`.
fn first_without_score(groups: &[Group], reward: &str) -> String {
    let why = |member: &Member| {
        let evaluation = member.outcome.plugins.get(reward)?;
        Some(format!("; the first: {}: {}", sample_name(&member.sample), ShownLines(evaluation.outcome.reason()?)))
    };
    groups.iter().flat_map(|group| &group.members).find_map(why).unwrap_or_default()
}
