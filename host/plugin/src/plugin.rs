//! A loaded component and its calls.

use crate::bindings::RewardPluginPre;
use crate::bindings::exports::gavel::plugin::lifecycle;
use crate::call;
use crate::engine::Slots;
use crate::error::LoadError;
use crate::grant::{Granted, Grants};
use crate::lanes::History;
use crate::limits::Limits;
use crate::load;
use crate::reuse::Shelf;
use crate::sandbox::{Sandbox, Shared};
use crate::snapshot::NoSnapshot;
use crate::state::State;
use gavel_data::{Evaluation, Sample};
use serde::{Deserialize, Serialize};
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::sync::Arc;
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
    /// What it may reach beyond its sample.
    pub grants: Grants,
    /// Calls that an instance answers; every call has a fresh one by default.
    /// Only for a plugin that declares itself pure.
    pub reuse: Option<NonZeroU32>,
}

impl PluginSpec {
    /// A plugin without parameters and grants, in the default limits.
    pub fn new(name: impl Into<String>, path: impl Into<PathBuf>) -> Self {
        Self {
            name: name.into(),
            path: path.into(),
            params: Default::default(),
            limits: Limits::default(),
            grants: Grants::default(),
            reuse: None,
        }
    }
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
    pub(crate) grants: Grants,
    pub(crate) granted: Arc<Granted>,
    pub(crate) info: Info,
    pub(crate) pre: RewardPluginPre<State>,
    pub(crate) slots: Slots,
    pub(crate) shared: Arc<Shared>,
    /// Instances that wait for further calls, where it has any.
    pub(crate) shelf: Option<Arc<Shelf>>,
    /// How long its last calls ran.
    pub(crate) history: Arc<History>,
    /// Why `init` runs in each instance, where it does.
    pub(crate) no_snapshot: Option<NoSnapshot>,
    /// Bytes that a call is sure to need: what an instance has after `init`.
    pub(crate) first_reservation: usize,
}

impl Plugin {
    /// Reads, compiles and checks a component, and initialises it once, so
    /// that wrong parameters are an error here and not an outcome per sample.
    pub async fn load(sandbox: &Sandbox, spec: PluginSpec) -> Result<Self, LoadError> {
        Ok(Self { loaded: load::load(sandbox.shared(), spec).await? })
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

    /// What it may reach beyond its sample, as it was granted.
    pub fn grants(&self) -> &Grants {
        &self.loaded.grants
    }

    /// What the plugin says of itself.
    pub fn info(&self) -> &Info {
        &self.loaded.info
    }

    pub(crate) fn component(&self) -> &Component {
        self.loaded.pre.instance_pre().component()
    }

    /// Why each call runs `init` again instead of starting from a snapshot of
    /// what the first one made; absent where there is a snapshot.
    pub fn no_snapshot(&self) -> Option<String> {
        self.loaded.no_snapshot.as_ref().map(NoSnapshot::to_string)
    }

    /// Scores a sample in a fresh instance. Whatever the plugin does, this
    /// comes back within its budgets.
    pub async fn score(&self, sample: &Arc<Sample>, seed: u64) -> Evaluation {
        call::score(&self.loaded, sample, seed).await
    }
}
