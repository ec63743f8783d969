//! Whether the plugins of a release archive are the released ones.

use super::finding::Finding;
use gavel_runs::is_component;
use std::path::Path;

/// The list of an archive: the hash of each component and its path, as `b3sum` writes them.
const LIST: &str = "B3SUMS";

/// Compares the components beside this binary with the list of their release; `None` where there is no list.
pub fn components() -> Option<Finding> {
    let gavel = std::env::current_exe().and_then(|path| path.canonicalize()).ok()?;
    // In an archive, the binary is `bin/gavel`.
    let folder = gavel.parent()?.parent()?;
    let list = std::fs::read_to_string(folder.join(LIST)).ok()?;
    Some(compare(folder, &list))
}

fn compare(folder: &Path, list: &str) -> Finding {
    let listed: Vec<(&str, &str)> = list.lines().filter_map(|line| line.split_once("  ")).collect();
    let is_other = |(hash, path): &&(&str, &str)| !is_component(&folder.join(path), hash);
    let other: Vec<&str> = listed.iter().filter(is_other).map(|(_, path)| *path).collect();
    match other.len() {
        0 => Finding::Ok(format!("{} components, as released", listed.len())),
        count => Finding::Changed(
            format!("{count} of {} components are gone or differ from the release: {}", listed.len(), other.join(", ")),
            "unpack the archive again".into(),
        ),
    }
}
