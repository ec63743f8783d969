//! Why a model or a dataset of the hub cannot be found or downloaded.

use gavel_data::{WeightFilesError, disk};
use gavel_endpoint::NoRootCertificates;
use std::path::{Path, PathBuf};

/// How many checkpoints an error lists.
const SHOWN_CHECKPOINTS: usize = 8;

/// Why a model or a dataset of the hub cannot be found or downloaded.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum HubError {
    /// A path that does not exist and is not a name of the hub.
    #[error("there is no folder {}\nhint: {}", .0.display(), instead(.0))]
    NoFolder(PathBuf),
    /// It is not the name of a dataset.
    #[error(
        "{0} is not a dataset of the hub\nhint: write hf://datasets/ORG/NAME/FILES, such as hf://datasets/openai/gsm8k/main/train-*.parquet"
    )]
    NotADataset(String),
    /// No variable sets where the cache is.
    #[error("cannot find the {0}: there is no home folder with the hub's cache\nhint: set HF_HOME")]
    NoCache(String),
    /// The cache does not have it, and it cannot be downloaded.
    #[error(
        "cannot find the {name}: it is not in the hub's cache {}, and {why}\nhint: download it where there is a network: {command}; or name a folder that has it", cache.display()
    )]
    Unreachable {
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
        name: String,
        /// What the hub answers.
        answer: String,
        hint: String,
    },
    /// The hub restricts access to it.
    #[error("the hub does not give the {name} to {whom}: {answer}\nhint: {hint}")]
    Forbidden {
        name: String,
        /// Who asks.
        whom: String,
        /// What the hub answers.
        answer: String,
        hint: String,
    },
    /// The repository lacks a file.
    #[error("the {name} of the hub has no {file}\nhint: {hint}")]
    NoFile {
        name: String,
        /// The file, or the pattern.
        file: String,
        /// What it has instead.
        hint: String,
    },
    /// A downloaded file is not the hub's.
    #[error("the {name}: {what}\nhint: try again; or download it: {command}")]
    Broken {
        name: String,
        /// The file, and what is wrong.
        what: String,
        /// The command that downloads it.
        command: String,
    },
    /// The cache cannot be written.
    #[error("cannot write {}: {source}{}", path.display(), disk::hint(source))]
    Write { path: PathBuf, source: std::io::Error },
    /// The address or the token of the hub cannot be used.
    #[error("{variable}: {what}")]
    Variable {
        /// The variable, or the file.
        variable: String,
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
    Weights(#[from] WeightFilesError),
}

/// What to name in place of a folder that does not exist: the models beside it, or any model.
fn instead(path: &Path) -> String {
    let is_model =
        |folder: &PathBuf| ["config.json", "adapter_config.json"].iter().any(|file| folder.join(file).is_file());
    let beside = path.parent().and_then(|parent| parent.read_dir().ok()).into_iter().flatten().flatten();
    let models = beside.map(|entry| entry.path()).filter(is_model);
    let mut names: Vec<String> =
        models.filter_map(|model| Some(model.file_name()?.to_string_lossy().into_owned())).collect();
    names.sort_unstable();
    let Some(parent) = path.parent().filter(|_| !names.is_empty()) else {
        return "name the folder of a checkpoint, or a model of the hub as ORG/NAME, such as Qwen/Qwen3-0.6B".into();
    };
    // Of checkpoints, the newest are the last.
    let left_out = names.len().saturating_sub(SHOWN_CHECKPOINTS);
    let more = if left_out > 0 { "…, " } else { "" };
    format!("{} has {more}{}", parent.display(), names[left_out..].join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn a_missing_checkpoint_names_those_that_are_there() {
        let run = tempfile::tempdir().unwrap();
        let make = |name: &str, file: &str| {
            fs::create_dir(run.path().join(name)).unwrap();
            fs::write(run.path().join(name).join(file), "{}").unwrap();
        };
        let missing = || HubError::NoFolder(run.path().join("step-000150")).to_string();
        make("step-000150.partial", "optimizer.safetensors");
        assert!(missing().ends_with("/step-000150\nhint: name the folder of a checkpoint, or a model of the hub as ORG/NAME, such as Qwen/Qwen3-0.6B"));
        make("step-000170", "adapter_config.json");
        make("step-000160", "config.json");
        let expected = format!("\nhint: {} has step-000160, step-000170", run.path().display());
        assert!(missing().ends_with(&expected), "{}", missing());
        (180..188).for_each(|step| make(&format!("step-000{step}"), "config.json"));
        assert!(missing().contains(" has …, step-000180, "), "{}", missing());
    }
}
