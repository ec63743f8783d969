//! The components that a resumed run continues with.

use super::actor::{ActorRecord, ActorRole};
use super::error::Result;
use super::plugin_set::{PluginSet, at, read};
use super::record::{PluginRecord, ProgramRecord, short};
use gavel_plugin::{PluginSpec, ProgramSpec};
use gavel_runs::{find_component, is_component};
use std::path::{Path, PathBuf};

/// The components of a run's last steps. A file that has changed since, or is gone, is replaced by the run's own copy:
/// not every build of a plugin gives the same bytes, and a verdict belongs to the component that gave it.
#[derive(Default)]
pub struct KeptComponents(Option<(PathBuf, PluginSet)>);

impl KeptComponents {
    /// The components with which the run in `folder` scored up to `step`.
    ///
    /// # Errors
    /// The run's record of them cannot be read.
    pub fn of(folder: &Path, step: u64) -> Result<Self> {
        let set = at(&read(folder)?, step + 1).cloned();
        Ok(Self(set.map(|set| (folder.to_owned(), set))))
    }

    /// The reward, from the run's copy where its file has changed.
    pub fn reward(&self, mut spec: PluginSpec) -> PluginSpec {
        let recorded = self.find(|set| set.plugin(&spec.name));
        if let Some(PluginRecord { component, .. }) = recorded {
            self.restore(&format!("the reward `{}`", spec.name), component, &mut spec.path);
        }
        spec
    }

    /// The program, from the run's copy where its file has changed.
    pub fn program(&self, mut spec: ProgramSpec) -> ProgramSpec {
        let recorded = self.find(|set| set.programs.iter().find(|program| program.name == spec.name));
        if let Some(ProgramRecord { component, .. }) = recorded {
            self.restore(&format!("the program `{}`", spec.name), component, &mut spec.path);
        }
        spec
    }

    /// The component beside the rewards, from the run's copy where its file has changed.
    pub fn actor(&self, role: ActorRole, mut spec: PluginSpec) -> PluginSpec {
        let is_same = |actor: &&ActorRecord| actor.role == role && actor.name == spec.name;
        if let Some(actor) = self.find(|set| set.actors.iter().find(is_same)) {
            self.restore(&actor.to_string(), &actor.component, &mut spec.path);
        }
        spec
    }

    fn find<'a, T>(&'a self, record: impl FnOnce(&'a PluginSet) -> Option<&'a T>) -> Option<&'a T> {
        record(&self.0.as_ref()?.1)
    }

    /// Replaces `path` by the run's copy of the component `hash`, unless the file is that component. Without such a copy
    /// the path stays, and the run is refused as one with another component.
    fn restore(&self, name: &str, hash: &str, path: &mut PathBuf) {
        let Some((folder, _)) = self.0.as_ref().filter(|_| !is_component(path, hash)) else { return };
        if let Ok(copy) = find_component(folder, hash) {
            tracing::warn!(
                "{name} continues with the run's own copy of its component (hash {}), as {} has changed; --allow-changed-plugins continues with that file",
                short(hash),
                path.display()
            );
            *path = copy;
        }
    }
}
