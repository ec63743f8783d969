//! Loads the reward models of `gavel score`.

use crate::environment::prepare_one_team;
use anyhow::{Result, bail};
use gavel_config::{RewardModelTable, RewardTable};
use gavel_pipeline::RewardModels;
use gavel_plugin::{Limits, LimitsTable, RewardModel};
use gavel_scoring::WeightedPlugin;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Loads the models. A model that no plugin is granted scores by itself: its reward is added to `plugins`.
pub fn load(
    given: Vec<(String, String)>,
    plugins: &mut Vec<WeightedPlugin>,
    limits: Limits,
) -> Result<BTreeMap<String, Arc<dyn RewardModel>>> {
    if given.is_empty() {
        return Ok(BTreeMap::new());
    }
    prepare_one_team()?;
    let mut tables = BTreeMap::new();
    for (name, model) in given {
        if tables.contains_key(&name) {
            bail!("--reward-model names `{name}` twice\nhint: give each model another name");
        }
        let table = table(&name, &model)?;
        tables.insert(name, table);
    }
    let is_granted = |name: &String| plugins.iter().any(|plugin| plugin.spec.grants.reward_model.contains(name));
    let rewards: Vec<_> =
        tables.keys().filter(|name| !is_granted(name)).map(|name| RewardTable::of_model(name)).collect();
    plugins.extend(rewards.into_iter().map(|reward| {
        let mut plugin = reward.plugin(&LimitsTable::default());
        plugin.spec.limits = limits;
        plugin
    }));
    Ok(RewardModels::load(&tables)?.asked())
}

/// A folder or a name on the hub, the address of a server, or a table as in `[reward_model.NAME]`.
fn table(name: &str, model: &str) -> Result<RewardModelTable> {
    #[derive(serde::Deserialize)]
    struct Line {
        model: RewardModelTable,
    }
    let mut table = match model {
        table if table.trim_start().starts_with('{') => {
            let line: Line = toml::from_str(&format!("model = {table}"))
                .map_err(|error| anyhow::anyhow!("--reward-model {name}: {}", error.message()))?;
            line.model
        }
        url if url.starts_with("http://") || url.starts_with("https://") => RewardModelTable::of_url(url.to_owned()),
        path => RewardModelTable::of(path.into()),
    };
    table.validate(name)?;
    table.find_on_hub(name)?;
    Ok(table)
}
