//! Everything that can be checked before anything heavy starts: the
//! tokenizer, every row of the datasets, every plugin.

use crate::config::{Config, Dataset, GrpoTable, SftTable};
use crate::error::{PipelineError, Result};
use crate::learner::text_and_config;
use crate::memory::{Prediction, predict_sft, predict_train};
use crate::prompts::{Prompt, PromptLimit, prompts, sft_rows};
use gavel_data::Shown;
use gavel_policy::ModelConfig;
use gavel_scoring::{Scorer, ScorerConfig};
use gavel_text::TextModel;
use std::collections::HashSet;

/// One thing that was checked and found in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Check {
    /// What was checked.
    pub what: &'static str,
    /// What was found.
    pub found: String,
}

/// What every command needs besides the weights.
pub(crate) struct Setup {
    pub(crate) text: TextModel,
    pub(crate) sizes: ModelConfig,
    pub(crate) limit: PromptLimit,
    pub(crate) validation: Vec<Prompt>,
    pub(crate) scorer: Scorer,
}

impl Setup {
    pub(crate) fn new<T>(config: &Config<T>) -> Result<Self> {
        let (text, sizes) = text_and_config(&config.model)?;
        config.rollout.check_tokens(sizes.vocab_size)?;
        let limit = PromptLimit::new(&config.data, sizes.positions(), config.rollout.max_tokens)?;
        let validation = match &config.data.validation {
            Some(dataset) => prompts(config, dataset, "validation", &text, limit)?,
            None => Vec::new(),
        };
        let plugins = config.reward.iter().map(|reward| reward.plugin(&config.limits)).collect();
        let programs = config.exec.iter().map(|(name, table)| table.program(name)).collect();
        let scorer = Scorer::new(
            plugins,
            ScorerConfig { sandbox: config.resources.sandbox(), chat: config.chat.clone(), programs },
        )?;
        check_data_sources(&scorer, config.data.validation.as_ref(), &validation)?;
        Ok(Self { text, sizes, limit, validation, scorer })
    }

    /// The prompts of a GRPO run.
    pub(crate) fn train_prompts(&self, config: &Config<GrpoTable>) -> Result<Vec<Prompt>> {
        if !config.reward.iter().any(|reward| reward.weight != 0.0) {
            return Err(PipelineError::Stopped("there is no [[reward]] with a weight to learn from".into()));
        }
        let found = prompts(config, &config.data.train, "train", &self.text, self.limit)?;
        if found.len() < config.train.prompts_per_step {
            return Err(PipelineError::Stopped(format!(
                "dataset {} has {} usable rows, fewer than train.prompts_per_step = {}",
                config.data.train,
                found.len(),
                config.train.prompts_per_step
            )));
        }
        check_data_sources(&self.scorer, Some(&config.data.train), &found)?;
        Ok(found)
    }

    fn checks(&self, train: &str, rows: usize) -> Vec<Check> {
        let sizes = &self.sizes;
        let mut checks = vec![
            Check {
                what: "model",
                found: format!(
                    "{} layers, hidden {}, vocabulary {}, {} positions",
                    sizes.num_hidden_layers,
                    sizes.hidden_size,
                    sizes.vocab_size,
                    sizes.positions()
                ),
            },
            Check { what: "training data", found: format!("{rows} rows of {train}") },
            Check { what: "validation data", found: format!("{} rows", self.validation.len()) },
        ];
        checks.extend(self.scorer.plugins().map(|(plugin, weight)| Check {
            what: "reward",
            found: format!(
                "{}: {} {}, weight {weight}, hash {}",
                plugin.name(),
                plugin.info().name,
                plugin.info().version,
                &plugin.hash()[..16]
            ),
        }));
        checks
    }
}

/// Refuses rows that no reward with a weight would ever be called for.
fn check_data_sources(scorer: &Scorer, dataset: Option<&Dataset>, prompts: &[Prompt]) -> Result<()> {
    let mut known = HashSet::new();
    for Prompt { task, .. } in prompts {
        let source = task.data_source.as_deref();
        if let Some(dataset) = dataset
            && known.insert(source)
            && let Err(what) = scorer.check_data_source(source)
        {
            return Err(PipelineError::Stopped(format!("dataset {dataset}, row {}: {what}", Shown(&task.id))));
        }
    }
    Ok(())
}

/// What a run would be.
#[derive(Debug, Clone, PartialEq)]
pub struct DryRun {
    /// The configuration with every default, as TOML.
    pub config: String,
    /// What was checked.
    pub checks: Vec<Check>,
    /// The memory that it needs.
    pub memory: Prediction,
}

/// Checks all that `gavel train` would use.
pub fn dry_run_train(config: &Config<GrpoTable>) -> Result<DryRun> {
    let setup = Setup::new(config)?;
    let prompts = setup.train_prompts(config)?;
    Ok(DryRun {
        config: config.resolved()?,
        checks: setup.checks(&config.data.train.to_string(), prompts.len()),
        memory: predict_train(config, &setup, &prompts)?,
    })
}

/// The same for `gavel sft`.
pub fn dry_run_sft(config: &Config<SftTable>) -> Result<DryRun> {
    let setup = Setup::new(config)?;
    let rows = sft_rows(config, &setup.text, setup.limit)?;
    Ok(DryRun {
        config: config.resolved()?,
        checks: setup.checks(&config.data.train.to_string(), rows.len()),
        memory: predict_sft(config, &setup, &rows)?,
    })
}
