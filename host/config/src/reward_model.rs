//! `[reward_model.NAME]`: reward models that rewards ask, and a `[[reward]]` that is such a model.

use crate::error::ConfigError;
use crate::reward::RewardTable;
use crate::reward_endpoint::{RewardEndpointConfig, RewardProtocol};
use crate::reward_steps::StepsTable;
use gavel_data::check_template_kwargs;
use gavel_endpoint::{BaseUrls, OnEndpointDown};
use gavel_policy::Dtype;
use gavel_rollout::{Reading, RewardModelConfig};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// `[reward_model.NAME]`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RewardModelTable {
    /// A folder with a checkpoint, or the name of a model on the hub.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<PathBuf>,
    /// `auto`, `cpu` or `cuda:N`; `auto` by default.
    #[serde(default = "auto")]
    pub device: String,
    /// The dtype of the weights; `float32` by default.
    #[serde(default)]
    pub dtype: Dtype,
    /// A file with the chat template, in place of the checkpoint's template.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chat_template: Option<PathBuf>,
    /// Variables of the chat template, such as `date_string`.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub chat_template_kwargs: Map<String, Value>,
    /// For a language model that is asked a question by its template: the token of a good answer and the token of a bad
    /// answer, such as `["Yes", "No"]`. The score is the probability of the first token, if only the two tokens could
    /// follow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub yes_no: Option<[String; 2]>,
    /// For a process reward model: the steps that it gives values to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub steps: Option<StepsTable>,
    /// The most tokens of a batch; 16384 by default.
    #[serde(default = "max_tokens_per_batch")]
    pub max_tokens_per_batch: usize,
    /// How long the first conversation of a batch waits for others; 5 ms by default.
    #[serde(default = "max_wait", with = "humantime_serde")]
    #[schemars(with = "gavel_data::DurationForm")]
    pub max_wait: Duration,
    /// Whether the weights are in host memory while nothing is scored; not by default.
    #[serde(default)]
    pub sleep: bool,
    /// In a run of several ranks: those that load the model and answer the others. They draw no groups.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ranks: Vec<usize>,
    /// In place of a folder: the address of a server with a classifier, such as `http://127.0.0.1:8000`. A list names
    /// servers with the same model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<BaseUrls>,
    /// What the server speaks; `vllm` by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = "vllm"))]
    pub protocol: Option<RewardProtocol>,
    /// The name of the model at the server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The environment variable with the server's key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api_key_env: Option<String>,
    /// The most requests to the server at the same time; 32 by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = 32))]
    pub concurrency: Option<NonZeroUsize>,
    /// The longest time of one attempt; 60 s by default.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "humantime_serde::option")]
    #[schemars(with = "Option<gavel_data::DurationForm>", extend("default" = "60s"))]
    pub timeout: Option<Duration>,
    /// Attempts after the first, where another may help; 5 by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = 5))]
    pub retries: Option<usize>,
    /// The longest time of all attempts and the pauses between them; 5 min by default.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "humantime_serde::option")]
    #[schemars(with = "Option<gavel_data::DurationForm>", extend("default" = "5m"))]
    pub deadline: Option<Duration>,
    /// What happens while no server answers. By default, requests of `gavel train` wait, and others are unavailable.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_endpoint_down: Option<OnEndpointDown>,
}

/// Where a reward model is.
pub enum RewardModelSource<'a> {
    /// In a folder.
    Folder(&'a Path),
    /// At a server.
    Endpoint(RewardEndpointConfig),
}

fn auto() -> String {
    "auto".into()
}

fn max_tokens_per_batch() -> usize {
    RewardModelConfig::default().max_tokens_per_batch
}

fn max_wait() -> Duration {
    RewardModelConfig::default().max_wait
}

impl RewardModelTable {
    /// The model in a folder, with every default.
    pub fn of(path: PathBuf) -> Self {
        Self { path: Some(path), ..Self::nowhere() }
    }

    /// The model of a server, with every default.
    pub fn of_url(url: String) -> Self {
        Self { url: Some(BaseUrls::One(url)), ..Self::nowhere() }
    }

    fn nowhere() -> Self {
        Self {
            path: None,
            device: auto(),
            dtype: Dtype::default(),
            chat_template: None,
            chat_template_kwargs: Map::new(),
            yes_no: None,
            steps: None,
            max_tokens_per_batch: max_tokens_per_batch(),
            max_wait: max_wait(),
            sleep: false,
            ranks: Vec::new(),
            url: None,
            protocol: None,
            model: None,
            api_key_env: None,
            concurrency: None,
            timeout: None,
            retries: None,
            deadline: None,
            on_endpoint_down: None,
        }
    }

    /// Checks what can be checked without files and servers.
    ///
    /// # Errors
    /// A key has a wrong value, or does not go with another.
    pub fn validate(&self, name: &str) -> Result<(), ConfigError> {
        let key = |key: &str| format!("reward_model.{name}.{key}");
        let table = format!("reward_model.{name}");
        let wrong = |what: &str| Err(ConfigError::about(&table, &table, what));
        match (&self.path, &self.url) {
            (None, None) => {
                return wrong("it has neither path nor url\nhint: name a folder with path, or a server with url");
            }
            (Some(_), Some(_)) => return wrong("it has both path and url\nhint: leave one of them out"),
            (Some(_), None) => {
                if let Some(of_server) = self.set_for_server() {
                    return wrong(&format!("{of_server} is for a reward model with url"));
                }
                self.check_ranks().map_err(|what| ConfigError::in_table(&table, &what))?;
            }
            (None, Some(_)) => {
                let (chat_template, chat_template_kwargs) = (None, Map::new());
                let of_path = Self { url: None, chat_template, chat_template_kwargs, ..self.without_server() };
                if of_path != Self::nowhere() {
                    return wrong(
                        "device, dtype, yes_no, steps, max_tokens_per_batch, max_wait, sleep and ranks are for a reward model with path: the server has its own",
                    );
                }
                let checked = self.endpoint().map_or(Ok(()), |endpoint| {
                    endpoint.check(self.chat_template.is_some(), &self.chat_template_kwargs)
                });
                return checked.map_err(|what| ConfigError::in_table(&table, &what));
            }
        }
        check_template_kwargs(&self.chat_template_kwargs)
            .map_err(|what| ConfigError::of(&key("chat_template_kwargs"), what))?;
        if self.max_tokens_per_batch == 0 {
            return Err(ConfigError::value(&key("max_tokens_per_batch"), "at least 1", 0));
        }
        if let Some(steps) = &self.steps {
            steps.check().map_err(|what| ConfigError::in_table(&key("steps"), &what))?;
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

    /// A key that is set, but belongs only to a model at a server. A model on ranks of its own is asked like one.
    fn set_for_server(&self) -> Option<&'static str> {
        let set = [
            ("protocol", self.protocol.is_some()),
            ("model", self.model.is_some()),
            ("api_key_env", self.api_key_env.is_some()),
        ];
        let of_requests = [
            ("concurrency", self.concurrency.is_some()),
            ("timeout", self.timeout.is_some()),
            ("retries", self.retries.is_some()),
            ("deadline", self.deadline.is_some()),
            ("on_endpoint_down", self.on_endpoint_down.is_some()),
        ];
        let of_requests = of_requests.into_iter().filter(|_| self.ranks.is_empty());
        set.into_iter().chain(of_requests).find(|(_, is_set)| *is_set).map(|(key, _)| key)
    }

    /// Checks `ranks` and what goes with it.
    ///
    /// # Errors
    /// The key that is wrong, and why.
    fn check_ranks(&self) -> Result<(), String> {
        if self.ranks.is_empty() {
            return Ok(());
        }
        let twice = self.ranks.iter().enumerate().find(|(at, rank)| self.ranks[..*at].contains(rank));
        if let Some((_, rank)) = twice {
            return Err(format!("ranks: rank {rank} is named twice"));
        }
        if self.steps.is_some() {
            return Err("steps: a process reward model is loaded by each rank\nhint: leave ranks out".into());
        }
        self.endpoint_at(BaseUrls::One("http://127.0.0.1".into())).check(false, &Map::new())
    }

    /// The model at the addresses of the ranks that have it. The run ends with a rank that is gone: until then, requests
    /// wait for it rather than fail.
    pub fn on_ranks(&self, urls: Vec<String>) -> RewardEndpointConfig {
        let asked = self.endpoint_at(BaseUrls::Several(urls));
        RewardEndpointConfig {
            timeout: self.timeout.unwrap_or(asked.deadline),
            on_endpoint_down: self.on_endpoint_down.unwrap_or(OnEndpointDown::Pause),
            is_direct: true,
            ..asked
        }
    }

    fn without_server(&self) -> Self {
        Self {
            protocol: None,
            model: None,
            api_key_env: None,
            concurrency: None,
            timeout: None,
            retries: None,
            deadline: None,
            on_endpoint_down: None,
            ..self.clone()
        }
    }

    /// Replaces the name of a model on the hub with its folder.
    ///
    /// # Errors
    /// There is no such model, or it cannot be downloaded.
    pub fn find_on_hub(&mut self, name: &str) -> Result<(), ConfigError> {
        let Some(path) = &self.path else { return Ok(()) };
        let found = gavel_hub::model(path);
        let found = found.map_err(|error| ConfigError::of(&format!("reward_model.{name}.path"), error))?;
        self.path = Some(found.into_owned());
        Ok(())
    }

    /// Where the model is.
    pub fn source(&self) -> RewardModelSource<'_> {
        match self.endpoint() {
            Some(endpoint) => RewardModelSource::Endpoint(endpoint),
            // `validate` has checked that there is a path.
            None => RewardModelSource::Folder(self.path.as_deref().unwrap_or(Path::new(""))),
        }
    }

    fn endpoint(&self) -> Option<RewardEndpointConfig> {
        Some(self.endpoint_at(self.url.clone()?))
    }

    fn endpoint_at(&self, url: BaseUrls) -> RewardEndpointConfig {
        let default = RewardEndpointConfig::of(url);
        RewardEndpointConfig {
            protocol: self.protocol.unwrap_or(default.protocol),
            model: self.model.clone(),
            api_key_env: self.api_key_env.clone(),
            concurrency: self.concurrency.unwrap_or(default.concurrency),
            timeout: self.timeout.unwrap_or(default.timeout),
            retries: self.retries.unwrap_or(default.retries),
            deadline: self.deadline.unwrap_or(default.deadline),
            on_endpoint_down: self.on_endpoint_down.unwrap_or_default(),
            ..default
        }
    }

    /// How conversations are batched, and how the head is read.
    pub fn batching(&self) -> RewardModelConfig {
        let reading = match &self.yes_no {
            None => Reading::Scores,
            Some([yes, no]) => Reading::YesNo { yes: yes.clone(), no: no.clone() },
        };
        let (max_tokens_per_batch, max_wait, sleep) = (self.max_tokens_per_batch, self.max_wait, self.sleep);
        let steps = self.steps.as_ref().map(StepsTable::validated);
        RewardModelConfig { reading, steps, max_tokens_per_batch, max_wait, sleep }
    }
}

impl RewardTable {
    /// Refuses keys that a reward model does not have, or that only a reward model has.
    pub(super) fn check_reward_model(&self) -> Result<(), &'static str> {
        let is_set = self.scale.is_some() || self.clip.is_some() || self.credit.is_some();
        match &self.reward_model {
            None if is_set => Err("scale, clip and credit are for a reward with reward_model"),
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
        params.extend(self.credit.map(|credit| ("credit".to_owned(), json!(credit))));
        params
    }
}
