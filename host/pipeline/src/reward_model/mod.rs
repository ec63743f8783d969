//! The reward models of a run: those that it loads, and those at servers.

mod endpoint;
mod folder;
mod usage;
mod wrong;

pub(crate) use usage::RewardModelWork;

use crate::config::{RewardModelSource, RewardModelTable};
use crate::error::{PipelineError, Result};
use endpoint::RewardEndpoint;
use gavel_plugin::RewardModel;
use gavel_policy::Device;
use gavel_rollout::{DeviceTurns, RewardModelFootprint};
use std::collections::BTreeMap;
use std::sync::Arc;
use usage::UsageBefore;

use wrong::Wrong;

/// The reward models of a run.
#[derive(Default)]
pub struct RewardModels {
    asked: BTreeMap<String, Arc<dyn RewardModel>>,
    /// Those that this process computes.
    local: BTreeMap<String, gavel_rollout::RewardModel>,
    /// Whose turn it is on each of their devices.
    turns: Vec<(Device, Arc<DeviceTurns>)>,
    before: UsageBefore,
}

impl RewardModels {
    /// Loads the models of these tables, and asks the servers once.
    ///
    /// # Errors
    /// A checkpoint is damaged or of another kind, its template does not fit, its device is not there, or a server does
    /// not answer as it must. The error names the table, the field and the file.
    pub fn load(tables: &BTreeMap<String, RewardModelTable>) -> Result<Self> {
        let mut models = Self::default();
        for (name, table) in tables {
            let wrong =
                |Wrong { field, what }: Wrong| PipelineError::Stopped(format!("reward_model.{name}.{field}: {what}"));
            let asked: Arc<dyn RewardModel> = match table.source() {
                RewardModelSource::Folder(path) => {
                    let model = folder::load(table, path, |device| models.turns(device)).map_err(wrong)?;
                    models.local.insert(name.clone(), model.clone());
                    Arc::new(folder::Asked(model))
                }
                RewardModelSource::Endpoint(endpoint) => {
                    let endpoint = RewardEndpoint::new(endpoint, table).map_err(wrong)?;
                    endpoint.check().map_err(wrong)?;
                    Arc::new(endpoint)
                }
            };
            models.asked.insert(name.clone(), asked);
        }
        Ok(models)
    }

    /// The models as plugins ask them, by name.
    pub fn asked(&self) -> BTreeMap<String, Arc<dyn RewardModel>> {
        self.asked.clone()
    }

    /// Whose turn it is on a device.
    pub(crate) fn turns(&mut self, device: Device) -> Arc<DeviceTurns> {
        if let Some((_, turns)) = self.turns.iter().find(|(known, _)| *known == device) {
            return turns.clone();
        }
        let turns = Arc::<DeviceTurns>::default();
        self.turns.push((device, turns.clone()));
        turns
    }

    /// The memory of each model that lives on `device`, by name.
    pub(crate) fn footprints(&self, device: Device) -> Vec<(String, RewardModelFootprint)> {
        let of = |(name, model): (&String, &gavel_rollout::RewardModel)| (name.clone(), model.footprint());
        self.local.iter().map(of).filter(|(_, footprint)| footprint.device == device).collect()
    }

    /// What the models of this process have done since the last step ended.
    pub(crate) fn end_step(&mut self) -> RewardModelWork {
        let waited = self.turns.iter().map(|(_, turns)| turns.policy_waited()).sum();
        self.before.end_step(&self.local, waited)
    }
}
