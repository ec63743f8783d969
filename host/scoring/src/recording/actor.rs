//! Records of the components that take part in a run beside its rewards: agents, tools, and the plugins that turn
//! rewards into advantages and draw tasks.

use super::record::{another_component, component_hash, other_settings};
use gavel_plugin::{Grants, Info, Limits, PluginSpec};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::fmt;
use std::path::PathBuf;

/// A component that takes part in a run beside its rewards, as it is recorded. A replay does not run it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ActorRecord {
    /// Its role.
    pub role: ActorRole,
    /// Its name in the run.
    pub name: String,
    /// The name, version and properties that it declares.
    pub info: Info,
    /// The file that it came from.
    pub path: PathBuf,
    /// BLAKE3 of the component, in hexadecimal: a copy is beside this record.
    #[serde(deserialize_with = "component_hash")]
    pub component: String,
    /// The parameters that it was initialised with.
    pub params: Map<String, Value>,
    /// Its limits.
    pub limits: Limits,
    /// Its grants.
    pub grants: Grants,
}

/// The role of a component in a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ActorRole {
    /// It attempts the task.
    Agent,
    /// It answers calls of functions.
    Tool,
    /// It turns rewards into advantages.
    Advantage,
    /// It draws tasks.
    Sampler,
}

impl ActorRecord {
    /// The record of a component that was loaded by `spec`, with its hash and its declared properties.
    pub fn new(role: ActorRole, spec: PluginSpec, hash: &str, info: &Info) -> Self {
        let PluginSpec { name, path, params, limits, grants, .. } = spec;
        Self { role, name, info: info.clone(), path, component: hash.to_owned(), params, limits, grants }
    }

    /// Whether `other` is the record of the same component, perhaps in another version.
    fn is(&self, other: &Self) -> bool {
        (self.role, &self.name) == (other.role, &other.name)
    }
}

impl fmt::Display for ActorRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.role {
            ActorRole::Agent if self.name == "agent" => f.write_str("the agent"),
            ActorRole::Agent => write!(f, "the agent `{}`", self.name),
            ActorRole::Tool => write!(f, "the tool `{}`", self.name),
            ActorRole::Advantage => write!(f, "the advantage plugin `{}`", self.name),
            ActorRole::Sampler => write!(f, "the sampler `{}`", self.name),
        }
    }
}

/// The changes between the components of two times. Paths of files are ignored.
pub(super) fn changes(now: &[ActorRecord], old: &[ActorRecord]) -> Vec<String> {
    let since = |actor: &ActorRecord| match old.iter().find(|old| old.is(actor)) {
        None => vec![format!("{actor} is new")],
        Some(old) => {
            let who = actor.to_string();
            let component = another_component(&who, (&actor.info, &actor.component), (&old.info, &old.component));
            let settings = other_settings(
                &who,
                (&actor.params, &actor.limits, &actor.grants),
                (&old.params, &old.limits, &old.grants),
            );
            component.into_iter().chain(settings).collect()
        }
    };
    let gone = old.iter().filter(|old| !now.iter().any(|actor| actor.is(old)));
    now.iter().flat_map(since).chain(gone.map(|old| format!("{old} is gone"))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn actor(role: ActorRole, name: &str, hash: &str) -> ActorRecord {
        let info = Info { name: "calculator".into(), version: "1.0.0".into(), pure: true, score_range: None };
        ActorRecord::new(role, PluginSpec::new(name, "calculator.wasm"), &hash.repeat(64), &info)
    }

    #[test]
    fn a_change_says_whose_it_is() {
        let old = [actor(ActorRole::Agent, "agent", "a"), actor(ActorRole::Tool, "sum", "b")];
        assert_eq!(changes(&old, &old), Vec::<String>::new());
        let mut other = actor(ActorRole::Agent, "agent", "c");
        other.params.insert("rounds".into(), 2.into());
        let now = [other, actor(ActorRole::Tool, "find", "b")];
        assert_eq!(
            changes(&now, &old),
            [
                "the agent has another component (calculator 1.0.0, hash cccccccccccccccc; it was calculator 1.0.0, hash aaaaaaaaaaaaaaaa)",
                "the agent has another set of parameters ({\"rounds\":2}; it was {})",
                "the tool `find` is new",
                "the tool `sum` is gone",
            ]
        );
    }

    #[test]
    fn what_is_recorded_is_read_again() {
        let record = actor(ActorRole::Tool, "sum", "b");
        let text = serde_json::to_string(&record).unwrap();
        assert!(text.contains(r#""role":"tool","name":"sum""#), "{text}");
        assert_eq!(serde_json::from_str::<ActorRecord>(&text).unwrap(), record);
        let error = serde_json::from_str::<ActorRecord>(&text.replace("bbbb", "../b")).unwrap_err();
        assert!(error.to_string().contains("is not the hash of a component"), "{error}");
    }
}
