//! Everything that can be checked before anything heavy starts: the tokenizer, every row of the datasets, every plugin.

use crate::episode_kind::EpisodeKinds;
use crate::error::{PipelineError, Result};
use crate::ranks::Ranks;
use crate::reward_model::RewardModels;
use crate::rows::{Prompt, PromptLimit, Prompts, SftRows, dataset_rows, prompts, sft_rows, template_kwargs};
use crate::run::planned::PlannedGpu;
use crate::run::policy::text_and_config;
use gavel_agent::{self as agent, PromptOptions};
use gavel_config::{Config, ConfigError, Datasets, ReferenceTable, RlTable, SftTable, TrainTable};
use gavel_data::{RowSources, SharedConstraint, Shown, SourceRows, Task};
use gavel_plugin::{Plugin, Sandbox, SandboxConfig};
use gavel_policy::ModelConfig;
use gavel_scoring::recording::{ActorRecord, ActorRole, KeptComponents};
use gavel_scoring::{Scorer, ScorerConfig, WeightedPlugin};
use gavel_text::{GrammarCompiler, History, TextModel};
use std::collections::BTreeSet;
use std::sync::Arc;

/// What every command needs besides the weights.
pub(crate) struct Setup {
    pub(crate) text: TextModel,
    pub(crate) sizes: ModelConfig,
    pub(crate) limit: PromptLimit,
    /// The grammar that responses are bound to, if there is one.
    pub(crate) constraint: Option<SharedConstraint>,
    /// The prompts that the policy answers in validation.
    pub(crate) validation: Vec<Prompt>,
    pub(crate) scorer: Scorer,
    pub(crate) reward_models: RewardModels,
    pub(crate) episode_kinds: EpisodeKinds,
    /// The plugin that turns rewards into advantages, if no built-in algorithm does.
    pub(crate) advantage: Option<Arc<Plugin>>,
    /// The plugin that draws tasks, if epochs do not.
    pub(crate) sampler: Option<Arc<Plugin>>,
    /// The GPU that a dry run plans for.
    pub(crate) planned: Option<PlannedGpu>,
}

impl Setup {
    /// A run that is resumed continues with the components in `kept`. All ranks call this.
    pub(crate) fn new<T: TrainTable>(config: &Config<T>, kept: &KeptComponents, ranks: &Ranks) -> Result<Self> {
        let (text, sizes) = text_and_config(&config.model, T::MODEL)?;
        config.rollout.check_tokens(sizes.vocab_size)?;
        let limit = PromptLimit::new(&config.data, sizes.positions(), config.rollout.max_tokens)?;
        let constraint = constraint(config, &text)?;
        let (scorer, reward_models) = scorer(config, kept, ranks)?;
        let episode_kinds = EpisodeKinds::load(config, kept, scorer.sandbox())?;
        let advantage = advantage(config, kept, scorer.sandbox())?;
        let sampler = sampler(config, kept, scorer.sandbox())?;
        let (validation, planned) = (Vec::new(), None);
        let mut setup = Self {
            text,
            sizes,
            limit,
            constraint,
            validation,
            scorer,
            reward_models,
            episode_kinds,
            advantage,
            sampler,
            planned,
        };
        if let (Some(datasets), None) = (&config.data.validation, T::WITHOUT_ANSWERS) {
            let limit = config.validation.max_tokens.map_or(Ok(limit), |most| limit.of_validation(most))?;
            setup.validation = setup.prompts(config, datasets, "validation", limit)?.rows.into_vec()?;
        }
        Ok(setup)
    }

    /// The setup of a dry run. Reward models are loaded on the CPU if it plans for a GPU that need not be there.
    pub(crate) fn of_dry_run<T: TrainTable + Clone>(config: &Config<T>, gpu: Option<PlannedGpu>) -> Result<Self> {
        if gpu.is_none() {
            return Self::new(config, &KeptComponents::default(), &Ranks::alone());
        }
        let mut config = config.clone();
        for table in config.reward_model.values_mut().filter(|table| table.path.is_some()) {
            table.device = "cpu".into();
        }
        let setup = Self::new(&config, &KeptComponents::default(), &Ranks::alone())?;
        Ok(Self { planned: gpu, ..setup })
    }

    /// The components that take part in the run beside its rewards, for the record.
    pub(crate) fn actors<T: TrainTable>(&self, config: &Config<T>) -> Vec<ActorRecord> {
        let deciders = [
            (ActorRole::Advantage, &self.advantage, config.advantage()),
            (ActorRole::Sampler, &self.sampler, config.sampler()),
        ];
        let deciders = deciders.into_iter().filter_map(|(role, plugin, spec)| {
            let plugin = plugin.as_ref()?;
            Some(ActorRecord::new(role, spec?, plugin.hash(), plugin.info()))
        });
        self.episode_kinds.actors(config).into_iter().chain(deciders).collect()
    }

    /// The prompts of datasets; each has a reward that scores it.
    fn prompts<T>(&self, config: &Config<T>, datasets: &Datasets, split: &str, limit: PromptLimit) -> Result<Prompts> {
        let rows = dataset_rows(config, datasets, self.scorer.sandbox());
        let prompts = prompts(rows, split, &self.text, limit, &self.episode_kinds)?;
        for (agent, task, functions) in self.episode_kinds.first_tasks(prompts.first_tasks.iter().map(|task| &**task)) {
            let has_agent = agent.is_own();
            if !has_agent {
                check_calls(&self.text)?;
            }
            let template_kwargs = template_kwargs(task).map_err(PipelineError::Stopped)?.into();
            let options = PromptOptions { functions, template_kwargs };
            check_history(&self.text, task, &options, has_agent, agent.history)?;
        }
        check_data_sources(&self.scorer, datasets, &prompts.sources, |row| Ok(prompts.rows.get(row)?.task.clone()))?;
        Ok(prompts)
    }

    /// The rows that `gavel sft` imitates.
    pub(crate) fn sft_rows(&self, config: &Config<SftTable>) -> Result<SftRows> {
        let rows = dataset_rows(config, &config.data.train, self.scorer.sandbox());
        sft_rows(rows, &self.text, self.limit, &self.episode_kinds, config.train.turns)
    }

    /// The prompts that `gavel train` learns from.
    pub(crate) fn train_prompts(&self, config: &Config<RlTable>) -> Result<Prompts> {
        if config.train.algorithm().needs_rewards() && !config.reward.iter().any(|reward| reward.weight != 0.0) {
            return Err(PipelineError::Stopped("there is no [[reward]] with a weight to learn from".into()));
        }
        let found = self.prompts(config, &config.data.train, "train", self.limit)?;
        // A sampler may draw a row several times in a step.
        if config.data.sampler.is_none() && found.rows.len() < config.train.prompts_per_step {
            return Err(PipelineError::Stopped(format!(
                "dataset {} has {} usable rows, fewer than train.prompts_per_step = {}",
                config.data.train,
                found.rows.len(),
                config.train.prompts_per_step
            )));
        }
        if let Some(reference) = &config.train.reference {
            check_reference_sources(reference, &config.data.train, &found.sources)?;
        }
        Ok(found)
    }
}

/// The grammar that responses are bound to, for the tokens of the model.
fn constraint<T>(config: &Config<T>, text: &TextModel) -> Result<Option<SharedConstraint>> {
    let Some(table) = &config.rollout.grammar else { return Ok(None) };
    let compiled = GrammarCompiler::new(text.tokenizer.clone()).compile(&table.source()?);
    let grammar = compiled.map_err(|error| ConfigError::of("rollout.grammar", error))?;
    Ok(Some(SharedConstraint::new(grammar)))
}

/// The rewards of a configuration, with the endpoints, reward models and programs that they may be granted; and the
/// reward models by themselves.
pub(crate) fn scorer<T: TrainTable>(
    config: &Config<T>,
    kept: &KeptComponents,
    ranks: &Ranks,
) -> Result<(Scorer, RewardModels)> {
    let plugins = config.reward.iter().map(|reward| {
        let plugin = reward.plugin(&config.limits);
        WeightedPlugin { spec: kept.reward(plugin.spec), ..plugin }
    });
    let plugins = plugins.collect();
    let programs = config.exec.iter().map(|(name, table)| kept.program(table.program(name))).collect();
    let max_pause = config.train.max_pause();
    let sandbox = SandboxConfig { max_pause, ..config.resources.sandbox() };
    let (chat, limiters) = (config.chat.clone(), config.limiter.clone());
    let models = RewardModels::of_rank(&config.reward_model, ranks, max_pause)?;
    let config = ScorerConfig { sandbox, chat, limiters, reward_models: models.asked(), programs };
    Ok((Scorer::new(plugins, config)?, models))
}

/// The plugin that turns rewards into advantages, in the sandbox of the rewards.
fn advantage<T: TrainTable>(
    config: &Config<T>,
    kept: &KeptComponents,
    sandbox: &Sandbox,
) -> Result<Option<Arc<Plugin>>> {
    let Some(spec) = config.advantage() else { return Ok(None) };
    let spec = kept.actor(ActorRole::Advantage, spec);
    let plugin = sandbox.handle().block_on(Plugin::load_advantage(sandbox, spec))?;
    Ok(Some(Arc::new(plugin)))
}

/// The plugin that draws tasks, in the same sandbox.
fn sampler<T: TrainTable>(config: &Config<T>, kept: &KeptComponents, sandbox: &Sandbox) -> Result<Option<Arc<Plugin>>> {
    let Some(spec) = config.sampler().filter(|_| T::DRAWS) else { return Ok(None) };
    let spec = kept.actor(ActorRole::Sampler, spec);
    let plugin = sandbox.handle().block_on(Plugin::load_sampler(sandbox, spec))?;
    Ok(Some(Arc::new(plugin)))
}

const OTHER_TEMPLATE: &str = "hint: set model.chat_template to the file of another one";

/// Refuses a chat template whose calls gavel cannot read.
fn check_calls(text: &TextModel) -> Result<()> {
    match text.template.tool_call_format() {
        Some(_) => Ok(()),
        None => Err(PipelineError::Stopped(format!(
            "the chat template has no form for tool calls that gavel reads: those of Hermes, Qwen, GLM, Llama, Mistral, gpt-oss, MiniMax, Kimi, DeepSeek, Seed and Gemma\n{OTHER_TEMPLATE}"
        ))),
    }
}

/// Refuses a chat template that cannot render a conversation with tools. If a conversation is to continue in one
/// trajectory, also refuses a template that rewrites its history: the policy would not continue what it wrote. An agent
/// may also let a user speak after a reply, or have conversations of one turn.
fn check_history(
    text: &TextModel,
    task: &Task,
    options: &PromptOptions,
    is_agent: bool,
    history: agent::History,
) -> Result<()> {
    let is_split = history == agent::History::Split;
    if is_agent && is_split {
        return Ok(());
    }
    let check = text.check_history(&task.prompt, &options.asking())?;
    let (kept, what) = match is_agent {
        true => (check.after_user, "a conversation of an agent"),
        false => (check.after_tool, "a conversation with tools"),
    };
    let brief = |what: String| what.split("\nhint: ").next().unwrap_or_default().to_owned();
    match kept {
        History::Kept => Ok(()),
        History::Rewritten { .. } if is_split => Ok(()),
        // No form of it, split or not, can be rendered.
        History::Refused { what: why } => {
            Err(PipelineError::Stopped(format!("{}, so that there cannot be {what}\n{OTHER_TEMPLATE}", brief(why))))
        }
        History::Rewritten { what: why } => Err(PipelineError::Stopped(format!(
            "{}, so that {what} cannot continue in one trajectory\n{OTHER_TEMPLATE}, or agent.history = \"split\" to make each turn a trajectory of its own",
            brief(why)
        ))),
    }
}

/// Refuses references of data sources that no row has, and rows that have no reference.
fn check_reference_sources(reference: &ReferenceTable, datasets: &Datasets, sources: &RowSources) -> Result<()> {
    if reference.by_source.is_empty() {
        return Ok(());
    }
    let names: BTreeSet<Option<&str>> = sources.each().into_iter().map(|source| source.name).collect();
    if let Some(unknown) = reference.by_source.keys().find(|name| !names.contains(&Some(name.as_str()))) {
        return Err(PipelineError::Stopped(format!(
            "train.reference.by_source: no row of {datasets} has the data source {unknown:?}\nhint: correct the name, or leave it out"
        )));
    }
    let lacks = |name: &&Option<&str>| name.is_none_or(|name| !reference.by_source.contains_key(name));
    match names.iter().find(lacks).filter(|_| !reference.is_for_all()) {
        None => Ok(()),
        Some(name) => Err(PipelineError::Stopped(format!(
            "train.reference.by_source: rows of {datasets} with {} have no reference\nhint: name one, or set train.reference.path for all others",
            name.map_or("no data source".to_owned(), |name| format!("the data source {name:?}"))
        ))),
    }
}

/// Refuses rows that no reward with a weight would ever be called for. `task` reads the row of a number.
pub(crate) fn check_data_sources(
    scorer: &Scorer,
    datasets: &Datasets,
    sources: &RowSources,
    task: impl Fn(usize) -> Result<Arc<Task>>,
) -> Result<()> {
    for SourceRows { name, first, .. } in sources.each() {
        if let Err(what) = scorer.check_data_source(name) {
            let id = &task(first)?.id;
            return Err(PipelineError::Stopped(format!("dataset {datasets}, row {}: {what}", Shown(id))));
        }
    }
    Ok(())
}
