//! A component that is an agent.

use crate::call::{Info, Loaded};
use crate::error::LoadError;
use crate::grant::Grants;
use crate::load::{PluginSpec, loading};
use crate::sandbox::Sandbox;
use std::sync::Arc;

/// A component that is an agent.
pub struct Agent {
    pub(crate) loaded: Arc<Loaded>,
}

impl Agent {
    /// Reads, compiles and checks a component, and initialises it once.
    ///
    /// # Errors
    /// The component cannot be used, or is not an agent.
    pub async fn load(sandbox: &Sandbox, spec: PluginSpec) -> Result<Self, LoadError> {
        let loaded = load::load(sandbox.shared(), spec).await?;
        if !loaded.linked.is_agent() {
            return Err(LoadError::NotAnAgent { plugin: loaded.name.clone() });
        }
        Self::of(loaded)
    }

    /// The agent in a loaded component.
    pub(crate) fn of(loaded: Arc<Loaded>) -> Result<Self, LoadError> {
        loaded.check_session_room()?;
        Ok(Self { loaded })
    }

    /// The name in the run.
    pub fn name(&self) -> &str {
        &self.loaded.name
    }

    /// BLAKE3 of the component's bytes, in hexadecimal.
    pub fn hash(&self) -> &str {
        &self.loaded.hash
    }

    /// The parameters as the agent got them.
    pub fn params(&self) -> &str {
        &self.loaded.params
    }

    /// Its grants: what it may reach beyond its episode.
    pub fn grants(&self) -> &Grants {
        &self.loaded.grants
    }

    /// The properties that the agent declares.
    pub fn info(&self) -> &Info {
        &self.loaded.info
    }
}
