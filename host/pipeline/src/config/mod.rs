//! A run's configuration: TOML, read and checked. Unknown keys and values out of range are errors.

mod agent;
mod algorithm;
mod checks;
mod dataset;
mod datasets;
mod error;
mod learning;
mod load;
mod loading;
mod pairs;
mod reward;
mod reward_endpoint;
mod reward_model;
mod reward_steps;
mod run_config;
mod schedule;
mod service;
mod set;
mod tables;
mod train;
mod train_table;
mod unknown_key;

pub use agent::{AgentKind, AgentTable, RewardTo, ToolTable, WeighBy};
pub use algorithm::{AdvantageTable, ReferenceTable};
pub use dataset::{Dataset, Taskset};
pub use datasets::{DatasetTable, Datasets};
pub use error::ConfigError;
pub use learning::LearningConfig;

pub use load::load;
pub use loading::LoadingTable;
pub use pairs::{DpoTable, RewardModelTrainTable};
pub use reward::{RewardTable, ServiceBatch};
pub(crate) use reward_endpoint::RewardEndpointConfig;
pub use reward_endpoint::RewardProtocol;
pub(crate) use reward_model::RewardModelSource;
pub use reward_model::RewardModelTable;
pub use reward_steps::{EachStep, StepsScoreName, StepsTable};
pub use run_config::Config;
pub(crate) use run_config::MAY_DIFFER;
pub use schedule::ScheduleTable;
pub use tables::{CheckpointTable, DataTable, LogTable, ModelTable, Overlong, ResourcesTable, RolloutTable};
pub use train::{FilterGroups, OnOutcome, RlTable, SftTable, Turns};
pub use train_table::{ModelKind, TrainTable};
