//! Which packages differ between a build with training and one without.
//!
//! A feature that only training turns on in a dependency changes every crate above it, and a run of CI, which makes both
//! builds, compiles them twice.

use crate::command::Call;
use crate::failure::{Failure, Result};
use std::collections::BTreeSet;
use std::path::Path;

/// The package with a feature for training. `gavel-rl`, which depends on it, differs with it.
const DIFFERS: &str = "gavel";

/// Refuses features of dependencies that depend on whether training is built.
pub fn check(root: &Path) -> Result<()> {
    let packages = |more: &[&str]| {
        let arguments = ["tree", "--locked", "--workspace", "--edges", "normal,build", "--prefix", "none"];
        let arguments = [&arguments[..], &["--format", "{p} [{f}]"], more].concat();
        Call::cargo(arguments).within(root).read("cannot list the features of dependencies")
    };
    let (with, without) = (packages(&[])?, packages(&["--no-default-features"])?);
    let wrong = differing(&with, &without);
    if wrong.is_empty() {
        return Ok(());
    }
    Err(Failure::new("dependencies have other features without training, so that a run of CI compiles crates twice")
        .why(wrong.join("\n       "))
        .hint("turn the feature on or off in both: name it where the workspace's Cargo.toml names the dependency"))
}

/// The packages of `without` that no line of `with` has, but the one that may differ.
fn differing<'a>(with: &'a str, without: &'a str) -> Vec<&'a str> {
    let (with, without) = (lines(with), lines(without));
    without.difference(&with).copied().filter(|line| line.split(' ').next() != Some(DIFFERS)).collect()
}

/// The packages that `cargo tree` printed. It marks a package that it has shown before.
fn lines(printed: &str) -> BTreeSet<&str> {
    printed.lines().map(|line| line.strip_suffix(" (*)").unwrap_or(line)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_package_with_the_feature_differs() {
        let with = "gavel v1 (/r) [default,train]\nblake3 v1 []\narrayvec v2 [std]\nblake3 v1 [] (*)\ntch v3 []";
        assert_eq!(differing(with, "gavel v1 (/r) []\nblake3 v1 [] (*)\narrayvec v2 [std]"), Vec::<&str>::new());
        assert_eq!(differing(with, "gavel v1 (/r) []\nblake3 v1 []\narrayvec v2 []"), ["arrayvec v2 []"]);
        assert_eq!(differing(with, "gavel-rl v1 (/r) []"), ["gavel-rl v1 (/r) []"]);
    }
}
