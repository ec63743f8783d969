//! What a component is, without running a sample through it.

use crate::contract;
use crate::error::LoadError;
use crate::limits::Limits;
use crate::plugin::{Info, Plugin, PluginSpec, compile, read};
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
    /// Why there is no `info`.
    pub info_missing: Option<String>,
}

/// Inspects the component at `path`.
pub async fn inspect(sandbox: &Sandbox, path: &Path) -> Result<Inspection, LoadError> {
    let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let bytes = read(&name, path)?;
    let engine = &sandbox.shared().workshop(&Limits::default())?.engine;
    let component = compile(engine, &name, path, &bytes)?;
    let imports = contract::imports(engine, &component);
    let spec = PluginSpec { name, path: path.into(), params: Default::default(), limits: Limits::default() };
    let (info, info_missing) = match Plugin::load(sandbox, spec).await {
        Ok(plugin) => (Some(plugin.info().clone()), None),
        Err(error) => (None, Some(error.to_string())),
    };
    Ok(Inspection {
        size: bytes.len() as u64,
        hash: blake3::hash(&bytes).to_hex().to_string(),
        contract: contract::version(engine, &component),
        exports: contract::exports(engine, &component),
        needs_grant: imports.iter().filter(|name| !contract::is_open_import(name)).cloned().collect(),
        imports,
        info,
        info_missing,
    })
}
