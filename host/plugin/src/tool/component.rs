//! A component that is a tool, and its functions.

use crate::bindings::gavel::plugin::types;
use crate::call::{CallSetup, Loaded, Question, ask, loaded_accessors};
use crate::engine::Exports;
use crate::episode::ToolFunction;
use crate::error::LoadError;
use crate::imports::State;
use crate::load::{PluginSpec, load};
use crate::outside::OutsideWaits;
use crate::sandbox::Sandbox;
use futures::FutureExt;
use futures::future::BoxFuture;
use std::collections::BTreeSet;
use std::sync::Arc;
use wasmtime::{Result, Store};

/// A component that is a tool.
pub struct Tool {
    pub(crate) loaded: Arc<Loaded>,
    functions: Vec<ToolFunction>,
}

impl Tool {
    /// Reads, compiles and checks a component, initialises it once, and asks for its functions.
    ///
    /// # Errors
    /// The component cannot be used, or is not a tool.
    pub async fn load(sandbox: &Sandbox, spec: PluginSpec) -> std::result::Result<Self, LoadError> {
        let loaded = load(sandbox.shared(), spec).await?;
        if !loaded.linked.has("tool") {
            return Err(LoadError::NotATool { plugin: loaded.name.clone() });
        }
        Self::of(loaded).await
    }

    /// The tool in a loaded component. Asks it for its functions.
    pub(crate) fn of(loaded: Arc<Loaded>) -> BoxFuture<'static, std::result::Result<Self, LoadError>> {
        Self::described(loaded).boxed()
    }

    async fn described(loaded: Arc<Loaded>) -> std::result::Result<Self, LoadError> {
        if !loaded.info.pure {
            loaded.check_session_room()?;
        }
        let setup = CallSetup { input: "specs", seed: 0, waits: OutsideWaits::default() };
        let report = ask(&loaded, Specs, &setup).await;
        let plugin = || loaded.name.clone();
        let specs = report.answer.map_err(|outcome| {
            let outcome = loaded.granted.loggable(outcome, &report.details.refusals);
            LoadError::NoSpecs { plugin: plugin(), what: outcome.reason().unwrap_or_default() }
        })?;
        let described = specs.into_iter().map(|spec| (spec.name, spec.description, spec.parameters));
        let functions = ToolFunction::all(described).map_err(|what| LoadError::Function { plugin: plugin(), what })?;
        let mut names = BTreeSet::new();
        if let Some(twice) = functions.iter().find(|function| !names.insert(function.name())) {
            let what = format!("the function `{}` is described twice", twice.name());
            return Err(LoadError::Function { plugin: plugin(), what });
        }
        Ok(Self { loaded, functions })
    }

    loaded_accessors!();

    /// Its functions.
    pub fn functions(&self) -> &[ToolFunction] {
        &self.functions
    }

    /// Checks a call that the policy wrote, before the tool is asked.
    ///
    /// # Errors
    /// There is no such function, or it does not take these arguments. The text is for the policy.
    pub fn check(&self, name: &str, arguments: &str) -> std::result::Result<(), String> {
        match self.functions.iter().find(|function| function.name() == name) {
            Some(function) => function.check(arguments),
            None => Err(ToolFunction::unknown(name, self.functions.iter().map(ToolFunction::name))),
        }
    }

    /// Whether a trajectory keeps an instance of it from call to call. A pure tool has nothing to keep.
    pub fn keeps_state(&self) -> bool {
        !self.loaded.info.pure
    }
}

/// `tool.specs`
#[derive(Clone)]
struct Specs;

impl Question for Specs {
    type Answer = Vec<types::ToolSpec>;

    fn input(&self) -> String {
        "specs".into()
    }

    fn handles(&self) -> usize {
        0
    }

    async fn ask(self, _: Arc<Loaded>, exports: &Exports, store: &mut Store<State>) -> Result<Vec<types::ToolSpec>> {
        exports.specs(store).await
    }

    fn is_sound(_: &Self::Answer) -> bool {
        true
    }
}
