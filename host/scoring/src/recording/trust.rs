//! What of a recording is believed: anybody may have written it. A copy of a
//! component is used if it has the recorded hash, and a plugin gets what is
//! this machine's only where that is allowed.

use super::lineup::{Lineup, component_file};
use super::record::PluginRecord;
use super::{Recording, RecordingError, Result};
use crate::scorer::WeightedPlugin;
use gavel_plugin::{ClockGrant, Grants, ProgramSpec, RandomGrant};
use serde::de::{Deserialize, Deserializer, Error};
use std::fs::File;
use std::path::{Path, PathBuf};

impl Recording {
    /// Lets plugins have what they had of this machine: folders, variables, its
    /// clock, its random numbers. Otherwise a plugin that had any is refused.
    /// Servers, models and programs need no permission: the first two are
    /// answered from the tape, and programs are run from their copies.
    pub fn allow_grants(self, allow: bool) -> Self {
        Self { grants_allowed: allow, ..self }
    }

    /// What its plugins had of this machine, a line each plugin.
    pub fn machine_grants(&self) -> Vec<String> {
        let mut found: Vec<String> = Vec::new();
        for plugin in self.lineups.iter().flat_map(|lineup| &lineup.plugins) {
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
    /// The copy does not have the recorded hash, or the plugin had something of
    /// this machine that is not allowed.
    pub fn plugin(&self, record: &PluginRecord) -> Result<WeightedPlugin> {
        self.plugin_from(record, self.component(&record.component)?)
    }

    /// A recorded plugin with the component `path` in place of its own.
    ///
    /// # Errors
    /// It had something of this machine that is not allowed.
    pub fn plugin_from(&self, record: &PluginRecord, path: PathBuf) -> Result<WeightedPlugin> {
        if !self.grants_allowed && !machine_grants(&record.grants).is_empty() {
            return Err(RecordingError::Grants { folder: self.folder.clone(), grants: self.machine_grants() });
        }
        Ok(record.plugin(path))
    }

    /// The programs of a line-up from their copies.
    ///
    /// # Errors
    /// A copy does not have the recorded hash.
    pub fn programs(&self, lineup: &Lineup) -> Result<Vec<ProgramSpec>> {
        lineup.programs.iter().map(|record| Ok(record.program(self.component(&record.component)?))).collect()
    }

    /// The copy of the component with this hash.
    fn component(&self, hash: &str) -> Result<PathBuf> {
        let path = component_file(&self.folder, hash);
        let found = hash_of(&path).map_err(RecordingError::io("read", &path))?;
        if found == hash { Ok(path) } else { Err(RecordingError::OtherComponent { path, found }) }
    }
}

fn hash_of(path: &Path) -> std::io::Result<String> {
    let mut hasher = blake3::Hasher::new();
    hasher.update_reader(File::open(path)?)?;
    Ok(hasher.finalize().to_hex().to_string())
}

/// The grants with which a plugin sees something of this machine, as a
/// configuration writes them.
fn machine_grants(grants: &Grants) -> Vec<String> {
    // No other pattern: a grant that is new must be judged here.
    let Grants { read, http: _, chat: _, exec: _, env, clock, random } = grants;
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

/// The hash of a component, which names a file: 64 hexadecimal digits, and no
/// path.
pub(super) fn component_hash<'de, D: Deserializer<'de>>(from: D) -> std::result::Result<String, D::Error> {
    let text = String::deserialize(from)?;
    match text.len() == 64 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f')) {
        true => Ok(text),
        false => Err(D::Error::custom(format!("{text:?} is not the hash of a component (64 hexadecimal digits)"))),
    }
}
