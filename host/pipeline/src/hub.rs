//! Models and datasets by their names on the Hugging Face hub, from the cache that `hf download`, `transformers` and
//! `datasets` fill.

use std::borrow::Cow;
use std::env;
use std::path::{Path, PathBuf};

/// What stands before a dataset's name, as in pandas and DuckDB.
const DATASETS: &str = "hf://datasets/";

/// A name that the cache does not have.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HubError {
    /// It was not downloaded, or not in this revision.
    #[error(
        "{name} is not here, and the hub's cache {} has no such {kind}\nhint: download it: {download}; or name a folder that has it", cache.display()
    )]
    NotCached {
        /// As it was written.
        name: String,
        /// `model` or `dataset`.
        kind: &'static str,
        /// Where it was looked for.
        cache: PathBuf,
        /// The command that downloads it.
        download: String,
    },
    /// It is not a name.
    #[error(
        "{0} is not a dataset of the hub\nhint: write hf://datasets/ORG/NAME/FILES, such as hf://datasets/openai/gsm8k/main/train-*.parquet"
    )]
    NotADataset(String),
    /// Nobody says where the cache is.
    #[error("{0} is not here, and there is no home folder with the hub's cache\nhint: set HF_HOME")]
    NoCache(String),
}

/// The folder of a model: `path` itself where there is such a folder, else that of the model in the cache which `path`
/// names, `ORG/NAME` or `ORG/NAME@REVISION`. What is no such name is left as it is.
///
/// # Errors
/// The cache does not have the model.
pub fn model(path: &Path) -> Result<Cow<'_, Path>, HubError> {
    let Some(name) = path.to_str().filter(|_| !path.exists()).and_then(Name::parse) else {
        return Ok(Cow::Borrowed(path));
    };
    Ok(Cow::Owned(name.snapshot("model", path.to_str().unwrap_or_default())?))
}

/// The files of a dataset: `path` itself or, where it is `hf://datasets/ORG/NAME[@REVISION]/FILES`, those in the cache.
///
/// # Errors
/// The cache does not have the dataset, or it is not such a name.
pub fn dataset(path: &Path) -> Result<Cow<'_, Path>, HubError> {
    let Some((shown, rest)) = path.to_str().and_then(|text| Some((text, text.strip_prefix(DATASETS)?))) else {
        return Ok(Cow::Borrowed(path));
    };
    let wrong = || HubError::NotADataset(shown.to_owned());
    let mut parts = rest.splitn(3, '/');
    let name = match (parts.next(), parts.next()) {
        (Some(organisation), Some(name)) => Name::parse(&format!("{organisation}/{name}")).ok_or_else(wrong)?,
        _ => return Err(wrong()),
    };
    let folder = name.snapshot("dataset", shown)?;
    Ok(Cow::Owned(
        parts.next().filter(|files| !files.is_empty()).map_or_else(|| folder.clone(), |files| folder.join(files)),
    ))
}

/// A name on the hub.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Name {
    organisation: String,
    name: String,
    revision: Option<String>,
}

impl Name {
    /// `ORG/NAME` or `ORG/NAME@REVISION`.
    fn parse(text: &str) -> Option<Self> {
        let (name, revision) = match text.split_once('@') {
            Some((name, revision)) => (name, Some(revision.to_owned())),
            None => (text, None),
        };
        let (organisation, name) = name.split_once('/')?;
        let is_word = |word: &str| {
            let is_known = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
            !word.is_empty() && !word.starts_with('.') && word.chars().all(is_known)
        };
        let is_revision = |revision: &String| revision.split('/').all(is_word);
        (is_word(organisation) && is_word(name) && revision.as_ref().is_none_or(is_revision)).then(|| Self {
            organisation: organisation.into(),
            name: name.into(),
            revision,
        })
    }

    /// The folder of its revision in the cache, `main` by default.
    fn snapshot(&self, kind: &'static str, shown: &str) -> Result<PathBuf, HubError> {
        let cache = cache(|variable| env::var_os(variable).map(PathBuf::from));
        let cache = cache.ok_or_else(|| HubError::NoCache(shown.to_owned()))?;
        if let Some(folder) = self.snapshot_in(&cache, kind) {
            return Ok(folder);
        }
        let of_kind = if kind == "dataset" { "--repo-type dataset " } else { "" };
        let of_revision = self.revision.as_ref().map(|revision| format!(" --revision {revision}")).unwrap_or_default();
        let download = format!("hf download {of_kind}{}/{}{of_revision}", self.organisation, self.name);
        Err(HubError::NotCached { name: shown.to_owned(), kind, cache, download })
    }

    /// `refs/<revision>` has the commit that a branch or a tag names; a commit is one already.
    fn snapshot_in(&self, cache: &Path, kind: &str) -> Option<PathBuf> {
        let folder = cache.join(format!("{kind}s--{}--{}", self.organisation, self.name));
        let revision = self.revision.as_deref().unwrap_or("main");
        let commit = std::fs::read_to_string(folder.join("refs").join(revision));
        let commit = commit.map_or_else(|_| revision.to_owned(), |commit| commit.trim().to_owned());
        Some(folder.join("snapshots").join(commit)).filter(|snapshot| snapshot.is_dir())
    }
}

/// Where the hub's client keeps what it downloads.
fn cache(variable: impl Fn(&str) -> Option<PathBuf>) -> Option<PathBuf> {
    let set = |name: &str| variable(name).filter(|value| !value.as_os_str().is_empty());
    set("HF_HUB_CACHE")
        .or_else(|| set("HUGGINGFACE_HUB_CACHE"))
        .or_else(|| Some(set("HF_HOME")?.join("hub")))
        .or_else(|| Some(set("XDG_CACHE_HOME")?.join("huggingface/hub")))
        .or_else(|| Some(set("HOME")?.join(".cache/huggingface/hub")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cache_is_where_the_client_has_it() {
        let with = |set: &[(&str, &str)]| {
            let set = set.to_vec();
            cache(move |name| set.iter().find(|(known, _)| *known == name).map(|(_, value)| PathBuf::from(value)))
        };
        let all = [("HF_HUB_CACHE", "/a"), ("HF_HOME", "/b"), ("XDG_CACHE_HOME", "/c"), ("HOME", "/d")];
        let expected = ["/a", "/b/hub", "/c/huggingface/hub", "/d/.cache/huggingface/hub"];
        for (at, expected) in expected.into_iter().enumerate() {
            assert_eq!(with(&all[at..]), Some(PathBuf::from(expected)));
        }
        assert_eq!(with(&[("HF_HOME", ""), ("HOME", "/d")]), Some("/d/.cache/huggingface/hub".into()));
        assert_eq!(with(&[]), None);
    }

    #[test]
    fn names_are_told_from_paths() {
        let is_name = |text: &str| Name::parse(text).is_some();
        assert!(is_name("Qwen/Qwen3-0.6B") && is_name("a/b_c.d@v1.0") && is_name("a/b@refs/pr/1"));
        assert!(
            !["model", "./a/b", "../b", "/a/b", "a/b/c", "~/b", "a/", "a/b@", "a/b@..", "a b/c"]
                .into_iter()
                .any(is_name)
        );
    }

    #[test]
    fn a_revision_is_a_branch_a_tag_or_a_commit() {
        let cache = tempfile::tempdir().unwrap();
        let folder = cache.path().join("models--a--b");
        for commit in ["c1", "c2"] {
            std::fs::create_dir_all(folder.join("snapshots").join(commit)).unwrap();
        }
        std::fs::create_dir_all(folder.join("refs")).unwrap();
        std::fs::write(folder.join("refs/main"), "c2\n").unwrap();
        std::fs::write(folder.join("refs/v1"), "c1").unwrap();
        std::fs::write(folder.join("refs/gone"), "c3").unwrap();
        let found = |name: &str| {
            let found = Name::parse(name).unwrap().snapshot_in(cache.path(), "model")?;
            Some(found.file_name().unwrap().to_str().unwrap().to_owned())
        };
        assert_eq!(
            [found("a/b"), found("a/b@v1"), found("a/b@c1")],
            ["c2", "c1", "c1"].map(|name| Some(name.to_owned()))
        );
        assert_eq!([found("a/b@gone"), found("a/b@c9"), found("a/c")], [None, None, None]);
    }
}
