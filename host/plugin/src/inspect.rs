//! Inspects a component without a sample.

use crate::call::Info;
use crate::episode::ToolSpec;
use crate::error::LoadError;
use crate::grant::Import;
use crate::load::component::{self, read};
use crate::load::{PluginSpec, contract};
use crate::plugin::Plugin;
use crate::sandbox::Sandbox;
use crate::tool::Tool;
use serde::Serialize;

/// The properties of a component that `gavel plugin inspect` reports.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Inspection {
    /// Bytes of the file.
    pub size: u64,
    /// BLAKE3 of the file, in hexadecimal.
    pub hash: String,
    /// The version of `gavel:plugin` that it was built for.
    pub contract: Option<String>,
    /// The interfaces of the contract that it exports.
    pub exports: Vec<String>,
    /// Its imports, and whether they are granted.
    pub imports: Vec<Import>,
    /// The properties that it declares, where it loads with these parameters.
    pub info: Option<Info>,
    /// The functions of a tool.
    pub functions: Vec<ToolSpec>,
    /// Why a tool's functions are not known.
    pub functions_missing: Option<String>,
    /// Whether calls start from a snapshot after `init`.
    pub snapshot: bool,
    /// Why there is no snapshot, so that `init` runs in each call.
    pub no_snapshot: Option<String>,
    /// Whether an instance is set back to the snapshot for its next call, which costs less than a new one.
    pub set_back: bool,
    /// Why there is no `info`.
    pub info_missing: Option<String>,
}

/// The interfaces of the contract that a component exports, whether it loads with its parameters or not.
///
/// # Errors
/// It is not a component.
pub fn exports(sandbox: &Sandbox, spec: &PluginSpec) -> Result<Vec<String>, LoadError> {
    let bytes = read(sandbox.shared(), &spec.name, &spec.path)?;
    let component = component::compiled(sandbox.shared(), spec, &bytes)?;
    Ok(contract::exports(component.engine(), &component))
}

/// Inspects a component with these parameters and grants.
pub async fn inspect(sandbox: &Sandbox, spec: PluginSpec) -> Result<Inspection, LoadError> {
    let bytes = read(sandbox.shared(), &spec.name, &spec.path)?;
    let (component, plugin, info_missing) = match Plugin::load(sandbox, spec.clone()).await {
        Ok(plugin) => (plugin.component().clone(), Some(plugin), None),
        Err(error) => (component::compiled(sandbox.shared(), &spec, &bytes)?, None, Some(error.to_string())),
    };
    let tool = match &plugin {
        Some(plugin) => plugin.tool().await,
        None => Ok(None),
    };
    let (functions, functions_missing) = match tool {
        Ok(tool) => (tool.iter().flat_map(Tool::functions).map(|function| function.spec().clone()).collect(), None),
        Err(error) => (Vec::new(), Some(error.to_string())),
    };
    let engine = component.engine();
    let imports = contract::imports(engine, &component, &spec.grants);
    let no_snapshot = plugin.as_ref().and_then(Plugin::no_snapshot);
    Ok(Inspection {
        size: bytes.len() as u64,
        hash: blake3::hash(&bytes).to_hex().to_string(),
        contract: contract::version(engine, &component),
        exports: contract::exports(engine, &component),
        imports,
        snapshot: plugin.is_some() && no_snapshot.is_none(),
        no_snapshot,
        set_back: plugin.as_ref().is_some_and(Plugin::is_set_back),
        info: plugin.map(|plugin| plugin.info().clone()),
        functions,
        functions_missing,
        info_missing,
    })
}
