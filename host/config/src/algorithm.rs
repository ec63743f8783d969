//! Tables of `[train]` that belong to some algorithms only.

use crate::error::ConfigError;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// `[train.reference]`: the model from which penalties measure the distance, if it is not the run's first policy.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReferenceTable {
    /// A folder or the name of a model on the hub, such as a teacher; by default, what the policy starts from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<PathBuf>,
    /// The name of the `[chat.NAME]` of a server whose model it is, such as a teacher.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chat: Option<String>,
    /// Steps after which the reference follows the policy; never by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub every: Option<u64>,
    /// The share of the new policy in it, above 0; 1 by default, which replaces it.
    #[serde(default = "whole", skip_serializing_if = "is_whole")]
    #[schemars(extend("default" = 1.0))]
    pub mixup: f64,
    /// Folders or names of models on the hub by data source, such as teachers; none by default.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub by_source: BTreeMap<String, PathBuf>,
}

fn whole() -> f64 {
    1.0
}

fn is_whole(share: &f64) -> bool {
    *share == whole()
}

impl ReferenceTable {
    /// Refuses values out of range and keys that do not fit together, naming the key.
    pub(super) fn validate(&self) -> Result<(), ConfigError> {
        let wrong = |what: &str| Err(ConfigError::about("train.reference", "train.reference", what));
        if !(self.mixup > 0.0 && self.mixup <= 1.0) {
            return Err(ConfigError::value("train.reference.mixup", "above 0 and at most 1", self.mixup));
        }
        if self.chat.is_some() && !self.by_source.is_empty() {
            return wrong("chat and by_source name models for the same rows\nhint: leave one of them out");
        }
        match (&self.path, &self.chat, self.every) {
            (None, None, None) if self.by_source.is_empty() => wrong(
                "it is empty\nhint: set path, chat or by_source to other models, or every so that it follows the policy",
            ),
            (Some(_), Some(_), _) => wrong("path and chat name two models\nhint: leave one of them out"),
            (None, None, Some(0)) => Err(ConfigError::value("train.reference.every", "at least 1", 0)),
            (None, None, Some(_)) => Ok(()),
            (_, _, Some(_)) => wrong("every is for a reference that follows the policy, and this is another model"),
            (_, _, None) if self.mixup != whole() => wrong("mixup is for a reference that follows the policy (every)"),
            (_, _, None) => Ok(()),
        }
    }

    /// Whether it is another model, rather than an earlier policy of the run.
    pub(super) fn is_other(&self) -> bool {
        self.path.is_some() || self.chat.is_some() || !self.by_source.is_empty()
    }

    /// Whether rows of a data source that is not in `by_source` have a reference.
    pub fn is_for_all(&self) -> bool {
        self.path.is_some() || self.chat.is_some() || self.every.is_some()
    }

    /// Whether one of the references is the run's first policy, or follows the policy.
    pub fn is_of_policy(&self) -> bool {
        !self.is_other() || self.every.is_some()
    }

    /// The models of data sources, each once.
    pub fn of_sources(&self) -> BTreeSet<&Path> {
        self.by_source.values().map(PathBuf::as_path).collect()
    }

    /// Which reference the rows of a data source are compared with: 0 is the one for all, and those
    /// [of sources](Self::of_sources) follow.
    pub fn number_of(&self, source: Option<&str>) -> usize {
        let own = source.and_then(|source| self.by_source.get(source));
        own.and_then(|own| self.of_sources().iter().position(|path| path == own)).map_or(0, |place| place + 1)
    }

    /// Replaces the name of a model on the hub by its local folder.
    pub(super) fn find_on_hub(&mut self) -> Result<(), ConfigError> {
        if let Some(path) = &mut self.path {
            let found = gavel_hub::model(path);
            *path = found.map_err(|error| ConfigError::of("train.reference.path", error))?.into_owned();
        }
        for path in self.by_source.values_mut() {
            let found = gavel_hub::model(path);
            *path = found.map_err(|error| ConfigError::of("train.reference.by_source", error))?.into_owned();
        }
        Ok(())
    }
}
