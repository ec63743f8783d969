//! Compilation in this process.

use super::cache::{Cache, Key};
use super::functions::Functions;
use super::order::{Form, NotCompiled, Order, chain};
use super::output::{ModuleOutput, Output};
use super::reserved::false_name;
use super::split::{LEAST, Split, split};
use crate::compile::engine_config::engine_config;
use crate::compile::merge::merged;
use crate::compile::{reset, snapshot};
use std::borrow::Cow;
use std::path::Path;
use std::sync::Arc;
use wasmtime::Engine;

/// Compiles in this process. What is in the cache in the folder `cache` is not compiled again.
pub(super) fn compile_here(order: Order<'_>, cache: Option<&Path>) -> Result<Output, NotCompiled> {
    let invalid = |error: wasmtime::Error| NotCompiled::Invalid(chain(&error));
    let merged = merged(order.component);
    if let Some(what) = false_name(&merged) {
        return Err(NotCompiled::Invalid(what));
    }
    let component = match order.form {
        Form::Plain => Cow::Borrowed(&*merged),
        Form::Instrumented => Cow::Owned(snapshot::instrument(&merged).map_err(NotCompiled::Invalid)?),
        Form::Snapshot => reset::with_reset(&merged),
    };
    let (component, code, rest) = match split(&component) {
        Some(Split { component, code, rest }) => (Cow::Owned(component), code, rest),
        None => (component, Vec::new(), usize::MAX),
    };
    let plain = compiling(order.fuel, None).map_err(invalid)?;
    let cache = cache.map(Cache::open);
    let keys: Vec<_> = code.iter().map(|module| Key::new(&plain, &[module, b"module"])).collect();
    let is_known = |key: &Key| cache.as_ref().is_some_and(|cache| cache.find::<()>(key).is_some());
    let known: Vec<_> = keys.iter().map(is_known).collect();
    // Reading the functions takes longer than compiling the little that is left of a component whose code is known.
    let is_little = rest < LEAST && known.iter().all(|known| *known);
    let functions = order.functions.filter(|_| !is_little).map(Functions::open);
    let engine = match functions.clone() {
        Some(functions) => compiling(order.fuel, Some(functions)).map_err(invalid)?,
        None => plain,
    };
    let mut modules = Vec::new();
    for ((key, module), known) in keys.into_iter().zip(&code).zip(known) {
        let code = if known { None } else { Some(engine.precompile_module(module).map_err(invalid)?) };
        modules.push(ModuleOutput { key, code });
    }
    let component = engine.precompile_component(&component).map_err(invalid)?;
    // Without the file, the next snapshot only takes longer.
    if let Some(Err(error)) = functions.map(|functions| functions.keep()) {
        tracing::debug!("the functions of a component are not kept: {error}");
    }
    Ok(Output { component, modules })
}

/// An engine that compiles for all engines and runs nothing; `functions` has the
/// code of single functions.
fn compiling(fuel: bool, functions: Option<Arc<Functions>>) -> wasmtime::Result<Engine> {
    let mut config = engine_config(fuel);
    if let Some(functions) = functions {
        config.enable_incremental_compilation(functions)?;
    }
    Engine::new(&config)
}
