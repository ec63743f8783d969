//! The plugins of a run.

use crate::combine::combine;
use futures::future::join_all;
use gavel_data::{OutcomeKind, Sample, SampleOutcome};
use gavel_plugin::{LoadError, Plugin, PluginSpec, Sandbox, SandboxConfig, Tape};
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
    /// Two plugins have one name.
    #[error("two plugins are called `{0}`\nhint: give one another name")]
    SameName(String),
}

/// Scores samples concurrently.
pub struct Scorer {
    plugins: Arc<Plugins>,
    sandbox: Sandbox,
}

struct Plugins(Vec<LoadedPlugin>);

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
    pub fn new(plugins: Vec<WeightedPlugin>, config: SandboxConfig) -> Result<Self, ScorerError> {
        Self::with_tape(plugins, config, None)
    }

    /// Loads plugins that get their answers from outside by `tape`, where there
    /// is one; otherwise [`Scorer::use_tape`] may give one later.
    pub fn with_tape(
        plugins: Vec<WeightedPlugin>,
        config: SandboxConfig,
        tape: Option<Tape>,
    ) -> Result<Self, ScorerError> {
        let sandbox = Sandbox::new(config)?;
        if let Some(tape) = tape {
            sandbox.use_tape(tape);
        }
        let mut loaded: Vec<LoadedPlugin> = Vec::with_capacity(plugins.len());
        for WeightedPlugin { spec, weight } in plugins {
            if loaded.iter().any(|other| other.spec.name == spec.name) {
                return Err(ScorerError::SameName(spec.name));
            }
            let plugin = sandbox.handle().block_on(Plugin::load(&sandbox, spec.clone()))?;
            loaded.push(LoadedPlugin { plugin, spec, weight });
        }
        Ok(Self { plugins: Arc::new(Plugins(loaded)), sandbox })
    }

    /// The plugins with their weights, in the order of the configuration.
    pub fn plugins(&self) -> impl Iterator<Item = (&Plugin, f64)> {
        self.plugins.0.iter().map(|each| (&each.plugin, each.weight))
    }

    pub(crate) fn loaded(&self) -> &[LoadedPlugin] {
        &self.plugins.0
    }

    /// Says what becomes of the answers that plugins get from outside; see
    /// [`Sandbox::use_tape`].
    pub fn use_tape(&self, tape: Tape) {
        self.sandbox.use_tape(tape);
    }

    /// Starts all plugins on a sample; `seed` is what they see as random.
    pub fn start(&self, sample: impl Into<Arc<Sample>>, seed: u64) -> Pending {
        let plugins = self.plugins.clone();
        let sample = sample.into();
        Pending(self.sandbox.handle().spawn(async move { plugins.score(&sample, seed).await }))
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
    async fn score(&self, sample: &Arc<Sample>, seed: u64) -> SampleOutcome {
        let calls = self
            .0
            .iter()
            .map(|each| async move { (each.plugin.name(), each.weight, each.plugin.score(sample, seed).await) });
        combine(join_all(calls).await)
    }
}
