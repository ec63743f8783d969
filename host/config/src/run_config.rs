//! All tables of a run together.

use crate::agent::{AgentTable, ToolTable};
use crate::agents::AgentTables;
use crate::budget::BudgetTable;
use crate::checks::{check_distinct, check_numbers};
use crate::datasets::Datasets;
use crate::error::ConfigError;
use crate::gateway::GatewayTable;
use crate::plugin::{PluginName, PluginTable};
use crate::ranks::RanksTable;
use crate::reward::RewardTable;
use crate::reward_model::RewardModelTable;
use crate::schedule::ScheduleTable;
use crate::tables::{CheckpointTable, DataTable, LogTable, ModelTable, ResourcesTable, RolloutTable};
use crate::train_table::TrainTable;
use crate::validation::ValidationTable;
use gavel_endpoint::{LimiterTable, OnEndpointDown};
use gavel_plugin::{Grants, LimitsTable, PluginSpec};
use gavel_policy::Dtype;
use gavel_runs::is_within;
use gavel_scoring::ExecTable;
use gavel_scoring::chat::ChatEndpoint;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The tables of a run; `T` is `[train]`: [`RlTable`](crate::RlTable) for `gavel train`,
/// [`SftTable`](crate::SftTable) for `gavel sft`, [`RewardModelTrainTable`](crate::RewardModelTrainTable) for `gavel
/// reward-model`, [`DpoTable`](crate::DpoTable) for `gavel dpo`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config<T> {
    /// Every random choice of the run follows from it; 0 by default.
    #[serde(default)]
    pub seed: u64,
    /// The policy to start from.
    pub model: ModelTable,
    /// The datasets to learn from and to validate with.
    pub data: DataTable,
    /// How responses are drawn.
    pub rollout: RolloutTable,
    /// How answers are drawn in validation, where this differs from training.
    #[serde(default, skip_serializing_if = "ValidationTable::is_default")]
    pub validation: ValidationTable,
    /// How a sample is made: with one turn, with tools, or by an agent; one table, or several of which each row has one.
    #[serde(default, skip_serializing_if = "AgentTables::are_default")]
    pub agent: AgentTables,
    /// Where agents that are programs ask the policy.
    #[serde(default, skip_serializing_if = "GatewayTable::is_default")]
    pub gateway: GatewayTable,
    /// The tools that the policy may call.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tool: Vec<ToolTable>,
    /// The plugins that score them.
    #[serde(default)]
    pub reward: Vec<RewardTable>,
    /// Components that take the place of built-in parts of the run, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub plugin: BTreeMap<String, PluginTable>,
    /// The language models that plugins may be granted, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub chat: BTreeMap<String, ChatEndpoint>,
    /// Limits that endpoints, rewards and tools name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub limiter: BTreeMap<String, LimiterTable>,
    /// What may be spent at endpoints.
    #[serde(default, skip_serializing_if = "BudgetTable::is_default")]
    pub budget: BudgetTable,
    /// The reward models that plugins may be granted, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub reward_model: BTreeMap<String, RewardModelTable>,
    /// The programs that plugins may be granted, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub exec: BTreeMap<String, ExecTable>,
    /// What each call of a plugin may use.
    #[serde(default)]
    pub limits: LimitsTable,
    /// When an update starts, and how old its data may be.
    #[serde(default)]
    pub schedule: ScheduleTable,
    /// How several processes share the work.
    #[serde(default, skip_serializing_if = "RanksTable::is_default")]
    pub ranks: RanksTable,
    /// How the policy learns.
    pub train: T,
    /// Which checkpoints are saved and kept.
    #[serde(default)]
    pub checkpoint: CheckpointTable,
    /// Where the run is recorded.
    #[serde(default)]
    pub log: LogTable,
    /// How much of the machine libtorch and plugins get.
    #[serde(default)]
    pub resources: ResourcesTable,
    /// The keys that `--set` changed.
    #[serde(skip)]
    pub set_keys: Vec<String>,
}

/// The keys that may change when a run is resumed. Plugins and their limits are compared as they were loaded, which the
/// run records. A run that ran out of memory may continue with settings that need less.
const MAY_DIFFER: [&str; 23] = [
    "train.steps",
    "train.epochs",
    "train.max_steps_without_update",
    "train.max_pause",
    "schedule.watchdog",
    "schedule.checkpoint_groups",
    "train.max_tokens_per_micro_batch",
    "train.gradient_checkpointing",
    "rollout.max_batch",
    "rollout.cache_memory",
    "rollout.engine",
    "rollout.speculative_config",
    "reward",
    "plugin",
    "chat",
    "budget",
    "limiter",
    "limits",
    "log",
    "gateway",
    "ranks",
    "reward_model.*.ranks",
    "resources",
];

/// The keys that `--set` may change when a run is resumed: what was learned and recorded so far stays right. A file that
/// was edited may belong to another run, so it does not change them.
const MAY_BE_SET: [&str; 11] = [
    "train.learning_rate",
    "train.warmup_steps",
    "train.schedule",
    "train.min_lr_ratio",
    "train.critic.learning_rate",
    "train.critic.warmup_steps",
    "train.validate_every",
    "train.max_failure_rate",
    "train.stop_accuracy",
    "checkpoint",
    "validation",
];

impl<T> Config<T> {
    /// The keys, and the tables with all in them, that may differ from a run that is resumed.
    pub fn may_differ(&self) -> Vec<&str> {
        let may_be_set = |key: &&String| MAY_BE_SET.iter().any(|free| is_within(key, free));
        MAY_DIFFER.into_iter().chain(self.set_keys.iter().filter(may_be_set).map(String::as_str)).collect()
    }
}

impl<T: Serialize> Config<T> {
    /// The configuration with every default, as TOML.
    pub fn resolved(&self) -> Result<String, ConfigError> {
        toml::to_string(self)
            .map_err(|error| ConfigError::invalid("", format!("cannot write the configuration as TOML: {error}")))
    }
}

impl<T: TrainTable + Serialize + DeserializeOwned> Config<T> {
    /// The configuration `written` with every default, also of keys that did not exist when it was written.
    pub fn with_defaults(written: toml::Table) -> toml::Table {
        let complete = |mut config: Self| {
            config.complete();
            toml::Table::try_from(config).ok()
        };
        // A table that is not a configuration is compared unchanged.
        written.clone().try_into().ok().and_then(complete).unwrap_or(written)
    }
}

impl<T: TrainTable> Config<T> {
    /// Fills in the defaults that do not belong to a single key, so that a written configuration has every value.
    pub(super) fn complete(&mut self) {
        self.limits = self.limits.complete();
        self.train.complete(self.schedule.max_staleness);
        self.train.follow_rollout(&self.rollout);
        if T::DRAWS {
            self.wait_for_endpoints();
        }
    }

    /// Lets requests to servers that are down wait, unless the configuration asks for something else.
    fn wait_for_endpoints(&mut self) {
        let chat = self.chat.values_mut().map(|table| &mut table.on_endpoint_down);
        let rewards = self.reward.iter_mut().filter(|table| table.url.is_some());
        let rewards = rewards.map(|table| &mut table.on_endpoint_down);
        let models = self.reward_model.values_mut().filter(|table| table.url.is_some());
        let models = models.map(|table| &mut table.on_endpoint_down);
        for on_endpoint_down in chat.chain(rewards).chain(models) {
            on_endpoint_down.get_or_insert(OnEndpointDown::Pause);
        }
    }

    /// Refuses values out of range and keys that do not fit together, naming the key.
    pub fn validate(&self) -> Result<(), ConfigError> {
        self.check_json()?;
        if T::LEARNS {
            self.model.validate()?;
        }
        if T::LEARNS && self.model.dtype == Dtype::Float16 {
            return Err(ConfigError::invalid(
                "model.dtype",
                "model.dtype = \"float16\" is for `gavel eval` only: small gradients are 0 in it\nhint: train in \"bfloat16\" or \"float32\"",
            ));
        }
        if let Some(command) = T::WITHOUT_ANSWERS {
            self.check_without_answers(command)?;
        }
        if let Some(name) = self.train.reference().and_then(|reference| reference.chat.as_ref()) {
            if !self.chat.contains_key(name) {
                return Err(ConfigError::invalid(
                    "train.reference.chat",
                    format!(
                        "train.reference.chat: there is no [chat.{name}]\nhint: add that table, with the address and the model"
                    ),
                ));
            }
            if self.rollout.temperature != 1.0 {
                return Err(ConfigError::value(
                    "rollout.temperature",
                    "1 with train.reference.chat: a server reports log-probabilities at this temperature",
                    self.rollout.temperature,
                ));
            }
        }
        if let Some(critic) = self.train.critic()
            && critic.lora.is_some()
            && critic.path.is_none()
            && self.model.path.is_none()
        {
            return Err(ConfigError::invalid(
                "train.critic.lora",
                "[train.critic.lora] needs `train.critic.path` or `model.path`: an adapter is for a checkpoint",
            ));
        }
        self.data.validate(T::LEARNS)?;
        self.rollout.validate()?;
        if self.rollout.engine.is_some() && self.model.lora.is_some() {
            return Err(ConfigError::of(
                "rollout.engine",
                "servers get whole weights, and [model.lora] trains adapters\nhint: leave one of them out",
            ));
        }
        if let Some(engine) = self.rollout.engine.as_ref().filter(|_| self.train.records_masks(&self.rollout)) {
            let training = self.rollout.sampling(Vec::new());
            let validation = self.validation.sampling(training.clone(), self.data.validation_samples);
            engine.check_masks(&training, &validation)?;
        }
        if let Some(quantization) = self.rollout.quantization.filter(|_| T::DRAWS && !self.train.corrects_rollout()) {
            return Err(ConfigError::of(
                "rollout.quantization",
                format!(
                    "responses are drawn with weights in {quantization}, and training corrects nothing\nhint: set train.off_policy.rollout_is = \"token\", or leave rollout.quantization out"
                ),
            ));
        }
        self.validation.validate(&self.rollout, self.data.validation_samples)?;
        if self.rollout.group_size < self.train.least_group() {
            let must = format!("at least {}", self.train.least_group());
            return Err(ConfigError::value("rollout.group_size", &must, self.rollout.group_size));
        }
        self.agent.validate(&self.tool)?;
        self.gateway.validate()?;
        self.check_programs()?;
        self.tool.iter().try_for_each(ToolTable::validate)?;
        self.limits.validate("limits")?;
        for (name, endpoint) in &self.chat {
            endpoint.check().map_err(|what| ConfigError::in_table(&format!("chat.{name}"), &what))?;
        }
        self.check_limiters()?;
        self.budget.validate(self.chat.values().any(|endpoint| endpoint.price.is_some()))?;
        self.reward_model.iter().try_for_each(|(name, table)| table.validate(name))?;
        for (name, table) in &self.exec {
            table.limits.validate(&format!("exec.{name}.limits"))?;
        }
        for reward in &self.reward {
            reward.validate()?;
        }
        self.check_plugins()?;
        check_distinct("reward", self.reward.iter().map(|reward| reward.name.as_str()))?;
        check_distinct("tool", self.tool.iter().map(|tool| tool.name.as_str()))?;
        if let Some(name) = &self.data.accuracy
            && !self.reward.iter().any(|reward| reward.name == *name)
        {
            return Err(ConfigError::value("data.accuracy", "the name of a [[reward]]", name));
        }
        self.schedule.validate()?;
        if let Some(most) = self.train.max_token_staleness().filter(|most| *most >= self.schedule.max_staleness) {
            let must =
                format!("below schedule.max_staleness = {}, which no token exceeds", self.schedule.max_staleness);
            return Err(ConfigError::value("train.off_policy.max_token_staleness", &must, most));
        }
        self.ranks.validate()?;
        if T::LEARNS && !T::DRAWS {
            let written = [
                ("data.sampler", "data.sampler is", self.data.sampler.is_some()),
                ("schedule", "[schedule] is", self.schedule != ScheduleTable::default()),
                ("ranks", "ranks.share and ranks.groups_at_once are", self.ranks.is_about_groups()),
                ("rollout.engine", "rollout.engine is", self.rollout.engine.is_some()),
            ];
            if let Some((key, what, _)) = written.into_iter().find(|(.., is_written)| *is_written) {
                return Err(ConfigError::invalid(
                    key,
                    format!("{what} for `gavel train`: other commands draw nothing to learn from"),
                ));
            }
        }
        self.train.validate()?;
        self.checkpoint.validate()?;
        self.log.validate()?;
        self.resources.validate()
    }

    /// Refuses settings that do not go together with agents that are programs.
    fn check_programs(&self) -> Result<(), ConfigError> {
        let has_programs = self.agent.iter().any(AgentTable::is_program);
        if !has_programs && !self.gateway.is_default() {
            return Err(ConfigError::invalid(
                "gateway",
                "[gateway] is for agents that are programs, and there is none\nhint: set agent.command or agent.url, or leave [gateway] out",
            ));
        }
        Ok(())
    }

    /// Refuses values that are given on as JSON, and that JSON cannot have.
    fn check_json(&self) -> Result<(), ConfigError> {
        check_numbers("model.chat_template_kwargs", &self.model.chat_template_kwargs)?;
        self.agent.iter().try_for_each(|table| check_numbers(&format!("{}.params", table.key()), &table.params))?;
        self.tool.iter().try_for_each(|table| check_numbers(&format!("tool.{}.params", table.name), &table.params))?;
        self.reward
            .iter()
            .try_for_each(|table| check_numbers(&format!("reward.{}.params", table.name), &table.params))?;
        self.plugin
            .iter()
            .try_for_each(|(name, table)| check_numbers(&format!("plugin.{name}.params"), &table.params))?;
        self.chat
            .iter()
            .try_for_each(|(name, table)| check_numbers(&format!("chat.{name}.options"), &table.options))?;
        self.reward_model.iter().try_for_each(|(name, table)| {
            check_numbers(&format!("reward_model.{name}.chat_template_kwargs"), &table.chat_template_kwargs)
        })
    }

    /// Refuses `[plugin]` tables that are not valid, names without one, and, where the command would use it, a table that
    /// nothing names.
    fn check_plugins(&self) -> Result<(), ConfigError> {
        self.plugin.iter().try_for_each(|(name, table)| table.validate(name))?;
        let sampler = self.data.sampler.as_ref().map(PluginName::as_str);
        let named = [("train.advantage", "advantage", self.train.advantage()), ("data.sampler", "sampler", sampler)];
        for (key, export, name) in named {
            if let Some(name) = name.filter(|name| !self.plugin.contains_key(*name)) {
                let what = format!(
                    "there is no [plugin.{name}]\nhint: add that table, with the path of a component that exports `{export}`"
                );
                return Err(ConfigError::of(key, what));
            }
        }
        let is_named = |plugin: &str| named.iter().any(|(.., name)| *name == Some(plugin));
        match self.plugin.keys().find(|name| T::DRAWS && !is_named(name.as_str())) {
            None => Ok(()),
            Some(name) => Err(ConfigError::invalid(
                format!("plugin.{name}"),
                format!(
                    "nothing names [plugin.{name}]\nhint: set train.advantage = \"plugin:{name}\" or data.sampler = \"plugin:{name}\", or leave it out"
                ),
            )),
        }
    }

    /// The plugin that draws tasks, if there is one.
    pub fn sampler(&self) -> Option<PluginSpec> {
        let name = self.data.sampler.as_ref()?.as_str();
        Some(self.plugin.get(name)?.plugin(name, &self.limits))
    }

    /// The plugin that turns rewards into advantages, if there is one.
    pub fn advantage(&self) -> Option<PluginSpec> {
        let name = self.train.advantage()?;
        Some(self.plugin.get(name)?.plugin(name, &self.limits))
    }

    /// Refuses limiters with values out of range, and names of limiters that do not exist.
    fn check_limiters(&self) -> Result<(), ConfigError> {
        for (name, table) in &self.limiter {
            table.check().map_err(|what| ConfigError::in_table(&format!("limiter.{name}"), &what))?;
        }
        let of_grant = |whose: String, grant: &Grants| (format!("{whose}.grant.limit"), grant.limit.clone());
        let chat = self.chat.iter().map(|(name, table)| (format!("chat.{name}.limit"), table.limit.clone()));
        let rewards = self.reward.iter().flat_map(|reward| {
            let whose = format!("reward.{}", reward.name);
            [(format!("{whose}.limit"), reward.limit.clone()), of_grant(whose, &reward.grant)]
        });
        let tools = self.tool.iter().flat_map(|tool| {
            let whose = format!("tool.{}", tool.name);
            [(format!("{whose}.limit"), tool.limit.clone()), of_grant(whose, &tool.grant)]
        });
        let agents = self.agent.iter().map(|agent| of_grant(agent.key(), &agent.grant));
        for (key, limit) in chat.chain(rewards).chain(tools).chain(agents) {
            if let Some(name) = limit.filter(|name| !self.limiter.contains_key(name)) {
                let what = format!(
                    "{key}: there is no limiter `{name}`\nhint: add [limiter.{name}], such as requests_per_second = 10"
                );
                return Err(ConfigError::invalid(key, what));
            }
        }
        Ok(())
    }

    /// Replaces names on the hub by local folders and files, so that a run keeps the revisions that it began with.
    pub(super) fn find_on_hub(&mut self) -> Result<(), ConfigError> {
        if T::LEARNS {
            self.model.find_on_hub()?;
            self.data.train.find_on_hub()?;
            self.train.find_on_hub()?;
        }
        self.reward_model.iter_mut().try_for_each(|(name, table)| table.find_on_hub(name))?;
        self.data.validation.iter_mut().try_for_each(Datasets::find_on_hub)
    }

    /// The reward that decides whether an answer is right: `data.accuracy`, else the first.
    pub fn accuracy_reward(&self) -> Option<&str> {
        self.data.accuracy.as_deref().or(self.reward.first().map(|reward| reward.name.as_str()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::RlTable;

    /// A configuration that asks servers, with its defaults.
    fn completed<T: TrainTable + DeserializeOwned>() -> Config<T> {
        let text = r#"
            model.path = "model"
            data.train = "rows.jsonl"
            rollout.max_tokens = 8
            chat.judge = { base_url = "http://a", model = "m" }
            chat.own = { base_url = "http://a", model = "m", on_endpoint_down = "stop" }
            reward_model.served.url = "http://a"
            reward_model.loaded.path = "model"
            reward = [{ name = "lean", url = "http://a" }, { name = "format", path = "format.wasm" }]
            train = { steps = 1, prompts_per_step = 1, learning_rate = 1e-3 }
        "#;
        let mut config: Config<T> = toml::from_str(text).unwrap();
        config.complete();
        config.validate().unwrap();
        config
    }

    #[test]
    fn responses_in_fewer_bits_need_a_correction() {
        let checked = |train: &str, more: &str| {
            let text = format!(
                "model.path = \"model\"\ndata.train = \"rows.jsonl\"\nrollout = {{ max_tokens = 8, quantization = \"int8\" }}\n\
                 train = {{ steps = 1, prompts_per_step = 1, learning_rate = 1e-3{train} }}\n{more}"
            );
            let mut config: Config<RlTable> = toml::from_str(&text).unwrap();
            config.complete();
            config.validate().map_err(|error| error.to_string())
        };
        for train in ["", ", off_policy.sampling_mask = true", ", off_policy.rollout_is = 'none'"] {
            let error = checked(train, "").unwrap_err();
            let says = "rollout.quantization: responses are drawn with weights in int8, and training corrects nothing\nhint: set train.off_policy.rollout_is = \"token\"";
            assert!(error.starts_with(says), "{train}: {error}");
        }
        for train in [
            ", off_policy = {}",
            ", off_policy.rollout_is = 'sequence'",
            ", off_policy = { rollout_is = 'none', rollout_rs = 'token_k1' }",
            ", loss.old_logprobs = 'rollout'",
        ] {
            assert_eq!(checked(train, ""), Ok(()), "{train}");
        }
        // A run that may be off-policy corrects by default.
        assert_eq!(checked("", "schedule.max_staleness = 1"), Ok(()));
        // Nothing is learned from what is evaluated.
        let text = "model.path = \"model\"\ndata.train = \"rows.jsonl\"\nrollout = { max_tokens = 8, quantization = \"int8\" }\ntrain = {}";
        toml::from_str::<Config<toml::Table>>(text).unwrap().validate().unwrap();
        let error = toml::from_str::<Config<toml::Table>>(&text.replace("int8", "int4")).unwrap_err().to_string();
        assert!(error.contains("unknown variant `int4`, expected `int8` or `fp8`"), "{error}");
    }

    fn on_endpoint_down<T>(config: &Config<T>) -> [Option<OnEndpointDown>; 6] {
        let chat = ["judge", "own"].map(|name| config.chat[name].on_endpoint_down);
        let models = ["served", "loaded"].map(|name| config.reward_model[name].on_endpoint_down);
        let rewards = [0, 1].map(|index| config.reward[index].on_endpoint_down);
        [chat[0], chat[1], models[0], models[1], rewards[0], rewards[1]]
    }

    #[test]
    fn only_a_run_that_draws_waits_for_servers_by_default() {
        use OnEndpointDown::{Pause, Stop};
        let run = completed::<RlTable>();
        assert_eq!(on_endpoint_down(&run), [Some(Pause), Some(Stop), Some(Pause), None, Some(Pause), None]);
        assert_eq!(run.train.max_pause(), Some(std::time::Duration::from_secs(1800)));
        let other = completed::<toml::Table>();
        assert_eq!(on_endpoint_down(&other), [None, Some(Stop), None, None, None, None]);
        assert_eq!(other.train.max_pause(), None);
    }

    #[test]
    fn the_page_lists_what_may_differ() {
        let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/configuration.md");
        let page = std::fs::read_to_string(page).unwrap();
        let line = page.lines().find(|line| line.contains("These keys may differ: ")).unwrap();
        let (differ, set) = line.split_once("`--set` beside").unwrap();
        for key in MAY_DIFFER {
            let table = format!("`[{key}]`");
            let list = format!("`[[{key}]]`");
            let last = key.rsplit('.').next().unwrap();
            let written = [format!("`{key}`"), table, list, format!("`{last}` of `[reward_model.NAME]`")];
            assert!(written.iter().any(|written| differ.contains(written.as_str())), "{key}");
        }
        for key in MAY_BE_SET {
            let last = key.rsplit('.').next().unwrap();
            let is_there = set.contains(&format!("`{last}`"))
                || set.contains(&format!("`{key}`"))
                || set.contains(&format!("`[{key}]`"));
            assert!(is_there, "{key}");
        }
    }

    #[test]
    fn a_plugin_is_declared_and_named() {
        let config = |advantage: &str, plugin: &str| -> Config<RlTable> {
            let text = format!(
                "model.path = \"model\"\ndata.train = \"rows.jsonl\"\nrollout.max_tokens = 8\nlimits.output = \"1MB\"\n\
                 train = {{ steps = 1, prompts_per_step = 1, learning_rate = 1e-3{advantage} }}\n{plugin}"
            );
            toml::from_str(&text).unwrap()
        };
        let own = "[plugin.own]\npath = \"own.wasm\"\nparams = { scale = 2 }\nlimits = { cpu = \"7s\" }";
        let named = ", advantage = \"plugin:own\"";
        let declared = config(named, own);
        declared.validate().unwrap();
        let spec = declared.advantage().unwrap();
        assert_eq!(
            (spec.name.as_str(), spec.path.to_str(), spec.params["scale"].as_u64()),
            ("own", Some("own.wasm"), Some(2))
        );
        assert_eq!((spec.limits.cpu.as_secs(), spec.limits.output, spec.grants), (7, 1_000_000, Grants::default()));
        let error = |advantage: &str, plugin: &str| config(advantage, plugin).validate().unwrap_err().to_string();
        assert!(error(named, "").starts_with("train.advantage: there is no [plugin.own]\nhint: add that table"));
        assert!(error("", own).starts_with("nothing names [plugin.own]\nhint: set train.advantage = \"plugin:own\""));
        let zero = own.replace("7s", "0s");
        assert_eq!(error(named, &zero), "plugin.own.limits.cpu must be more than 0, not 0");
        let sampler = |more: &str| {
            let added = "data.train = \"rows.jsonl\"\ndata.sampler = \"plugin:own\"";
            let text = toml::to_string(&config("", own)).unwrap();
            let mut table: toml::Table = text.parse().unwrap();
            table["data"] = added.parse::<toml::Table>().unwrap()["data"].clone();
            table["data"].as_table_mut().unwrap().extend(more.parse::<toml::Table>().unwrap());
            table.try_into::<Config<RlTable>>().unwrap()
        };
        sampler("").validate().unwrap();
        assert_eq!(sampler("").sampler().map(|spec| spec.name), Some("own".to_owned()));
        assert!(sampler("").advantage().is_none());
        let error = sampler("shuffle = false").validate().unwrap_err().to_string();
        assert!(error.starts_with("data.sampler: data.shuffle = false sets the order of rows"), "{error}");
        let error = sampler("sampler = \"plugin:other\"").validate().unwrap_err().to_string();
        assert!(error.starts_with("data.sampler: there is no [plugin.other]\nhint: add that table, with"), "{error}");
        // Another command reads the same file.
        let text =
            format!("model.path = \"model\"\ndata.train = \"rows.jsonl\"\nrollout.max_tokens = 8\ntrain = {{}}\n{own}");
        toml::from_str::<Config<toml::Table>>(&text).unwrap().validate().unwrap();
    }
}
