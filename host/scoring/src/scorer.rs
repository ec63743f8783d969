//! The plugins of a run.

use crate::chat::{self, ChatEndpoint, ChatEndpointError};
use crate::combine::combine;
use crate::exec::{self, LoadedProgram};
use crate::group::{Group, Judged};
use futures::future::{join, join_all};
use gavel_data::{Blame, Evaluation, Outcome, OutcomeKind, Sample, SampleOutcome};
use gavel_plugin::{LoadError, Plugin, PluginSpec, ProgramSpec, Sandbox, SandboxConfig, Tape};
use std::collections::BTreeMap;
use std::sync::Arc;
use tokio::task::JoinHandle;

/// A plugin and how much it counts.
#[derive(Debug, Clone)]
pub struct WeightedPlugin {
    /// The component and its parameters.
    pub spec: PluginSpec,
    /// The factor of its score in the reward; 0 makes it a shadow.
    pub weight: f64,
}

/// Why there is no scorer.
#[derive(Debug, thiserror::Error)]
pub enum ScorerError {
    /// A plugin does not load.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// An endpoint cannot be used.
    #[error(transparent)]
    Chat(#[from] ChatEndpointError),
    /// A component that is only a dataset.
    #[error(
        "plugin `{0}` scores nothing: it exports neither `reward` nor `judger`\nhint: a taskset belongs under [data], as \"plugin:PATH\""
    )]
    ScoresNothing(String),
    /// Two plugins have one name.
    #[error("two plugins are called `{0}`\nhint: give one another name")]
    SameName(String),
}

/// What plugins run in.
#[derive(Debug, Clone)]
pub struct ScorerConfig {
    /// What they may use together.
    pub sandbox: SandboxConfig,
    /// The endpoints that they may be granted, by name.
    pub chat: BTreeMap<String, ChatEndpoint>,
    /// The programs that they may be granted.
    pub programs: Vec<ProgramSpec>,
}

impl From<SandboxConfig> for ScorerConfig {
    fn from(sandbox: SandboxConfig) -> Self {
        Self { sandbox, chat: BTreeMap::new(), programs: Vec::new() }
    }
}

/// Scores samples concurrently.
pub struct Scorer {
    plugins: Arc<Plugins>,
    chat: BTreeMap<String, ChatEndpoint>,
    programs: Vec<LoadedProgram>,
    sandbox: Sandbox,
}

pub(crate) struct Plugins(Vec<LoadedPlugin>);

/// A plugin that is ready, and what it was made from.
pub(crate) struct LoadedPlugin {
    pub(crate) plugin: Plugin,
    pub(crate) spec: PluginSpec,
    pub(crate) weight: f64,
}

/// A sample on its way.
pub struct Pending(JoinHandle<SampleOutcome>);

impl Scorer {
    /// Loads the plugins into a sandbox of their own.
    pub fn new(plugins: Vec<WeightedPlugin>, config: ScorerConfig) -> Result<Self, ScorerError> {
        Self::with_tape(plugins, config, None)
    }

    /// Loads plugins that get their answers from outside by `tape`, where there
    /// is one; otherwise [`Scorer::use_tape`] may give one later.
    pub fn with_tape(
        plugins: Vec<WeightedPlugin>,
        config: ScorerConfig,
        tape: Option<Tape>,
    ) -> Result<Self, ScorerError> {
        let ScorerConfig { sandbox, chat, programs } = config;
        let sandbox = Sandbox::new(sandbox)?;
        match &tape {
            Some(Tape::Replay(_)) => {
                chat::stand_in(&sandbox, plugins.iter().flat_map(|plugin| &plugin.spec.grants.chat));
            }
            _ => chat::connect(&sandbox, &chat)?,
        }
        // Also in a replay: a program is run again.
        let programs = exec::connect(&sandbox, programs)?;
        if let Some(tape) = tape {
            sandbox.use_tape(tape);
        }
        let mut loaded: Vec<LoadedPlugin> = Vec::with_capacity(plugins.len());
        for WeightedPlugin { spec, weight } in plugins {
            if loaded.iter().any(|other| other.spec.name == spec.name) {
                return Err(ScorerError::SameName(spec.name));
            }
            let plugin = sandbox.handle().block_on(Plugin::load(&sandbox, spec.clone()))?;
            if !plugin.is_reward() && !plugin.is_judger() {
                return Err(ScorerError::ScoresNothing(spec.name));
            }
            loaded.push(LoadedPlugin { plugin, spec, weight });
        }
        Ok(Self { plugins: Arc::new(Plugins(loaded)), chat, programs, sandbox })
    }

    /// The plugins with their weights, in the order of the configuration.
    pub fn plugins(&self) -> impl Iterator<Item = (&Plugin, f64)> {
        self.plugins.0.iter().map(|each| (&each.plugin, each.weight))
    }

    /// The endpoints that its plugins may be granted.
    pub(crate) fn chat(&self) -> &BTreeMap<String, ChatEndpoint> {
        &self.chat
    }

    /// The programs that its plugins may be granted.
    pub(crate) fn programs(&self) -> &[LoadedProgram] {
        &self.programs
    }

    pub(crate) fn loaded(&self) -> &[LoadedPlugin] {
        &self.plugins.0
    }

    /// Says what becomes of the answers that plugins get from outside; see
    /// [`Sandbox::use_tape`].
    pub fn use_tape(&self, tape: Tape) {
        self.sandbox.use_tape(tape);
    }

    /// Whether a plugin judges whole groups.
    pub fn has_judgers(&self) -> bool {
        self.plugins.0.iter().any(|each| each.plugin.is_judger())
    }

    /// Starts all plugins on a sample; `seed` is what they see as random. Its
    /// `group` is judged when it is whole, with the seed of its first sample.
    pub fn start(&self, group: &Group, sample: impl Into<Arc<Sample>>, seed: u64) -> Pending {
        let (plugins, group, sample) = (self.plugins.clone(), group.clone(), sample.into());
        Pending(self.sandbox.handle().spawn(async move { plugins.evaluate(&group, &sample, seed).await }))
    }

    /// Starts all plugins on a sample that is alone in its group.
    pub fn start_alone(&self, sample: impl Into<Arc<Sample>>, seed: u64) -> Pending {
        self.start(&Group::new(1), sample, seed)
    }

    /// Waits for a sample that was started; never longer than the deadlines of
    /// the calls before it.
    pub fn wait(&self, pending: Pending) -> SampleOutcome {
        self.sandbox.handle().block_on(pending.0).unwrap_or_else(|error| {
            let what = format!("the scoring task ended early: {error}");
            SampleOutcome { reward: None, outcome: OutcomeKind::Fault, reason: Some(what), plugins: BTreeMap::new() }
        })
    }
}

impl Pending {
    /// Whether the outcome is there.
    pub fn is_done(&self) -> bool {
        self.0.is_finished()
    }
}

impl Plugins {
    /// What all plugins say of a sample. A component that is both scores it as
    /// a judger, which sees more.
    async fn evaluate(&self, group: &Group, sample: &Arc<Sample>, seed: u64) -> SampleOutcome {
        let rewards = self.0.iter().map(async |each| match each.plugin.is_judger() {
            false => Some(each.plugin.score(sample, seed).await),
            true => None,
        });
        let (mut evaluations, judged) = join(join_all(rewards), self.judged(group, sample, seed)).await;
        for (number, evaluation) in judged {
            evaluations[number] = Some(evaluation);
        }
        let calls = self.0.iter().zip(evaluations).map(|(each, evaluation)| {
            let given_up = || {
                let what = "its group was given up before it was whole".to_owned();
                Evaluation::without_call(Outcome::Fault { whose: Blame::Host, what })
            };
            (each.plugin.name(), each.weight, evaluation.unwrap_or_else(given_up))
        });
        combine(calls.collect())
    }

    async fn judged(&self, group: &Group, sample: &Arc<Sample>, seed: u64) -> Judged {
        match self.0.iter().any(|each| each.plugin.is_judger()) {
            true => group.judged(self, sample, seed).await.unwrap_or_default(),
            false => Judged::new(),
        }
    }

    /// What each judger says of a group, by its number among the plugins.
    pub(crate) async fn judge(&self, samples: &[Arc<Sample>], seed: u64) -> Vec<(usize, Vec<Evaluation>)> {
        let judgers = self.0.iter().enumerate().filter(|(_, each)| each.plugin.is_judger());
        join_all(judgers.map(async |(number, each)| (number, each.plugin.judge(samples, seed).await))).await
    }
}
