//! A plugin under test.

use crate::call::Call;
use crate::error::HarnessError;
use crate::golden::{CaseFile, CaseResults, run};
use crate::harness::{Harness, Recorded};
use futures::future::join_all;
use gavel_data::{Blame, Evaluation, Outcome, Sample, SampleInput};
use gavel_plugin::{Agent, Grants, Info, Limits, Plugin, PluginSpec, RowCall, Sandbox, Tool};
use serde_json::Value;
use std::collections::BTreeMap;
use std::future::Future;
use std::path::Path;
use std::sync::Arc;

/// A component with the settings of the test.
pub struct PluginBuilder<'a> {
    harness: &'a Harness,
    spec: PluginSpec,
    /// Parameters that are not an object.
    wrong_params: Option<Value>,
}

impl<'a> PluginBuilder<'a> {
    pub(crate) fn new(harness: &'a Harness, path: &Path) -> Self {
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        Self { harness, spec: PluginSpec::new(name, path), wrong_params: None }
    }

    /// The name of the plugin in a run, if it differs from the file's. The tape
    /// of a recording identifies a plugin by it.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.spec.name = name.into();
        self
    }

    /// The parameters, a JSON object; none by default.
    pub fn params(mut self, params: Value) -> Self {
        match params {
            Value::Object(params) => (self.spec.params, self.wrong_params) = (params, None),
            other => self.wrong_params = Some(other),
        }
        self
    }

    /// The limits of each call; by default the default limits of a run.
    pub fn limits(mut self, limits: Limits) -> Self {
        self.spec.limits = limits;
        self
    }

    /// The plugin's grants; none by default.
    pub fn grants(mut self, grants: Grants) -> Self {
        self.spec.grants = grants;
        self
    }

    /// Compiles and initialises it.
    ///
    /// # Errors
    /// As for a run: the file, its imports, its parameters.
    pub fn load(self) -> Result<LoadedPlugin, HarnessError> {
        let harness = self.harness;
        Ok(harness.load(self.checked()?)?)
    }

    /// Runs the cases of a file, each with these parameters or its own. A
    /// case's `replies` are the replies of its endpoints.
    ///
    /// # Errors
    /// The file cannot be used, or the plugin does not load.
    pub fn cases(self, file: impl AsRef<Path>) -> Result<CaseResults, HarnessError> {
        let harness = self.harness;
        let file = CaseFile::read(file.as_ref())?;
        run(harness, &self.checked()?, &BTreeMap::new(), &file)
    }

    fn checked(self) -> Result<PluginSpec, HarnessError> {
        match self.wrong_params {
            None => Ok(self.spec),
            Some(found) => Err(HarnessError::Params { plugin: self.spec.name, found: found.to_string() }),
        }
    }
}

/// A loaded plugin.
pub struct LoadedPlugin {
    plugin: Plugin,
    tool: Option<Tool>,
    agent: Option<Agent>,
    sandbox: Arc<Sandbox>,
}

impl LoadedPlugin {
    pub(crate) fn new(plugin: Plugin, tool: Option<Tool>, agent: Option<Agent>, sandbox: Arc<Sandbox>) -> Self {
        Self { plugin, tool, agent, sandbox }
    }

    /// Its name in this test.
    pub fn name(&self) -> &str {
        self.plugin.name()
    }

    /// The properties that the plugin declares.
    pub fn info(&self) -> &Info {
        self.plugin.info()
    }

    /// Scores one sample, with the seed 0 for the plugin's random numbers. Do
    /// not call it from asynchronous code.
    pub fn score(&self, sample: impl Into<SampleInput>) -> Call {
        self.score_seeded(sample, 0)
    }

    /// Scores one sample; `seed` determines the plugin's random numbers.
    pub fn score_seeded(&self, sample: impl Into<SampleInput>, seed: u64) -> Call {
        let input = sample.into();
        let evaluation = self.block_on(self.plugin.score(&input, seed));
        Call::new(self.plugin.name(), input.sample, evaluation)
    }

    /// Judges a group, with the seed 0 for the plugin's random numbers, and
    /// gives a call for each sample, in order. The row is the row of the first
    /// sample. Each sample gets its place as its group index. Do not call it
    /// from asynchronous code.
    pub fn judge<S: Into<SampleInput>>(&self, group: impl IntoIterator<Item = S>) -> Vec<Call> {
        self.judge_seeded(group, 0)
    }

    /// Judges a group; `seed` determines the plugin's random numbers.
    pub fn judge_seeded<S: Into<SampleInput>>(&self, group: impl IntoIterator<Item = S>, seed: u64) -> Vec<Call> {
        let group = placed(group);
        let evaluations = self.block_on(self.plugin.judge(&group, seed));
        let call = |(input, evaluation): (SampleInput, _)| Call::new(self.plugin.name(), input.sample, evaluation);
        group.into_iter().zip(evaluations).map(call).collect()
    }

    /// Whether it scores samples, one by one or in groups; a taskset does not.
    pub(crate) fn scores(&self) -> bool {
        self.plugin.is_reward() || self.plugin.is_judger()
    }

    /// Asks a taskset for the row at `index`.
    pub(crate) fn row(&self, index: u64, seed: u64) -> RowCall {
        self.block_on(self.plugin.row_call(index, seed))
    }

    /// Whether it is a dataset.
    pub(crate) fn is_taskset(&self) -> bool {
        self.plugin.is_taskset()
    }

    /// Whether it turns rewards into advantages.
    pub(crate) fn is_advantage(&self) -> bool {
        self.plugin.is_advantage()
    }

    /// Whether it draws tasks.
    pub(crate) fn is_sampler(&self) -> bool {
        self.plugin.is_sampler()
    }

    /// The component as an agent, if it is one.
    pub fn agent(&self) -> Option<&Agent> {
        self.agent.as_ref()
    }

    /// The component as a tool, if it is one.
    pub fn tool(&self) -> Option<&Tool> {
        self.tool.as_ref()
    }

    /// Whether it judges whole groups.
    pub(crate) fn judges(&self) -> bool {
        self.plugin.is_judger()
    }

    /// BLAKE3 of the component, in hexadecimal.
    pub(crate) fn hash(&self) -> &str {
        self.plugin.hash()
    }

    pub(crate) fn plugin(&self) -> &Plugin {
        &self.plugin
    }

    /// Waits for calls of this plugin.
    pub(crate) fn block_on<T>(&self, calls: impl Future<Output = T>) -> T {
        self.sandbox.handle().block_on(calls)
    }

    /// The verdict on a sample; a judger judges it as a group of one.
    pub(crate) fn evaluate(&self, input: &SampleInput, seed: u64) -> Evaluation {
        self.block_on(self.evaluation(input, seed))
    }

    /// The verdicts on many samples at once, each by its own plugin.
    pub(crate) fn evaluate_together(&self, asked: Vec<(&LoadedPlugin, SampleInput, u64)>) -> Vec<Evaluation> {
        let calls = asked.iter().map(|(plugin, input, seed)| plugin.evaluation(input, *seed));
        self.block_on(join_all(calls))
    }

    /// The verdicts on a group.
    pub(crate) fn judge_all(&self, group: &[SampleInput], seed: u64) -> Vec<Evaluation> {
        self.block_on(self.plugin.judge(&placed(group), seed))
    }

    async fn evaluation(&self, input: &SampleInput, seed: u64) -> Evaluation {
        if !self.judges() {
            return self.plugin.score(input, seed).await;
        }
        verdict(self.plugin.judge([input], seed).await.pop())
    }

    /// Scores a recorded sample with its recorded seed.
    pub fn score_recorded(&self, recorded: &Recorded) -> Call {
        self.score_seeded(recorded.sample.clone(), recorded.seed)
    }
}

/// Samples with their places in the group.
fn placed<S: Into<SampleInput>>(group: impl IntoIterator<Item = S>) -> Vec<SampleInput> {
    let placed = |(index, input): (u32, S)| {
        let SampleInput { sample, verdicts } = input.into();
        SampleInput { sample: Arc::new(Sample { index, ..Arc::unwrap_or_clone(sample) }), verdicts }
    };
    (0..).zip(group).map(placed).collect()
}

/// A judger's verdict on a sample. If there is none, that is a fault of the
/// host.
pub(crate) fn verdict(said: Option<Evaluation>) -> Evaluation {
    said.unwrap_or_else(|| {
        let what = "the host gave no verdict of the judger".to_owned();
        Evaluation::without_call(Outcome::Fault { whose: Blame::Host, what })
    })
}
