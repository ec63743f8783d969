//! A plugin under test.

use crate::call::Call;
use crate::error::HarnessError;
use crate::golden::{CaseFile, CaseResults, run};
use crate::harness::{Harness, Recorded};
use futures::future::join_all;
use gavel_data::{Blame, Evaluation, Outcome, Sample, SampleInput};
use gavel_plugin::{Grants, Info, Limits, Plugin, PluginSpec, Sandbox};
use serde_json::Value;
use std::collections::BTreeMap;
use std::future::Future;
use std::path::Path;
use std::sync::Arc;

/// A component and how the test uses it.
pub struct PluginBuilder<'a> {
    harness: &'a Harness,
    spec: PluginSpec,
    /// What was given as parameters and is no object.
    wrong_params: Option<Value>,
}

impl<'a> PluginBuilder<'a> {
    pub(crate) fn new(harness: &'a Harness, path: &Path) -> Self {
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        Self { harness, spec: PluginSpec::new(name, path), wrong_params: None }
    }

    /// Another name than the file's, as it is in a run. The tape of a recording
    /// knows a plugin by it.
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

    /// The budgets of each call; by default those of a run.
    pub fn limits(mut self, limits: Limits) -> Self {
        self.spec.limits = limits;
        self
    }

    /// What it may reach beyond its sample; nothing by default.
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

    /// Runs the cases of a file, each with these parameters or its own. The
    /// endpoints that some case has `replies` for reply what the case says.
    ///
    /// # Errors
    /// The file cannot be used (a case without `expect` included), or the plugin
    /// does not load.
    pub fn cases(self, file: impl AsRef<Path>) -> Result<CaseResults, HarnessError> {
        let harness = self.harness;
        let file = CaseFile::read(file.as_ref())?;
        file.require_expectations()?;
        run(harness, &self.checked()?, &BTreeMap::new(), &file)
    }

    fn checked(self) -> Result<PluginSpec, HarnessError> {
        match self.wrong_params {
            None => Ok(self.spec),
            Some(found) => Err(HarnessError::Params { plugin: self.spec.name, found: found.to_string() }),
        }
    }
}

/// A plugin that is ready.
pub struct LoadedPlugin {
    plugin: Plugin,
    sandbox: Arc<Sandbox>,
}

impl LoadedPlugin {
    pub(crate) fn new(plugin: Plugin, sandbox: Arc<Sandbox>) -> Self {
        Self { plugin, sandbox }
    }

    /// Its name in this test.
    pub fn name(&self) -> &str {
        self.plugin.name()
    }

    /// What it says of itself.
    pub fn info(&self) -> &Info {
        self.plugin.info()
    }

    /// Scores one sample, with 0 as the seed of what the plugin sees as random.
    /// Not to be called from asynchronous code.
    pub fn score(&self, sample: impl Into<SampleInput>) -> Call {
        self.score_seeded(sample, 0)
    }

    /// Scores one sample; what the plugin sees as random follows from `seed`.
    pub fn score_seeded(&self, sample: impl Into<SampleInput>, seed: u64) -> Call {
        let input = sample.into();
        let evaluation = self.block_on(self.plugin.score(&input, seed));
        Call::new(self.plugin.name(), input.sample, evaluation)
    }

    /// Judges a group, with 0 as the seed of what the plugin sees as random: a
    /// call a sample, in their order. The row is that of the first sample, and
    /// each sample gets its place as its group index. Not to be called from
    /// asynchronous code.
    pub fn judge<S: Into<SampleInput>>(&self, group: impl IntoIterator<Item = S>) -> Vec<Call> {
        self.judge_seeded(group, 0)
    }

    /// Judges a group; what the plugin sees as random follows from `seed`.
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

    /// What is said of a sample; a judger judges it as a group of one.
    pub(crate) fn evaluate(&self, input: &SampleInput, seed: u64) -> Evaluation {
        self.block_on(self.evaluation(input, seed))
    }

    /// The same of many samples at once, each before its own plugin.
    pub(crate) fn evaluate_together(&self, asked: Vec<(&LoadedPlugin, SampleInput, u64)>) -> Vec<Evaluation> {
        let calls = asked.iter().map(|(plugin, input, seed)| plugin.evaluation(input, *seed));
        self.block_on(join_all(calls))
    }

    /// What is said of a group.
    pub(crate) fn judge_all(&self, group: &[SampleInput], seed: u64) -> Vec<Evaluation> {
        self.block_on(self.plugin.judge(&placed(group), seed))
    }

    async fn evaluation(&self, input: &SampleInput, seed: u64) -> Evaluation {
        if !self.judges() {
            return self.plugin.score(input, seed).await;
        }
        verdict(self.plugin.judge([input], seed).await.pop())
    }

    /// Scores a sample of a recording as it was scored then.
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

/// What a judger said of a sample. The host gives a verdict to each, or it is
/// at fault.
pub(crate) fn verdict(said: Option<Evaluation>) -> Evaluation {
    said.unwrap_or_else(|| {
        let what = "the host gave no verdict of the judger".to_owned();
        Evaluation::without_call(Outcome::Fault { whose: Blame::Host, what })
    })
}
