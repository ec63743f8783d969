//! Everything that can be checked before anything heavy starts: the
//! tokenizer, every row of the datasets, every plugin.

use crate::config::{Config, Datasets, RlTable, SftTable};
use crate::dataset::rows;
use crate::error::{PipelineError, Result};
use crate::policy::text_and_config;
use crate::prompts::{Drawable, Prompt, PromptLimit, prompts};
use crate::sft_rows::sft_rows;
use gavel_data::{Shown, Task};
use gavel_policy::ModelConfig;
use gavel_scoring::{Scorer, ScorerConfig};
use gavel_text::TextModel;
use gavel_train::SftRow;
use std::collections::HashSet;

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
        let scorer = scorer(config)?;
        let mut setup = Self { text, sizes, limit, validation: Vec::new(), scorer };
        if let Some(datasets) = &config.data.validation {
            setup.validation = setup.prompts(config, datasets, "validation")?.rows;
        }
        Ok(setup)
    }

    /// The prompts of datasets, each with a reward that is for it.
    fn prompts<T>(&self, config: &Config<T>, datasets: &Datasets, split: &str) -> Result<Drawable<Prompt>> {
        let rows = rows(config, datasets, self.scorer.sandbox())?;
        let prompts = prompts(rows, split, &self.text, self.limit)?;
        check_data_sources(&self.scorer, datasets, prompts.rows.iter().map(|prompt| &*prompt.task))?;
        Ok(prompts)
    }

    /// The rows that `gavel sft` imitates.
    pub(crate) fn sft_rows(&self, config: &Config<SftTable>) -> Result<Drawable<SftRow>> {
        sft_rows(rows(config, &config.data.train, self.scorer.sandbox())?, &self.text, self.limit)
    }

    /// The prompts that `gavel train` learns from.
    pub(crate) fn train_prompts(&self, config: &Config<RlTable>) -> Result<Drawable<Prompt>> {
        if !config.reward.iter().any(|reward| reward.weight != 0.0) {
            return Err(PipelineError::Stopped("there is no [[reward]] with a weight to learn from".into()));
        }
        let found = self.prompts(config, &config.data.train, "train")?;
        if found.rows.len() < config.train.prompts_per_step {
            return Err(PipelineError::Stopped(format!(
                "dataset {} has {} usable rows, fewer than train.prompts_per_step = {}",
                config.data.train,
                found.rows.len(),
                config.train.prompts_per_step
            )));
        }
        Ok(found)
    }
}

/// The rewards of a configuration, with what they may ask and run.
pub(crate) fn scorer<T>(config: &Config<T>) -> Result<Scorer> {
    let plugins = config.reward.iter().map(|reward| reward.plugin(&config.limits)).collect();
    let programs = config.exec.iter().map(|(name, table)| table.program(name)).collect();
    let (sandbox, chat) = (config.resources.sandbox(), config.chat.clone());
    Ok(Scorer::new(plugins, ScorerConfig { sandbox, chat, programs })?)
}

/// Refuses rows that no reward with a weight would ever be called for.
pub(crate) fn check_data_sources<'a>(
    scorer: &Scorer,
    datasets: &Datasets,
    tasks: impl Iterator<Item = &'a Task>,
) -> Result<()> {
    let mut known = HashSet::new();
    for task in tasks {
        let source = task.data_source.as_deref();
        if known.insert(source)
            && let Err(what) = scorer.check_data_source(source)
        {
            return Err(PipelineError::Stopped(format!("dataset {datasets}, row {}: {what}", Shown(&task.id))));
        }
    }
    Ok(())
}
