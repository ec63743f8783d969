//! The plugins that scored, and their first step.

use super::actor::{self, ActorRecord};
use super::error::{RecordingError, Result};
use super::grouping::Grouping;
use super::record::{PluginRecord, ProgramRecord};
use crate::chat::ChatEndpoint;
use crate::scorer::Scorer;
use crate::waits::find_circle;
use gavel_runs::{RunError, keep_component, layout, read_plugin_sets, write_plugin_sets};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::iter::once;
use std::path::Path;

/// The plugins of a run from a step on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PluginSet {
    /// The first step that they scored.
    pub from_step: u64,
    /// The settings that decide which rewards count in a group.
    pub grouping: Grouping,
    /// The endpoints that plugins could ask.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub chat: BTreeMap<String, ChatEndpoint>,
    /// The programs that plugins could run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub programs: Vec<ProgramRecord>,
    /// The plugins, in the order of the configuration.
    pub plugins: Vec<PluginRecord>,
    /// The components beside the rewards: agents, tools, and the plugins that turn rewards into advantages and draw
    /// tasks.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub actors: Vec<ActorRecord>,
}

impl PluginSet {
    /// The plugins of `scorer`, from `from_step` on.
    pub fn of(scorer: &Scorer, grouping: Grouping, from_step: u64) -> Self {
        let grants = || scorer.loaded().map(|(loaded, _)| &loaded.spec.grants);
        let chat = scorer.chat().iter().filter(|(name, _)| grants().any(|grants| grants.chat.contains(name)));
        let chat = chat.map(|(name, endpoint)| (name.clone(), endpoint.clone())).collect();
        let programs = scorer.programs().iter();
        let programs = programs.filter(|each| grants().any(|grants| grants.exec.contains(&each.spec.name)));
        let programs = programs.map(ProgramRecord::of).collect();
        let plugins = scorer.loaded().map(|(loaded, judge)| PluginRecord::of(loaded, judge));
        Self { from_step, grouping, chat, programs, plugins: plugins.collect(), actors: Vec::new() }
    }

    /// The plugin of this name.
    pub fn plugin(&self, name: &str) -> Option<&PluginRecord> {
        self.plugins.iter().find(|plugin| plugin.name == name)
    }

    /// The plugins that `plugin` waits for, the plugins that these wait for, and so on.
    pub(crate) fn waited_for<'a>(&'a self, plugin: &'a PluginRecord) -> Vec<&'a PluginRecord> {
        let mut found: Vec<&PluginRecord> = Vec::new();
        let mut left = vec![plugin];
        while let Some(plugin) = left.pop() {
            for other in plugin.when.waits_for().filter_map(|(_, name)| self.plugin(name)) {
                if !found.iter().any(|found| found.name == other.name) {
                    found.push(other);
                    left.push(other);
                }
            }
        }
        found
    }

    /// The plugins whose verdicts others see.
    pub(crate) fn shown(&self) -> impl Iterator<Item = &str> {
        self.plugins
            .iter()
            .map(|plugin| plugin.name.as_str())
            .filter(|name| self.plugins.iter().any(|other| other.when.after.iter().any(|shown| shown == name)))
    }

    /// Whether a change of the plugins with these names can change the verdicts of
    /// `plugin`: it is one of them, or waits for one of them.
    pub(crate) fn is_affected(&self, plugin: &PluginRecord, changed: &[&str]) -> bool {
        once(plugin).chain(self.waited_for(plugin)).any(|each| changed.contains(&each.name.as_str()))
    }

    fn circle(&self) -> Option<String> {
        let plugins: Vec<_> = self.plugins.iter().map(|plugin| (plugin.name.as_str(), &plugin.when)).collect();
        find_circle(&plugins)
    }

    fn changes(&self, old: &Self) -> Vec<String> {
        let mut changes: Vec<String> = self
            .plugins
            .iter()
            .flat_map(|plugin| match old.plugin(&plugin.name) {
                Some(old) => plugin.changes(old),
                None => vec![format!("`{}` is new", plugin.name)],
            })
            .collect();
        let gone = old.plugins.iter().filter(|plugin| self.plugin(&plugin.name).is_none());
        changes.extend(gone.map(|plugin| format!("`{}` is gone", plugin.name)));
        // Only the model and the options change an answer, not the address or the retries.
        let asked =
            |endpoint: &ChatEndpoint| format!("{} with {}", endpoint.model, Value::Object(endpoint.options.clone()));
        changes.extend(self.chat.iter().filter_map(|(name, now)| {
            let (was, now) = (asked(old.chat.get(name)?), asked(now));
            (now != was)
                .then(|| format!("the endpoint `{name}` has another model or other options ({now}; it was {was})"))
        }));
        // A program that is new or gone shows as a change of a plugin's grants.
        changes.extend(self.programs.iter().flat_map(|now| {
            let was = old.programs.iter().find(|was| was.name == now.name);
            was.map(|was| now.changes(was)).unwrap_or_default()
        }));
        changes.extend(actor::changes(&self.actors, &old.actors));
        changes
    }
}

pub(super) fn read(folder: &Path) -> Result<Vec<PluginSet>> {
    let sets: Vec<PluginSet> = read_plugin_sets(folder)?;
    match sets.iter().find_map(PluginSet::circle) {
        Some(circle) => {
            let what = format!("its plugins wait for each other: {circle}");
            Err(RunError::Damaged { path: layout::plugin_sets(folder), what }.into())
        }
        None => Ok(sets),
    }
}

pub(super) fn at(sets: &[PluginSet], step: u64) -> Option<&PluginSet> {
    sets.iter().rev().find(|set| set.from_step <= step)
}

/// Records the plugins that score in `folder`, from the first step of `now` on.
///
/// # Errors
/// They differ from the recorded plugins, and `allow_changes` is not set.
pub fn keep_plugin_set(folder: &Path, now: PluginSet, allow_changes: bool) -> Result<()> {
    let from_step = now.from_step;
    let mut sets = read(folder)?;
    let known = sets.len();
    // Later steps are repeated with these plugins.
    sets.retain(|set| set.from_step <= from_step);
    if let Some(old) = sets.last() {
        let changes = now.changes(old);
        if changes.is_empty() {
            return if sets.len() == known { Ok(()) } else { Ok(write_plugin_sets(folder, &sets)?) };
        }
        if !allow_changes {
            return Err(RecordingError::Changed { folder: folder.to_owned(), since: old.from_step, changes });
        }
        sets.pop_if(|old| old.from_step == from_step);
    }
    for PluginRecord { name, path, component, .. } in &now.plugins {
        keep_component(folder, name, path, component)?;
    }
    for ActorRecord { name, path, component, .. } in &now.actors {
        keep_component(folder, name, path, component)?;
    }
    for ProgramRecord { name, path, component, .. } in &now.programs {
        keep_component(folder, name, path, component)?;
    }
    sets.push(now);
    Ok(write_plugin_sets(folder, &sets)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::condition::When;
    use gavel_plugin::{Grants, Info, Limits};
    use serde_json::Map;

    fn plugin(name: &str) -> PluginRecord {
        PluginRecord {
            name: name.into(),
            weight: 1.0,
            when: When::default(),
            info: Info { name: "math".into(), version: "1.2.0".into(), pure: true, score_range: None },
            path: "math.wasm".into(),
            component: "a".repeat(64),
            contract: "gavel:plugin@0.2.0".into(),
            params: Map::new(),
            limits: Limits::default(),
            grants: Grants::default(),
        }
    }

    fn set(from_step: u64, plugins: Vec<PluginRecord>) -> PluginSet {
        let (grouping, chat) = (Grouping::default(), BTreeMap::new());
        PluginSet { from_step, grouping, chat, programs: Vec::new(), plugins, actors: Vec::new() }
    }

    #[test]
    fn a_change_says_what_it_was() {
        let old = set(0, vec![plugin("a"), plugin("b")]);
        let moved = PluginRecord { path: "elsewhere.wasm".into(), ..plugin("a") };
        assert_eq!(set(5, vec![moved, plugin("b")]).changes(&old), Vec::<String>::new());
        let mut other = PluginRecord { component: "b".repeat(64), weight: 0.5, ..plugin("a") };
        other.params.insert("strict".into(), true.into());
        let changes = set(5, vec![other, plugin("c")]).changes(&old);
        assert_eq!(
            changes,
            [
                "`a` has another component (math 1.2.0, hash bbbbbbbbbbbbbbbb; it was math 1.2.0, hash aaaaaaaaaaaaaaaa)",
                "`a` has another weight (0.5; it was 1)",
                "`a` has another set of parameters ({\"strict\":true}; it was {})",
                "`c` is new",
                "`b` is gone",
            ]
        );
    }

    #[test]
    fn another_program_is_a_change() {
        let python = |hash: &str, limits| ProgramRecord {
            name: "python".into(),
            path: "python.wasm".into(),
            component: hash.repeat(64),
            limits,
        };
        let of = |program| PluginSet { programs: vec![program], ..set(0, vec![plugin("a")]) };
        let old = of(python("a", Limits::default()));
        assert_eq!(of(python("a", Limits::default())).changes(&old), Vec::<String>::new());
        let changes = of(python("b", Limits { handles: 7, ..Limits::default() })).changes(&old);
        let expected = "the program `python` has another component (hash bbbbbbbbbbbbbbbb; it was aaaaaaaaaaaaaaaa)";
        assert_eq!(changes[0], expected);
        assert!(changes[1].starts_with("the program `python` has another set of limits"), "{}", changes[1]);
    }

    #[test]
    fn plugins_that_wait_for_each_other_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let gated = |name, gate: &str| {
            let only_if = Some(format!("{gate} > 0").parse().unwrap());
            PluginRecord { when: When { only_if, ..When::default() }, ..plugin(name) }
        };
        let read_again = |plugins| {
            write_plugin_sets(folder.path(), &[set(0, plugins)]).unwrap();
            read(folder.path()).map(|sets| sets[0].plugins.len()).map_err(|error| error.to_string())
        };
        assert_eq!(read_again(vec![gated("a", "b"), gated("b", "c"), plugin("c")]), Ok(3));
        let after = |name, others: &[&str]| {
            let after = others.iter().map(|other| (*other).to_owned()).collect();
            PluginRecord { when: When { after, ..When::default() }, ..plugin(name) }
        };
        assert_eq!(read_again(vec![after("a", &["b", "c"]), gated("b", "c"), plugin("c")]), Ok(3));
        for (circle, says) in [
            (vec![gated("a", "a")], "`only_if` of `a` names `a`"),
            (
                vec![plugin("c"), gated("a", "b"), after("b", &["a"])],
                "`only_if` of `a` names `b`, `after` of `b` names `a`",
            ),
            (vec![gated("a", "b"), gated("b", "b")], "`only_if` of `b` names `b`"),
        ] {
            let error = read_again(circle).unwrap_err();
            assert!(error.ends_with(&format!("is damaged: its plugins wait for each other: {says}")), "{error}");
        }
    }

    #[test]
    fn a_step_has_the_plugins_of_its_time() {
        let sets = [set(1, vec![plugin("a")]), set(7, vec![plugin("b")])];
        let name = |step| at(&sets, step).map(|set| set.plugins[0].name.as_str());
        assert_eq!([name(0), name(1), name(6), name(7), name(99)], [None, Some("a"), Some("a"), Some("b"), Some("b")]);
    }
}
