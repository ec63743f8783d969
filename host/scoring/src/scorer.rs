//! The plugins of a run, and the samples that they score.

use crate::chat::{self, ChatEndpoint};
use crate::condition::When;
use crate::error::{ScorerError, Uncovered};
use crate::exec::{self, LoadedProgram};
use crate::judges::{Judges, WeightedJudge, waits};
use crate::pending_group::PendingGroup;
use crate::progress::Progress;
use crate::round::Round;
use gavel_data::{OutcomeKind, PriorVerdicts, Sample, SampleOutcome};
use gavel_plugin::{Plugin, PluginSpec, ProgramSpec, Sandbox, SandboxConfig, Tape};
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
    /// Which samples it is called for.
    pub when: When,
}

impl WeightedPlugin {
    /// A plugin that is called for every sample.
    pub fn new(spec: PluginSpec, weight: f64) -> Self {
        Self { spec, weight, when: When::default() }
    }
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
    pub(crate) judges: Arc<Judges>,
    /// What the judges were made from, in the same order.
    plugins: Vec<LoadedPlugin>,
    chat: BTreeMap<String, ChatEndpoint>,
    programs: Vec<LoadedProgram>,
    sandbox: Sandbox,
}

/// A plugin that is ready, and what it was made from.
pub(crate) struct LoadedPlugin {
    pub(crate) plugin: Arc<Plugin>,
    pub(crate) spec: PluginSpec,
}

/// A sample on its way.
pub struct Pending {
    outcome: JoinHandle<SampleOutcome>,
    progress: Progress,
}

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
        if let Some(plugin) = plugins.iter().find(|plugin| !plugin.weight.is_finite()) {
            return Err(ScorerError::Weight { plugin: plugin.spec.name.clone(), weight: plugin.weight });
        }
        let named: Vec<_> = plugins.iter().map(|plugin| (plugin.spec.name.as_str(), &plugin.when)).collect();
        let waits = waits(&named)?;
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
        let mut judges = Vec::with_capacity(plugins.len());
        for (WeightedPlugin { spec, weight, when }, waits) in plugins.into_iter().zip(waits) {
            if loaded.iter().any(|other| other.spec.name == spec.name) {
                return Err(ScorerError::SameName(spec.name));
            }
            let plugin = Arc::new(sandbox.handle().block_on(Plugin::load(&sandbox, spec.clone()))?);
            if !plugin.is_reward() && !plugin.is_judger() {
                return Err(ScorerError::ScoresNothing(spec.name));
            }
            judges.push(WeightedJudge { judge: plugin.clone(), weight, when, waits });
            loaded.push(LoadedPlugin { plugin, spec });
        }
        Ok(Self { judges: Arc::new(Judges::new(judges)?), plugins: loaded, chat, programs, sandbox })
    }

    /// The plugins with their weights, in the order of the configuration.
    pub fn plugins(&self) -> impl Iterator<Item = (&Plugin, f64)> {
        self.loaded().map(|(loaded, judge)| (&*loaded.plugin, judge.weight))
    }

    /// The plugins, and how each of them counts.
    pub(crate) fn loaded(&self) -> impl Iterator<Item = (&LoadedPlugin, &WeightedJudge)> {
        self.plugins.iter().zip(self.judges.iter())
    }

    /// What its plugins run in, with the endpoints and programs that they may be granted.
    pub fn sandbox(&self) -> &Sandbox {
        &self.sandbox
    }

    /// The endpoints that its plugins may be granted.
    pub(crate) fn chat(&self) -> &BTreeMap<String, ChatEndpoint> {
        &self.chat
    }

    /// The programs that its plugins may be granted.
    pub(crate) fn programs(&self) -> &[LoadedProgram] {
        &self.programs
    }

    /// Sets what becomes of the answers that plugins get from outside; see
    /// [`Sandbox::use_tape`].
    pub fn use_tape(&self, tape: Tape) {
        self.sandbox.use_tape(tape);
    }

    /// Whether the rows of a data source get a reward: whether plugins with a
    /// weight, and their gates, are for it.
    ///
    /// # Errors
    /// They are not, though there are plugins with a weight.
    pub fn check_data_source(&self, data_source: Option<&str>) -> Result<(), Uncovered> {
        self.judges.check_data_source(data_source)
    }

    /// Whether a plugin judges whole groups.
    pub fn has_judgers(&self) -> bool {
        self.judges.iter().any(|each| each.judge.sees_groups())
    }

    /// Starts all plugins on a sample; `seed` is what they see as random. Its
    /// `group` is judged when it is whole, with the seed of its first sample.
    pub fn start(&self, group: &PendingGroup, sample: impl Into<Arc<Sample>>, seed: u64) -> Pending {
        self.start_after(group, sample, seed, PriorVerdicts::new())
    }

    /// The same; plugins that come after one of `recorded` see what it said
    /// there, and not what it says now.
    pub(crate) fn start_after(
        &self,
        group: &PendingGroup,
        sample: impl Into<Arc<Sample>>,
        seed: u64,
        recorded: PriorVerdicts,
    ) -> Pending {
        let (judges, group, sample) = (self.judges.clone(), group.clone(), sample.into());
        let progress = Progress::default();
        let seen = progress.clone();
        let scored = async move {
            Round::new(&judges, &group, &sample, seed, &recorded).with_progress(progress).evaluate().await
        };
        Pending { outcome: self.sandbox.handle().spawn(scored), progress: seen }
    }

    /// Starts all plugins on a sample that is alone in its group.
    pub fn start_alone(&self, sample: impl Into<Arc<Sample>>, seed: u64) -> Pending {
        self.start(&PendingGroup::new(1), sample, seed)
    }

    /// Waits for a sample that was started; never longer than the deadlines of
    /// the calls before it.
    pub fn wait(&self, pending: Pending) -> SampleOutcome {
        self.sandbox.handle().block_on(pending.outcome())
    }
}

impl Pending {
    /// Waits for the outcome, on any executor; never longer than the deadlines of the calls before it.
    pub async fn outcome(self) -> SampleOutcome {
        self.outcome.await.unwrap_or_else(|error| {
            let what = format!("the scoring task ended early: {error}");
            SampleOutcome::without_calls(OutcomeKind::Fault, what)
        })
    }

    /// Whether the outcome is there.
    pub fn is_done(&self) -> bool {
        self.outcome.is_finished()
    }

    /// What it waits for.
    pub fn progress(&self) -> Progress {
        self.progress.clone()
    }
}
