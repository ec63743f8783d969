//! Which files differ from a commit.

use crate::command::Call;
use crate::failure::{Failure, Result};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// The branches from which others are made: here, and as fetched.
const MAIN: [&str; 2] = ["main", "origin/main"];

/// The files that differ between the working tree and the commit where this branch left `base`: committed or not, also
/// files that were removed. Paths are from the root.
pub fn changed(root: &Path, base: Option<&str>) -> Result<BTreeSet<PathBuf>> {
    let git = |arguments: &[&str], what: &str| Call::git(arguments).within(root).read(what);
    let fork = |base: &str| {
        git(&["merge-base", base, "HEAD"], &format!("cannot find where this branch left `{base}`"))
            .map_err(|failure| failure.hint("name a commit or branch: cargo xtask test --changed COMMIT"))
    };
    let fork = match base {
        Some(base) => fork(base)?,
        None => MAIN.iter().find_map(|main| fork(main).ok()).ok_or_else(|| {
            Failure::new(format!("there is no branch {} to compare with", MAIN.join(" or ")))
                .hint("name a commit or branch: cargo xtask test --changed COMMIT")
        })?,
    };
    let what = "cannot list the changed files";
    // Both names of a file that was renamed.
    let tracked = git(&["diff", "--name-only", "--no-renames", "-z", &fork], what)?;
    let untracked = git(&["ls-files", "--others", "--exclude-standard", "-z"], what)?;
    Ok([tracked, untracked]
        .iter()
        .flat_map(|list| list.split('\0'))
        .filter(|name| !name.is_empty())
        .map(Into::into)
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn committed_uncommitted_removed_and_new_files_are_changed() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        let git = |arguments: &[&str]| {
            let options = ["-c", "user.name=t", "-c", "user.email=t@t", "-c", "init.defaultBranch=main"];
            Call::git([&options, arguments].concat()).within(root).read("git failed").unwrap()
        };
        let write = |name: &str, text: &str| fs::write(root.join(name), text).unwrap();
        git(&["init"]);
        for name in ["same", "committed", "edited", "removed", "moved", ".gitignore"] {
            write(name, if name == ".gitignore" { "ignored" } else { name });
        }
        git(&["add", "."]);
        git(&["commit", "-m", "one"]);
        git(&["checkout", "-b", "work"]);
        write("committed", "other");
        git(&["mv", "moved", "to"]);
        git(&["commit", "-a", "-m", "two"]);
        // What main gets meanwhile is no change of this branch.
        git(&["checkout", "main"]);
        write("same", "elsewhere");
        git(&["commit", "-a", "-m", "three"]);
        git(&["checkout", "work"]);
        write("edited", "other");
        write("new ä", "");
        write("ignored", "");
        fs::remove_file(root.join("removed")).unwrap();
        let names = |base: Option<&str>| -> Vec<String> {
            changed(root, base).unwrap().iter().map(|path| path.display().to_string()).collect()
        };
        assert_eq!(names(None), ["committed", "edited", "moved", "new ä", "removed", "to"]);
        assert_eq!(names(Some("work")), ["edited", "new ä", "removed"]);
        let error = changed(root, Some("gone")).unwrap_err().to_string();
        assert!(error.starts_with("cannot find where this branch left `gone`\n"), "{error}");
        git(&["branch", "-m", "main", "trunk"]);
        let error = changed(root, None).unwrap_err().to_string();
        assert!(error.starts_with("there is no branch main or origin/main to compare with\nhint: "), "{error}");
    }
}
