//! The plugins of a run and the threads that they run on.

use crate::combine::combine;
use crate::threads;
use futures::future::join_all;
use gavel_data::{Blame, Evaluation, Outcome, OutcomeKind, Sample, SampleOutcome, Usage};
use gavel_plugin::{LoadError, Plugin, PluginSpec, Sandbox};
use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::sync::Arc;
use tokio::runtime::Runtime;
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;

/// Calls in flight for each thread: some, so that a looping guest leaves room
/// for others, but few, so that each gets on before its deadline.
const CALLS_PER_WORKER: usize = 4;

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
    /// The system gives no threads.
    #[error("cannot start the plugin threads: {0}")]
    Threads(#[source] std::io::Error),
}

/// Scores samples concurrently.
pub struct Scorer {
    // Fields drop in this order: calls end before the engine that interrupts them.
    runtime: Option<Runtime>,
    shared: Arc<Shared>,
    _sandbox: Sandbox,
}

struct Shared {
    plugins: Vec<(Plugin, f64)>,
    calls: Semaphore,
}

/// A sample on its way.
pub struct Pending(JoinHandle<SampleOutcome>);

impl Scorer {
    /// Loads the plugins and starts `workers` threads.
    pub fn new(plugins: Vec<WeightedPlugin>, workers: NonZeroUsize) -> Result<Self, ScorerError> {
        let sandbox = Sandbox::new()?;
        let runtime = threads::runtime(workers.get()).map_err(ScorerError::Threads)?;
        let mut loaded: Vec<(Plugin, f64)> = Vec::with_capacity(plugins.len());
        for WeightedPlugin { spec, weight } in plugins {
            if loaded.iter().any(|(plugin, _)| plugin.name() == spec.name) {
                return Err(ScorerError::SameName(spec.name));
            }
            loaded.push((runtime.block_on(Plugin::load(&sandbox, spec))?, weight));
        }
        let calls = Semaphore::new(workers.get() * CALLS_PER_WORKER);
        let shared = Arc::new(Shared { plugins: loaded, calls });
        Ok(Self { runtime: Some(runtime), shared, _sandbox: sandbox })
    }

    /// The plugins with their weights, in the order of the configuration.
    pub fn plugins(&self) -> impl Iterator<Item = (&Plugin, f64)> {
        self.shared.plugins.iter().map(|(plugin, weight)| (plugin, *weight))
    }

    /// Starts all plugins on a sample; `seed` is what they see as random.
    pub fn start(&self, sample: Sample, seed: u64) -> Pending {
        let shared = self.shared.clone();
        let sample = Arc::new(sample);
        Pending(self.runtime().spawn(async move { shared.score(&sample, seed).await }))
    }

    /// Waits for a sample that was started; never longer than the deadlines of
    /// the calls before it.
    pub fn wait(&self, pending: Pending) -> SampleOutcome {
        self.runtime().block_on(pending.0).unwrap_or_else(|error| {
            let what = format!("the scoring task ended early: {error}");
            SampleOutcome { reward: None, outcome: OutcomeKind::Fault, reason: Some(what), plugins: BTreeMap::new() }
        })
    }

    fn runtime(&self) -> &Runtime {
        // Only `drop` takes it.
        #[allow(clippy::expect_used)]
        self.runtime.as_ref().expect("the runtime is there until the scorer is dropped")
    }
}

impl Pending {
    /// Whether the outcome is there.
    pub fn is_done(&self) -> bool {
        self.0.is_finished()
    }
}

impl Drop for Scorer {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

impl Shared {
    async fn score(&self, sample: &Arc<Sample>, seed: u64) -> SampleOutcome {
        let calls = self.plugins.iter().map(|(plugin, weight)| async move {
            let evaluation = match self.calls.acquire().await {
                Ok(_permit) => plugin.score(sample, seed).await,
                Err(_) => {
                    let what = "scoring was shut down".to_owned();
                    Evaluation { outcome: Outcome::Fault { whose: Blame::Host, what }, usage: Usage::default() }
                }
            };
            (plugin.name(), *weight, evaluation)
        });
        combine(join_all(calls).await)
    }
}
