//! A loaded component and its calls.

use crate::bindings::exports::gavel::plugin::lifecycle;
use crate::bindings::gavel::plugin::types;
use crate::bindings::{RewardPlugin, RewardPluginPre};
use crate::contract;
use crate::error::LoadError;
use crate::limits::Limits;
use crate::resources::{ReferenceRef, SampleRef};
use crate::sandbox::Sandbox;
use crate::state::{State, store};
use gavel_data::{Blame, Budget, Evaluation, Metric, Outcome, Sample, Score, Usage};
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;
use wasmtime::component::{Component, Resource};
use wasmtime::{Engine, Store, Trap};

/// A component and how a run uses it.
#[derive(Debug, Clone)]
pub struct PluginSpec {
    /// Its name in the run.
    pub name: String,
    /// The component's file.
    pub path: PathBuf,
    /// A JSON object handed to `init`.
    pub params: serde_json::Map<String, serde_json::Value>,
    /// The budgets of each call.
    pub limits: Limits,
}

/// What a plugin says of itself.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Info {
    /// Its own name, not the one in the run.
    pub name: String,
    /// Its version.
    pub version: String,
    /// Whether the same input always gives the same verdict.
    pub pure: bool,
    /// The scores that it gives, from lowest to highest.
    pub score_range: Option<(f64, f64)>,
}

impl From<lifecycle::Info> for Info {
    fn from(info: lifecycle::Info) -> Self {
        let score_range = info.score_range.map(|range| (range.min, range.max));
        Self { name: info.name, version: info.version, pure: info.pure, score_range }
    }
}

/// A component that scores samples.
pub struct Plugin {
    name: String,
    hash: String,
    params: String,
    limits: Limits,
    info: Info,
    engine: Engine,
    pre: RewardPluginPre<State>,
}

impl Plugin {
    /// Reads, compiles and checks a component, and initialises it once, so
    /// that wrong parameters are an error here and not an outcome per sample.
    pub async fn load(sandbox: &Sandbox, spec: PluginSpec) -> Result<Self, LoadError> {
        let bytes = read(&spec.name, &spec.path)?;
        let component = compile(sandbox, &spec.name, &spec.path, &bytes)?;
        contract::check_reward(&spec.name, &sandbox.engine, &component)?;
        let mismatch = |error: wasmtime::Error| LoadError::Mismatch { plugin: spec.name.clone(), what: chain(&error) };
        let pre = sandbox.linker.instantiate_pre(&component).and_then(RewardPluginPre::new).map_err(mismatch)?;
        let params = serde_json::Value::Object(spec.params).to_string();
        let placeholder = Info { name: String::new(), version: String::new(), pure: false, score_range: None };
        let mut plugin = Self {
            name: spec.name,
            hash: blake3::hash(&bytes).to_hex().to_string(),
            params,
            limits: spec.limits,
            info: placeholder,
            engine: sandbox.engine.clone(),
            pre,
        };
        plugin.info = plugin.first_init().await?;
        Ok(plugin)
    }

    /// The name in the run.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// BLAKE3 of the component's bytes, in hexadecimal.
    pub fn hash(&self) -> &str {
        &self.hash
    }

    /// The parameters as the plugin got them.
    pub fn params(&self) -> &str {
        &self.params
    }

    /// What the plugin says of itself.
    pub fn info(&self) -> &Info {
        &self.info
    }

    /// Scores a sample in a fresh instance. Whatever the plugin does, this
    /// comes back within its deadline.
    pub async fn score(&self, sample: &Arc<Sample>, seed: u64) -> Evaluation {
        let start = Instant::now();
        let mut store = store(&self.engine, &self.limits, seed);
        let answer = tokio::time::timeout(self.limits.deadline, self.call(&mut store, sample)).await;
        let outcome = match (store.data().memory.refused(), answer) {
            (_, Err(_)) => {
                let what = format!("the call was ended at its deadline of {:?}", self.limits.deadline);
                Outcome::OutOfBudget { which: Budget::Time, what }
            }
            (Some(asked), _) => self.out_of_memory(asked),
            (None, Ok(Ok(outcome))) => outcome,
            (None, Ok(Err(error))) => self.trapped(&error, &store.data().stderr.text()),
        };
        let usage = Usage {
            elapsed_us: start.elapsed().as_micros() as u64,
            fuel: None,
            peak_memory: store.data().memory.peak() as u64,
        };
        Evaluation { outcome, usage }
    }

    async fn call(&self, store: &mut Store<State>, sample: &Arc<Sample>) -> wasmtime::Result<Outcome> {
        let instance = self.pre.instantiate_async(&mut *store).await?;
        if let Err(what) = self.init(store, &instance).await? {
            let what = format!("`init` accepted these parameters once and now refuses them: {what}");
            return Ok(Outcome::Fault { whose: Blame::Plugin, what });
        }
        let table = &mut store.data_mut().table;
        let handle = table.push(SampleRef(sample.clone()))?;
        let reference = table.push(ReferenceRef(sample.task.clone()))?;
        let (handle, reference) = (Resource::new_borrow(handle.rep()), Resource::new_borrow(reference.rep()));
        let verdict = instance.gavel_plugin_reward().call_score(&mut *store, handle, reference).await?;
        Ok(match verdict {
            Ok(types::Verdict::Scored(score)) => self.check(score),
            Ok(types::Verdict::Abstained(reason)) => Outcome::Abstained(reason),
            Err(types::Failure::InvalidInput(what)) => Outcome::Fault { whose: Blame::Input, what },
            Err(types::Failure::Internal(what)) => Outcome::Fault { whose: Blame::Plugin, what },
            Err(types::Failure::Unavailable(what)) => Outcome::Unavailable(what),
        })
    }

    async fn init(
        &self,
        store: &mut Store<State>,
        instance: &RewardPlugin,
    ) -> wasmtime::Result<Result<lifecycle::Info, String>> {
        instance.gavel_plugin_lifecycle().call_init(store, &self.params).await
    }

    async fn first_init(&self) -> Result<Info, LoadError> {
        let mut store = store(&self.engine, &self.limits, 0);
        let call = async {
            let instance = self.pre.instantiate_async(&mut store).await?;
            self.init(&mut store, &instance).await
        };
        let answer = tokio::time::timeout(self.limits.deadline, call).await;
        let failed = |what: String| LoadError::Init { plugin: self.name.clone(), params: self.params.clone(), what };
        match (store.data().memory.refused(), answer) {
            (_, Err(_)) => Err(failed(format!("not done at its deadline of {:?}", self.limits.deadline))),
            (Some(asked), _) => Err(failed(self.out_of_memory(asked).reason().unwrap_or_default())),
            (None, Ok(Err(error))) => {
                let outcome = self.trapped(&error, &store.data().stderr.text());
                Err(failed(outcome.reason().unwrap_or_default()))
            }
            (None, Ok(Ok(Err(what)))) => {
                Err(LoadError::Params { plugin: self.name.clone(), params: self.params.clone(), what })
            }
            (None, Ok(Ok(Ok(info)))) => Ok(info.into()),
        }
    }

    /// A score must be a number in its declared range, and so must what comes
    /// with it be usable.
    fn check(&self, score: types::Score) -> Outcome {
        let fault = |what: String| Outcome::Fault { whose: Blame::Plugin, what };
        if !score.value.is_finite() {
            return fault(format!("the score is {}", score.value));
        }
        if let Some((min, max)) = self.info.score_range.filter(|(min, max)| score.value < *min || score.value > *max) {
            return fault(format!("the score {} is outside the declared range [{min}, {max}]", score.value));
        }
        let mut metrics: Vec<Metric> = Vec::with_capacity(score.metrics.len());
        for types::Metric { name, value } in score.metrics {
            if name.is_empty() || !value.is_finite() {
                return fault(format!("the metric {name:?} is {value}; a metric needs a name and a finite value"));
            }
            metrics.push(Metric { name, value });
        }
        metrics.sort_by(|a, b| a.name.cmp(&b.name));
        if let Some(pair) = metrics.windows(2).find(|pair| pair[0].name == pair[1].name) {
            return fault(format!("the metric {:?} is there twice", pair[0].name));
        }
        Outcome::Scored(Score { value: score.value, metrics, note: score.note })
    }

    fn out_of_memory(&self, asked: usize) -> Outcome {
        let what = format!("{asked} bytes asked for, {} allowed", self.limits.memory);
        Outcome::OutOfBudget { which: Budget::Memory, what }
    }

    fn trapped(&self, error: &wasmtime::Error, stderr: &str) -> Outcome {
        if let Some(Trap::StackOverflow) = error.downcast_ref::<Trap>() {
            return Outcome::OutOfBudget { which: Budget::Stack, what: "the call stack overflowed".into() };
        }
        // wasmtime has no type for this error, only these words.
        if error.root_cause().to_string().contains("fuel allocated for hostcalls has been exhausted") {
            let what = format!("more than {} bytes were handed to the host at once", self.limits.output);
            return Outcome::OutOfBudget { which: Budget::Output, what };
        }
        let mut what = match error.downcast_ref::<wasmtime_wasi::I32Exit>() {
            Some(exit) => format!("the plugin called exit({}) instead of returning", exit.0),
            None => error.root_cause().to_string(),
        };
        if !stderr.is_empty() {
            what = format!("{what}; on stderr: {stderr}");
        }
        Outcome::Fault { whose: Blame::Plugin, what }
    }
}

/// The bytes of a component.
pub(crate) fn read(plugin: &str, path: &Path) -> Result<Vec<u8>, LoadError> {
    std::fs::read(path).map_err(|source| LoadError::Read { plugin: plugin.into(), path: path.into(), source })
}

/// Compiles a component; anything else gets an error that says what it is.
pub(crate) fn compile(sandbox: &Sandbox, plugin: &str, path: &Path, bytes: &[u8]) -> Result<Component, LoadError> {
    let (plugin, path) = (plugin.to_owned(), path.to_owned());
    match bytes {
        [b'\0', b'a', b's', b'm', 1, 0, 0, 0, ..] => return Err(LoadError::CoreModule { plugin, path }),
        [b'\0', b'a', b's', b'm', ..] => {}
        _ => return Err(LoadError::Invalid { plugin, path, what: "it is not WebAssembly".into() }),
    }
    Component::from_binary(&sandbox.engine, bytes).map_err(|error| {
        let what = chain(&error);
        LoadError::Invalid { plugin, path, what }
    })
}

/// An error and its causes in one line.
fn chain(error: &wasmtime::Error) -> String {
    error.chain().map(|cause| cause.to_string()).collect::<Vec<_>>().join(": ")
}
