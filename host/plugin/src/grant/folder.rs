//! `read`: folders that a plugin can read, but not write to.

use super::error::GrantError;
use cap_std::ambient_authority;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use wasmtime::component::{HasData, Resource, ResourceTable};
use wasmtime_wasi::filesystem::{Descriptor, Dir};
use wasmtime_wasi::p2::bindings::filesystem::preopens;
use wasmtime_wasi::{FsPerms, OpenMode};

/// File systems that show the host itself; `/proc` has its environment and
/// memory.
const SYSTEM: [&str; 3] = ["/proc", "/sys", "/dev"];

/// A parsed `FOLDER:/GUEST-PATH`.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ReadRule {
    folder: PathBuf,
    guest: String,
}

impl ReadRule {
    pub(super) fn parse_all(grants: &[String]) -> Result<Vec<Self>, GrantError> {
        let rules: Vec<Self> = grants.iter().map(|grant| Self::parse(grant)).collect::<Result<_, _>>()?;
        let mut seen = BTreeSet::new();
        match rules.iter().find(|rule| !seen.insert(&rule.guest)) {
            Some(rule) => Err(GrantError::SameGuestPath { guest: rule.guest.clone() }),
            None => Ok(rules),
        }
    }

    fn parse(grant: &str) -> Result<Self, GrantError> {
        let wrong = |what| GrantError::Read { grant: grant.to_owned(), what };
        let (folder, below) = grant.rsplit_once(":/").ok_or_else(|| wrong("does not name an absolute guest path"))?;
        if folder.is_empty() {
            return Err(wrong("names no folder"));
        }
        let below = below.trim_end_matches('/');
        let plain = |part: &str| !matches!(part, "" | "." | "..") && !part.contains('\0');
        if !below.is_empty() && !below.split('/').all(plain) {
            return Err(wrong("has a guest path with empty, `.` or `..` parts"));
        }
        Ok(Self { folder: folder.into(), guest: format!("/{below}") })
    }
}

/// A folder that was opened when its plugin was loaded. Every call gets this
/// folder, even if another folder has its name later.
pub(super) struct Folder {
    dir: Dir,
    guest: String,
}

impl Folder {
    pub(super) fn open(rule: ReadRule) -> Result<Self, GrantError> {
        let ReadRule { folder: path, guest } = rule;
        let failed = |source| GrantError::Folder { path: path.clone(), source };
        let real = path.canonicalize().map_err(failed)?;
        if SYSTEM.iter().any(|system| real.starts_with(system) || Path::new(system).starts_with(&real)) {
            return Err(GrantError::SystemFolder { path });
        }
        let dir = cap_std::fs::Dir::open_ambient_dir(&real, ambient_authority()).map_err(failed)?.into_std_file();
        // A read may wait for a disk or a network share, so it runs on another thread than the plugins.
        let blocks_this_thread = false;
        Ok(Self { dir: Dir::new(dir, FsPerms::ReadOnly, OpenMode::READ, blocks_this_thread), guest })
    }
}

/// The host's side of `wasi:filesystem/preopens`. The implementation in
/// `wasmtime-wasi` opens a path anew for each context; this one returns the open
/// folder.
pub(crate) struct Preopens<'a> {
    pub(super) folders: &'a [Folder],
    pub(super) table: &'a mut ResourceTable,
}

/// The type by which a linker finds it.
pub(crate) struct HasPreopens;

impl HasData for HasPreopens {
    type Data<'a> = Preopens<'a>;
}

impl preopens::Host for Preopens<'_> {
    fn get_directories(&mut self) -> wasmtime::Result<Vec<(Resource<Descriptor>, String)>> {
        let Self { folders, table } = self;
        folders
            .iter()
            .map(|folder| Ok((table.push(Descriptor::Dir(folder.dir.clone()))?, folder.guest.clone())))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open(grant: String) -> Result<Folder, GrantError> {
        Folder::open(ReadRule::parse(&grant)?)
    }

    #[test]
    fn a_folder_and_a_guest_path() {
        let rule = |folder: &str, guest: &str| ReadRule { folder: folder.into(), guest: guest.into() };
        assert_eq!(ReadRule::parse("data:/data").unwrap(), rule("data", "/data"));
        assert_eq!(ReadRule::parse("/a b/c:/x/y/").unwrap(), rule("/a b/c", "/x/y"));
        assert_eq!(ReadRule::parse("odd:name:/").unwrap(), rule("odd:name", "/"));
        for (wrong, what) in [
            ("data", "does not name an absolute guest path"),
            ("data:data", "does not name an absolute guest path"),
            (":/data", "no folder"),
            ("data:/a/../b", "`..`"),
            ("data://b", "empty"),
        ] {
            let error = ReadRule::parse(wrong).unwrap_err().to_string();
            assert!(error.contains(wrong) && error.contains(what), "{error}");
        }
        let twice = ["a:/data".to_owned(), "b:/data/".to_owned()];
        assert!(matches!(ReadRule::parse_all(&twice), Err(GrantError::SameGuestPath { guest }) if guest == "/data"));
    }

    #[test]
    fn only_folders_of_data_open() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| format!("{}:/data", folder.path().join(name).display());
        assert!(open(at("")).is_ok());
        assert!(matches!(open(at("absent")), Err(GrantError::Folder { .. })));
        std::fs::write(folder.path().join("file"), "").unwrap();
        assert!(matches!(open(at("file")), Err(GrantError::Folder { .. })));
        std::os::unix::fs::symlink("/proc/self", folder.path().join("link")).unwrap();
        for system in [at("link"), "/:/data".into(), "/proc:/data".into(), "/dev/shm:/data".into()] {
            assert!(matches!(open(system.clone()), Err(GrantError::SystemFolder { .. })), "{system}");
        }
    }
}
