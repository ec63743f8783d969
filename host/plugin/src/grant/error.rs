//! Why a grant cannot be given.

use crate::tls::NoRootCertificates;
use std::path::PathBuf;

/// A grant that is written wrongly, or names what is not there. The plugin is
/// named by what carries this error.
#[derive(Debug, thiserror::Error)]
pub enum GrantError {
    /// No folder and guest path.
    #[error(
        "grant.read: {grant:?} {what}\nhint: write read = [\"data:/data\"]: a folder, and the absolute path that the plugin sees it at"
    )]
    Read {
        /// As written.
        grant: String,
        /// What is wrong with it.
        what: &'static str,
    },
    /// Two folders at one guest path.
    #[error("grant.read: two folders are granted at {guest}\nhint: give one another guest path")]
    SameGuestPath {
        /// The path.
        guest: String,
    },
    /// A folder that does not open.
    #[error("grant.read: cannot open the folder {}: {source}\nhint: paths are relative to the folder that gavel is called in", path.display())]
    Folder {
        /// The folder.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A folder through which a plugin would see the host itself.
    #[error("grant.read: {} shows this process and its machine, not data\nhint: grant the folder that holds the data", path.display())]
    SystemFolder {
        /// The folder.
        path: PathBuf,
    },
    /// No server.
    #[error(
        "grant.http: {grant:?} {what}\nhint: write http = [\"https://judge.example:443\"], [\"*.example.com\"] or [\"http://127.0.0.1:8000\"]"
    )]
    Http {
        /// As written.
        grant: String,
        /// What is wrong with it.
        what: &'static str,
    },
    /// Nothing to check a server's certificate with.
    #[error("grant.http: {0}")]
    RootCertificates(#[from] NoRootCertificates),
    /// No name of an endpoint.
    #[error(
        "grant.chat: {name:?} is no name of an endpoint\nhint: write chat = [\"judge\"], and [chat.judge] for the endpoint"
    )]
    EndpointName {
        /// As written.
        name: String,
    },
    /// An endpoint that nobody described.
    #[error(
        "grant.chat: there is no endpoint `{name}` (known: {})\nhint: add [chat.{name}] with base_url and model to the configuration, or --chat {name}='{{ base_url = \"…\", model = \"…\" }}' to gavel score",
        if known.is_empty() { "none".to_owned() } else { known.join(", ") }
    )]
    NoEndpoint {
        /// The name.
        name: String,
        /// The endpoints that there are.
        known: Vec<String>,
    },
    /// A program that nobody named.
    #[error(
        "grant.exec: there is no program `{name}` (known: {})\nhint: add [exec.{name}] with its path to the configuration, or --exec {name}=PATH to gavel score",
        if known.is_empty() { "none".to_owned() } else { known.join(", ") }
    )]
    NoProgram {
        /// The name.
        name: String,
        /// The programs that there are.
        known: Vec<String>,
    },
    /// No name of a variable.
    #[error(
        "grant.env: {name:?} is no name of a variable\nhint: write env = [\"JUDGE_KEY\"]; the value stays in the environment"
    )]
    VariableName {
        /// As written.
        name: String,
    },
    /// A variable that is not set.
    #[error(
        "grant.env: the variable {name} is not set\nhint: set it where gavel is started, or take it out of the grant"
    )]
    NoVariable {
        /// Its name.
        name: String,
    },
    /// A variable that is no text.
    #[error("grant.env: the variable {name} is not UTF-8")]
    VariableText {
        /// Its name.
        name: String,
    },
}
