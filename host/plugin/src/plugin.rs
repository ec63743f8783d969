//! A loaded component and its calls.

use crate::bindings::RewardPluginPre;
use crate::bindings::exports::gavel::plugin::lifecycle;
use crate::call;
use crate::contract::{self, CONTRACT};
use crate::error::LoadError;
use crate::limits::Limits;
use crate::sandbox::{Sandbox, Shared};
use crate::state::State;
use gavel_data::{Evaluation, Sample};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use wasmtime::Engine;
use wasmtime::component::Component;

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
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
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
    loaded: Arc<Loaded>,
}

/// The part that calls hold on to.
#[derive(Clone)]
pub(crate) struct Loaded {
    pub(crate) name: String,
    pub(crate) hash: String,
    pub(crate) params: String,
    pub(crate) params_hash: String,
    pub(crate) contract: String,
    pub(crate) limits: Limits,
    pub(crate) info: Info,
    pub(crate) pre: RewardPluginPre<State>,
    pub(crate) shared: Arc<Shared>,
    /// Bytes that a call is sure to need: what an instance has after `init`.
    pub(crate) first_reservation: usize,
}

impl Plugin {
    /// Reads, compiles and checks a component, and initialises it once, so
    /// that wrong parameters are an error here and not an outcome per sample.
    pub async fn load(sandbox: &Sandbox, spec: PluginSpec) -> Result<Self, LoadError> {
        let shared = sandbox.shared();
        if spec.limits.memory > shared.memory_bytes() {
            let (plugin, allowed) = (spec.name, shared.memory_bytes());
            return Err(LoadError::MemoryLimit { plugin, asked: spec.limits.memory, allowed });
        }
        let workshop = shared.workshop(&spec.limits)?;
        let bytes = read(&spec.name, &spec.path)?;
        let component = compile(&workshop.engine, &spec.name, &spec.path, &bytes)?;
        contract::check_reward(&spec.name, &workshop.engine, &component)?;
        let mismatch = |error: wasmtime::Error| LoadError::Mismatch { plugin: spec.name.clone(), what: chain(&error) };
        let pre = workshop.linker.instantiate_pre(&component).and_then(RewardPluginPre::new).map_err(mismatch)?;
        let params = serde_json::Value::Object(spec.params).to_string();
        let hash = |bytes: &[u8]| blake3::hash(bytes).to_hex().to_string();
        let loaded = Loaded {
            name: spec.name,
            hash: hash(&bytes),
            params_hash: hash(params.as_bytes()),
            params,
            contract: CONTRACT.into(),
            limits: spec.limits,
            info: Info { name: String::new(), version: String::new(), pure: false, score_range: None },
            pre,
            shared: shared.clone(),
            first_reservation: 0,
        };
        let loaded = Arc::new(loaded);
        let ending = call::init(&loaded).await;
        let (plugin, params) = (loaded.name.clone(), loaded.params.clone());
        let info = match ending.answer {
            Ok(Ok(info)) => Info::from(info),
            Ok(Err(what)) => return Err(LoadError::Params { plugin, params, what }),
            Err(outcome) => {
                let what = outcome.reason().unwrap_or_default();
                return Err(LoadError::Init { plugin, params, what });
            }
        };
        let first_reservation = ending.usage.peak_memory as usize;
        let loaded = Loaded { info, first_reservation, ..Arc::unwrap_or_clone(loaded) };
        Ok(Self { loaded: Arc::new(loaded) })
    }

    /// The name in the run.
    pub fn name(&self) -> &str {
        &self.loaded.name
    }

    /// BLAKE3 of the component's bytes, in hexadecimal.
    pub fn hash(&self) -> &str {
        &self.loaded.hash
    }

    /// The parameters as the plugin got them.
    pub fn params(&self) -> &str {
        &self.loaded.params
    }

    /// What the plugin says of itself.
    pub fn info(&self) -> &Info {
        &self.loaded.info
    }

    /// Scores a sample in a fresh instance. Whatever the plugin does, this
    /// comes back within its budgets.
    pub async fn score(&self, sample: &Arc<Sample>, seed: u64) -> Evaluation {
        call::score(&self.loaded, sample, seed).await
    }
}

/// The bytes of a component.
pub(crate) fn read(plugin: &str, path: &Path) -> Result<Vec<u8>, LoadError> {
    std::fs::read(path).map_err(|source| LoadError::Read { plugin: plugin.into(), path: path.into(), source })
}

/// Compiles a component; anything else gets an error that says what it is.
pub(crate) fn compile(engine: &Engine, plugin: &str, path: &Path, bytes: &[u8]) -> Result<Component, LoadError> {
    let (plugin, path) = (plugin.to_owned(), path.to_owned());
    match bytes {
        [b'\0', b'a', b's', b'm', 1, 0, 0, 0, ..] => return Err(LoadError::CoreModule { plugin, path }),
        [b'\0', b'a', b's', b'm', ..] => {}
        _ => return Err(LoadError::Invalid { plugin, path, what: "it is not WebAssembly".into() }),
    }
    Component::from_binary(engine, bytes).map_err(|error| {
        let what = chain(&error);
        LoadError::Invalid { plugin, path, what }
    })
}

/// An error and its causes in one line.
fn chain(error: &wasmtime::Error) -> String {
    error.chain().map(|cause| cause.to_string()).collect::<Vec<_>>().join(": ")
}
