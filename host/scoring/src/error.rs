//! Why nothing can be scored.

use crate::chat::ChatEndpointError;
use gavel_plugin::LoadError;

/// Why there is no scorer.
#[derive(Debug, thiserror::Error)]
pub enum ScorerError {
    /// A plugin does not load.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// An endpoint cannot be used.
    #[error(transparent)]
    Chat(#[from] ChatEndpointError),
    /// A component that is only a dataset.
    #[error(
        "plugin `{0}` scores nothing: it exports neither `reward` nor `judger`\nhint: a taskset belongs under [data], as \"plugin:PATH\""
    )]
    ScoresNothing(String),
    /// A component of `gavel plugin test --quick`.
    #[error(
        "plugin `{0}` reads its sources from a folder, for tests alone\nhint: run `gavel plugin build`, and name build/NAME.wasm"
    )]
    Quick(String),
    /// Two plugins have one name.
    #[error("two plugins are called `{0}`\nhint: give one another name")]
    SameName(String),
    /// A weight that makes no sum.
    #[error("plugin `{plugin}` has the weight {weight}\nhint: give it a finite one")]
    Weight {
        /// Its name in the run.
        plugin: String,
        /// The weight.
        weight: f64,
    },
    /// A gate on nothing.
    #[error("reward `{plugin}`: `only_if` is about `{gate}`, and no reward is called that; they are: {}", known.join(", "))]
    UnknownGate {
        /// The gated plugin.
        plugin: String,
        /// The name in its condition.
        gate: String,
        /// The plugins that there are.
        known: Vec<String>,
    },
    /// Verdicts of nobody.
    #[error("reward `{plugin}`: `after` names `{name}`, and no reward is called that; they are: {}", known.join(", "))]
    UnknownAfter {
        /// The plugin that would wait.
        plugin: String,
        /// The name in its list.
        name: String,
        /// The plugins that there are.
        known: Vec<String>,
    },
    /// A plugin that waits for others and sees one sample.
    #[error(
        "reward `{0}`: `after` is for a plugin that judges whole groups, and this one scores samples one by one\nhint: remove `after`, or make it a condition: only_if = \"NAME > 0\""
    )]
    AfterOfReward(String),
    /// Plugins that wait for each other.
    #[error("rewards wait for each other, so that none can be called first: {0}")]
    Circle(String),
}

/// Rows that nobody would judge.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Uncovered {
    /// No plugin with a weight is for them.
    #[error("no [[reward]] with a weight is for {0}\nhint: add it to the `data_sources` of one")]
    NoReward(String),
    /// A plugin is for them and its gate is not.
    #[error(
        "the [[reward]] `{plugin}` is for {data_source}, and `{gate}`, which its `only_if` is about, is not\nhint: give both the same `data_sources`"
    )]
    GateElsewhere {
        /// The gated plugin.
        plugin: String,
        /// The one that its condition is about.
        gate: String,
        /// Whose rows.
        data_source: String,
    },
}
