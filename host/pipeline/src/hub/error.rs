//! Why a model or a dataset of the hub is not here.

use gavel_plugin::NoRootCertificates;
use gavel_policy::PolicyError;
use std::path::PathBuf;

/// Why a model or a dataset of the hub is not here.
#[derive(Debug, thiserror::Error)]
pub enum HubError {
    /// A path that is not a name of the hub, and nothing is there.
    #[error(
        "there is no folder {}\nhint: name the folder of a checkpoint, or a model of the hub as ORG/NAME, such as Qwen/Qwen3-0.6B", .0.display()
    )]
    NoFolder(PathBuf),
    /// It is not the name of a dataset.
    #[error(
        "{0} is not a dataset of the hub\nhint: write hf://datasets/ORG/NAME/FILES, such as hf://datasets/openai/gsm8k/main/train-*.parquet"
    )]
    NotADataset(String),
    /// Nobody says where the cache is.
    #[error("the {0} is not here, and there is no home folder with the hub's cache\nhint: set HF_HOME")]
    NoCache(String),
    /// The cache does not have it, and it cannot be downloaded.
    #[error(
        "the {name} is not here: not in the hub's cache {}, and {why}\nhint: download it where there is a network: {command}; or name a folder that has it", cache.display()
    )]
    Unreachable {
        /// The model or dataset.
        name: String,
        /// Where it was looked for.
        cache: PathBuf,
        /// Why it cannot be downloaded.
        why: String,
        /// The command that downloads it.
        command: String,
    },
    /// The hub does not have it.
    #[error("the hub has no {name}: {answer}\nhint: {hint}")]
    Unknown {
        /// The model or dataset.
        name: String,
        /// What the hub answers.
        answer: String,
        /// What to do.
        hint: String,
    },
    /// The hub does not give it to everyone.
    #[error("the hub does not give the {name} to {whom}: {answer}\nhint: {hint}")]
    Forbidden {
        /// The model or dataset.
        name: String,
        /// Who asks.
        whom: String,
        /// What the hub answers.
        answer: String,
        /// What to do.
        hint: String,
    },
    /// The repository lacks a file.
    #[error("the {name} of the hub has no {file}\nhint: {hint}")]
    NoFile {
        /// The model or dataset.
        name: String,
        /// The file, or the pattern.
        file: String,
        /// What it has instead.
        hint: String,
    },
    /// A file came, and is not what the hub has.
    #[error("the {name}: {what}\nhint: try again; or download it: {command}")]
    Broken {
        /// The model or dataset.
        name: String,
        /// The file, and what is wrong.
        what: String,
        /// The command that downloads it.
        command: String,
    },
    /// The cache cannot be written.
    #[error("cannot write {}: {source}", path.display())]
    Write {
        /// The file or folder.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The address or the token of the hub cannot be used.
    #[error("{variable}: {what}")]
    Variable {
        /// The variable, or the file.
        variable: String,
        /// What is wrong.
        what: String,
    },
    /// There is nothing to check the hub's certificate with.
    #[error(transparent)]
    Tls(#[from] NoRootCertificates),
    /// The HTTP client does not start.
    #[error("cannot make an HTTP client: {0}")]
    Client(String),
    /// What was downloaded is not a model.
    #[error(transparent)]
    Policy(#[from] PolicyError),
}
