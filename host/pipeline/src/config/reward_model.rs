//! `[reward_model.NAME]`: reward models that rewards ask, and a `[[reward]]` that is such a model.

use super::error::ConfigError;
use super::reward::RewardTable;
use crate::hub;
use gavel_policy::Dtype;
use gavel_rollout::{Reading, RewardModelConfig};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::path::PathBuf;
use std::time::Duration;

/// `[reward_model.NAME]`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RewardModelTable {
    /// A folder with a checkpoint, or the name of a model on the hub.
    pub path: PathBuf,
    /// `auto`, `cpu` or `cuda:N`; `auto` by default.
    #[serde(default = "auto")]
    pub device: String,
    /// The dtype of the weights; `float32` by default.
    #[serde(default)]
    pub dtype: Dtype,
    /// A file with the chat template, in place of that of the checkpoint.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chat_template: Option<PathBuf>,
    /// For a language model that is asked a question by its template: the token of a good answer and that of a bad
    /// one, such as `["Yes", "No"]`. The score is the probability of the first among the two.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub yes_no: Option<[String; 2]>,
    /// The most tokens of a batch; 16384 by default.
    #[serde(default = "max_tokens_per_batch")]
    pub max_tokens_per_batch: usize,
    /// How long the first conversation of a batch waits for others; 5 ms by default.
    #[serde(default = "max_wait", with = "humantime_serde")]
    pub max_wait: Duration,
}

fn auto() -> String {
    "auto".into()
}

fn max_tokens_per_batch() -> usize {
    16_384
}

fn max_wait() -> Duration {
    Duration::from_millis(5)
}

impl RewardModelTable {
    /// The model in a folder, with every default.
    pub fn of(path: PathBuf) -> Self {
        Self {
            path,
            device: auto(),
            dtype: Dtype::default(),
            chat_template: None,
            yes_no: None,
            max_tokens_per_batch: max_tokens_per_batch(),
            max_wait: max_wait(),
        }
    }

    pub(super) fn validate(&self, name: &str) -> Result<(), ConfigError> {
        let key = |key: &str| format!("reward_model.{name}.{key}");
        if self.max_tokens_per_batch == 0 {
            return Err(ConfigError::value(&key("max_tokens_per_batch"), "at least 1", 0));
        }
        match &self.yes_no {
            Some([yes, no]) if yes == no || yes.is_empty() || no.is_empty() => Err(ConfigError::value(
                &key("yes_no"),
                "two different texts, such as [\"Yes\", \"No\"]",
                format!("{:?}", [yes, no]),
            )),
            _ => Ok(()),
        }
    }

    pub(super) fn find_on_hub(&mut self, name: &str) -> Result<(), ConfigError> {
        let found = hub::model(&self.path);
        self.path =
            found.map_err(|error| ConfigError::Invalid(format!("reward_model.{name}.path: {error}")))?.into_owned();
        Ok(())
    }

    pub(crate) fn batching(&self) -> RewardModelConfig {
        let reading = match &self.yes_no {
            None => Reading::Scores,
            Some([yes, no]) => Reading::YesNo { yes: yes.clone(), no: no.clone() },
        };
        let (max_tokens_per_batch, max_wait) = (self.max_tokens_per_batch, self.max_wait);
        RewardModelConfig { reading, max_tokens_per_batch, max_wait }
    }
}

impl RewardTable {
    /// Refuses what does not go with a reward model, or only with one.
    pub(super) fn check_reward_model(&self) -> Result<(), &'static str> {
        let is_set = self.scale.is_some() || self.clip.is_some();
        match &self.reward_model {
            None if is_set => Err("scale and clip are for a reward with reward_model"),
            None => Ok(()),
            Some(_) if self.path.is_some() || self.url.is_some() => Err(
                "only one of path, url and reward_model can say what it is\nhint: a component asks a model that its grant names: grant = { reward_model = [\"NAME\"] }",
            ),
            Some(_) if !self.params.is_empty() || self.reuse.is_some() => {
                Err("params and reuse are for a component, not for a reward with reward_model")
            }
            Some(_) => Ok(()),
        }
    }

    /// The parameters of the standard plugin that asks `model`.
    pub(super) fn reward_model_params(&self, model: &str) -> Map<String, Value> {
        let mut params = Map::from_iter([("model".to_owned(), json!(model))]);
        params.extend(self.scale.map(|scale| ("scale".to_owned(), json!(scale))));
        params.extend(self.clip.map(|clip| ("clip".to_owned(), json!(clip))));
        params
    }
}
