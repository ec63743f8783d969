//! `cargo xtask hashes`: compares the standard plugins in Rust with the hashes that are committed. These are of builds in
//! two folders, so each build that has them, on whatever machine, is one more build with the same bytes.

use crate::command::Call;
use crate::failure::{Failure, Result};
use crate::setup::cannot;
use crate::{rebuild, rust_plugins, setup};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::ErrorKind;
use std::path::Path;

/// The hash of each plugin, as `b3sum` writes them in `target/` and in the folder of a release.
const SUMS: &str = "plugins/B3SUMS";
/// The Rust that makes plugins with these hashes. `b3sum --check` takes no comments.
const RUST: &str = "plugins/B3SUMS.rust";
/// The folder of the plugins in `target/` and in a release.
const FOLDER: &str = "plugins/";

/// Hashes of plugins, by their names.
type Hashes = BTreeMap<String, String>;

/// Hashes and the Rust that they hold for.
struct Recorded {
    hashes: Hashes,
    rust: String,
}

/// Builds the plugins and compares. Another Rust makes other bytes: then it compares with a second build.
pub fn check(root: &Path) -> Result<()> {
    let (names, found) = build(root)?;
    let Some(recorded) = read(root)? else {
        return Err(Failure::new(format!("there is no {SUMS}")).hint("`cargo xtask hashes --record` writes it"));
    };
    let here = rust(root)?;
    if recorded.rust != here {
        let (there, here) = first_difference(&recorded.rust, &here);
        eprintln!("{SUMS} is of `{there}`, this is `{here}`: the plugins are built a second time to compare");
        return rebuild::compare(root, &names);
    }
    let differing = differing(&recorded.hashes, &found);
    if differing.is_empty() {
        eprintln!("{} plugins have the hashes of {SUMS}", found.len());
        return Ok(());
    }
    Err(Failure::new(format!("plugins have other hashes than in {SUMS}: {}", differing.join(", "))).hint(
        "if their sources changed, or the SDK or plugins/Cargo.lock, write the new hashes with `cargo xtask hashes --record` and commit them; otherwise the bytes depend on the machine or the folder, and `cargo xtask rebuild` may show how",
    ))
}

/// Builds the plugins, and those with new hashes again in another folder. Where both are the same, writes the hashes.
pub fn record(root: &Path) -> Result<()> {
    let (names, found) = build(root)?;
    let rust = rust(root)?;
    let new: BTreeSet<String> = match read(root)? {
        Some(recorded) if recorded.rust == rust => {
            let differing = differing(&recorded.hashes, &found);
            differing.into_iter().filter(|name| found.contains_key(name)).collect()
        }
        _ => names,
    };
    if !new.is_empty() {
        rebuild::compare(root, &new)?;
    }
    for (file, text) in [(SUMS, written(&found)), (RUST, rust)] {
        let path = root.join(file);
        fs::write(&path, text).map_err(|error| cannot("write", &path, &error))?;
    }
    eprintln!("{SUMS} has {} plugins, {} of them with new hashes", found.len(), new.len());
    Ok(())
}

/// Builds the plugins, and returns their names and hashes.
fn build(root: &Path) -> Result<(BTreeSet<String>, Hashes)> {
    setup::guest_target()?;
    let folder = root.join("target/plugins");
    let names = rust_plugins::build(root, &folder)?;
    let hash = |name: &String| {
        let component = folder.join(format!("{name}.wasm"));
        let bytes = fs::read(&component).map_err(|error| cannot("read", &component, &error))?;
        Ok((name.clone(), blake3::hash(&bytes).to_string()))
    };
    let hashes = names.iter().map(hash).collect::<Result<Hashes>>()?;
    Ok((names, hashes))
}

/// What is committed; `None` if nothing is.
fn read(root: &Path) -> Result<Option<Recorded>> {
    let text = |file: &str| {
        let path = root.join(file);
        match fs::read_to_string(&path) {
            Ok(text) => Ok(Some(text)),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(cannot("read", &path, &error)),
        }
    };
    let (Some(sums), Some(rust)) = (text(SUMS)?, text(RUST)?) else { return Ok(None) };
    Ok(Some(Recorded { hashes: parsed(&sums)?, rust }))
}

fn parsed(sums: &str) -> Result<Hashes> {
    let parse = |line: &str| {
        let (hash, path) = line.split_once("  ")?;
        Some((path.strip_prefix(FOLDER)?.strip_suffix(".wasm")?.to_owned(), hash.to_owned()))
    };
    let mut hashes = Hashes::new();
    for (at, line) in sums.lines().enumerate() {
        let added = parse(line).and_then(|(name, hash)| hashes.insert(name, hash).is_none().then_some(()));
        added.ok_or_else(|| {
            Failure::new(format!("line {} of {SUMS} is not the hash of one more plugin: {line}", at + 1)).hint(
                "where a merge left both sides, take either of them; `cargo xtask hashes --record` then writes what is built",
            )
        })?;
    }
    Ok(hashes)
}

fn written(hashes: &Hashes) -> String {
    hashes.iter().map(|(name, hash)| format!("{hash}  {FOLDER}{name}.wasm\n")).collect()
}

/// The plugins that have other hashes, or that only one side has.
fn differing(recorded: &Hashes, found: &Hashes) -> Vec<String> {
    let names: BTreeSet<&String> = recorded.keys().chain(found.keys()).collect();
    names.into_iter().filter(|name| recorded.get(*name) != found.get(*name)).cloned().collect()
}

/// What the bytes depend on beside the sources: the compiler, and cargo, which gives it names of symbols.
fn rust(root: &Path) -> Result<String> {
    let plugins = root.join("plugins");
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let rustc = Call::new(rustc, ["-vV"]).within(&plugins).read("cannot ask the Rust compiler for its version")?;
    let cargo = Call::cargo(["--version"]).within(&plugins).read("cannot ask cargo for its version")?;
    Ok(format!("{rustc}\n{cargo}\n"))
}

/// The first lines that differ.
fn first_difference<'a>(one: &'a str, other: &'a str) -> (&'a str, &'a str) {
    let others = other.lines().chain(std::iter::repeat(""));
    one.lines().zip(others).find(|(one, other)| one != other).unwrap_or(("", other.lines().next_back().unwrap_or("")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hashes(of: &[(&str, &str)]) -> Hashes {
        of.iter().map(|(name, hash)| ((*name).to_owned(), (*hash).to_owned())).collect()
    }

    #[test]
    fn what_is_written_is_read_again() {
        let written_first = hashes(&[("best-of-n", "0a"), ("math", "1b")]);
        let text = written(&written_first);
        assert_eq!(text, "0a  plugins/best-of-n.wasm\n1b  plugins/math.wasm\n");
        assert_eq!(parsed(&text).unwrap(), written_first);
    }

    #[test]
    fn a_conflict_of_a_merge_is_named() {
        for bad in ["<<<<<<< HEAD", "0a  plugins/math", "0a  math.wasm", "0a plugins/math.wasm", "2c  plugins/f1.wasm"]
        {
            let error = parsed(&format!("0a  plugins/f1.wasm\n{bad}\n")).unwrap_err().to_string();
            let expected = format!("line 2 of plugins/B3SUMS is not the hash of one more plugin: {bad}\nhint: ");
            assert!(error.starts_with(&expected), "{error}");
        }
    }

    #[test]
    fn a_plugin_differs_by_its_hash_or_as_only_one_side_has_it() {
        let recorded = hashes(&[("changed", "0a"), ("gone", "1b"), ("same", "2c")]);
        let found = hashes(&[("changed", "ff"), ("new", "3d"), ("same", "2c")]);
        assert_eq!(differing(&recorded, &found), ["changed", "gone", "new"]);
        assert_eq!(differing(&found, &found), [""; 0]);
    }

    #[test]
    fn nothing_is_recorded_without_both_files() {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir(root.path().join("plugins")).unwrap();
        fs::write(root.path().join(SUMS), "0a  plugins/f1.wasm\n").unwrap();
        assert!(read(root.path()).unwrap().is_none());
        fs::write(root.path().join(RUST), "rustc 1\n").unwrap();
        let recorded = read(root.path()).unwrap().unwrap();
        assert_eq!((recorded.hashes, &*recorded.rust), (hashes(&[("f1", "0a")]), "rustc 1\n"));
    }

    #[test]
    fn another_rust_is_named_by_its_first_line_that_differs() {
        let one = "rustc 1 (a)\nhost: x86_64\ncargo 1\n";
        assert_eq!(first_difference(one, &one.replace("x86", "arm")), ("host: x86_64", "host: arm_64"));
        assert_eq!(first_difference(one, "rustc 1 (a)\n"), ("host: x86_64", ""));
        assert_eq!(first_difference("rustc 1 (a)\n", one), ("", "cargo 1"));
    }
}
