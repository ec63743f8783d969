//! Loads a component's file: it is compiled, checked and, where its form allows
//! it, replaced by a snapshot after `init`.

use crate::call::init::{self, Initialised, NotReady};
use crate::call::{Info, Loaded, cut};
use crate::compile::{Code, Form, Instrumented, Key, NoSnapshot, Order, chain, merged};
use crate::engine::{Engines, Linked, PlacedComponent, Shared};
use crate::error::LoadError;
use crate::grant::{Granted, Grants};
use crate::load::component::{compile_once, functions_file, read};
use crate::load::contract::{self, Checked};
use crate::load::spec::PluginSpec;
use futures::FutureExt;
use futures::future::BoxFuture;
use serde::{Deserialize, Serialize};
use std::num::NonZeroU32;
use std::sync::Arc;

/// The interfaces whose calls may have an instance that answered another call before.
const SHARES: [&str; 5] = ["reward", "judger", "taskset", "advantage", "sampler"];

/// The description of compiled code.
#[derive(Clone, Serialize, Deserialize)]
enum About {
    /// A snapshot of the component after `init`, with its properties and its bytes
    /// of memory.
    Warm(Info, usize),
    /// The component as it was built.
    Cold(NoSnapshot),
}

/// Loads the component of `spec`.
pub(crate) fn load(shared: &Arc<Shared>, spec: PluginSpec) -> BoxFuture<'_, Result<Arc<Loaded>, LoadError>> {
    // Boxed, so that this crate compiles it, and not each crate that loads a plugin.
    load_once(shared, spec).boxed()
}

async fn load_once(shared: &Arc<Shared>, spec: PluginSpec) -> Result<Arc<Loaded>, LoadError> {
    if spec.limits.memory > shared.instances.memory_bytes() {
        let (plugin, allowed) = (spec.name, shared.instances.memory_bytes());
        return Err(LoadError::MemoryLimit { plugin, asked: spec.limits.memory, allowed });
    }
    let granted = Granted::open(&spec.grants, &shared.outside)
        .map_err(|source| LoadError::Grant { plugin: spec.name.clone(), source })?;
    let bytes = read(shared, &spec.name, &spec.path)?;
    let params = serde_json::Value::Object(spec.params.clone()).to_string();
    let loading =
        Loading { shared, engines: shared.engines(&spec.limits), spec: &spec, bytes: &bytes, params, granted };
    let kind: &[u8] = if loading.may_be_warm() { b"warm" } else { b"cold" };
    let parts = [&bytes, loading.params.as_bytes(), kind];
    let key = Key::new(loading.engines.reference()?, &parts);
    if let Some((about, code)) = shared.cache.find(&key) {
        match loading.finish(about, &code).await {
            // The entry is whole, but this host cannot load it.
            Err(LoadError::Engine(what)) => tracing::warn!("plugin `{}` is compiled again: {what}", spec.name),
            done => return done,
        }
    }
    let (about, code) = loading.make().await?;
    let code = if about.will_last() { shared.cache.keep(&key, &about, code) } else { code };
    loading.finish(about, &code).await
}

impl About {
    /// Whether another attempt, such as with other limits, would end the same.
    fn will_last(&self) -> bool {
        !matches!(self, About::Cold(NoSnapshot::Unreadable(_) | NoSnapshot::Unusable(_)))
    }
}

/// A component that is being loaded.
struct Loading<'a> {
    shared: &'a Arc<Shared>,
    engines: &'a Engines,
    spec: &'a PluginSpec,
    bytes: &'a [u8],
    params: String,
    granted: Arc<Granted>,
}

impl Loading<'_> {
    /// Whether a snapshot is allowed. It holds what `init` has read: a variable's
    /// value must not be on disk, and a file or a clock must be read in each call.
    fn may_be_warm(&self) -> bool {
        // `init` cannot ask endpoints or run programs.
        Grants { chat: Vec::new(), reward_model: Vec::new(), exec: Vec::new(), ..self.spec.grants.clone() }
            == Grants::default()
    }

    /// Compiles the component, as a snapshot after `init` where possible.
    async fn make(&self) -> Result<(About, Code), LoadError> {
        match self.make_warm().await? {
            Ok(made) => Ok(made),
            Err(reason) => Ok((About::Cold(reason), self.code(Form::Plain)?)),
        }
    }

    async fn make_warm(&self) -> Result<Result<(About, Code), NoSnapshot>, LoadError> {
        if !self.may_be_warm() {
            return Ok(Err(NoSnapshot::Granted));
        }
        let code = match self.code(Form::Instrumented) {
            Ok(code) => code,
            Err(LoadError::Invalid { what, .. }) => return Ok(Err(NoSnapshot::Form(what))),
            Err(error) => return Err(error),
        };
        // This parses the component again, and merges its modules, which the compiler has done before within its limits.
        let merged = merged(self.bytes);
        let instrumented = match Instrumented::new(&merged) {
            Ok(instrumented) => instrumented,
            Err(reason) => return Ok(Err(reason)),
        };
        let draft = self.link(self.engines.place_on_demand(&code)?, None)?;
        let (Initialised { info, mut store, instance, permit: _permit }, memory) = self.init(&draft).await?;
        let snapshot = instrumented.take(&mut store, instance).await;
        drop(store);
        let wasm = match snapshot {
            Ok(wasm) => wasm,
            Err(reason) => return Ok(Err(reason)),
        };
        let functions = functions_file(self.shared, self.bytes);
        let order = Order {
            component: &wasm,
            form: Form::Snapshot,
            fuel: self.engines.fuel(),
            functions: functions.as_deref(),
        };
        let code = match self.shared.compiler.compile(order, &self.shared.cache) {
            Ok(code) => code,
            Err(error) => return Ok(Err(NoSnapshot::Unusable(error.to_string()))),
        };
        let about = About::Warm(info, memory);
        Ok(match self.try_start(about.clone(), &code).await {
            Ok(()) => Ok((about, code)),
            Err(what) => Err(NoSnapshot::Unusable(what)),
        })
    }

    /// The component's code, the same for all parameters.
    fn code(&self, form: Form) -> Result<Code, LoadError> {
        compile_once(self.shared, self.engines, &self.spec.name, &self.spec.path, self.bytes, form)
    }

    async fn try_start(&self, about: About, code: &Code) -> Result<(), String> {
        let trial = self.finish(about, code).await.map_err(|error| error.to_string())?;
        init::start(&trial).await.answer.map_err(|outcome| outcome.reason().unwrap_or_default())
    }

    async fn finish(&self, about: About, code: &Code) -> Result<Arc<Loaded>, LoadError> {
        let placed = self.engines.place(code, self.spec.limits.memory)?;
        let (loaded, info, memory) = match about {
            About::Warm(info, memory) => (self.link(placed, None)?, info, memory),
            About::Cold(reason) => {
                let loaded = self.link(placed, Some(reason))?;
                let (initialised, memory) = self.init(&loaded).await?;
                (loaded, initialised.info, memory)
            }
        };
        // A run of an agent and a session of a tool have their own instance, except where the tool is pure.
        let has = |interface: &str| loaded.linked.has(interface);
        let shares = SHARES.into_iter().any(has) || (has("tool") && info.pure);
        // An instance that is set back is as good as a new one for any number of calls.
        let sets_back =
            self.spec.reuse.is_none() && loaded.no_snapshot.is_none() && loaded.linked.has_reset() && shares;
        let idle = match self.spec.reuse {
            Some(_) if !info.pure => return Err(LoadError::NotPure { plugin: self.spec.name.clone() }),
            None if sets_back => Some(NonZeroU32::MAX),
            reuse => reuse,
        };
        let idle = idle.map(|calls| self.shared.instances.idle(calls));
        Ok(Arc::new(Loaded { info, idle, sets_back, first_reservation: memory, ..Arc::unwrap_or_clone(loaded) }))
    }

    /// Checks that the component scores or is a taskset, and connects its imports.
    fn link(&self, placed: PlacedComponent<'_>, no_snapshot: Option<NoSnapshot>) -> Result<Arc<Loaded>, LoadError> {
        let component = &placed.component;
        let plugin = &self.spec.name;
        let Checked { version, exports } = contract::check(plugin, placed.engine(), component, &self.spec.grants)?;
        let linked = placed
            .link()
            .and_then(|pre| Linked::new(pre, &version, exports))
            .map_err(|error| LoadError::Mismatch { plugin: plugin.clone(), what: chain(&error) })?;
        let hash = |bytes: &[u8]| blake3::hash(bytes).to_hex().to_string();
        Ok(Arc::new(Loaded {
            name: plugin.clone(),
            hash: hash(self.bytes),
            params_hash: hash(self.params.as_bytes()),
            params: self.params.clone(),
            contract: contract::full_name(&version),
            limits: self.spec.limits,
            grants: self.spec.grants.clone(),
            granted: self.granted.clone(),
            info: Info { name: String::new(), version: String::new(), pure: false, score_range: None },
            linked,
            slots: placed.slots(),
            idle: None,
            sets_back: false,
            history: Arc::default(),
            shared: self.shared.clone(),
            no_snapshot,
            first_reservation: 0,
        }))
    }

    /// Initialises an instance, and returns how much memory it then has. Wrong
    /// parameters fail here, and not in each call.
    async fn init(&self, plugin: &Arc<Loaded>) -> Result<(Initialised, usize), LoadError> {
        let (name, params) = (self.spec.name.clone(), self.params.clone());
        let report = init::init(plugin).await;
        match report.answer {
            Ok(Ok(initialised)) => {
                initialised.info.check(&name)?;
                Ok((initialised, report.details.usage.peak_memory as usize))
            }
            Ok(Err(NotReady::Mismatch(error))) => Err(LoadError::Mismatch { plugin: name, what: chain(&error) }),
            Ok(Err(NotReady::Params(what))) => {
                let what = cut(self.granted.redact(what));
                Err(LoadError::Params { plugin: name, params, what })
            }
            Err(outcome) => {
                let what = self.granted.loggable(outcome, &report.details.refusals).reason().unwrap_or_default();
                Err(LoadError::Init { plugin: name, params, what })
            }
        }
    }
}
