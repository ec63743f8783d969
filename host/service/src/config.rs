//! The configuration of the service: a TOML file with the tables of a run that are about rewards.

use gavel_data::ColumnNames;
use gavel_project::named_component;
use gavel_scoring::{ScorerConfig, ScorerTable, WeightedPlugin};
use serde::Deserialize;
use std::path::{Path, PathBuf};
use toml::Table;

/// What OpenRLHF needs beside rewards: it knows only numbers, and leaves special tokens in texts.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct OpenRlhf {
    /// The reward of a sample without a score.
    pub no_score: f64,
    /// Texts that are removed from the end of a response, such as the token that ends a turn.
    pub response_ends: Vec<String>,
}

impl Default for OpenRlhf {
    fn default() -> Self {
        Self { no_score: 0.0, response_ends: Vec::new() }
    }
}

/// The tables of the file.
pub struct ServiceTable {
    scorer: ScorerTable,
    /// The names of columns in rows.
    pub columns: ColumnNames,
    /// For OpenRLHF.
    pub openrlhf: OpenRlhf,
}

/// The service as it is validated.
pub struct Service {
    /// The rewards.
    pub plugins: Vec<WeightedPlugin>,
    /// What they need.
    pub scorer: ScorerConfig,
    /// The seed of the random numbers that they see.
    pub seed: u64,
    /// The names of columns in rows.
    pub columns: ColumnNames,
    /// For OpenRLHF.
    pub openrlhf: OpenRlhf,
}

/// Why a file is no configuration.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// It cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: std::io::Error,
    },
    /// It is not TOML, or a key is wrong.
    #[error("{}: {what}", path.display())]
    Wrong {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        what: String,
    },
}

impl ServiceTable {
    /// Reads a file.
    ///
    /// # Errors
    /// The file, and the line or the key that is wrong.
    pub fn read(path: &Path) -> Result<Service, ConfigError> {
        let text =
            std::fs::read_to_string(path).map_err(|source| ConfigError::Read { path: path.to_owned(), source })?;
        Self::parse(&text).and_then(Self::validate).map_err(|what| ConfigError::Wrong { path: path.to_owned(), what })
    }

    fn parse(text: &str) -> Result<Self, String> {
        // Apart from the others, which Python has too.
        let mut tables: Table = text.parse().map_err(|error: toml::de::Error| error.to_string())?;
        let named = |name: &str, error: toml::de::Error| format!("[{name}]: {}", error.message());
        let mut take = |name: &str| tables.remove(name);
        let columns = take("columns").map(|table| table.try_into().map_err(|error| named("columns", error)));
        let openrlhf = take("openrlhf").map(|table| table.try_into().map_err(|error| named("openrlhf", error)));
        let (columns, openrlhf) = (columns.transpose()?, openrlhf.transpose()?);
        let scorer = tables.try_into().map_err(|error| error.to_string())?;
        Ok(Self { scorer, columns: columns.unwrap_or_default(), openrlhf: openrlhf.unwrap_or_default() })
    }

    fn validate(self) -> Result<Service, String> {
        let Self { scorer, columns, openrlhf } = self;
        if !openrlhf.no_score.is_finite() {
            return Err("openrlhf.no_score must be finite".into());
        }
        if openrlhf.response_ends.iter().any(String::is_empty) {
            return Err("openrlhf.response_ends has an empty text".into());
        }
        let seed = scorer.seed;
        let (plugins, scorer) = scorer.validate(|path| named_component(path).map_err(|error| error.to_string()))?;
        Ok(Service { plugins, scorer, seed, columns, openrlhf })
    }
}
