//! How far a recording is trusted, since anybody may have written it. A copy of
//! a component is used only if it has the recorded hash. A plugin gets its
//! grants of this machine only where that is allowed.

use super::error::{RecordingError, Result};
use super::plugin_set::PluginSet;
use super::reader::Recording;
use super::record::PluginRecord;
use crate::scorer::WeightedPlugin;
use gavel_plugin::{ClockGrant, Grants, ProgramSpec, RandomGrant};
use gavel_runs::find_component;
use std::path::PathBuf;

impl Recording {
    /// Allows plugins their grants of this machine: folders, variables, the
    /// clock, random numbers. Otherwise a plugin with such a grant is refused.
    /// Other grants need no permission: the tape answers for servers and models,
    /// and programs run from their copies.
    pub fn allow_grants(mut self, allow: bool) -> Self {
        self.grants_allowed = allow;
        self
    }

    /// The grants of this machine that its plugins had, one line a plugin.
    pub fn machine_grants(&self) -> Vec<String> {
        let mut found: Vec<String> = Vec::new();
        for plugin in self.plugin_sets.iter().flat_map(|set| &set.plugins) {
            let grants = machine_grants(&plugin.grants);
            let line = format!("`{}` has {}", plugin.name, grants.join(", "));
            if !grants.is_empty() && !found.contains(&line) {
                found.push(line);
            }
        }
        found
    }

    /// A recorded plugin from its copy.
    ///
    /// # Errors
    /// The copy does not have the recorded hash, or the plugin had a grant of
    /// this machine that is not allowed.
    pub fn plugin(&self, record: &PluginRecord) -> Result<WeightedPlugin> {
        self.plugin_from(record, self.component(&record.component)?)
    }

    /// A recorded plugin with the component `path` in place of its own.
    ///
    /// # Errors
    /// It had a grant of this machine that is not allowed.
    pub fn plugin_from(&self, record: &PluginRecord, path: PathBuf) -> Result<WeightedPlugin> {
        if !self.grants_allowed && !machine_grants(&record.grants).is_empty() {
            return Err(RecordingError::Grants { folder: self.folder.clone(), grants: self.machine_grants() });
        }
        Ok(record.plugin(path))
    }

    /// The programs of a set of plugins from their copies.
    ///
    /// # Errors
    /// A copy does not have the recorded hash.
    pub fn programs(&self, set: &PluginSet) -> Result<Vec<ProgramSpec>> {
        set.programs.iter().map(|record| Ok(record.program(self.component(&record.component)?))).collect()
    }

    fn component(&self, hash: &str) -> Result<PathBuf> {
        Ok(find_component(&self.folder, hash)?)
    }
}

/// The grants that let a plugin see this machine, as in a configuration.
fn machine_grants(grants: &Grants) -> Vec<String> {
    // No `..` pattern: every new grant must be considered here.
    let Grants { read, http: _, limit: _, servers: _, chat: _, reward_model: _, exec: _, env, clock, random } = grants;
    let mut found = Vec::new();
    if !read.is_empty() {
        found.push(format!("read = {read:?}"));
    }
    if !env.is_empty() {
        found.push(format!("env = {env:?}"));
    }
    if *clock == ClockGrant::Real {
        found.push(r#"clock = "real""#.to_owned());
    }
    if *random == RandomGrant::Os {
        found.push(r#"random = "os""#.to_owned());
    }
    found
}
