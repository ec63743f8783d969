//! Which crate may depend on which.

use super::crates_in;
use crate::failure::{Failure, Result};
use crate::setup::cannot;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// The crates of the host and of its tools: each depends only on those above
/// it.
const ORDER: [&str; 25] = [
    "gavel-data",
    "gavel-http",
    "gavel-dialects",
    "gavel-runs",
    "gavel-endpoint",
    "gavel-tracking",
    "gavel-text",
    "gavel-view",
    "gavel-hub",
    "gavel-plugin",
    "gavel-scoring",
    "gavel-torch",
    "gavel-policy",
    "gavel-rollout",
    "gavel-serve",
    "gavel-agent",
    "gavel-gateway",
    "gavel-train",
    "gavel-config",
    "gavel-pipeline",
    "gavel-project",
    "gavel-service",
    "gavel-harness",
    "gavel",
    "gavel-rl",
];

/// Refuses crates of `host/` that are not in [`ORDER`], and crates that depend
/// on a crate below them.
pub fn check(root: &Path) -> Result<()> {
    let mut wrong = Vec::new();
    for (folder, must_be_listed) in [("host", true), ("sdk", false)] {
        for path in crates_in(&root.join(folder))? {
            let path = path.join("Cargo.toml");
            let text = fs::read_to_string(&path).map_err(|error| cannot("read", &path, &error))?;
            let unread = |error: toml::de::Error| Failure::new(format!("cannot read {}", path.display())).why(error);
            let manifest: toml::Table = text.parse().map_err(unread)?;
            wrong.extend(wrong_with(&manifest, must_be_listed));
        }
    }
    if wrong.is_empty() {
        return Ok(());
    }
    Err(Failure::new("crates depend on crates that are not above them")
        .why(wrong.join("\n       "))
        .hint("move what both need up; the order of crates is in xtask/src/structure/crates.rs"))
}

/// What is wrong with the crate of a manifest, one line each.
fn wrong_with(manifest: &toml::Table, must_be_listed: bool) -> Vec<String> {
    let name = manifest.get("package").and_then(|package| package.get("name")?.as_str()).unwrap_or_default();
    let Some(place) = place(name) else {
        return if must_be_listed { vec![format!("{name} has no place in the order of crates")] } else { Vec::new() };
    };
    let below = |dependency: &&str| self::place(dependency).is_some_and(|other| other >= place);
    dependencies(manifest)
        .into_iter()
        .filter(below)
        .map(|dependency| format!("{name} depends on {dependency}, which is not above it"))
        .collect()
}

fn place(name: &str) -> Option<usize> {
    ORDER.iter().position(|listed| *listed == name)
}

/// All dependencies of a crate, including dependencies of its tests and of
/// single platforms.
fn dependencies(manifest: &toml::Table) -> BTreeSet<&str> {
    let platforms = manifest.get("target").and_then(toml::Value::as_table).into_iter().flat_map(toml::Table::values);
    std::iter::once(manifest)
        .chain(platforms.filter_map(toml::Value::as_table))
        .flat_map(|table| ["dependencies", "build-dependencies", "dev-dependencies"].map(|kind| table.get(kind)))
        .filter_map(|kind| kind?.as_table())
        .flat_map(toml::Table::keys)
        .map(String::as_str)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wrong(manifest: &str) -> Vec<String> {
        wrong_with(&manifest.parse().unwrap(), true)
    }

    #[test]
    fn a_crate_knows_only_those_above_it() {
        let manifest = "[package]\nname = \"gavel-policy\"\n[dependencies]\ntch = \"1\"\ngavel-data = \"1\"\n";
        assert!(wrong(manifest).is_empty());
        for more in
            ["gavel-train = \"1\"", "[dev-dependencies]\ngavel-train = \"1\"", "[target.x.dependencies.gavel-train]"]
        {
            let expected = "gavel-policy depends on gavel-train, which is not above it";
            assert_eq!(wrong(&format!("{manifest}{more}\n")), [expected], "{more}");
        }
    }

    #[test]
    fn a_crate_of_the_host_has_a_place() {
        let manifest = "[package]\nname = \"gavel-new\"\n[dependencies]\ngavel = \"1\"\n";
        assert_eq!(wrong(manifest), ["gavel-new has no place in the order of crates"]);
        assert!(wrong_with(&manifest.parse().unwrap(), false).is_empty());
    }
}
