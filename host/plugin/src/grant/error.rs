//! Why a grant cannot be given.

use gavel_endpoint::NoRootCertificates;
use std::path::PathBuf;

/// A grant that is written wrongly, or names something that does not exist. The
/// error around this one names the plugin.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum GrantError {
    /// An entry that is not a folder and a guest path.
    #[error(
        "grant.read: {grant:?} {what}\nhint: write read = [\"data:/data\"]: a folder, and the absolute path at which the plugin sees it"
    )]
    Read { grant: String, what: &'static str },
    /// Two folders at the same guest path.
    #[error("grant.read: two folders are granted at {guest}\nhint: give one of them another guest path")]
    SameGuestPath { guest: String },
    /// A folder that does not open.
    #[error("grant.read: cannot open the folder {}: {source}\nhint: paths are relative to the folder in which gavel is run", path.display())]
    Folder { path: PathBuf, source: std::io::Error },
    /// A folder through which a plugin would see the host itself.
    #[error("grant.read: {} shows this process and its machine, not data\nhint: grant the folder that holds the data", path.display())]
    SystemFolder { path: PathBuf },
    /// An entry that is not a server.
    #[error(
        "grant.http: {grant:?} {what}\nhint: write http = [\"https://judge.example:443\"], [\"*.example.com\"] or [\"http://127.0.0.1:8000\"]"
    )]
    Http { grant: String, what: &'static str },
    /// Servers that cannot answer the same requests.
    #[error("grant.servers: {}{what}\nhint: write servers = {{ urls = [\"http://10.0.0.5:8000/score\", \"http://10.0.0.6:8000/score\"] }}", if url.is_empty() { "they ".to_owned() } else { format!("{url:?} ") })]
    Server {
        /// As written; empty if the error is about all of them.
        url: String,
        what: &'static str,
    },
    /// A limiter for requests to servers, though no server is granted.
    #[error(
        "grant.limit: {name:?} is for requests to servers, and none is granted\nhint: name the servers in grant.http"
    )]
    LimitOfNothing { name: String },
    /// A limiter that is not configured.
    #[error(
        "grant.limit: there is no limiter `{name}` (known: {})\nhint: add [limiter.{name}] to the configuration, such as requests_per_second = 10",
        if known.is_empty() { "none".to_owned() } else { known.join(", ") }
    )]
    NoLimiter { name: String, known: Vec<String> },
    /// There are no certificates to check a server's certificate with.
    #[error("grant.http: {0}")]
    RootCertificates(#[from] NoRootCertificates),
    /// An entry that is not the name of an endpoint.
    #[error(
        "grant.chat: {name:?} is not the name of an endpoint\nhint: write chat = [\"judge\"], and [chat.judge] for the endpoint"
    )]
    EndpointName { name: String },
    /// An endpoint that is not configured.
    #[error(
        "grant.chat: there is no endpoint `{name}` (known: {})\nhint: add [chat.{name}] with base_url and model to the configuration, or --chat {name}='{{ base_url = \"…\", model = \"…\" }}' to gavel score",
        if known.is_empty() { "none".to_owned() } else { known.join(", ") }
    )]
    NoEndpoint { name: String, known: Vec<String> },
    /// An entry that is not the name of a reward model.
    #[error(
        "grant.reward_model: {name:?} is not the name of a reward model\nhint: write reward_model = [\"quality\"], and [reward_model.quality] for the model"
    )]
    RewardModelName { name: String },
    /// A reward model that is not configured.
    #[error(
        "grant.reward_model: there is no reward model `{name}` (known: {})\nhint: add [reward_model.{name}] with its path to the configuration, or --reward-model {name}=DIR to gavel score",
        if known.is_empty() { "none".to_owned() } else { known.join(", ") }
    )]
    NoRewardModel { name: String, known: Vec<String> },
    /// A program that is not configured.
    #[error(
        "grant.exec: there is no program `{name}` (known: {})\nhint: add [exec.{name}] with its path to the configuration, or --exec {name}=PATH to gavel score",
        if known.is_empty() { "none".to_owned() } else { known.join(", ") }
    )]
    NoProgram { name: String, known: Vec<String> },
    /// An entry that is not the name of a variable.
    #[error(
        "grant.env: {name:?} is not the name of a variable\nhint: write env = [\"JUDGE_KEY\"]; the value stays in the environment"
    )]
    VariableName { name: String },
    /// A variable that is not set.
    #[error(
        "grant.env: the variable {name} is not set\nhint: set it in the environment of gavel, or remove it from the grant"
    )]
    NoVariable { name: String },
    /// A variable that is not UTF-8.
    #[error("grant.env: the variable {name} is not UTF-8")]
    VariableText { name: String },
}
