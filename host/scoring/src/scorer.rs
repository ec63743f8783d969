//! The plugins of a run.

use crate::chat::{self, ChatEndpoint, ChatEndpointError};
use crate::exec::{self, LoadedProgram};
use crate::group::Group;
use crate::round::Round;
use crate::when::When;
use gavel_data::{OutcomeKind, Sample, SampleOutcome, Shown};
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
    /// Which samples it is called for.
    pub when: When,
}

impl WeightedPlugin {
    /// A plugin that is called for every sample.
    pub fn new(spec: PluginSpec, weight: f64) -> Self {
        Self { spec, weight, when: When::default() }
    }
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
    /// A weight that makes no sum.
    #[error("plugin `{plugin}` has the weight {weight}\nhint: give it a finite one")]
    Weight {
        /// Its name in the run.
        plugin: String,
        /// The weight.
        weight: f64,
    },
    /// A gate on nothing.
    #[error("reward `{plugin}`: `only_if` is about `{gate}`, and no reward is called that; they are: {}", known.join(", "))]
    UnknownGate {
        /// The gated plugin.
        plugin: String,
        /// The name in its condition.
        gate: String,
        /// The plugins that there are.
        known: Vec<String>,
    },
    /// Gates that wait for each other.
    #[error("reward `{0}`: `only_if` leads back to the reward itself, so that neither can be called first")]
    GateCircle(String),
    /// A judger that waits for a judger.
    #[error(
        "reward `{plugin}`: `only_if` waits for `{gate}`, and both judge whole groups, which happens at once\nhint: gate it on a reward that scores samples one by one"
    )]
    GatedByJudger {
        /// The gated judger.
        plugin: String,
        /// The judger that it would wait for.
        gate: String,
    },
}

/// Rows that nobody would judge.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Uncovered {
    /// No plugin with a weight is for them.
    #[error("no [[reward]] with a weight is for {0}\nhint: add it to the `data_sources` of one")]
    NoReward(String),
    /// A plugin is for them and its gate is not.
    #[error(
        "the [[reward]] `{plugin}` is for {data_source}, and `{gate}`, which its `only_if` is about, is not\nhint: give both the same `data_sources`"
    )]
    GateElsewhere {
        /// The gated plugin.
        plugin: String,
        /// The one that its condition is about.
        gate: String,
        /// Whose rows.
        data_source: String,
    },
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

pub(crate) struct Plugins(pub(crate) Vec<LoadedPlugin>);

/// A plugin that is ready, and what it was made from.
pub(crate) struct LoadedPlugin {
    pub(crate) plugin: Plugin,
    pub(crate) spec: PluginSpec,
    pub(crate) weight: f64,
    pub(crate) when: When,
    /// The number of the plugin that its condition is about.
    pub(crate) gate: Option<usize>,
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
        if let Some(plugin) = plugins.iter().find(|plugin| !plugin.weight.is_finite()) {
            return Err(ScorerError::Weight { plugin: plugin.spec.name.clone(), weight: plugin.weight });
        }
        let gates = gates(&plugins)?;
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
        for (WeightedPlugin { spec, weight, when }, gate) in plugins.into_iter().zip(gates) {
            if loaded.iter().any(|other| other.spec.name == spec.name) {
                return Err(ScorerError::SameName(spec.name));
            }
            let plugin = sandbox.handle().block_on(Plugin::load(&sandbox, spec.clone()))?;
            if !plugin.is_reward() && !plugin.is_judger() {
                return Err(ScorerError::ScoresNothing(spec.name));
            }
            loaded.push(LoadedPlugin { plugin, spec, weight, when, gate });
        }
        check_judgers(&loaded)?;
        Ok(Self { plugins: Arc::new(Plugins(loaded)), chat, programs, sandbox })
    }

    /// The plugins with their weights, in the order of the configuration.
    pub fn plugins(&self) -> impl Iterator<Item = (&Plugin, f64)> {
        self.plugins.0.iter().map(|each| (&each.plugin, each.weight))
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

    pub(crate) fn loaded(&self) -> &[LoadedPlugin] {
        &self.plugins.0
    }

    /// Says what becomes of the answers that plugins get from outside; see
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
        let rows = || match data_source {
            Some(source) => format!("the data source `{}`", Shown(source)),
            None => "rows without a data source".to_owned(),
        };
        let mut weighted = self.plugins.0.iter().filter(|each| each.weight != 0.0).peekable();
        if weighted.peek().is_none() {
            return Ok(());
        }
        let meant: Vec<_> = weighted.filter(|each| each.when.is_for(data_source)).collect();
        if meant.is_empty() {
            return Err(Uncovered::NoReward(rows()));
        }
        for mut each in meant {
            while let Some(gate) = each.gate.and_then(|gate| self.plugins.0.get(gate)) {
                if !gate.when.is_for(data_source) {
                    let (plugin, gate) = (each.spec.name.clone(), gate.spec.name.clone());
                    return Err(Uncovered::GateElsewhere { plugin, gate, data_source: rows() });
                }
                each = gate;
            }
        }
        Ok(())
    }

    /// Whether a plugin judges whole groups.
    pub fn has_judgers(&self) -> bool {
        self.plugins.0.iter().any(|each| each.plugin.is_judger())
    }

    /// Starts all plugins on a sample; `seed` is what they see as random. Its
    /// `group` is judged when it is whole, with the seed of its first sample.
    pub fn start(&self, group: &Group, sample: impl Into<Arc<Sample>>, seed: u64) -> Pending {
        let (plugins, group, sample) = (self.plugins.clone(), group.clone(), sample.into());
        Pending(
            self.sandbox.handle().spawn(async move { Round::new(&plugins, &group, &sample, seed).evaluate().await }),
        )
    }

    /// Starts all plugins on a sample that is alone in its group.
    pub fn start_alone(&self, sample: impl Into<Arc<Sample>>, seed: u64) -> Pending {
        self.start(&Group::new(1), sample, seed)
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
        self.0.await.unwrap_or_else(|error| {
            let what = format!("the scoring task ended early: {error}");
            SampleOutcome::without_calls(OutcomeKind::Fault, what)
        })
    }

    /// Whether the outcome is there.
    pub fn is_done(&self) -> bool {
        self.0.is_finished()
    }
}

/// The number of the plugin that each one's condition is about.
fn gates(plugins: &[WeightedPlugin]) -> Result<Vec<Option<usize>>, ScorerError> {
    let names = || plugins.iter().map(|plugin| plugin.spec.name.clone());
    let mut gates = Vec::with_capacity(plugins.len());
    for plugin in plugins {
        let gate = match &plugin.when.only_if {
            None => None,
            Some(condition) => Some(names().position(|name| name == condition.plugin).ok_or_else(|| {
                let (plugin, gate) = (plugin.spec.name.clone(), condition.plugin.clone());
                ScorerError::UnknownGate { plugin, gate, known: names().collect() }
            })?),
        };
        gates.push(gate);
    }
    for (number, plugin) in plugins.iter().enumerate() {
        // A way that is longer than there are plugins never ends.
        let way = std::iter::successors(Some(number), |at| gates[*at]);
        if way.take(plugins.len() + 1).count() > plugins.len() {
            return Err(ScorerError::GateCircle(plugin.spec.name.clone()));
        }
    }
    Ok(gates)
}

/// A group is judged once, so that no judger can wait for another.
fn check_judgers(plugins: &[LoadedPlugin]) -> Result<(), ScorerError> {
    for judger in plugins.iter().filter(|each| each.plugin.is_judger()) {
        let mut at = judger.gate;
        while let Some(gate) = at.and_then(|number| plugins.get(number)) {
            if gate.plugin.is_judger() {
                let (plugin, gate) = (judger.spec.name.clone(), gate.spec.name.clone());
                return Err(ScorerError::GatedByJudger { plugin, gate });
            }
            at = gate.gate;
        }
    }
    Ok(())
}
