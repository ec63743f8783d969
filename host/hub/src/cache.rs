//! The folder that the hub's own client fills: blobs by their hash, and for each commit a folder with links to them.

use crate::repository::Repository;
use gavel_data::files::{open_unlinked, read_regular_text};
use std::env;
use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// The most bytes of the file that names a commit.
const REF_BYTES: u64 = 1024;

/// What the cache has of a repository. Another user may have written it.
pub(crate) struct Cache {
    /// The folder with all repositories.
    pub(crate) root: PathBuf,
    folder: PathBuf,
}

impl Cache {
    /// The part of the cache for a repository; absent if no variable sets where the cache is.
    pub(crate) fn of(repository: &Repository) -> Option<Self> {
        let root = root(|variable| env::var_os(variable).map(PathBuf::from))?;
        Some(Self::below(root, repository))
    }

    fn below(root: PathBuf, repository: &Repository) -> Self {
        let Repository { kind, organisation, name, .. } = repository;
        Self { folder: root.join(format!("{kind}s--{organisation}--{name}")), root }
    }

    /// The commit that a branch or a tag names, or the commit itself, where the cache has its folder.
    pub(crate) fn commit(&self, revision: &str) -> Option<String> {
        let commit = read_regular_text(&self.folder.join("refs").join(revision), REF_BYTES);
        let commit = commit.map_or_else(|_| revision.to_owned(), |commit| commit.trim().to_owned());
        // Anything else would lead out of the folder.
        let is_name = Path::new(&commit).file_name().is_some_and(|name| name == commit.as_str());
        Some(commit).filter(|commit| is_name && self.snapshot(commit).is_dir())
    }

    /// The folder of a commit.
    pub(crate) fn snapshot(&self, commit: &str) -> PathBuf {
        self.folder.join("snapshots").join(commit)
    }

    /// Where the content with this hash is.
    pub(crate) fn blob(&self, hash: &str) -> PathBuf {
        self.folder.join("blobs").join(hash)
    }

    /// The file of a download that is not complete, with the bytes that came before. No other process writes to it: if
    /// one does now, calls `waiting` and waits for it.
    pub(crate) fn partial(&self, hash: &str, waiting: impl FnOnce()) -> io::Result<(File, PathBuf)> {
        let path = self.folder.join("blobs").join(format!("{hash}.gavel-partial"));
        fs::create_dir_all(self.folder.join("blobs"))?;
        let file = open_unlinked(&path, OpenOptions::new().create(true).truncate(false).read(true).write(true))?;
        if !file.metadata()?.is_file() {
            return Err(io::Error::other("it is not a regular file"));
        }
        if file.try_lock().is_err() {
            waiting();
            file.lock()?;
        }
        Ok((file, path))
    }

    /// Makes a file in a commit's folder: a link to content that the cache has.
    pub(crate) fn link(&self, commit: &str, name: &str, hash: &str) -> io::Result<()> {
        let path = self.snapshot(commit).join(name);
        let folder = path.parent().unwrap_or(Path::new(""));
        fs::create_dir_all(folder)?;
        #[cfg(unix)]
        let linked = {
            let up = "../".repeat(2 + name.matches('/').count());
            std::os::unix::fs::symlink(format!("{up}blobs/{hash}"), &path)
        };
        #[cfg(not(unix))]
        let linked = fs::hard_link(self.blob(hash), &path);
        match linked {
            // Another process was faster.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            linked => linked,
        }
    }

    /// Notes which commit a branch or a tag names. Several processes may do so at once.
    pub(crate) fn set_commit(&self, revision: &str, commit: &str) -> io::Result<()> {
        if revision == commit {
            return Ok(());
        }
        let path = self.folder.join("refs").join(revision);
        let folder = path.parent().unwrap_or(&self.folder);
        fs::create_dir_all(folder)?;
        // As readable as what other programs write here: the cache may be shared.
        let permissions = Permissions::from_mode(0o666);
        let mut file = tempfile::Builder::new().permissions(permissions).tempfile_in(folder)?;
        file.write_all(commit.as_bytes())?;
        file.as_file().sync_all()?;
        file.persist(&path)?;
        Ok(())
    }
}

/// Where the hub's client keeps what it downloads.
fn root(variable: impl Fn(&str) -> Option<PathBuf>) -> Option<PathBuf> {
    let set = |name: &str| variable(name).filter(|value| !value.as_os_str().is_empty());
    set("HF_HUB_CACHE").or_else(|| set("HUGGINGFACE_HUB_CACHE")).or_else(|| Some(home(&variable)?.join("hub")))
}

/// The folder of the hub's client, with the cache and the token of `hf auth login`.
pub(crate) fn home(variable: impl Fn(&str) -> Option<PathBuf>) -> Option<PathBuf> {
    let set = |name: &str| variable(name).filter(|value| !value.as_os_str().is_empty());
    set("HF_HOME")
        .or_else(|| Some(set("XDG_CACHE_HOME")?.join("huggingface")))
        .or_else(|| Some(set("HOME")?.join(".cache/huggingface")))
}

#[cfg(test)]
mod tests {
    use super::super::repository::Kind;
    use super::*;

    #[test]
    fn the_cache_is_where_the_client_has_it() {
        let with = |set: &[(&str, &str)]| {
            let set = set.to_vec();
            root(move |name| set.iter().find(|(known, _)| *known == name).map(|(_, value)| PathBuf::from(value)))
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
    fn a_revision_is_a_branch_a_tag_or_a_commit() {
        let folder = tempfile::tempdir().unwrap();
        let repository = Repository::parse(Kind::Model, "a/b").unwrap();
        let cache = Cache::below(folder.path().into(), &repository);
        for commit in ["c1", "c2"] {
            fs::create_dir_all(cache.snapshot(commit)).unwrap();
        }
        cache.set_commit("main", "c2\n").unwrap();
        cache.set_commit("refs/pr/1", "c1").unwrap();
        cache.set_commit("gone", "c3").unwrap();
        let found = |revision: &str| cache.commit(revision);
        assert_eq!([found("main"), found("refs/pr/1"), found("c1")], ["c2", "c1", "c1"].map(|c| Some(c.to_owned())));
        assert_eq!([found("gone"), found("c9")], [None, None]);
        assert!(folder.path().join("models--a--b/refs/refs/pr/1").is_file());
    }

    #[test]
    fn several_downloads_may_name_a_commit_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::below(folder.path().into(), &Repository::parse(Kind::Model, "a/b").unwrap());
        for commit in ["c1", "c2"] {
            fs::create_dir_all(cache.snapshot(commit)).unwrap();
        }
        cache.set_commit("main", "c1").unwrap();
        std::thread::scope(|scope| {
            for commit in ["c1", "c2"] {
                let cache = &cache;
                scope.spawn(move || {
                    for _ in 0..100 {
                        cache.set_commit("main", commit).unwrap();
                        assert!(["c1", "c2"].contains(&cache.commit("main").unwrap().as_str()));
                    }
                });
            }
        });
        let names = fs::read_dir(cache.folder.join("refs")).unwrap().map(|entry| entry.unwrap().file_name());
        assert_eq!(names.collect::<Vec<_>>(), ["main"], "nothing else is left");
    }

    #[test]
    fn a_cache_that_another_user_wrote_leads_nowhere_else() {
        let root = tempfile::tempdir().unwrap();
        let cache = Cache::below(root.path().join("hub"), &Repository::parse(Kind::Model, "a/b").unwrap());
        let outside = root.path().join("outside");
        fs::create_dir_all(&outside).unwrap();
        fs::create_dir_all(cache.snapshot("c1")).unwrap();
        let up = "../../../outside".to_owned();
        for commit in [outside.display().to_string(), up, "..".into(), ".".into(), "c1/.".into(), String::new()] {
            cache.set_commit("main", &commit).unwrap();
            assert_eq!(cache.commit("main"), None, "{commit}");
        }
        cache.set_commit("main", "c1").unwrap();
        assert_eq!(cache.commit("main").unwrap(), "c1");
        let named = cache.folder.join("refs/main");
        fs::write(&named, format!("c1{}", " ".repeat(1024))).unwrap();
        assert_eq!(cache.commit("main"), None, "it is too long");
        fs::remove_file(&named).unwrap();
        std::os::unix::fs::symlink("/dev/zero", &named).unwrap();
        assert_eq!(cache.commit("main"), None, "it is a device");

        // A download goes neither through a link nor into a pipe.
        let partial = cache.folder.join("blobs/beef.gavel-partial");
        fs::create_dir_all(cache.folder.join("blobs")).unwrap();
        let kept = outside.join("kept");
        fs::write(&kept, "kept").unwrap();
        std::os::unix::fs::symlink(&kept, &partial).unwrap();
        let error = cache.partial("beef", || panic!("nobody else writes")).unwrap_err().to_string();
        assert_eq!(error, "it is a link, and nothing is written through links");
        fs::remove_file(&partial).unwrap();
        let status = std::process::Command::new("mkfifo").arg(&partial).status().unwrap();
        assert!(status.success());
        let error = cache.partial("beef", || panic!("nobody else writes")).unwrap_err().to_string();
        assert_eq!(error, "it is not a regular file");
        // A link in place of a name is replaced, and what it leads to is kept.
        fs::remove_file(&named).unwrap();
        std::os::unix::fs::symlink(&kept, &named).unwrap();
        cache.set_commit("main", "c1").unwrap();
        assert_eq!((fs::read_to_string(&kept).unwrap(), cache.commit("main")), ("kept".into(), Some("c1".into())));
    }

    #[test]
    fn a_link_leads_to_its_content_from_any_depth() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::below(folder.path().into(), &Repository::parse(Kind::Dataset, "a/b").unwrap());
        let (_, partial) = cache.partial("beef", || panic!("nobody else writes")).unwrap();
        fs::write(&partial, "content").unwrap();
        fs::rename(&partial, cache.blob("beef")).unwrap();
        for name in ["a.json", "main/train/a.json", "a.json"] {
            cache.link("c1", name, "beef").unwrap();
            assert_eq!(fs::read_to_string(cache.snapshot("c1").join(name)).unwrap(), "content");
        }
    }
}
