//! A scorer as Python configures it.

use gavel_project::named_component;
use gavel_scoring::{ScorerConfig, ScorerTable, WeightedPlugin};

/// A scorer as it is validated.
pub struct Config {
    pub plugins: Vec<WeightedPlugin>,
    pub scorer: ScorerConfig,
    pub seed: u64,
}

impl Config {
    /// Reads the arguments of `gavel_rl.Scorer`, as JSON.
    ///
    /// # Errors
    /// The key that is wrong, and why.
    pub fn read(json: &str) -> Result<Self, String> {
        let mut reader = serde_json::Deserializer::from_str(json);
        let table: ScorerTable = serde_path_to_error::deserialize(&mut reader).map_err(|error| {
            let path = error.path().to_string();
            // The place in the JSON is not a place in the user's code.
            let what = error.into_inner().to_string();
            let what = what.rsplit_once(" at line ").map_or(&*what, |(what, _)| what);
            format!("{path}: {what}")
        })?;
        let seed = table.seed;
        let (plugins, scorer) = table.validate(|path| named_component(path).map_err(|error| error.to_string()))?;
        Ok(Self { plugins, scorer, seed })
    }
}
