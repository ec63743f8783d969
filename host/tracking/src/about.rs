//! What trackers are told of a run beside its numbers.

use crate::config_values::config_values;
use crate::error::Result;
use gavel_runs::{Ending, Overview, is_run, layout, read_config, read_ending, writer};
use serde_json::{Map, Value};
use std::path::{Path, PathBuf};
use toml::Table;

/// A run, as trackers are told of it.
pub(crate) struct About {
    /// Its folder.
    pub(crate) run: PathBuf,
    /// Its name: that of the folder.
    pub(crate) name: String,
    /// The machine.
    pub(crate) host: String,
    /// Its configuration, without keys.
    pub(crate) config: Map<String, Value>,
}

impl About {
    pub(crate) fn read(run: &Path) -> Result<Self> {
        let run = std::path::absolute(run).unwrap_or_else(|_| run.to_owned());
        let name = run.file_name().map_or_else(|| "run".to_owned(), |name| name.to_string_lossy().into_owned());
        let config = if layout::config(&run).is_file() { read_config(&run)? } else { Table::new() };
        let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default().trim().to_owned();
        Ok(Self { config: config_values(&config), run, name, host })
    }

    /// The configuration as text, without keys.
    pub(crate) fn config_text(&self) -> String {
        toml::to_string(&self.config).unwrap_or_default()
    }

    /// How the run ended, if it did. A run that no process writes into any more and that left no end was killed.
    pub(crate) fn ending(&self, is_live: bool) -> Result<Option<Ending>> {
        let ending = read_ending(&self.run)?;
        if is_live || ending.is_some() || !is_run(&self.run) || writer(&self.run)?.is_some() {
            return Ok(ending);
        }
        let Overview { state, last_record, .. } = Overview::read(&self.run)?;
        let kind = match state {
            gavel_runs::RunState::Ended => gavel_runs::EndKind::Ended,
            _ => gavel_runs::EndKind::Stopped,
        };
        Ok(Some(Ending { kind, at: last_record.unwrap_or(0.0), error: None }))
    }
}
