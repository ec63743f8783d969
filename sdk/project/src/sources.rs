//! The source files of a project's component, chosen by their place.

use crate::manifest::{MANIFEST, Manifest};
use std::fs::{self, Metadata};
use std::path::{Path, PathBuf};

/// Folders that tools make from the sources.
const MADE: [&str; 4] = ["build", "target", "node_modules", "__pycache__"];
/// Files of the templates that no build reads.
const BESIDE: [&str; 3] = [MANIFEST, "README.md", "cases.jsonl"];
/// Folders of the author's own tests.
const TESTS: [&str; 2] = ["test", "tests"];

/// All files below `folder` that a user edits: not hidden ones and not those
/// that tools make.
pub(crate) fn edited(folder: &Path) -> Vec<(PathBuf, Metadata)> {
    let mut found = Vec::new();
    walk(folder, &mut Vec::new(), &|path, _| !is_made(path), &mut found);
    found
}

/// The files that a build may read, sorted: without the manifest, of which the
/// build reads only some keys, the golden cases and the tests.
pub(crate) fn built_from(folder: &Path, manifest: Option<&Manifest>) -> Vec<PathBuf> {
    let cases = manifest.and_then(|manifest| manifest.test.as_ref()?.get("cases")?.as_str());
    let beside: Vec<PathBuf> = BESIDE.into_iter().chain(cases).map(|name| folder.join(name)).collect();
    let mut found = Vec::new();
    walk(folder, &mut Vec::new(), &|path, kind| !is_made(path) && !is_test(path, kind), &mut found);
    let mut found: Vec<_> = found.into_iter().map(|(path, _)| path).filter(|path| !beside.contains(path)).collect();
    found.sort();
    found
}

/// Everything that tools installed as `folder`: all files below it, or that
/// file, sorted.
pub(crate) fn installed(folder: &Path) -> Vec<PathBuf> {
    if folder.is_file() {
        return vec![folder.to_owned()];
    }
    let mut found = Vec::new();
    walk(folder, &mut Vec::new(), &|path, _| name(path) != "__pycache__", &mut found);
    let mut found: Vec<_> = found.into_iter().map(|(path, _)| path).collect();
    found.sort();
    found
}

fn name(path: &Path) -> &str {
    path.file_name().and_then(|name| name.to_str()).unwrap_or_default()
}

fn is_made(path: &Path) -> bool {
    let name = name(path);
    // A virtual environment of Python by any name.
    name.starts_with('.') || MADE.contains(&name) || path.join("pyvenv.cfg").exists()
}

/// Whether pytest or `node --test` takes the file for a test by its name.
fn is_test(path: &Path, kind: &Metadata) -> bool {
    let name = name(path);
    if kind.is_dir() {
        return TESTS.contains(&name);
    }
    match name.rsplit_once('.') {
        Some((stem, "py")) => stem.starts_with("test_") || stem.ends_with("_test") || stem == "conftest",
        Some((stem, "js" | "mjs" | "ts" | "mts")) => stem.ends_with(".test"),
        _ => false,
    }
}

/// Adds the files below `folder` that `keep` accepts. Links are followed, as
/// tools follow them. Files that disappear meanwhile are skipped.
fn walk(
    folder: &Path,
    above: &mut Vec<PathBuf>,
    keep: &dyn Fn(&Path, &Metadata) -> bool,
    found: &mut Vec<(PathBuf, Metadata)>,
) {
    let Ok(real) = folder.canonicalize() else { return };
    // A link to a folder that contains it.
    if above.contains(&real) {
        return;
    }
    above.push(real);
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        let Ok(about) = fs::metadata(&path) else { continue };
        if !keep(&path, &about) {
            continue;
        }
        if about.is_dir() {
            walk(&path, above, keep, found);
        } else {
            found.push((path, about));
        }
    }
    above.pop();
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manifest::Project;

    fn names(folder: &Path, files: Vec<PathBuf>) -> Vec<String> {
        files.iter().map(|path| path.strip_prefix(folder).unwrap().display().to_string()).collect()
    }

    #[test]
    fn a_build_reads_sources_and_neither_tests_nor_what_tools_made() {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path();
        let write = |path: &str, text: &str| {
            let path = folder.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        let manifest =
            "[plugin]\nname = \"a\"\nlanguage = \"python\"\nexports = [\"reward\"]\n[test]\ncases = \"more.jsonl\"\n";
        write("plugin.toml", manifest);
        let sources = ["deep/README.md", "deep/rule.py", "latest.py", "main.py", "prompt.txt", "vendor/gavel/late.py"];
        let tests = ["cases.jsonl", "main.test.js", "more.jsonl", "README.md", "test_main.py", "tests/rule.py"];
        let made = [
            "build/a.wasm",
            "deep/__pycache__/rule.pyc",
            "node_modules/a/b.js",
            ".git/HEAD",
            "env/pyvenv.cfg",
            "env/lib/six.py",
        ];
        for path in sources.iter().chain(&tests).chain(&made) {
            write(path, "x");
        }
        std::os::unix::fs::symlink("..", folder.join("deep/up")).unwrap();
        std::os::unix::fs::symlink("gone", folder.join("dangling.py")).unwrap();
        let project = Project::open(folder).unwrap();
        assert_eq!(names(folder, built_from(folder, Some(&project.manifest))), sources);
        let mut edited = names(folder, edited(folder).into_iter().map(|(path, _)| path).collect());
        edited.sort();
        let mut all: Vec<_> = sources.iter().chain(&tests).copied().chain(["plugin.toml"]).collect();
        all.sort_unstable();
        assert_eq!(edited, all);
    }
}
