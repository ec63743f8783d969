//! A plugin with the parameters that cases and rows give it.

use crate::error::HarnessError;
use crate::harness::Harness;
use crate::plugin::LoadedPlugin;
use gavel_plugin::PluginSpec;
use serde_json::{Map, Value};
use std::collections::HashMap;

/// The plugin, once for each of the parameters.
pub(crate) struct Plugins {
    first: LoadedPlugin,
    others: HashMap<String, LoadedPlugin>,
    /// The parameters of rows that have none of their own.
    common: String,
}

impl Plugins {
    /// Loads the plugin of `spec` with the parameters of each row that has its
    /// own. Each row comes with its place.
    ///
    /// # Errors
    /// It does not load.
    pub(crate) fn load<'a>(
        harness: &Harness,
        spec: &PluginSpec,
        rows: impl IntoIterator<Item = (Option<&'a Map<String, Value>>, String)>,
    ) -> Result<Self, HarnessError> {
        let load = |params: Option<&Map<String, Value>>, place: String| {
            let spec = PluginSpec { params: params.unwrap_or(&spec.params).clone(), ..spec.clone() };
            harness.load(spec).map_err(|source| match params {
                Some(_) => HarnessError::CaseParams { place, source },
                None => HarnessError::Load(source),
            })
        };
        let mut rows = rows.into_iter();
        let (params, place) = rows.next().unwrap_or_default();
        let common = key(&spec.params);
        let first_key = params.map_or_else(|| common.clone(), key);
        let first = load(params, place)?;
        let mut others = HashMap::new();
        for (params, place) in rows {
            let key = params.map_or_else(|| common.clone(), key);
            if key != first_key && !others.contains_key(&key) {
                others.insert(key, load(params, place)?);
            }
        }
        Ok(Self { first, others, common })
    }

    /// The plugin with the parameters of a row.
    pub(crate) fn of(&self, params: Option<&Map<String, Value>>) -> &LoadedPlugin {
        let found = match params {
            Some(params) => self.others.get(&key(params)),
            None => self.others.get(&self.common),
        };
        found.unwrap_or(&self.first)
    }

    /// One of them: the component is the same in all.
    pub(crate) fn any(&self) -> &LoadedPlugin {
        &self.first
    }
}

fn key(params: &Map<String, Value>) -> String {
    Value::Object(params.clone()).to_string()
}
