//! A scorer as it is configured outside of a run: the tables of a run's configuration that are about rewards.

use crate::chat::ChatEndpoint;
use crate::{Condition, ExecTable, ScorerConfig, SourcePattern, WeightedPlugin, When};
use gavel_endpoint::LimiterTable;
use gavel_plugin::{Grants, LimitsTable, PluginSpec, SandboxConfig};
use serde::Deserialize;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::num::{NonZeroU32, NonZeroUsize};
use std::path::{Path, PathBuf};
use std::thread;

/// A scorer, as a file or a program configures it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScorerTable {
    #[serde(alias = "reward", default)]
    rewards: Vec<RewardTable>,
    /// The limits of rewards that have none of their own.
    #[serde(default)]
    limits: LimitsTable,
    #[serde(default)]
    chat: BTreeMap<String, ChatEndpoint>,
    #[serde(default)]
    limiter: BTreeMap<String, LimiterTable>,
    #[serde(default)]
    exec: BTreeMap<String, ExecTable>,
    workers: Option<NonZeroUsize>,
    /// The seed of the random numbers that rewards see.
    #[serde(default)]
    pub seed: u64,
}

/// A reward, with the keys of `[[reward]]`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RewardTable {
    path: PathBuf,
    #[serde(default = "one")]
    weight: f64,
    name: Option<String>,
    #[serde(default)]
    params: Map<String, Value>,
    #[serde(default)]
    limits: LimitsTable,
    #[serde(default)]
    grant: Grants,
    only_if: Option<Condition>,
    #[serde(default)]
    data_sources: Vec<SourcePattern>,
    #[serde(default)]
    after: Vec<String>,
    reuse: Option<NonZeroU32>,
}

fn one() -> f64 {
    1.0
}

/// A component, and the name that its plugin has by itself.
pub type NamedComponent = (Option<String>, PathBuf);

impl ScorerTable {
    /// Checks all values, and gives the arguments of a [`Scorer`](crate::Scorer). `component` finds the component that a
    /// path stands for.
    ///
    /// # Errors
    /// The key that is wrong, and why.
    pub fn validate(
        self,
        component: impl Fn(&Path) -> Result<NamedComponent, String>,
    ) -> Result<(Vec<WeightedPlugin>, ScorerConfig), String> {
        if self.rewards.is_empty() {
            return Err("there is no reward".into());
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
        let plugin = |reward: RewardTable| {
            let component = component(&reward.path)?;
            reward.plugin(component, &limits)
        };
        let plugins = self.rewards.into_iter().map(plugin).collect::<Result<_, String>>()?;
        let threads = match self.workers {
            Some(workers) => workers,
            None => thread::available_parallelism()
                .map_err(|error| format!("cannot count the cores: {error}\nhint: set `workers`"))?,
        };
        let config = ScorerConfig {
            chat: self.chat,
            limiters: self.limiter,
            programs: self.exec.iter().map(|(name, program)| program.program(name.clone())).collect(),
            ..SandboxConfig::with_threads(threads).into()
        };
        Ok((plugins, config))
    }
}

impl RewardTable {
    /// The plugin, with these limits where it has none of its own.
    fn plugin(self, (own_name, path): NamedComponent, limits: &LimitsTable) -> Result<WeightedPlugin, String> {
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
