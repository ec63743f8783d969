//! A loaded plugin, which all its calls share.

use crate::budget::{History, Limits, Turn};
use crate::call::info::Info;
use crate::compile::NoSnapshot;
use crate::engine::{IdleInstances, Linked, Shared, Slots};
use crate::error::LoadError;
use crate::grant::{Granted, Grants};
use std::sync::Arc;

/// The part of a plugin that its calls share.
#[derive(Clone)]
pub(crate) struct Loaded {
    pub(crate) name: String,
    pub(crate) hash: String,
    pub(crate) params: String,
    pub(crate) params_hash: String,
    pub(crate) contract: String,
    pub(crate) limits: Limits,
    pub(crate) grants: Grants,
    pub(crate) granted: Arc<Granted>,
    pub(crate) info: Info,
    pub(crate) linked: Linked,
    pub(crate) slots: Slots,
    pub(crate) shared: Arc<Shared>,
    /// Idle instances, which wait for further calls; `None` without `reuse`, unless they are set back.
    pub(crate) idle: Option<Arc<IdleInstances>>,
    /// Whether an idle instance is set back to the snapshot before a further call.
    pub(crate) sets_back: bool,
    /// Whether its last calls outlived their first slice.
    pub(crate) history: Arc<History>,
    /// Why there is no snapshot, so that `init` runs in each instance.
    pub(crate) no_snapshot: Option<NoSnapshot>,
    /// Bytes that every call needs: the memory of an instance after `init`.
    pub(crate) first_reservation: usize,
}

impl Loaded {
    /// Waits until one of its calls may run.
    pub(crate) async fn turn(&self) -> Turn {
        self.shared.lanes.turn(&self.history).await
    }

    /// Refuses a plugin whose sessions could never have room.
    pub(crate) fn check_session_room(&self) -> Result<(), LoadError> {
        let (asked, allowed) = (self.limits.memory, self.shared.instances.session_memory_bytes());
        if asked <= allowed {
            return Ok(());
        }
        Err(LoadError::SessionMemory { plugin: self.name.clone(), asked, allowed })
    }
}

/// Declares what every kind of loaded component tells of itself, from its field `loaded`.
macro_rules! loaded_accessors {
    () => {
        /// The name in the run.
        pub fn name(&self) -> &str {
            &self.loaded.name
        }

        /// BLAKE3 of the component's bytes, in hexadecimal.
        pub fn hash(&self) -> &str {
            &self.loaded.hash
        }

        /// The contract that it was built for, such as `gavel:plugin@0.2.0`.
        pub fn contract(&self) -> &str {
            &self.loaded.contract
        }

        /// The parameters as the component got them.
        pub fn params(&self) -> &str {
            &self.loaded.params
        }

        /// What it may reach beyond what it is called with.
        pub fn grants(&self) -> &$crate::grant::Grants {
            &self.loaded.grants
        }

        /// The properties that it declares.
        pub fn info(&self) -> &$crate::call::Info {
            &self.loaded.info
        }
    };
}

pub(crate) use loaded_accessors;
