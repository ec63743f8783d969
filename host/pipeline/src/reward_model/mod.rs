//! The reward models of a run: models that it loads, models at servers, and models of other ranks.

mod endpoint;
mod folder;
mod served;
mod usage;
mod wrong;

pub(crate) use usage::RewardModelWork;

use crate::error::{PipelineError, Result};
use crate::ranks::Ranks;
use endpoint::RewardEndpoint;
use gavel_config::{RewardModelSource, RewardModelTable};
use gavel_plugin::RewardModel;
use gavel_policy::Device;
use gavel_rollout::{DeviceTurns, RewardModelFootprint};
use served::ServedModel;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use usage::UsageBefore;
use wrong::Wrong;

/// The reward models of a run.
#[derive(Default)]
pub struct RewardModels {
    asked: BTreeMap<String, Arc<dyn RewardModel>>,
    /// Those at servers.
    endpoints: Vec<Arc<RewardEndpoint>>,
    /// Those that this process computes.
    local: BTreeMap<String, gavel_rollout::RewardModel>,
    /// Whose turn it is on each of their devices.
    turns: Vec<(Device, Arc<DeviceTurns>)>,
    /// The servers of those that only some ranks have, of which this is one.
    served: BTreeMap<String, ServedModel>,
    before: UsageBefore,
}

impl RewardModels {
    /// Loads the models of these tables, and asks the servers once.
    ///
    /// # Errors
    /// A checkpoint is damaged or of another kind, its template does not fit, its device is not there, or a server does
    /// not answer as it must. The error names the table, the field and the file.
    pub fn load(tables: &BTreeMap<String, RewardModelTable>) -> Result<Self> {
        match tables.iter().find(|(_, table)| !table.ranks.is_empty()) {
            Some((name, _)) => Err(PipelineError::Stopped(format!(
                "reward_model.{name}.ranks: it is for a run in several ranks\nhint: leave it out"
            ))),
            None => Self::of_rank(tables, &Ranks::alone(), None),
        }
    }

    /// The same in a run: a model that only some ranks have is loaded by these, and the others ask them. All ranks call
    /// this. A process by itself loads all models. A run stops after it has waited for a server for `max_pause`.
    ///
    /// # Errors
    /// As [`load`](Self::load); or a rank is gone or cannot be reached.
    pub(crate) fn of_rank(
        tables: &BTreeMap<String, RewardModelTable>,
        ranks: &Ranks,
        max_pause: Option<Duration>,
    ) -> Result<Self> {
        let is_placed = |table: &RewardModelTable| ranks.are_several() && !table.ranks.is_empty();
        let mut models = Self::default();
        for (name, table) in tables {
            if is_placed(table) {
                if table.ranks.contains(&ranks.rank()) {
                    models.serve(name, table, ranks)?;
                }
                continue;
            }
            let wrong =
                |Wrong { field, what }: Wrong| PipelineError::Stopped(format!("reward_model.{name}.{field}: {what}"));
            let asked: Arc<dyn RewardModel> = match table.source() {
                RewardModelSource::Folder(path) => {
                    let model = folder::load(table, path, |device| models.turns(device)).map_err(wrong)?;
                    models.local.insert(name.clone(), model.clone());
                    Arc::new(folder::LocalRewardModel(model))
                }
                RewardModelSource::Endpoint(endpoint) => {
                    let endpoint = Arc::new(RewardEndpoint::new(endpoint, table, max_pause).map_err(wrong)?);
                    endpoint.check().map_err(wrong)?;
                    models.endpoints.push(endpoint.clone());
                    endpoint
                }
            };
            models.asked.insert(name.clone(), asked);
        }
        if tables.values().any(is_placed) {
            let own: BTreeMap<&String, &String> =
                models.served.iter().map(|(name, served)| (name, &served.url)).collect();
            let own = serde_json::to_value(own).unwrap_or_default();
            let urls = ranks.exchange(&own)?;
            let url = |rank: usize, name: &str| Some(urls.get(rank)?.get(name)?.as_str()?.to_owned());
            for (name, table) in tables.iter().filter(|(_, table)| is_placed(table)) {
                if !models.served.contains_key(name) {
                    let urls = table.ranks.iter().filter_map(|rank| url(*rank, name)).collect();
                    models.ask_ranks(name, table, urls)?;
                }
            }
        }
        Ok(models)
    }

    /// Loads a model and answers the other ranks with it.
    fn serve(&mut self, name: &str, table: &RewardModelTable, ranks: &Ranks) -> Result<()> {
        let wrong = |Wrong { field, what }| PipelineError::Stopped(format!("reward_model.{name}.{field}: {what}"));
        let RewardModelSource::Folder(path) = table.source() else { return Ok(()) };
        // Turns of its own: other ranks may wait for a score while this rank waits for them in an update.
        let model = folder::load(table, path, |_| Arc::default()).map_err(wrong)?;
        let served = ServedModel::start(name, model.clone(), ranks.address()?);
        let served = served.map_err(|error| wrong(Wrong::new("ranks", format!("it cannot be served: {error}"))))?;
        tracing::debug!("reward model {name} at {}", served.url);
        self.served.insert(name.to_owned(), served);
        self.local.insert(name.to_owned(), model.clone());
        self.asked.insert(name.to_owned(), Arc::new(folder::LocalRewardModel(model)));
        Ok(())
    }

    /// Asks the ranks at `urls` for a model.
    fn ask_ranks(&mut self, name: &str, table: &RewardModelTable, urls: Vec<String>) -> Result<()> {
        let wrong = |Wrong { what, .. }| PipelineError::Stopped(format!("reward_model.{name}.ranks: {what}"));
        // The rank renders conversations.
        let bare = RewardModelTable::of_url(String::new());
        let endpoint = RewardEndpoint::new(table.on_ranks(urls), &bare, None).map_err(wrong)?;
        endpoint.check().map_err(wrong)?;
        self.asked.insert(name.to_owned(), Arc::new(endpoint));
        Ok(())
    }

    /// The models as plugins ask them, by name.
    pub fn asked(&self) -> BTreeMap<String, Arc<dyn RewardModel>> {
        self.asked.clone()
    }

    /// Why a run must stop: a server is down, and the run does not wait for it any longer.
    pub(crate) fn must_stop(&self) -> Option<String> {
        self.endpoints.iter().find_map(|endpoint| endpoint.must_stop())
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
    ///
    /// # Errors
    /// The thread of one of them has ended.
    pub(crate) fn end_step(&mut self) -> Result<RewardModelWork> {
        for (name, model) in &self.local {
            model.check().map_err(|error| PipelineError::Stopped(format!("reward_model.{name}: {error}")))?;
        }
        let waited = self.turns.iter().map(|(_, turns)| turns.policy_waited()).sum();
        Ok(self.before.end_step(&self.local, waited))
    }
}
