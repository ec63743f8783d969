//! `train.advantage`: the settings of the algorithm, or a plugin in its place.

use crate::plugin::PluginName;
use gavel_train::{Scale, TurnComparison};
use serde::de::value::MapAccessDeserializer;
use serde::de::{Error, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;

/// `train.advantage`
#[derive(Debug, Clone, PartialEq, schemars::JsonSchema)]
#[schemars(untagged)]
pub enum AdvantageTable {
    /// `[train.advantage]`: settings of the algorithm.
    Settings(AdvantageSettings),
    /// `"plugin:NAME"`: the name of a `[plugin.NAME]` that takes the place of the algorithm.
    Plugin(PluginName),
}

/// Settings of the algorithm.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct AdvantageSettings {
    /// What a difference of rewards is divided by; only for `grpo` and `grpo_passk`, the standard deviation of the group
    /// by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scale: Option<Scale>,
    /// How much of a later reward counts at a token before it, for `reinforce_plus_plus` and `gae`, or at a turn before
    /// it, for `turns` by `return` or `state`; 1 by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gamma: Option<f64>,
    /// How much of a later temporal difference counts at a token before it; only for `gae`, 1 by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lam: Option<f64>,
    /// The reward from which a sample is imitated; only for `raft`, which by default imitates the best of each group.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub threshold: Option<f64>,
    /// Which turns are compared with each other, by their credit: `index`, `return` or `state`; only for `grpo`,
    /// `dr_grpo` and `rloo`, which by default compare samples alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub turns: Option<TurnComparison>,
    /// The weight of the comparison of turns beside the comparison of samples; only for `turns` by `index` or `state`,
    /// 1 by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub turn_weight: Option<f64>,
}

impl Default for AdvantageTable {
    fn default() -> Self {
        Self::Settings(AdvantageSettings::default())
    }
}

impl AdvantageTable {
    pub(super) fn is_default(&self) -> bool {
        *self == Self::default()
    }

    /// The settings of the algorithm; the default ones with a plugin.
    pub(super) fn settings(&self) -> AdvantageSettings {
        match self {
            Self::Settings(settings) => *settings,
            Self::Plugin(_) => AdvantageSettings::default(),
        }
    }

    /// The name of the plugin.
    pub(super) fn plugin(&self) -> Option<&str> {
        match self {
            Self::Settings(_) => None,
            Self::Plugin(name) => Some(name.as_str()),
        }
    }
}

/// As it was written.
impl Serialize for AdvantageTable {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Settings(settings) => settings.serialize(serializer),
            Self::Plugin(name) => name.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for AdvantageTable {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Forms;

        impl<'de> Visitor<'de> for Forms {
            type Value = AdvantageTable;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a table of settings, or \"plugin:NAME\" for the component of [plugin.NAME]")
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<AdvantageTable, A::Error> {
                AdvantageSettings::deserialize(MapAccessDeserializer::new(map)).map(AdvantageTable::Settings)
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<AdvantageTable, E> {
                let or = "a built-in algorithm is set with train.algorithm";
                text.parse().map(AdvantageTable::Plugin).map_err(|what: String| E::custom(format!("{what}; {or}")))
            }
        }

        deserializer.deserialize_any(Forms)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<AdvantageTable, String> {
        let table: toml::Table = text.parse().unwrap();
        table["advantage"].clone().try_into().map_err(|error: toml::de::Error| error.message().to_owned())
    }

    #[test]
    fn it_is_written_as_it_was_read() {
        for text in ["advantage = \"plugin:own\"\n", "[advantage]\nscale = \"batch\"\n"] {
            let table =
                toml::Table::from_iter([("advantage".to_owned(), toml::Value::try_from(read(text).unwrap()).unwrap())]);
            assert_eq!(table.to_string(), text);
        }
        assert_eq!(read("advantage = 'plugin:own'"), Ok(AdvantageTable::Plugin("plugin:own".parse().unwrap())));
    }

    #[test]
    fn another_text_is_refused() {
        for text in ["grpo", "plugin:", "own"] {
            let error = read(&format!("advantage = {text:?}")).unwrap_err();
            let why = "which names the table [plugin.NAME]; a built-in algorithm is set with train.algorithm";
            assert_eq!(error.trim_end(), format!("{text:?} is not \"plugin:NAME\", {why}"));
        }
        assert!(read("advantage = 3").unwrap_err().contains("expected a table of settings, or \"plugin:NAME\""));
        assert!(read("advantage.scael = 'batch'").unwrap_err().starts_with("unknown field `scael`"));
    }
}
