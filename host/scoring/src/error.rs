//! Errors of a scorer.

use crate::chat::ChatEndpointError;
use gavel_endpoint::LimiterError;
use gavel_plugin::LoadError;

/// Why a scorer cannot start.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum ScorerError {
    /// A plugin does not load.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// An endpoint cannot be used.
    #[error(transparent)]
    Chat(#[from] ChatEndpointError),
    /// A limiter cannot keep its limits.
    #[error("limiter.{name}.{source}")]
    Limiter { name: String, source: LimiterError },
    /// A component that is a taskset, a tool or an agent.
    #[error("plugin `{plugin}` scores nothing: it exports neither `reward` nor `judger`\nhint: {}", place_of(exported))]
    ScoresNothing { plugin: String, exported: Vec<String> },
    /// A component of `gavel plugin test --quick`.
    #[error(
        "plugin `{0}` is a quick build for tests: it reads its sources from a folder\nhint: run `gavel plugin build`, and name build/NAME.wasm"
    )]
    Quick(String),
    /// Two plugins have the same name.
    #[error("two plugins have the name `{0}`\nhint: rename one of them")]
    SameName(String),
    /// A weight that is not finite.
    #[error("plugin `{plugin}` has the weight {weight}, which is not finite\nhint: give it a finite weight")]
    Weight { plugin: String, weight: f64 },
    /// A gate on an unknown plugin.
    #[error("reward `{plugin}`: `only_if` names `{gate}`, but no reward has this name; the rewards are: {}", known.join(", "))]
    UnknownGate { plugin: String, gate: String, known: Vec<String> },
    /// Verdicts of an unknown plugin.
    #[error("reward `{plugin}`: `after` names `{name}`, but no reward has this name; the rewards are: {}", known.join(", "))]
    UnknownAfter { plugin: String, name: String, known: Vec<String> },
    /// A plugin that has `after` but sees one sample.
    #[error(
        "reward `{0}`: `after` is for a plugin that judges whole groups, but this one scores samples one by one\nhint: remove `after`, or make it a condition: only_if = \"NAME > 0\""
    )]
    AfterOfReward(String),
    /// Plugins that wait for each other.
    #[error("rewards wait for each other: {0}\nhint: remove one of these names")]
    Circle(String),
}

/// Rows that no reward scores.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum Uncovered {
    /// No plugin with a weight is for them.
    #[error("no [[reward]] with a weight covers {0}\nhint: add it to the `data_sources` of a reward")]
    NoReward(String),
    /// A plugin is for them and its gate is not.
    #[error(
        "the [[reward]] `{plugin}` covers {data_source}, but `{gate}` in its `only_if` does not\nhint: give both the same `data_sources`"
    )]
    GateElsewhere { plugin: String, gate: String, data_source: String },
}

/// The kind of table that a component without scores belongs to.
fn place_of(exported: &[String]) -> &'static str {
    let exports = |name: &str| exported.iter().any(|found| found == name);
    match (exports("tool"), exports("agent")) {
        (true, _) => "it is a tool, which belongs in a [[tool]] table",
        (_, true) => "it is an agent; name it in agent.path",
        _ => "a taskset belongs under [data], as \"plugin:PATH\"",
    }
}
