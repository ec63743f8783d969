//! Which folder of a large crate may import which. A folder, or a file beside the folders, is a room of its crate.

use super::imports::{self, Imports};
use crate::failure::{Failure, Result};
use std::path::Path;

/// The crates with many rooms, and the order of these: each imports only those above it.
const CRATES: [(&str, &[&str]); 2] = [
    (
        "host/plugin",
        &[
            "tape",
            "budget",
            "outside",
            "schema",
            "episode",
            "grant",
            "imports",
            "compile",
            "error",
            "engine",
            "call",
            "load",
            "sandbox",
            "tool",
            "agent",
            "plugin",
            "decision",
            "advantage",
            "sampler",
            "inspect",
        ],
    ),
    (
        "host/pipeline",
        &[
            "error",
            "episode_kind",
            "metrics",
            "ranks",
            "reward_model",
            "rows",
            "samples",
            "run",
            "memory",
            "rl",
            "commands",
            "preference",
        ],
    ),
];

/// What belongs to no room: the crate's root, code that a macro generates, and what its tests share.
const BESIDE: [&str; 3] = ["lib", "bindings", "testing"];

/// Refuses rooms that are not in [`CRATES`], and imports of rooms below.
pub fn check(root: &Path) -> Result<()> {
    let mut found = Vec::new();
    for (folder, order) in CRATES {
        let imports = imports::read(&root.join(folder).join("src"))?;
        found.extend(wrong(&imports, order).into_iter().map(|line| format!("{folder}/src: {line}")));
    }
    if found.is_empty() {
        return Ok(());
    }
    Err(Failure::new("folders of a crate import folders that are not above them")
        .why(found.join("\n       "))
        .hint("move what both need up; the order of folders is in xtask/src/structure/rooms.rs"))
}

/// What is wrong with the imports of a crate, one line each.
fn wrong(imports: &Imports, order: &[&str]) -> Vec<String> {
    let place = |file: &str| order.iter().position(|listed| *listed == room(file));
    let mut wrong = Vec::new();
    for (file, imported) in imports.iter().filter(|(file, _)| !BESIDE.contains(&room(file))) {
        let Some(own) = place(file) else {
            wrong.push(format!("{file} has no place in the order of folders"));
            continue;
        };
        for (other, names) in imported {
            if place(other).is_some_and(|other| other > own) {
                let names: Vec<&str> = names.iter().map(String::as_str).collect();
                wrong.push(format!("{file} -> {other}: {}", names.join(", ")));
            }
        }
    }
    wrong
}

fn room(file: &str) -> &str {
    let first = file.split('/').next().unwrap_or(file);
    first.strip_suffix(".rs").unwrap_or(first)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn lines(all: &[(&str, &str)]) -> Vec<String> {
        let mut imports = Imports::new();
        for (file, other) in all {
            let name = BTreeSet::from(["X".to_owned()]);
            imports.entry((*file).to_owned()).or_default().insert((*other).to_owned(), name);
        }
        wrong(&imports, &["low", "high"])
    }

    #[test]
    fn a_folder_knows_only_those_above_it() {
        let allowed =
            [("high/a.rs", "low.rs"), ("high/a.rs", "high/b.rs"), ("low/c.rs", "low.rs"), ("lib.rs", "high.rs")];
        assert!(lines(&allowed).is_empty());
        assert_eq!(lines(&[("low/c.rs", "high/a.rs")]), ["low/c.rs -> high/a.rs: X"]);
        assert_eq!(lines(&[("new.rs", "low.rs")]), ["new.rs has no place in the order of folders"]);
    }
}
