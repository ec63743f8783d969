//! What a component is, without running a sample through it.

use crate::contract;
use crate::error::LoadError;
use crate::limits::Limits;
use crate::load::{self, read};
use crate::plugin::{Info, Plugin, PluginSpec};
use crate::sandbox::Sandbox;
use serde::Serialize;
use std::path::Path;

/// A component's outside.
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
    /// Everything that it imports.
    pub imports: Vec<String>,
    /// The imports that a run would have to grant.
    pub needs_grant: Vec<String>,
    /// What it says of itself, where `init` accepts empty parameters.
    pub info: Option<Info>,
    /// Whether calls start from what one `init` made.
    pub snapshot: bool,
    /// Why they do not, and `init` runs in each.
    pub no_snapshot: Option<String>,
    /// Why there is no `info`.
    pub info_missing: Option<String>,
}

/// Inspects the component at `path`.
pub async fn inspect(sandbox: &Sandbox, path: &Path) -> Result<Inspection, LoadError> {
    let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let bytes = read(&name, path)?;
    let limits = Limits::default();
    let spec = PluginSpec { name, path: path.into(), params: Default::default(), limits };
    let (component, plugin, info_missing) = match Plugin::load(sandbox, spec.clone()).await {
        Ok(plugin) => (plugin.component().clone(), Some(plugin), None),
        Err(error) => (load::component(sandbox.shared(), &spec, &bytes)?, None, Some(error.to_string())),
    };
    let engine = component.engine();
    let imports = contract::imports(engine, &component);
    let no_snapshot = plugin.as_ref().and_then(Plugin::no_snapshot);
    Ok(Inspection {
        size: bytes.len() as u64,
        hash: blake3::hash(&bytes).to_hex().to_string(),
        contract: contract::version(engine, &component),
        exports: contract::exports(engine, &component),
        needs_grant: imports.iter().filter(|name| !contract::is_open_import(name)).cloned().collect(),
        imports,
        snapshot: plugin.is_some() && no_snapshot.is_none(),
        no_snapshot,
        info: plugin.map(|plugin| plugin.info().clone()),
        info_missing,
    })
}
