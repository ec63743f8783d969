//! From a component's file to something that can be called: compiled, checked
//! and, where its form allows it, as it is after `init`.

use crate::cache::Key;
use crate::call::{self, Initialised, NotReady};
use crate::code::Code;
use crate::contract::{self, CONTRACT};
use crate::engine::{Engines, Placed};
use crate::error::LoadError;
use crate::exports::Linked;
use crate::grant::{Granted, Grants};
use crate::plugin::{Info, Loaded, PluginSpec};
use crate::sandbox::Shared;
use crate::snapshot::{Instrumented, NoSnapshot};
use crate::verdict::cut;
use serde::{Deserialize, Serialize};
use std::path::Path;
use std::sync::Arc;
use wasmtime::component::Component;

/// Components that take a second or more to compile are announced.
const LARGE: usize = 2 << 20;

/// What is known of compiled code.
#[derive(Clone, Serialize, Deserialize)]
enum About {
    /// It is the component after `init`, which gave this and came to so many
    /// bytes of memory.
    Warm(Info, usize),
    /// It is the component as it was built.
    Cold(NoSnapshot),
}

/// Loads the component of `spec`.
pub(crate) async fn load(shared: &Arc<Shared>, spec: PluginSpec) -> Result<Arc<Loaded>, LoadError> {
    if spec.limits.memory > shared.memory_bytes() {
        let (plugin, allowed) = (spec.name, shared.memory_bytes());
        return Err(LoadError::MemoryLimit { plugin, asked: spec.limits.memory, allowed });
    }
    let granted =
        Granted::open(&spec.grants, shared).map_err(|source| LoadError::Grant { plugin: spec.name.clone(), source })?;
    let bytes = read(&spec.name, &spec.path)?;
    let params = serde_json::Value::Object(spec.params.clone()).to_string();
    let loading =
        Loading { shared, engines: shared.engines(&spec.limits), spec: &spec, bytes: &bytes, params, granted };
    let kind: &[u8] = if loading.may_be_warm() { b"warm" } else { b"cold" };
    let parts = [&bytes, loading.params.as_bytes(), CONTRACT.as_bytes(), kind];
    let key = Key::new(loading.engines.compiler()?, &parts);
    if let Some((about, code)) = shared.cache.find(&key) {
        match loading.finish(about, &code).await {
            // The entry is whole, but this host cannot run it.
            Err(LoadError::Engine(what)) => tracing::warn!("plugin `{}` is compiled again: {what}", spec.name),
            done => return done,
        }
    }
    let (about, code) = loading.make().await?;
    let code = if about.will_last() { shared.cache.keep(&key, &about, code) } else { code };
    loading.finish(about, &code).await
}

impl About {
    /// Whether another attempt, with other limits say, comes to the same.
    fn will_last(&self) -> bool {
        !matches!(self, About::Cold(NoSnapshot::Unreadable(_) | NoSnapshot::Unusable(_)))
    }
}

/// A component on its way.
struct Loading<'a> {
    shared: &'a Arc<Shared>,
    engines: &'a Engines,
    spec: &'a PluginSpec,
    bytes: &'a [u8],
    params: String,
    granted: Arc<Granted>,
}

impl Loading<'_> {
    /// A snapshot holds what `init` read: a variable's value does not belong on
    /// disk, and a file or a clock is to be read when it is asked.
    fn may_be_warm(&self) -> bool {
        // `init` cannot ask endpoints or run programs.
        Grants { chat: Vec::new(), exec: Vec::new(), ..self.spec.grants.clone() } == Grants::default()
    }

    /// Compiles the component, after `init` where that can be had.
    async fn make(&self) -> Result<(About, Code), LoadError> {
        if self.bytes.len() > LARGE {
            let size = self.bytes.len() >> 20;
            tracing::info!("compiling plugin `{}` ({size} MB); later starts take it from the cache", self.spec.name);
        }
        match self.make_warm().await? {
            Ok(made) => Ok(made),
            Err(reason) => Ok((About::Cold(reason), compile(self.engines, self.spec, self.bytes)?)),
        }
    }

    async fn make_warm(&self) -> Result<Result<(About, Code), NoSnapshot>, LoadError> {
        if !self.may_be_warm() {
            return Ok(Err(NoSnapshot::Granted));
        }
        let instrumented = match Instrumented::new(self.bytes) {
            Ok(instrumented) => instrumented,
            Err(reason) => return Ok(Err(reason)),
        };
        let compiler = self.engines.compiler()?;
        let code = match Code::compile(compiler, &instrumented.wasm) {
            Ok(code) => code,
            Err(error) => return Ok(Err(NoSnapshot::Form(chain(&error)))),
        };
        let draft = self.link(self.engines.place_on_demand(&code)?, None)?;
        let (Initialised { info, mut store, instance, room: _room }, memory) = self.init(&draft).await?;
        let made = match instrumented.take(&mut store, instance).await {
            Ok(wasm) => Code::compile(compiler, &wasm).map_err(|error| NoSnapshot::Unusable(chain(&error))),
            Err(reason) => Err(reason),
        };
        drop(store);
        let code = match made {
            Ok(code) => code,
            Err(reason) => return Ok(Err(reason)),
        };
        let about = About::Warm(info, memory);
        Ok(match self.try_start(about.clone(), &code).await {
            Ok(()) => Ok((about, code)),
            Err(what) => Err(NoSnapshot::Unusable(what)),
        })
    }

    async fn try_start(&self, about: About, code: &Code) -> Result<(), String> {
        let trial = self.finish(about, code).await.map_err(|error| error.to_string())?;
        call::start(&trial).await.answer.map_err(|outcome| outcome.reason().unwrap_or_default())
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
        let shelf = match self.spec.reuse {
            Some(_) if !info.pure => return Err(LoadError::NotPure { plugin: self.spec.name.clone() }),
            reuse => reuse.map(|calls| self.shared.shelf(calls)),
        };
        Ok(Arc::new(Loaded { info, shelf, first_reservation: memory, ..Arc::unwrap_or_clone(loaded) }))
    }

    /// Checks that the component scores or is a dataset, and connects its imports.
    fn link(&self, placed: Placed<'_>, no_snapshot: Option<NoSnapshot>) -> Result<Arc<Loaded>, LoadError> {
        let Placed { workshop, component } = placed;
        let plugin = &self.spec.name;
        let exported = contract::check(plugin, &workshop.engine, &component, &self.spec.grants)?;
        let linked = workshop
            .linker
            .instantiate_pre(&component)
            .and_then(|pre| Linked::new(pre, |name| exported.iter().any(|found| found == name)))
            .map_err(|error| LoadError::Mismatch { plugin: plugin.clone(), what: chain(&error) })?;
        let hash = |bytes: &[u8]| blake3::hash(bytes).to_hex().to_string();
        Ok(Arc::new(Loaded {
            name: plugin.clone(),
            hash: hash(self.bytes),
            params_hash: hash(self.params.as_bytes()),
            params: self.params.clone(),
            contract: CONTRACT.into(),
            limits: self.spec.limits,
            grants: self.spec.grants.clone(),
            granted: self.granted.clone(),
            info: Info { name: String::new(), version: String::new(), pure: false, score_range: None },
            linked,
            slots: workshop.slots(),
            shelf: None,
            history: Arc::default(),
            shared: self.shared.clone(),
            no_snapshot,
            first_reservation: 0,
        }))
    }

    /// Initialises an instance and says how much memory it then has. Wrong
    /// parameters show here, and not in each call.
    async fn init(&self, plugin: &Arc<Loaded>) -> Result<(Initialised, usize), LoadError> {
        let (name, params) = (self.spec.name.clone(), self.params.clone());
        let ending = call::init(plugin).await;
        match ending.answer {
            Ok(Ok(initialised)) => Ok((initialised, ending.trail.usage.peak_memory as usize)),
            Ok(Err(NotReady::Mismatch(error))) => Err(LoadError::Mismatch { plugin: name, what: chain(&error) }),
            Ok(Err(NotReady::Params(what))) => {
                let what = cut(self.granted.redact(what));
                Err(LoadError::Params { plugin: name, params, what })
            }
            Err(outcome) => {
                let what = self.granted.tell(outcome, &ending.trail.refusals).reason().unwrap_or_default();
                Err(LoadError::Init { plugin: name, params, what })
            }
        }
    }
}

/// The code of a component as it is, compiled now or at an earlier start.
pub(crate) fn compile_once(
    shared: &Shared,
    engines: &Engines,
    name: &str,
    path: &Path,
    bytes: &[u8],
) -> Result<Code, LoadError> {
    let key = Key::new(engines.compiler()?, &[bytes, b"program"]);
    match shared.cache.find::<()>(&key) {
        Some(((), code)) => Ok(code),
        None => Ok(shared.cache.keep(&key, &(), compile(engines, &PluginSpec::new(name, path), bytes)?)),
    }
}

/// The component of `spec` as it is, which may not be one that can be called.
pub(crate) fn component(shared: &Shared, spec: &PluginSpec, bytes: &[u8]) -> Result<Component, LoadError> {
    let engines = shared.engines(&spec.limits);
    Ok(engines.place(&compile(engines, spec, bytes)?, spec.limits.memory)?.component)
}

/// Compiles the component as it is; anything else gets an error that says what
/// it is.
fn compile(engines: &Engines, spec: &PluginSpec, bytes: &[u8]) -> Result<Code, LoadError> {
    let (plugin, path) = (spec.name.clone(), spec.path.clone());
    match bytes {
        [b'\0', b'a', b's', b'm', 1, 0, 0, 0, ..] => return Err(LoadError::CoreModule { plugin, path }),
        [b'\0', b'a', b's', b'm', ..] => {}
        _ => return Err(LoadError::Invalid { plugin, path, what: "it is not WebAssembly".into() }),
    }
    Code::compile(engines.compiler()?, bytes).map_err(|error| LoadError::Invalid { plugin, path, what: chain(&error) })
}

/// The bytes of a component.
pub(crate) fn read(plugin: &str, path: &Path) -> Result<Vec<u8>, LoadError> {
    std::fs::read(path).map_err(|source| LoadError::Read { plugin: plugin.into(), path: path.into(), source })
}

/// An error and its causes in one line.
fn chain(error: &wasmtime::Error) -> String {
    error.chain().map(|cause| cause.to_string()).collect::<Vec<_>>().join(": ")
}
