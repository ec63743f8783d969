//! What a component is, without running a sample through it.

use crate::contract;
use crate::error::LoadError;
use crate::grant::Import;
use crate::plugin::{Info, Plugin, PluginSpec, compile, read};
use crate::sandbox::Sandbox;
use serde::Serialize;

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
    /// Everything that it imports, and how that stands with its grants.
    pub imports: Vec<Import>,
    /// What it says of itself, where it loads with these parameters.
    pub info: Option<Info>,
    /// Why there is no `info`.
    pub info_missing: Option<String>,
}

/// Inspects a component as it would be with these parameters and grants.
pub async fn inspect(sandbox: &Sandbox, spec: PluginSpec) -> Result<Inspection, LoadError> {
    let bytes = read(&spec.name, &spec.path)?;
    let engine = &sandbox.shared().workshop(&spec.limits)?.engine;
    let component = compile(engine, &spec.name, &spec.path, &bytes)?;
    let imports = contract::imports(engine, &component, &spec.grants);
    let (info, info_missing) = match Plugin::load(sandbox, spec).await {
        Ok(plugin) => (Some(plugin.info().clone()), None),
        Err(error) => (None, Some(error.to_string())),
    };
    Ok(Inspection {
        size: bytes.len() as u64,
        hash: blake3::hash(&bytes).to_hex().to_string(),
        contract: contract::version(engine, &component),
        exports: contract::exports(engine, &component),
        imports,
        info,
        info_missing,
    })
}
