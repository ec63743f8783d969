//! All tables of a run together.

use super::datasets::Datasets;
use super::error::ConfigError;
use super::reward::RewardTable;
use super::schedule::ScheduleTable;
use super::tables::{CheckpointTable, DataTable, LogTable, ModelTable, ResourcesTable, RolloutTable};
use super::train_table::TrainTable;
use gavel_plugin::LimitsTable;
use gavel_policy::Dtype;
use gavel_scoring::ExecTable;
use gavel_scoring::chat::ChatEndpoint;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The tables of a run; `T` is `[train]`: [`RlTable`](super::RlTable) for `gavel train`,
/// [`SftTable`](super::SftTable) for `gavel sft`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config<T> {
    /// Every random choice of the run follows from it; 0 by default.
    #[serde(default)]
    pub seed: u64,
    /// The policy to start from.
    pub model: ModelTable,
    /// What it learns from.
    pub data: DataTable,
    /// How responses are drawn.
    pub rollout: RolloutTable,
    /// The plugins that score them.
    #[serde(default)]
    pub reward: Vec<RewardTable>,
    /// The language models that plugins may be granted, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub chat: BTreeMap<String, ChatEndpoint>,
    /// The programs that plugins may be granted, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub exec: BTreeMap<String, ExecTable>,
    /// What each of their calls may use.
    #[serde(default)]
    pub limits: LimitsTable,
    /// When which policy is trained on what.
    #[serde(default)]
    pub schedule: ScheduleTable,
    /// How it learns.
    pub train: T,
    /// What is kept of it.
    #[serde(default)]
    pub checkpoint: CheckpointTable,
    /// Where the run is recorded.
    #[serde(default)]
    pub log: LogTable,
    /// Which part gets how much of the machine.
    #[serde(default)]
    pub resources: ResourcesTable,
}

/// What a run may be resumed with another value of: plugins and their limits are
/// compared as they were loaded, which the run keeps, and a run that was out of
/// memory may continue with less of it.
pub(crate) const MAY_DIFFER: [&str; 11] = [
    "train.steps",
    "train.max_steps_without_update",
    "schedule.watchdog",
    "train.max_tokens_per_micro_batch",
    "train.gradient_checkpointing",
    "rollout.max_batch",
    "rollout.cache_memory",
    "reward",
    "limits",
    "log",
    "resources",
];

impl<T: Serialize> Config<T> {
    /// The configuration with every default, as TOML.
    pub(crate) fn resolved(&self) -> Result<String, ConfigError> {
        toml::to_string(self)
            .map_err(|error| ConfigError::Invalid(format!("the configuration cannot be written down: {error}")))
    }
}

impl<T: TrainTable + Serialize + DeserializeOwned> Config<T> {
    /// The configuration `written` with every default, also those of keys that are newer than it.
    pub(crate) fn with_defaults(written: toml::Table) -> toml::Table {
        let complete = |mut config: Self| {
            config.train.complete(config.schedule.max_staleness);
            toml::Table::try_from(config).ok()
        };
        // What is no configuration is compared as it stands.
        written.clone().try_into().ok().and_then(complete).unwrap_or(written)
    }
}

impl<T: TrainTable> Config<T> {
    /// Refuses what no run could mean, naming the key.
    pub fn validate(&self) -> Result<(), ConfigError> {
        if T::LEARNS {
            self.model.validate()?;
        }
        if T::LEARNS && self.model.dtype == Dtype::Float16 {
            return Err(ConfigError::Invalid(
                "model.dtype = \"float16\" is for `gavel eval`: small gradients are 0 in it\nhint: train in \"bfloat16\" or \"float32\"".into(),
            ));
        }
        self.data.validate(T::LEARNS)?;
        self.rollout.validate()?;
        self.limits.validate("limits")?;
        for (name, endpoint) in &self.chat {
            endpoint.check().map_err(|what| ConfigError::Invalid(format!("chat.{name}.{what}")))?;
        }
        for (name, table) in &self.exec {
            table.limits.validate(&format!("exec.{name}.limits"))?;
        }
        for reward in &self.reward {
            reward.validate()?;
        }
        for (at, reward) in self.reward.iter().enumerate() {
            if self.reward[..at].iter().any(|other| other.name == reward.name) {
                return Err(ConfigError::Invalid(format!(
                    "two rewards are named `{}`\nhint: give each [[reward]] a name of its own",
                    reward.name
                )));
            }
        }
        if let Some(name) = &self.data.accuracy
            && !self.reward.iter().any(|reward| reward.name == *name)
        {
            return Err(ConfigError::value("data.accuracy", "the name of a [[reward]]", name));
        }
        self.schedule.validate()?;
        if T::LEARNS && !T::DRAWS && self.schedule != ScheduleTable::default() {
            return Err(ConfigError::Invalid(
                "[schedule] is for `gavel train`: `gavel sft` draws nothing to learn from".into(),
            ));
        }
        self.train.validate()?;
        self.checkpoint.validate()?;
        self.log.validate()?;
        self.resources.validate()
    }

    /// Puts folders and files in place of the names on the hub that are used: a run keeps the revision that it began with.
    pub(super) fn find_on_hub(&mut self) -> Result<(), ConfigError> {
        if T::LEARNS {
            self.model.find_on_hub()?;
            self.data.train.find_on_hub()?;
        }
        self.data.validation.iter_mut().try_for_each(Datasets::find_on_hub)
    }

    /// The reward that says whether an answer is right: `data.accuracy`, else
    /// the first.
    pub fn accuracy_reward(&self) -> Option<&str> {
        self.data.accuracy.as_deref().or(self.reward.first().map(|reward| reward.name.as_str()))
    }
}
