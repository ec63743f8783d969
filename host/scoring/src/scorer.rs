//! The plugins of a run, and the samples that they score.

use crate::chat::{ChatEndpoint, Connected};
use crate::condition::When;
use crate::error::{ScorerError, Uncovered};
use crate::exec::{self, LoadedProgram};
use crate::judges::{Judges, WeightedJudge, waits};
use crate::outside_use::OutsideUse;
use crate::pending_group::PendingGroup;
use crate::progress::Progress;
use crate::round::Round;
use crate::stand_in::stand_in;
use crate::unfinished::unfinished;
use gavel_data::{OutcomeKind, PriorVerdicts, Sample, SampleOutcome};
use gavel_endpoint::{Courier, Limiter, LimiterTable};
use gavel_plugin::{LoadError, Plugin, PluginSpec, ProgramSpec, RewardModel, Sandbox, SandboxConfig, Tape, exports};
use gavel_runs::Spent;
use std::collections::BTreeMap;
use std::sync::Arc;
use tokio::task::{AbortHandle, JoinHandle};

/// A plugin with its weight.
#[derive(Debug, Clone)]
pub struct WeightedPlugin {
    /// The component and its parameters.
    pub spec: PluginSpec,
    /// The factor of its score in the reward; 0 makes it a shadow.
    pub weight: f64,
    /// When it is called.
    pub when: When,
}

impl WeightedPlugin {
    /// A plugin that is called for every sample.
    pub fn new(spec: PluginSpec, weight: f64) -> Self {
        Self { spec, weight, when: When::default() }
    }
}

/// The environment of the plugins.
#[derive(Clone)]
pub struct ScorerConfig {
    /// The sandbox, with the limits that the plugins share.
    pub sandbox: SandboxConfig,
    /// The endpoints that they may be granted, by name.
    pub chat: BTreeMap<String, ChatEndpoint>,
    /// The limiters that endpoints and grants may name.
    pub limiters: BTreeMap<String, LimiterTable>,
    /// The reward models that they may be granted, by name.
    pub reward_models: BTreeMap<String, Arc<dyn RewardModel>>,
    /// The programs that they may be granted.
    pub programs: Vec<ProgramSpec>,
}

impl From<SandboxConfig> for ScorerConfig {
    fn from(sandbox: SandboxConfig) -> Self {
        Self {
            sandbox,
            chat: BTreeMap::new(),
            limiters: BTreeMap::new(),
            reward_models: BTreeMap::new(),
            programs: Vec::new(),
        }
    }
}

/// Scores samples concurrently.
pub struct Scorer {
    pub(crate) judges: Arc<Judges>,
    /// The plugins that the judges were created from, in the same order.
    plugins: Vec<LoadedPlugin>,
    chat: BTreeMap<String, ChatEndpoint>,
    connected: Connected,
    /// The named limiters.
    limiters: BTreeMap<String, Limiter>,
    programs: Vec<LoadedProgram>,
    sandbox: Sandbox,
}

/// A loaded plugin, and the specification that it was loaded from.
pub(crate) struct LoadedPlugin {
    pub(crate) plugin: Arc<Plugin>,
    pub(crate) spec: PluginSpec,
}

/// A sample that is being scored.
pub struct Pending {
    outcome: JoinHandle<SampleOutcome>,
    progress: Progress,
}

impl Scorer {
    /// Loads the plugins into a new sandbox.
    pub fn new(plugins: Vec<WeightedPlugin>, config: ScorerConfig) -> Result<Self, ScorerError> {
        Self::with_tape(plugins, config, None)
    }

    /// Loads plugins whose answers from outside go through `tape`, if there is
    /// one. [`Scorer::use_tape`] can set a tape later.
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
        let ScorerConfig { sandbox, chat, limiters, reward_models, programs } = config;
        let sandbox = Sandbox::new(sandbox)?;
        let mut named_limiters = BTreeMap::new();
        let connected = match &tape {
            Some(Tape::Replay(_)) => {
                stand_in(&sandbox, plugins.iter().map(|plugin| &plugin.spec.grants));
                Connected::default()
            }
            _ => {
                for (name, table) in limiters {
                    let limiter = Limiter::open(&table);
                    let limiter = limiter.map_err(|source| ScorerError::Limiter { name: name.clone(), source })?;
                    sandbox.add_limiter(name.clone(), limiter.clone());
                    named_limiters.insert(name, limiter);
                }
                for (name, model) in reward_models {
                    sandbox.add_reward_model(name, model);
                }
                Connected::new(&sandbox, &chat)?
            }
        };
        // Needed in a replay too, which runs programs again.
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
            let plugin = match sandbox.handle().block_on(Plugin::load(&sandbox, spec.clone())) {
                Ok(plugin) => Arc::new(plugin),
                // A tool or an agent refuses the parameters of a reward.
                Err(error @ (LoadError::Params { .. } | LoadError::Init { .. })) => {
                    let exported = exports(&sandbox, &spec)?;
                    return Err(match exported.iter().any(|name| name == "reward" || name == "judger") {
                        true => error.into(),
                        false => ScorerError::ScoresNothing { plugin: spec.name, exported },
                    });
                }
                Err(error) => return Err(error.into()),
            };
            if plugin.info().is_quick() {
                return Err(ScorerError::Quick(spec.name));
            }
            if !plugin.is_reward() && !plugin.is_judger() {
                let exported = exports(&sandbox, &spec)?;
                return Err(ScorerError::ScoresNothing { plugin: spec.name, exported });
            }
            judges.push(WeightedJudge { judge: plugin.clone(), weight, when, waits });
            loaded.push(LoadedPlugin { plugin, spec });
        }
        Ok(Self {
            judges: Arc::new(Judges::new(judges)?),
            plugins: loaded,
            chat,
            connected,
            limiters: named_limiters,
            programs,
            sandbox,
        })
    }

    /// The plugins with their weights, in the order of the configuration.
    pub fn plugins(&self) -> impl Iterator<Item = (&Plugin, f64)> {
        self.loaded().map(|(loaded, judge)| (&*loaded.plugin, judge.weight))
    }

    /// The plugins with their judges.
    pub(crate) fn loaded(&self) -> impl Iterator<Item = (&LoadedPlugin, &WeightedJudge)> {
        self.plugins.iter().zip(self.judges.iter())
    }

    /// The sandbox of the plugins, with the endpoints and programs that they may be granted.
    pub fn sandbox(&self) -> &Sandbox {
        &self.sandbox
    }

    /// The endpoints that its plugins may be granted.
    pub(crate) fn chat(&self) -> &BTreeMap<String, ChatEndpoint> {
        &self.chat
    }

    /// Notes that the endpoints of its plugins have answered, because another process has tried them.
    pub fn note_answers(&self) {
        self.connected.note_answers();
        self.sandbox.note_answers();
    }

    /// Why a run with this scorer must stop: an endpoint is down, and the run does not wait for it, or no longer.
    pub fn must_stop(&self) -> Option<String> {
        self.connected.must_stop().or_else(|| self.sandbox.must_stop())
    }

    /// Takes the turns of the named limiters from now on from the process that `courier` asks.
    pub fn ask_for_turns(&self, courier: &Courier) {
        self.limiters.iter().for_each(|(name, limiter)| limiter.ask(courier.clone(), name));
    }

    /// The spending of plugins at endpoints since the last call of this.
    pub fn take_spent(&self) -> BTreeMap<String, Spent> {
        self.connected.take_spent()
    }

    /// What endpoints and limiters have done since the last call of this.
    pub fn take_outside_use(&self) -> OutsideUse {
        let limiters = self.limiters.iter().map(|(name, limiter)| (name.clone(), limiter.take_waits())).collect();
        OutsideUse { endpoints: self.connected.take_use(), limiters }
    }

    /// The programs that its plugins may be granted.
    pub(crate) fn programs(&self) -> &[LoadedProgram] {
        &self.programs
    }

    /// Sets the tape that records or replays the answers from outside; see
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

    /// Starts all plugins on a sample; `seed` is the seed of their random numbers.
    /// Its `group` is judged when it is whole, with the seed of its first sample.
    pub fn start(&self, group: &PendingGroup, sample: impl Into<Arc<Sample>>, seed: u64) -> Pending {
        self.start_after(group, sample, seed, PriorVerdicts::new())
    }

    /// The same as [`start`](Self::start), but the plugins after one of `recorded`
    /// see its recorded verdict, and not the new one.
    pub(crate) fn start_after(
        &self,
        group: &PendingGroup,
        sample: impl Into<Arc<Sample>>,
        seed: u64,
        recorded: PriorVerdicts,
    ) -> Pending {
        self.start_boxed(group.clone(), sample.into(), seed, recorded)
    }

    // Not generic, so that this crate compiles the future.
    fn start_boxed(&self, group: PendingGroup, sample: Arc<Sample>, seed: u64, recorded: PriorVerdicts) -> Pending {
        let (judges, progress) = (self.judges.clone(), Progress::default());
        let seen = progress.clone();
        let scored = async move { score(&judges, &group, &sample, seed, &recorded, progress).await };
        Pending { outcome: self.sandbox.handle().spawn(scored), progress: seen }
    }

    /// Starts all plugins on a sample that is alone in its group.
    pub fn start_alone(&self, sample: impl Into<Arc<Sample>>, seed: u64) -> Pending {
        self.start(&PendingGroup::new(1), sample, seed)
    }

    /// Waits for the outcome of a sample. The deadlines of the calls limit the
    /// wait.
    pub fn wait(&self, pending: Pending) -> SampleOutcome {
        self.sandbox.handle().block_on(pending.outcome())
    }
}

/// The outcome of a sample. `progress` shows which judges it waits for.
pub(crate) async fn score(
    judges: &Judges,
    group: &PendingGroup,
    sample: &Arc<Sample>,
    seed: u64,
    recorded: &PriorVerdicts,
    progress: Progress,
) -> SampleOutcome {
    match unfinished(sample) {
        Some(unfinished) => unfinished.outcome(judges, group, sample, seed).await,
        None => Round::new(judges, group, sample, seed, recorded).with_progress(progress).evaluate().await,
    }
}

impl Pending {
    /// Waits for the outcome, on any executor. The deadlines of the calls limit the wait.
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

    /// Ends the scoring early: a call that runs ends at its next interrupt.
    pub fn abort_handle(&self) -> AbortHandle {
        self.outcome.abort_handle()
    }

    /// The judges that it waits for.
    pub fn progress(&self) -> Progress {
        self.progress.clone()
    }
}
