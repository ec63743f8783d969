//! A component that is an agent.

use crate::call::{Loaded, loaded_accessors};
use crate::error::LoadError;
use crate::load::{PluginSpec, load};
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
        let loaded = load(sandbox.shared(), spec).await?;
        if !loaded.linked.has("agent") {
            return Err(LoadError::NotAnAgent { plugin: loaded.name.clone() });
        }
        Self::of(loaded)
    }

    /// The agent in a loaded component.
    pub(crate) fn of(loaded: Arc<Loaded>) -> Result<Self, LoadError> {
        loaded.check_session_room()?;
        Ok(Self { loaded })
    }

    loaded_accessors!();
}
