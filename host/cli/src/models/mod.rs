//! What needs libtorch. To load it takes longer than most commands run, so only `gavel-models` is linked with it, a
//! program beside `gavel`. `gavel` becomes that program for a command that runs a model.

mod beside;
mod environment;
mod lacking;

pub use beside::{Beside, hand_over, is_beside};
pub use environment::missing_variables;
pub use lacking::exit;

use crate::doctor::Finding;
use anyhow::Result;
use gavel_plugin::{Limits, RewardModel};
use gavel_scoring::WeightedPlugin;
use std::collections::BTreeMap;
use std::sync::Arc;

/// What the commands of both programs take from libtorch.
pub trait Models {
    /// Loads the reward models that `gavel score` names. A model that no plugin is granted scores by itself: its reward is
    /// added to `plugins`.
    fn reward_models(
        given: Vec<(String, String)>,
        plugins: &mut Vec<WeightedPlugin>,
        limits: Limits,
    ) -> Result<BTreeMap<String, Arc<dyn RewardModel>>>;

    /// What `gavel doctor` finds about libtorch and its devices.
    fn findings() -> Result<Vec<(&'static str, Finding)>>;
}
