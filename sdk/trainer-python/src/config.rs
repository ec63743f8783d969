//! A scorer as it is configured: the tables of a run's configuration that are about rewards.

use gavel_endpoint::LimiterTable;
use gavel_plugin::{Grants, LimitsTable, PluginSpec, SandboxConfig};
use gavel_project::named_component;
use gavel_scoring::chat::ChatEndpoint;
use gavel_scoring::{Condition, ExecTable, ScorerConfig, SourcePattern, WeightedPlugin, When};
use serde::Deserialize;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::num::{NonZeroU32, NonZeroUsize};
use std::path::PathBuf;
use std::thread;

/// The arguments of `gavel_rl.Scorer`, as JSON.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScorerTable {
    rewards: Vec<RewardTable>,
    /// The limits of rewards that have none of their own.
    limits: LimitsTable,
    chat: BTreeMap<String, ChatEndpoint>,
    limiter: BTreeMap<String, LimiterTable>,
    exec: BTreeMap<String, ExecTable>,
    workers: Option<NonZeroUsize>,
    /// The seed of the random numbers that rewards see.
    pub seed: u64,
}

/// `gavel_rl.Reward`, with the keys of `[[reward]]`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RewardTable {
    path: PathBuf,
    weight: f64,
    name: Option<String>,
    params: Map<String, Value>,
    limits: LimitsTable,
    grant: Grants,
    only_if: Option<Condition>,
    data_sources: Vec<SourcePattern>,
    after: Vec<String>,
    reuse: Option<NonZeroU32>,
}

/// A scorer as it is validated.
pub struct Config {
    pub plugins: Vec<WeightedPlugin>,
    pub scorer: ScorerConfig,
    pub seed: u64,
}

impl ScorerTable {
    /// Reads the table.
    ///
    /// # Errors
    /// The key that is wrong, and why.
    pub fn parse(json: &str) -> Result<Self, String> {
        let mut reader = serde_json::Deserializer::from_str(json);
        serde_path_to_error::deserialize(&mut reader).map_err(|error| {
            let path = error.path().to_string();
            // The place in the JSON is not a place in the user's code.
            let what = error.into_inner().to_string();
            let what = what.rsplit_once(" at line ").map_or(&*what, |(what, _)| what);
            format!("{path}: {what}")
        })
    }

    /// Checks all values.
    ///
    /// # Errors
    /// The key that is wrong, and why.
    pub fn validate(self) -> Result<Config, String> {
        if self.rewards.is_empty() {
            return Err("there is no reward\nhint: Scorer([Reward(\"reward.wasm\")])".into());
        }
        self.limits.validate("limits").map_err(|error| error.to_string())?;
        for (name, endpoint) in &self.chat {
            endpoint.check().map_err(|what| format!("chat.{name}.{what}"))?;
        }
        for (name, limiter) in &self.limiter {
            limiter.check().map_err(|what| format!("limiter.{name}.{what}"))?;
        }
        for (name, program) in &self.exec {
            program.limits.validate(&format!("exec.{name}.limits")).map_err(|error| error.to_string())?;
        }
        let limits = self.limits;
        let plugins = self.rewards.into_iter().map(|reward| reward.plugin(&limits)).collect::<Result<_, _>>()?;
        let threads = match self.workers {
            Some(workers) => workers,
            None => thread::available_parallelism()
                .map_err(|error| format!("cannot count the cores: {error}\nhint: set `workers`"))?,
        };
        let scorer = ScorerConfig {
            chat: self.chat,
            limiters: self.limiter,
            programs: self.exec.iter().map(|(name, program)| program.program(name.clone())).collect(),
            ..SandboxConfig::with_threads(threads).into()
        };
        Ok(Config { plugins, scorer, seed: self.seed })
    }
}

impl RewardTable {
    /// The plugin, with these limits where it has none of its own. A plugin's folder stands for its built component.
    fn plugin(self, limits: &LimitsTable) -> Result<WeightedPlugin, String> {
        let (own_name, path) = named_component(&self.path).map_err(|error| error.to_string())?;
        let Some(name) = self.name.or(own_name) else {
            return Err(format!("the reward {} has no file name\nhint: set its `name`", path.display()));
        };
        let path_like = |c: char| c == '/' || c.is_whitespace() || c.is_control();
        if name.is_empty() || name.contains(path_like) {
            return Err(format!("the name {name:?} of a reward must be a word without `/`\nhint: set its `name`"));
        }
        self.limits.validate(&format!("reward.{name}.limits")).map_err(|error| error.to_string())?;
        self.grant.check().map_err(|error| format!("reward `{name}`: {error}"))?;
        let when = When { only_if: self.only_if, data_sources: self.data_sources, after: self.after };
        let limits = self.limits.over(limits);
        let spec = PluginSpec { name, path, params: self.params, limits, grants: self.grant, reuse: self.reuse };
        Ok(WeightedPlugin { spec, weight: self.weight, when })
    }
}
