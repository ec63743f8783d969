//! A plugin that is loaded: what all its calls hold on to.

use crate::engine::Slots;
use crate::exports::Linked;
use crate::first_slice::History;
use crate::grant::{Granted, Grants};
use crate::idle_instances::IdleInstances;
use crate::info::Info;
use crate::limits::Limits;
use crate::shared::Shared;
use crate::snapshot::NoSnapshot;
use std::sync::Arc;

/// The part that calls hold on to.
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
    /// Instances that wait for further calls, where it has any.
    pub(crate) idle: Option<Arc<IdleInstances>>,
    /// How long its last calls ran.
    pub(crate) history: Arc<History>,
    /// Why `init` runs in each instance, where it does.
    pub(crate) no_snapshot: Option<NoSnapshot>,
    /// Bytes that a call is sure to need: what an instance has after `init`.
    pub(crate) first_reservation: usize,
}
