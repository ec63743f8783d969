//! `--reward-model`: reward models that score, or that plugins ask.

use anyhow::{Result, bail};
use gavel_plugin::{Limits, RewardModel};
use gavel_scoring::WeightedPlugin;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

/// `NAME=DIR`
pub fn argument(text: &str) -> Result<(String, PathBuf), String> {
    match text.split_once('=') {
        Some((name, path)) if !name.is_empty() && !path.is_empty() => Ok((name.to_owned(), path.into())),
        _ => Err("it is not NAME=DIR; write quality=models/reward-1b".into()),
    }
}

/// Loads the models. One that no plugin is granted scores by itself: its reward is added to `plugins`.
#[cfg(feature = "train")]
pub fn load(
    given: Vec<(String, PathBuf)>,
    plugins: &mut Vec<WeightedPlugin>,
    limits: Limits,
) -> Result<BTreeMap<String, Arc<dyn RewardModel>>> {
    use gavel_pipeline::config::{RewardModelTable, RewardTable};
    use gavel_plugin::LimitsTable;

    if given.is_empty() {
        return Ok(BTreeMap::new());
    }
    crate::openmp::one_quiet_team()?;
    let mut tables = BTreeMap::new();
    for (name, path) in given {
        if tables.contains_key(&name) {
            bail!("--reward-model names `{name}` twice\nhint: give each model another name");
        }
        let found =
            gavel_pipeline::hub::model(&path).map_err(|error| anyhow::anyhow!("reward_model.{name}: {error}"))?;
        let path = found.into_owned();
        tables.insert(name, RewardModelTable::of(path));
    }
    let is_granted = |name: &String| plugins.iter().any(|plugin| plugin.spec.grants.reward_model.contains(name));
    let rewards: Vec<_> =
        tables.keys().filter(|name| !is_granted(name)).map(|name| RewardTable::of_model(name)).collect();
    plugins.extend(rewards.into_iter().map(|reward| {
        let mut plugin = reward.plugin(&LimitsTable::default());
        plugin.spec.limits = limits;
        plugin
    }));
    Ok(gavel_pipeline::load_reward_models(&tables)?)
}

/// A build without training loads none.
#[cfg(not(feature = "train"))]
pub fn load(
    given: Vec<(String, PathBuf)>,
    _: &mut Vec<WeightedPlugin>,
    _: Limits,
) -> Result<BTreeMap<String, Arc<dyn RewardModel>>> {
    match given.first() {
        None => Ok(BTreeMap::new()),
        Some((name, _)) => bail!(
            "this gavel is built without training, so it cannot load the reward model `{name}`\nhint: {}",
            crate::without_training::WHAT_TO_DO
        ),
    }
}
