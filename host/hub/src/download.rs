//! Downloads files of a repository into the cache.

use crate::cache::Cache;
use crate::client::{Client, Failure, Listing, RemoteFile};
use crate::error::HubError;
use crate::repository::Repository;
use bytesize::ByteSize;
use std::fs;
use std::path::{Path, PathBuf};
use tokio::runtime::Runtime;

/// A commit of a repository, whose files the hub has listed.
pub(crate) struct Download<'a> {
    hub: Hub<'a>,
    listing: Listing,
}

/// A repository of the hub, and who asks for it.
struct Hub<'a> {
    repository: &'a Repository,
    cache: &'a Cache,
    client: Client,
    runtime: Runtime,
}

impl<'a> Download<'a> {
    /// Lists the files of the commit that the cache has of the repository, or else of the commit that its revision
    /// names.
    ///
    /// # Errors
    /// The hub must not be asked, does not answer or does not have the repository.
    pub(crate) fn start(repository: &'a Repository, cache: &'a Cache) -> Result<Self, HubError> {
        if is_offline() {
            return Err(unreachable(repository, cache, "HF_HUB_OFFLINE forbids downloading it".into()));
        }
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| HubError::Client(error.to_string()))?;
        let hub = Hub { repository, cache, client: Client::new()?, runtime };
        let cached = cache.commit(repository.revision());
        let revision = cached.as_deref().unwrap_or(repository.revision());
        let listing = hub.runtime.block_on(hub.client.list(repository, revision));
        let listing = listing.map_err(|failure| hub.error(failure, "the list of its files", cache.root.clone()))?;
        Ok(Self { hub, listing })
    }

    /// The names of its files.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.listing.files.iter().map(|file| file.name.as_str())
    }

    /// The folder of the commit in the cache.
    pub(crate) fn folder(&self) -> PathBuf {
        self.hub.cache.snapshot(&self.listing.commit)
    }

    /// Downloads the files with such names that the cache does not have.
    ///
    /// # Errors
    /// One of them cannot be downloaded or written.
    pub(crate) fn fetch(&self, is_wanted: impl Fn(&str) -> bool) -> Result<(), HubError> {
        let folder = self.folder();
        let is_missing = |file: &&RemoteFile| is_wanted(&file.name) && !folder.join(&file.name).exists();
        let files: Vec<&RemoteFile> = self.listing.files.iter().filter(is_missing).collect();
        if let [first, ..] = files[..] {
            let what = if files.len() == 1 { first.name.clone() } else { format!("{} files", files.len()) };
            let size = ByteSize(files.iter().map(|file| file.size).sum());
            let Hub { repository, client, .. } = &self.hub;
            tracing::info!("downloading {repository} from {}: {what}, {size}", client.endpoint);
        }
        files.into_iter().try_for_each(|file| self.fetch_one(file))
    }

    fn fetch_one(&self, file: &RemoteFile) -> Result<(), HubError> {
        let (Hub { repository, cache, client, runtime }, commit) = (&self.hub, &self.listing.commit);
        let blob = cache.blob(file.hash());
        if !blob.exists() {
            let waiting = || tracing::info!("waiting for another process that downloads {}", file.name);
            let (partial, path) = cache.partial(file.hash(), waiting).map_err(cannot_write(&blob))?;
            // The other process may have completed it.
            if blob.exists() {
                // If there still is a file of this name, it is empty.
                let _ = fs::remove_file(&path);
            } else {
                let download = runtime.block_on(client.download(repository, commit, file, &partial));
                download.map_err(|failure| self.hub.error(failure, &file.name, path.clone()))?;
                partial.sync_all().and_then(|()| fs::rename(&path, &blob)).map_err(cannot_write(&blob))?;
            }
        }
        cache.link(commit, &file.name, file.hash()).map_err(cannot_write(&self.folder()))
    }

    /// Notes that the revision is at this commit.
    pub(crate) fn finish(&self) -> Result<(), HubError> {
        let Hub { repository, cache, .. } = &self.hub;
        cache.set_commit(repository.revision(), &self.listing.commit).map_err(cannot_write(&cache.root))
    }

    /// The error for a file that the repository lacks.
    pub(crate) fn no_file(&self, file: &str, hint: String) -> HubError {
        HubError::NoFile { name: self.hub.repository.title(), file: file.to_owned(), hint }
    }
}

impl Hub<'_> {
    /// The error for a failure: `of` is what was requested, and `path` the file that it was to be written to.
    fn error(&self, failure: Failure, of: &str, path: PathBuf) -> HubError {
        let Self { repository, cache, client, .. } = self;
        let name = repository.title();
        let (status, code, answer) = match failure {
            Failure::Unreached(why) | Failure::Lost(why) => return unreachable(repository, cache, why),
            Failure::Broken(what) => {
                let command = repository.download_command();
                return HubError::Broken { name, what: format!("{of}: {what}"), command };
            }
            Failure::Write(source) => return HubError::Write { path, source },
            Failure::Status { status, code, answer } => (status.as_u16(), code, answer),
        };
        let page = format!("{}/{}", client.endpoint.as_str().trim_end_matches('/'), repository.page());
        let whom = match &client.token_from {
            Some(variable) => format!("the account of the token in {variable}"),
            None => "requests without a token".to_owned(),
        };
        match (status, code.as_str(), &client.token_from) {
            (401 | 403, "GatedRepo", None) => {
                let hint = format!("accept its terms at {page}, and set HF_TOKEN to a token of that account");
                HubError::Forbidden { name, whom, answer, hint }
            }
            (401 | 403, "GatedRepo", Some(_)) => {
                let hint = format!("accept its terms with that account at {page}");
                HubError::Forbidden { name, whom, answer, hint }
            }
            (404, "RevisionNotFound", _) => {
                let hint = "check the branch, tag or commit after @".into();
                HubError::Unknown { name, answer, hint }
            }
            (401 | 404, "RepoNotFound", _) | (404, _, _) => {
                let hint = match client.token_from {
                    Some(_) => "check its name; a private repository exists only for its own accounts".into(),
                    None => "check its name; for a private repository, set HF_TOKEN to a token of its account".into(),
                };
                HubError::Unknown { name, answer, hint }
            }
            (401 | 403, _, None) => {
                HubError::Forbidden { name, whom, answer, hint: "set HF_TOKEN to a token of an account".into() }
            }
            (401 | 403, _, Some(variable)) => {
                HubError::Forbidden { name, whom, answer, hint: format!("check the token in {variable}") }
            }
            _ => unreachable(repository, cache, answer),
        }
    }
}

fn unreachable(repository: &Repository, cache: &Cache, why: String) -> HubError {
    let (name, command) = (repository.title(), repository.download_command());
    HubError::Unreachable { name, cache: cache.root.clone(), why, command }
}

fn cannot_write(path: &Path) -> impl FnOnce(std::io::Error) -> HubError {
    let path = path.to_owned();
    move |source| HubError::Write { path, source }
}

/// Whether `HF_HUB_OFFLINE` is set, as the hub's own client reads it.
fn is_offline() -> bool {
    let set = std::env::var("HF_HUB_OFFLINE").unwrap_or_default().to_lowercase();
    matches!(set.as_str(), "1" | "true" | "yes" | "on")
}
