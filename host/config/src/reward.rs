//! `[[reward]]`: a plugin and how much it counts.

use crate::error::ConfigError;
use gavel_endpoint::{BaseUrls, OnEndpointDown};
use gavel_plugin::{Grants, LimitsTable, PluginSpec};
use gavel_scoring::{Condition, SourcePattern, WeightedPlugin, When};
use serde::{Deserialize, Serialize};
use std::num::NonZeroU32;
use std::path::PathBuf;

/// `[[reward]]`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RewardTable {
    /// Its name in metrics and logs.
    pub name: String,
    /// The component.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<PathBuf>,
    /// In place of a component: a server that gives verdicts, or several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<BaseUrls>,
    /// What happens while no server answers. By default, requests of `gavel train` wait, and others are unavailable.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_endpoint_down: Option<OnEndpointDown>,
    /// In place of a component: the name of a reward model, `[reward_model.NAME]`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reward_model: Option<String>,
    /// The factor of the reward model's score; 1 by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = 1.0))]
    pub scale: Option<f64>,
    /// The lowest and the highest value of the reward model's score, after `scale`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clip: Option<[f64; 2]>,
    /// For a process reward model: the factor with which the values of steps become credit; no credit by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub credit: Option<f64>,
    /// The environment variable with the key of the server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api_key_env: Option<String>,
    /// Attempts to ask the server after the first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = 3))]
    pub retries: Option<u32>,
    /// The name of the limiter whose turns requests to the server wait for; no limit by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<String>,
    /// What the server is asked at once.
    #[serde(default, skip_serializing_if = "is_sample")]
    #[schemars(extend("default" = "sample"))]
    pub batch: ServiceBatch,
    /// The factor of its score in the reward; 1 by default. With 0, the score is only recorded.
    #[serde(default = "weight")]
    pub weight: f64,
    /// A condition on another reward's score, such as `format > 0`: where it
    /// does not hold, this one is not called and adds 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub only_if: Option<Condition>,
    /// The rewards whose verdicts a judger sees: it is called once they have
    /// answered for all samples of its group.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub after: Vec<String>,
    /// The data sources of the rows that it scores; all by default. `*` stands for any characters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data_sources: Option<Vec<SourcePattern>>,
    /// The parameters of the component's initialisation.
    #[serde(default)]
    pub params: serde_json::Map<String, serde_json::Value>,
    /// How many calls an instance answers; by default, each call has a fresh instance. Only for a plugin that declares
    /// itself pure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reuse: Option<NonZeroU32>,
    /// What its calls may use, where it differs from `[limits]`.
    #[serde(default)]
    pub limits: LimitsTable,
    /// What it may reach beyond its sample; nothing by default.
    #[serde(default)]
    pub grant: Grants,
}

/// What a server is asked at once.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ServiceBatch {
    /// One sample, as soon as it is drawn.
    #[default]
    Sample,
    /// A group, once it is whole.
    Group,
}

fn is_sample(batch: &ServiceBatch) -> bool {
    *batch == ServiceBatch::Sample
}

fn weight() -> f64 {
    1.0
}

impl RewardTable {
    /// The reward that stands for a reward model, with its name.
    pub fn of_model(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            path: None,
            url: None,
            on_endpoint_down: None,
            reward_model: Some(name.to_owned()),
            scale: None,
            clip: None,
            credit: None,
            api_key_env: None,
            retries: None,
            limit: None,
            batch: ServiceBatch::Sample,
            weight: weight(),
            only_if: None,
            after: Vec::new(),
            data_sources: None,
            params: serde_json::Map::new(),
            reuse: None,
            limits: LimitsTable::default(),
            grant: Grants::default(),
        }
    }

    pub(super) fn validate(&self) -> Result<(), ConfigError> {
        let path_like = |c: char| c == '/' || c.is_whitespace() || c.is_control();
        if self.name.is_empty() || self.name.contains(path_like) {
            return Err(ConfigError::value("reward.name", "a word without `/` (it names metrics)", &self.name));
        }
        let (table, shown) = (format!("reward.{}", self.name), format!("reward `{}`", self.name));
        let key = |name: &str| format!("{table}.{name}");
        if !self.weight.is_finite() {
            return Err(ConfigError::value(&key("weight"), "a finite number", self.weight));
        }
        if let Some(sources) = &self.data_sources
            && (sources.is_empty() || sources.iter().any(|source| source.0.is_empty()))
        {
            let found = format!("{sources:?}");
            return Err(ConfigError::value(&key("data_sources"), "names such as \"openai/gsm8k\" or \"math*\"", found));
        }
        self.check_reward_model()
            .and_then(|()| self.check_service())
            .map_err(|what| ConfigError::about(&table, &shown, what))?;
        self.grant.check().map_err(|error| ConfigError::about(&key("grant"), &shown, error))?;
        Ok(self.limits.validate(&key("limits"))?)
    }

    /// The plugin of the table; `limits` are the limits of all plugins.
    pub fn plugin(&self, limits: &LimitsTable) -> WeightedPlugin {
        let (path, params, grants) = self.component();
        let (name, limits, reuse) = (self.name.clone(), self.limits.over(limits), self.reuse);
        let spec = PluginSpec { name, path, params, limits, reuse, grants };
        let (only_if, after) = (self.only_if.clone(), self.after.clone());
        let when = When { only_if, data_sources: self.data_sources.clone().unwrap_or_default(), after };
        WeightedPlugin { spec, weight: self.weight, when }
    }
}
