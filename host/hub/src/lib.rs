//! Models and datasets by their names on the Hugging Face hub. They are read from the cache of the hub's own client,
//! and downloaded into it if they are missing.

mod cache;
mod client;
mod download;
mod error;
mod repository;

pub use error::HubError;

use cache::Cache;
use download::Download;
use gavel_data::{DatasetReader, WeightFiles, WeightFilesError};
use gavel_runs::Checkpoints;
use glob::{MatchOptions, Pattern};
use repository::{Kind, Repository};
use std::borrow::Cow;
use std::path::{Path, PathBuf};

/// What stands before a dataset's name, as in pandas and DuckDB.
const DATASETS: &str = "hf://datasets/";

/// How many files of a dataset an error lists, if the dataset lacks the requested one.
const SHOWN_FILES: usize = 8;

/// The files of a model beside its weights, as far as it has them.
const MODEL_FILES: [&str; 9] = [
    "adapter_config.json",
    "additional_chat_templates/*.jinja",
    "chat_template.jinja",
    "config.json",
    "generation_config.json",
    "model.safetensors.index.json",
    "special_tokens_map.json",
    "tokenizer.json",
    "tokenizer_config.json",
];

/// The folder of a model. For the folder of a run, this is the newest checkpoint in it; for any other folder, `path`
/// itself. If there is no folder `path`, it names the model `ORG/NAME` or `ORG/NAME@REVISION` on the hub, and the
/// model's folder in the hub's cache is returned. Files that the cache lacks are downloaded.
///
/// # Errors
/// There is no such folder or model, or it cannot be downloaded.
pub fn model(path: &Path) -> Result<Cow<'_, Path>, HubError> {
    if path.exists() {
        let newest = newest_checkpoint(path);
        return Ok(newest.map_or(Cow::Borrowed(path), Cow::Owned));
    }
    // If there is a folder ORG here, `path` is a mistyped path and not a name on the hub.
    let is_here = path.parent().is_some_and(|parent| !parent.as_os_str().is_empty() && parent.is_dir());
    let name = path.to_str().filter(|_| !is_here).and_then(|text| Repository::parse(Kind::Model, text));
    let repository = name.ok_or_else(|| HubError::NoFolder(path.to_owned()))?;
    let cache = cache(&repository)?;
    if let Some(commit) = cache.commit(repository.revision())
        && missing(&cache.snapshot(&commit))?.is_empty()
    {
        return Ok(Cow::Owned(cache.snapshot(&commit)));
    }
    let download = Download::start(&repository, &cache)?;
    download.fetch(|name| MODEL_FILES.iter().any(|pattern| matches(pattern, name)))?;
    let folder = download.folder();
    let missing = missing(&folder)?;
    if let Some(file) = missing.iter().find(|file| !download.names().any(|name| name == *file)) {
        let hint = "Gavel reads the files that save_pretrained of transformers writes, with weights in safetensors";
        return Err(download.no_file(file, hint.into()));
    }
    download.fetch(|name| missing.iter().any(|file| file == name))?;
    download.finish()?;
    Ok(Cow::Owned(folder))
}

/// The newest checkpoint of the run in the folder `path`; nothing if it is not the folder of a run.
fn newest_checkpoint(path: &Path) -> Option<PathBuf> {
    let is_model = ["config.json", "adapter_config.json"].iter().any(|file| path.join(file).exists());
    if is_model || !path.join("checkpoints").is_dir() {
        return None;
    }
    // A folder that cannot be read is an error once its model is looked for in it.
    let newest = Checkpoints::new(path).newest().ok()??;
    tracing::info!("{} is a run: its model is that of {}", path.display(), newest.display());
    Some(newest)
}

/// The files of a dataset: `path` itself or, if it is `hf://datasets/ORG/NAME[@REVISION]/FILES`, those in the hub's
/// cache. A file that the cache lacks is downloaded. For a folder or a pattern, the hub is asked for the list of files.
///
/// # Errors
/// There is no such dataset or file, it cannot be downloaded, or it is not such a name.
pub fn dataset(path: &Path) -> Result<Cow<'_, Path>, HubError> {
    let Some((written, rest)) = path.to_str().and_then(|text| Some((text, text.strip_prefix(DATASETS)?))) else {
        return Ok(Cow::Borrowed(path));
    };
    let mut parts = rest.trim_end_matches('/').splitn(3, '/');
    let name = parts.next().zip(parts.next()).map(|(organisation, name)| format!("{organisation}/{name}"));
    let repository = name.and_then(|name| Repository::parse(Kind::Dataset, &name));
    let repository = repository.ok_or_else(|| HubError::NotADataset(written.to_owned()))?;
    let files = parts.next().unwrap_or_default();
    let cache = cache(&repository)?;
    let cached = cache.commit(repository.revision()).map(|commit| cache.snapshot(&commit).join(files));
    if let Some(file) = cached.as_ref().filter(|file| file.is_file()) {
        return Ok(Cow::Owned(file.clone()));
    }
    let download = match (Download::start(&repository, &cache), cached) {
        (Ok(download), _) => download,
        (Err(HubError::Unreachable { why, .. }), Some(cached)) if DatasetReader::open(&cached).is_ok() => {
            tracing::warn!("using the files of {written} that are in the hub's cache: {why}");
            return Ok(Cow::Owned(cached));
        }
        (Err(error), _) => return Err(error),
    };
    let is_exact = download.names().any(|name| name == files);
    let is_wanted = |name: &str| if is_exact { name == files } else { is_in(files, name) };
    if !download.names().any(is_wanted) {
        let named: Vec<&str> = download.names().filter(|name| is_rows(name)).take(SHOWN_FILES + 1).collect();
        let hint = match named.len() {
            0 => "it has no .parquet and no .jsonl file".to_owned(),
            more if more > SHOWN_FILES => format!("it has {}, …", named[..SHOWN_FILES].join(", ")),
            _ => format!("it has {}", named.join(", ")),
        };
        let files = if files.is_empty() { "file of rows beside its folders" } else { files };
        return Err(download.no_file(files, hint));
    }
    download.fetch(is_wanted)?;
    download.finish()?;
    Ok(Cow::Owned(download.folder().join(files)))
}

fn cache(repository: &Repository) -> Result<Cache, HubError> {
    Cache::of(repository).ok_or_else(|| HubError::NoCache(repository.title()))
}

/// The files that a model needs and the folder does not have.
fn missing(folder: &Path) -> Result<Vec<String>, WeightFilesError> {
    let needed: Vec<PathBuf> = match folder.join("adapter_config.json").exists() {
        true => vec![folder.join("adapter_model.safetensors")],
        false => {
            let described = ["config.json", "tokenizer.json"].map(|name| folder.join(name));
            described.into_iter().chain(WeightFiles::find(folder)?.all).collect()
        }
    };
    let name = |file: &PathBuf| Some(file.file_name()?.to_str()?.to_owned());
    Ok(needed.iter().filter(|file| !file.exists()).filter_map(name).collect())
}

/// Whether a file of a repository is in the folder `path`, or matches it if it is a pattern, by the rules for local
/// paths.
fn is_in(path: &str, name: &str) -> bool {
    let (folder, file) = name.rsplit_once('/').unwrap_or(("", name));
    match path.contains(['*', '?', '[']) {
        true => matches(path, name),
        false => folder == path && is_rows(name) && !file.starts_with('.'),
    }
}

fn is_rows(name: &str) -> bool {
    name.ends_with(".parquet") || name.ends_with(".jsonl")
}

fn matches(pattern: &str, name: &str) -> bool {
    let options =
        MatchOptions { require_literal_separator: true, require_literal_leading_dot: true, ..MatchOptions::new() };
    Pattern::new(pattern).is_ok_and(|pattern| pattern.matches_with(name, options))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_model_of_a_run_is_its_newest_checkpoint() {
        let folder = tempfile::tempdir().unwrap();
        let make = |name: &str| {
            let checkpoint = folder.path().join("run/checkpoints").join(name);
            std::fs::create_dir_all(&checkpoint).unwrap();
            std::fs::write(checkpoint.join("config.json"), "{}").unwrap();
            checkpoint
        };
        make("step-000090");
        let newest = make("step-000120");
        make("step-000130.partial");
        let run = folder.path().join("run");
        assert_eq!(model(&run).unwrap(), newest);
        // A checkpoint is itself, whatever else is in it.
        std::fs::create_dir(newest.join("checkpoints")).unwrap();
        assert_eq!(model(&newest).unwrap(), newest);
        std::fs::remove_dir_all(run.join("checkpoints/step-000090")).unwrap();
        std::fs::remove_dir_all(&newest).unwrap();
        assert_eq!(model(&run).unwrap(), run);
    }

    #[test]
    fn a_path_stands_for_the_files_that_it_would_stand_for_here() {
        let names = ["README.md", "a.jsonl", "main/.b.parquet", "main/b.parquet", "main/c.parquet", "main/d/e.parquet"];
        let found = |path: &str| names.into_iter().filter(|name| is_in(path, name)).collect::<Vec<_>>();
        assert_eq!(found(""), ["a.jsonl"]);
        assert_eq!(found("main"), ["main/b.parquet", "main/c.parquet"]);
        assert_eq!(found("main/*.parquet"), found("main"));
        assert_eq!(found("**/[be].parquet"), ["main/b.parquet", "main/d/e.parquet"]);
        assert_eq!((found("mai"), found("a***")), (vec![], vec![]));
    }
}
