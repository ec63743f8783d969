//! Why a grant cannot be given.

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
    #[error(
        "grant.http: no root certificates to check https servers with: {what}\nhint: install the system's ca-certificates, or name a file of them in SSL_CERT_FILE"
    )]
    RootCertificates {
        /// What was tried.
        what: String,
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
