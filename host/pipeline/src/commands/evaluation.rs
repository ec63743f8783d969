//! `gavel eval`: a checkpoint, or a model behind an endpoint, on the validation set.

use crate::error::{PipelineError, Result};
use crate::metrics::{SourceNumbers, by_source, describe_validation};
use crate::ranks::Ranks;
use crate::rows::{dataset_rows, task, template_kwargs, tools, usable};
use crate::run::validation::{self, Validation};
use crate::run::{Policy, Setup, check_data_sources, scorer, sources, tasks, try_rewards_on};
use crate::samples::{EndpointRollout, Question, Rollout, ValidationWaits};
use gavel_config::{Config, ModelKind, ModelTable};
use gavel_data::{Group, Row, Task};
use gavel_rollout::{AsyncEngine, RolloutEngine};
use gavel_runs::{Metrics, check_weights};
use gavel_scoring::chat::ChatEndpoint;
use gavel_scoring::recording::KeptComponents;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What is evaluated in place of the configuration's model, and how.
#[derive(Debug, Clone, Default)]
pub struct EvalOptions {
    /// A checkpoint.
    pub checkpoint: Option<PathBuf>,
    /// A server and its name among the `[chat.NAME]`; nothing is loaded then.
    pub endpoint: Option<(String, ChatEndpoint)>,
    /// The temperature, in place of `validation.temperature`.
    pub temperature: Option<f32>,
}

/// The results of an evaluation.
#[derive(Debug)]
pub struct Evaluated {
    /// `val/*`, as in training.
    pub metrics: Metrics,
    /// The same by data source.
    pub sources: Vec<SourceNumbers>,
    /// The answers with their outcomes: a group for each row.
    pub groups: Vec<Group>,
}

/// How far an evaluation is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EvalProgress {
    /// It begins, with this many answers to come.
    Started(usize),
    /// Another answer has its outcome.
    Scored,
}

/// Answers the validation set and scores the answers. Calls `progress` with how far the evaluation is.
///
/// # Errors
/// The configuration has no validation set, something that it names cannot be used, or the endpoint does not answer.
pub fn evaluate(
    config: &Config<toml::Table>,
    options: &EvalOptions,
    progress: &(dyn Fn(EvalProgress) + Sync),
) -> Result<Evaluated> {
    if config.data.validation.is_none() {
        return Err(PipelineError::Stopped(
            "there is no data.validation to evaluate on\nhint: name datasets with --data".into(),
        ));
    }
    let samples = config.data.validation_samples;
    let mut config = config.clone();
    config.validation.temperature = options.temperature.or(config.validation.temperature);
    config.validation.validate(&config.rollout, samples)?;
    let Validation { metrics, groups, .. } = match &options.endpoint {
        Some(endpoint) => ask(&config, endpoint, progress)?,
        None => {
            if let Some(checkpoint) = &options.checkpoint {
                config.model = ModelTable { path: Some(checkpoint.clone()), init: None, lora: None, ..config.model };
            }
            config.model.find_on_hub()?;
            draw(&config, progress)?
        }
    };
    let sources = by_source(&groups, config.accuracy_reward(), samples);
    Ok(Evaluated { metrics, sources, groups })
}

/// The answers of the configuration's model.
fn draw(config: &Config<toml::Table>, progress: &(dyn Fn(EvalProgress) + Sync)) -> Result<Validation> {
    if config.model.path.is_none() && config.model.init.is_none() {
        return Err(PipelineError::Stopped(
            "there is no model to evaluate\nhint: name a checkpoint with --checkpoint, or a server with --endpoint"
                .into(),
        ));
    }
    config.model.validate()?;
    config.model.path.as_deref().map_or(Ok(()), check_weights)?;
    let Setup { scorer, mut reward_models, constraint, validation, limit, episode_kinds, .. } =
        Setup::new(config, &KeptComponents::default(), &Ranks::alone())?;
    try_rewards_on(config, &scorer, &tasks(&validation))?;
    let Policy { model, text } = Policy::load(&config.model, ModelKind::Policy, &config.resources, config.seed)?;
    let answers = config.data.validation_samples * validation.len();
    let turns = reward_models.turns(model.device());
    let decoding = config.rollout.engine(answers);
    let engine = RolloutEngine::Own(AsyncEngine::start_sharing(model, text, decoding, Arc::new(()), turns)?);
    let (scorer, table) = (Arc::new(scorer), config.rollout.clone());
    let validating = ValidationWaits::default();
    episode_kinds.listen(scorer.sandbox())?;
    let rollout = Rollout { engine, scorer, table, records_masks: false, constraint, episode_kinds, limit, validating };
    let runtime = rollout.scorer.sandbox().handle().clone();
    progress(EvalProgress::Started(answers));
    let scored = || progress(EvalProgress::Scored);
    runtime.block_on(validation::validate_with(config, &rollout, &Ranks::alone(), &validation, &scored))
}

/// The answers of a server.
fn ask(
    config: &Config<toml::Table>,
    endpoint: &(String, ChatEndpoint),
    progress: &(dyn Fn(EvalProgress) + Sync),
) -> Result<Validation> {
    if config.agent.have_turns() {
        return Err(PipelineError::Stopped(
            "agents and tools are for a checkpoint, not yet for a server\nhint: leave --endpoint out, or leave [agent] and the [[tool]] tables out".into(),
        ));
    }
    if config.rollout.grammar.is_some() {
        return Err(PipelineError::Stopped(
            "rollout.grammar is for a checkpoint, not yet for a server\nhint: leave --endpoint out, or rollout.grammar; options of the endpoint can name a grammar of the server's".into(),
        ));
    }
    let (scorer, _) = scorer(config, &KeptComponents::default(), &Ranks::alone())?;
    let mut questions = Vec::new();
    if let Some(datasets) = &config.data.validation {
        let question = |row: Row, path: &Path| {
            let place = row.place.clone();
            let task = Arc::new(task(row, path, "validation")?);
            let bad = |what| PipelineError::BadRow { path: path.to_owned(), place: place.clone(), what };
            let tools = tools(&task).map_err(&bad)?;
            let template_kwargs = template_kwargs(&task).map_err(bad)?;
            Ok(Some(Question { task, tools, template_kwargs }))
        };
        let keep = |question| {
            questions.push(question);
            Ok(())
        };
        usable(dataset_rows(config, datasets, scorer.sandbox()), question, keep)?;
    }
    let asked: Vec<Arc<Task>> = questions.iter().map(|question| question.task.clone()).collect();
    if let Some(datasets) = &config.data.validation {
        check_data_sources(&scorer, datasets, &sources(&asked), |row| Ok(asked[row].clone()))?;
    }
    // Before the server is asked, which may cost money.
    try_rewards_on(config, &scorer, &asked)?;
    progress(EvalProgress::Started(config.data.validation_samples * questions.len()));
    let scored = || progress(EvalProgress::Scored);
    let sampling = config.validation.sampling(config.rollout.sampling(Vec::new()), config.data.validation_samples);
    let rollout = EndpointRollout::new(endpoint, &scorer, &config.rollout, sampling, &scored)?;
    let seeds = |row| validation::seeds(config, row);
    let groups = scorer.sandbox().handle().block_on(rollout.draw_all(&questions, seeds))?;
    let mut metrics = describe_validation(&groups, config.accuracy_reward(), config.data.validation_samples);
    metrics.count("val/unanswered", rollout.failed() as u64);
    Ok(Validation { metrics, groups, waited: 0.0 })
}
