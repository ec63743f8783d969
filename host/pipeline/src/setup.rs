//! Everything that can be checked before anything heavy starts: the tokenizer, every row of the datasets, every plugin.

use crate::config::{Config, Datasets, RlTable, SftTable};
use crate::dataset::rows;
use crate::error::{PipelineError, Result};
use crate::logic::Logic;
use crate::policy::text_and_config;
use crate::prompts::{Drawable, Prompt, PromptLimit, prompts};
use crate::sft_rows::sft_rows;
use gavel_agent as agent;
use gavel_data::{Shown, Task};
use gavel_policy::ModelConfig;
use gavel_scoring::{Scorer, ScorerConfig};
use gavel_text::{History, RenderOptions, TextModel};
use gavel_train::SftRow;
use serde_json::Value;
use std::collections::HashSet;

/// What every command needs besides the weights.
pub(crate) struct Setup {
    pub(crate) text: TextModel,
    pub(crate) sizes: ModelConfig,
    pub(crate) limit: PromptLimit,
    pub(crate) validation: Vec<Prompt>,
    pub(crate) scorer: Scorer,
    pub(crate) logic: Logic,
}

impl Setup {
    pub(crate) fn new<T>(config: &Config<T>) -> Result<Self> {
        let (text, sizes) = text_and_config(&config.model)?;
        config.rollout.check_tokens(sizes.vocab_size)?;
        let limit = PromptLimit::new(&config.data, sizes.positions(), config.rollout.max_tokens)?;
        let scorer = scorer(config)?;
        let logic = Logic::load(config, scorer.sandbox())?;
        let mut setup = Self { text, sizes, limit, validation: Vec::new(), scorer, logic };
        if let Some(datasets) = &config.data.validation {
            setup.validation = setup.prompts(config, datasets, "validation")?.rows;
        }
        Ok(setup)
    }

    /// The prompts of datasets; each has a reward that scores it.
    fn prompts<T>(&self, config: &Config<T>, datasets: &Datasets, split: &str) -> Result<Drawable<Prompt>> {
        let rows = rows(config, datasets, self.scorer.sandbox())?;
        let prompts = prompts(rows, split, &self.text, self.limit, &self.logic)?;
        if let (Logic::Tools(tools), Some(prompt)) = (&self.logic, prompts.rows.first()) {
            check_template(&self.text, &prompt.task, &tools.set.definitions(), config.agent.history)?;
        }
        check_data_sources(&self.scorer, datasets, prompts.rows.iter().map(|prompt| &*prompt.task))?;
        Ok(prompts)
    }

    /// The rows that `gavel sft` imitates.
    pub(crate) fn sft_rows(&self, config: &Config<SftTable>) -> Result<Drawable<SftRow>> {
        let rows = rows(config, &config.data.train, self.scorer.sandbox())?;
        sft_rows(rows, &self.text, self.limit, &self.logic)
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

/// Refuses a chat template with which tools could not be used: calls that nobody can read, or a history that would be
/// rewritten, so that the policy would not continue what it wrote.
fn check_template(text: &TextModel, task: &Task, functions: &[Value], history: agent::History) -> Result<()> {
    const HINT: &str = "hint: set model.chat_template to the file of another one";
    if text.template.tool_call_format().is_none() {
        return Err(PipelineError::Stopped(format!(
            "the chat template has no form for tool calls that gavel reads: those of Hermes and Qwen, Qwen3-Coder, Llama 3 and Mistral\n{HINT}"
        )));
    }
    if history == agent::History::Split {
        return Ok(());
    }
    match text.check_history(&task.prompt, &RenderOptions::prompt(functions))?.after_tool {
        History::Kept => Ok(()),
        History::Rewritten { what } | History::Refused { what } => {
            let what = what.split("\nhint: ").next().unwrap_or_default().to_owned();
            Err(PipelineError::Stopped(format!(
                "{what}, so that a conversation with tools cannot continue in one trajectory\n{HINT}, or agent.history = \"split\" to make each turn a trajectory of its own"
            )))
        }
    }
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
