//! The plugins of a run.

use crate::combine::combine;
use futures::future::join_all;
use gavel_data::{OutcomeKind, Sample, SampleOutcome};
use gavel_plugin::{LoadError, Plugin, PluginSpec, Sandbox, SandboxConfig};
use std::collections::BTreeMap;
use std::sync::Arc;
use tokio::task::JoinHandle;

/// A plugin and how much it counts.
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

struct Plugins(Vec<(Plugin, f64)>);

/// A sample on its way.
pub struct Pending(JoinHandle<SampleOutcome>);

impl Scorer {
    /// Loads the plugins into a sandbox of their own.
    pub fn new(plugins: Vec<WeightedPlugin>, config: SandboxConfig) -> Result<Self, ScorerError> {
        let sandbox = Sandbox::new(config)?;
        let mut loaded: Vec<(Plugin, f64)> = Vec::with_capacity(plugins.len());
        for WeightedPlugin { spec, weight } in plugins {
            if loaded.iter().any(|(plugin, _)| plugin.name() == spec.name) {
                return Err(ScorerError::SameName(spec.name));
            }
            loaded.push((sandbox.handle().block_on(Plugin::load(&sandbox, spec))?, weight));
        }
        Ok(Self { plugins: Arc::new(Plugins(loaded)), sandbox })
    }

    /// The plugins with their weights, in the order of the configuration.
    pub fn plugins(&self) -> impl Iterator<Item = (&Plugin, f64)> {
        self.plugins.0.iter().map(|(plugin, weight)| (plugin, *weight))
    }

    /// Starts all plugins on a sample; `seed` is what they see as random.
    pub fn start(&self, sample: Sample, seed: u64) -> Pending {
        let plugins = self.plugins.clone();
        let sample = Arc::new(sample);
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
            .map(|(plugin, weight)| async move { (plugin.name(), *weight, plugin.score(sample, seed).await) });
        combine(join_all(calls).await)
    }
}
