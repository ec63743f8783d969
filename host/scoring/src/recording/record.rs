//! Records of plugins and programs, and the changes between two of them.

use crate::condition::When;
use crate::exec::LoadedProgram;
use crate::judges::WeightedJudge;
use crate::scorer::{LoadedPlugin, WeightedPlugin};
use gavel_data::Shown;
use gavel_plugin::{Grants, Info, Limits, PluginSpec, ProgramSpec};
use serde::de::{Deserializer, Error};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::path::PathBuf;

/// A plugin, as it is recorded.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PluginRecord {
    /// Its name in the run.
    pub name: String,
    /// The factor of its score in the reward.
    pub weight: f64,
    /// When it was called.
    #[serde(flatten)]
    pub when: When,
    /// The name, version and properties that it declares.
    pub info: Info,
    /// The file that it came from.
    pub path: PathBuf,
    /// BLAKE3 of the component, in hexadecimal: a copy is beside this record.
    #[serde(deserialize_with = "component_hash")]
    pub component: String,
    /// The contract between it and its host.
    pub contract: String,
    /// The parameters that it was initialised with.
    pub params: Map<String, Value>,
    /// The limits of each of its calls.
    pub limits: Limits,
    /// Its grants.
    pub grants: Grants,
}

/// A program, as it is recorded.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ProgramRecord {
    /// Its name in the run.
    pub name: String,
    /// The file that it came from.
    pub path: PathBuf,
    /// BLAKE3 of the component, in hexadecimal: a copy is beside this record.
    #[serde(deserialize_with = "component_hash")]
    pub component: String,
    /// The limits of each of its children.
    pub limits: Limits,
}

impl ProgramRecord {
    pub(super) fn of(LoadedProgram { spec, hash }: &LoadedProgram) -> Self {
        let ProgramSpec { name, path, limits } = spec.clone();
        Self { name, path, component: hash.clone(), limits }
    }

    /// The program from the file `path`.
    pub(super) fn program(&self, path: PathBuf) -> ProgramSpec {
        ProgramSpec { name: self.name.clone(), path, limits: self.limits }
    }

    /// The changes since `old`.
    pub(super) fn changes(&self, old: &Self) -> Vec<String> {
        let name = &self.name;
        let mut changes = Vec::new();
        if self.component != old.component {
            let (now, was) = (short(&self.component), short(&old.component));
            changes.push(format!("the program `{name}` has another component (hash {now}; it was {was})"));
        }
        if self.limits != old.limits {
            let (now, was) = (self.limits, old.limits);
            changes.push(format!("the program `{name}` has another set of limits ({now:?}; it was {was:?})"));
        }
        changes
    }
}

impl PluginRecord {
    pub(super) fn of(LoadedPlugin { plugin, spec }: &LoadedPlugin, judge: &WeightedJudge) -> Self {
        Self {
            name: spec.name.clone(),
            weight: judge.weight,
            when: judge.when.clone(),
            info: plugin.info().clone(),
            path: spec.path.clone(),
            component: plugin.hash().to_owned(),
            contract: plugin.contract().to_owned(),
            params: spec.params.clone(),
            limits: spec.limits,
            grants: spec.grants.clone(),
        }
    }

    /// The plugin from the file `path`.
    pub(super) fn plugin(&self, path: PathBuf) -> WeightedPlugin {
        let spec = PluginSpec {
            name: self.name.clone(),
            path,
            params: self.params.clone(),
            limits: self.limits,
            grants: self.grants.clone(),
            reuse: None,
        };
        WeightedPlugin { spec, weight: self.weight, when: self.when.clone() }
    }

    /// The changes since `old`. The path of the file does not count.
    pub(super) fn changes(&self, old: &Self) -> Vec<String> {
        let name = &self.name;
        let mut changes = Vec::new();
        let who = format!("`{name}`");
        changes.extend(another_component(&who, (&self.info, &self.component), (&old.info, &old.component)));
        let mut compare = |what: &str, now: String, was: String| {
            if now != was {
                changes.push(format!("`{name}` has another {what} ({now}; it was {was})"));
            }
        };
        compare("weight", self.weight.to_string(), old.weight.to_string());
        let gate = |when: &When| when.only_if.as_ref().map_or_else(|| "none".to_owned(), ToString::to_string);
        compare("`only_if`", gate(&self.when), gate(&old.when));
        let sources = |when: &When| match when.data_sources.as_slice() {
            [] => "all".to_owned(),
            some => some.iter().map(|source| source.0.as_str()).collect::<Vec<_>>().join(", "),
        };
        let after = |when: &When| if when.after.is_empty() { "none".to_owned() } else { when.after.join(", ") };
        compare("`after`", after(&self.when), after(&old.when));
        compare("list of data sources", sources(&self.when), sources(&old.when));
        changes.extend(other_settings(
            &who,
            (&self.params, &self.limits, &self.grants),
            (&old.params, &old.limits, &old.grants),
        ));
        changes
    }
}

/// Reports that the component of `who` has changed, with the name, the version and the hash of both.
pub(super) fn another_component(who: &str, now: (&Info, &str), old: (&Info, &str)) -> Option<String> {
    let described =
        |(info, hash): (&Info, &str)| format!("{} {}, hash {}", Shown(&info.name), Shown(&info.version), short(hash));
    (now.1 != old.1).then(|| format!("{who} has another component ({}; it was {})", described(now), described(old)))
}

/// The settings of a component: its parameters, limits and grants.
type Settings<'a> = (&'a Map<String, Value>, &'a Limits, &'a Grants);

/// The settings of `who` that changed.
pub(super) fn other_settings(who: &str, now: Settings<'_>, old: Settings<'_>) -> Vec<String> {
    let texts = |(params, limits, grants): Settings<'_>| {
        let params = Value::Object(params.clone()).to_string();
        // The speed of requests, and the choice among equal servers, do not change a verdict.
        let grants = Grants { limit: None, servers: None, ..grants.clone() };
        [("parameters", params), ("limits", format!("{limits:?}")), ("grants", format!("{grants:?}"))]
    };
    let pairs = texts(now).into_iter().zip(texts(old));
    let changed = pairs.filter(|(now, old)| now != old);
    changed.map(|((what, now), (_, old))| format!("{who} has another set of {what} ({now}; it was {old})")).collect()
}

/// The beginning of a hash, for messages.
pub(super) fn short(hash: &str) -> &str {
    hash.get(..16).unwrap_or(hash)
}

/// Reads the hash of a component. It becomes a file name, so only 64 hexadecimal
/// digits are accepted.
pub(super) fn component_hash<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    let text = String::deserialize(from)?;
    match text.len() == 64 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f')) {
        true => Ok(text),
        false => Err(D::Error::custom(format!("{text:?} is not the hash of a component (64 hexadecimal digits)"))),
    }
}
