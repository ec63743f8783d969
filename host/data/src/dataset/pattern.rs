//! The paths that a pattern matches. A folder is searched once for the same part of the pattern, by the first of its
//! paths: links may lead back to it, so that there are paths without end.

use super::RowError;
use glob::{MatchOptions, Pattern};
use std::collections::{HashSet, VecDeque};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};

/// A part of a pattern, between slashes.
enum Part {
    Name(PathBuf),
    Like(Pattern),
    /// `**`: any folders, one within another, or none.
    Folders,
}

/// The paths that the pattern `path` matches.
///
/// # Errors
/// It is not a pattern, or a folder cannot be read.
pub(super) fn matching(path: &Path) -> Result<Vec<PathBuf>, RowError> {
    const LIKE: MatchOptions =
        MatchOptions { case_sensitive: true, require_literal_separator: false, require_literal_leading_dot: true };
    let parts = parts(path)?;
    let (mut found, mut searched) = (Vec::new(), HashSet::new());
    // The folders to search, each for the part with this number.
    let mut next: VecDeque<(PathBuf, usize)> = [(PathBuf::new(), 0)].into();
    while let Some((path, at)) = next.pop_front() {
        let mut is_new = || {
            let folder = fs::metadata(here(&path)).ok().filter(fs::Metadata::is_dir);
            folder.is_some_and(|folder| searched.insert((folder.dev(), folder.ino(), at)))
        };
        match parts.get(at) {
            None => found.push(path),
            Some(Part::Name(name)) => next.push_back((path.join(name), at + 1)),
            Some(_) if !is_new() => {}
            Some(Part::Like(like)) => {
                let names = names(&path)?.into_iter().filter(|name| like.matches_with(name, LIKE));
                next.extend(names.map(|name| (path.join(name), at + 1)));
            }
            Some(Part::Folders) => {
                let folders = names(&path)?.into_iter().filter(|name| !name.starts_with('.'));
                next.push_back((path.clone(), at + 1));
                next.extend(folders.map(|name| (path.join(name), at)));
            }
        }
    }
    Ok(found)
}

fn parts(path: &Path) -> Result<Vec<Part>, RowError> {
    let bad = |what: String| RowError::BadPattern { path: path.to_owned(), what };
    let pattern = |text: &str| Pattern::new(text).map_err(|error| bad(error.to_string()));
    pattern(&path.to_string_lossy())?;
    let part = |part: Component<'_>| match part.as_os_str().to_string_lossy() {
        text if text == "**" => Ok(Part::Folders),
        text if text.contains(['*', '?', '[']) => pattern(&text).map(Part::Like),
        _ => Ok(Part::Name(part.as_os_str().into())),
    };
    path.components().map(part).collect()
}

/// The names in a folder, in order. A name that is not UTF-8 is like no pattern.
fn names(folder: &Path) -> Result<Vec<String>, RowError> {
    let failed = |source| RowError::Open { path: folder.to_owned(), source };
    let entries = fs::read_dir(here(folder)).map_err(failed)?;
    let names = entries.map(|entry| Ok(entry?.file_name().into_string().ok()));
    let mut names: Vec<String> = names.filter_map(Result::transpose).collect::<Result<_, _>>().map_err(failed)?;
    names.sort();
    Ok(names)
}

/// The folder that a path names, of which the empty one is the current folder.
fn here(path: &Path) -> &Path {
    if path.as_os_str().is_empty() { Path::new(".") } else { path }
}
