//! Compilation in this process.

use super::functions::Functions;
use super::order::{Form, NotCompiled, Order, chain};
use crate::compile::engine_config::engine_config;
use crate::compile::merge::merged;
use crate::compile::{reset, snapshot};
use std::borrow::Cow;
use std::sync::Arc;
use wasmtime::{CacheStore, Engine};

/// Compiles in this process.
pub(super) fn compile_here(order: Order<'_>) -> Result<Vec<u8>, NotCompiled> {
    let invalid = |error: wasmtime::Error| NotCompiled::Invalid(chain(&error));
    let merged = merged(order.component);
    if let Some(name) = reset::false_export(&merged) {
        return Err(NotCompiled::Invalid(format!("it exports `{name}`, a name that the host keeps for itself")));
    }
    let component = match order.form {
        Form::Plain => Cow::Borrowed(&*merged),
        Form::Instrumented => Cow::Owned(snapshot::instrument(&merged).map_err(NotCompiled::Invalid)?),
        Form::Snapshot => reset::with_reset(&merged),
    };
    let functions = order.functions.map(Functions::open);
    let engine = compiling(order.fuel, functions.clone().map(|known| known as _)).map_err(invalid)?;
    let code = engine.precompile_component(&component).map_err(invalid)?;
    // Without the file, the next snapshot only takes longer.
    if let Some(Err(error)) = functions.map(|functions| functions.keep()) {
        tracing::debug!("the functions of a component are not kept: {error}");
    }
    Ok(code)
}

/// An engine that compiles for all engines and runs nothing; `functions` has the
/// code of single functions.
fn compiling(fuel: bool, functions: Option<Arc<dyn CacheStore>>) -> wasmtime::Result<Engine> {
    let mut config = engine_config(fuel);
    if let Some(functions) = functions {
        config.enable_incremental_compilation(functions)?;
    }
    Engine::new(&config)
}
