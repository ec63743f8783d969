//! `cargo xtask rebuild`: builds the standard plugins in Rust a second time, differently, and compares.

use crate::command::Call;
use crate::failure::{Failure, Result};
use crate::setup::{GUEST_TARGET, cannot};
use crate::{cache, rust_plugins, setup, ui};
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

/// How many plugins are built again at the same time.
const BUILDS: usize = 2;
/// The folder of the first build, from the root.
const BUILT: &str = "target/plugins";

/// Builds all of them here and again.
pub fn check(root: &Path) -> Result<()> {
    setup::guest_target()?;
    let names = rust_plugins::build(root, &root.join(BUILT))?;
    compare(root, &names)
}

/// Builds plugins that are built here again in another folder, from nothing, in another order and one unit at a time.
pub fn compare(root: &Path, names: &BTreeSet<String>) -> Result<()> {
    let built = root.join(BUILT);
    let copy = std::env::temp_dir().join(format!("gavel-rebuild-{}", std::process::id()));
    let differing = ui::step("plugins built again", || {
        cache::remove(&copy)?;
        copy_sources(root, &copy)?;
        let differing = differing(&copy, names, &built);
        cache::remove(&copy)?;
        let found = differing?;
        let said = format!("{} of {} are the same", names.len() - found.len(), names.len());
        Ok((found, said))
    })?;
    match differing.as_slice() {
        [] => Ok(()),
        names => Err(Failure::new(format!("a second build gives other bytes: {}", names.join(", "))).hint(
            "compare both components, such as with `wasm-tools print`; a path or a hash in a symbol's name differs",
        )),
    }
}

/// The plugins that have other bytes in a second build. One after the other keeps one core busy, so a second core builds
/// every second plugin, in a target folder of its own.
fn differing(copy: &Path, names: &BTreeSet<String>, built: &Path) -> Result<Vec<String>> {
    let every_second = |first: usize| -> Result<Vec<String>> {
        let names = names.iter().rev().skip(first).step_by(BUILDS);
        differing_in(&copy.join(format!("other-target-{first}")), copy, names, built)
    };
    std::thread::scope(|scope| {
        let builds: [_; BUILDS] = std::array::from_fn(|first| scope.spawn(move || every_second(first)));
        let found = builds.map(|build| build.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        Ok(found.into_iter().collect::<Result<Vec<_>>>()?.concat())
    })
}

fn differing_in<'a>(
    target: &Path,
    copy: &Path,
    names: impl Iterator<Item = &'a String>,
    built: &Path,
) -> Result<Vec<String>> {
    let read = |path: PathBuf| fs::read(&path).map_err(|error| cannot("read", &path, &error));
    let mut found = Vec::new();
    for name in names {
        rust_plugins::compile(copy, name, target, &["--jobs", "1"])?;
        let again = target.join(GUEST_TARGET).join("release").join(format!("{}.wasm", name.replace('-', "_")));
        if read(again)? != read(built.join(format!("{name}.wasm")))? {
            found.push(name.clone());
        }
    }
    Ok(found)
}

/// Copies the files of the plugins and of the SDK that git knows or does not ignore.
fn copy_sources(root: &Path, copy: &Path) -> Result<()> {
    let arguments = ["ls-files", "--cached", "--others", "--exclude-standard", "--", "plugins", "sdk/rust"];
    let files = Call::git(arguments).within(root).read("cannot list the sources of the plugins")?;
    for file in files.lines() {
        let (from, to) = (root.join(file), copy.join(file));
        let folder = to.parent().unwrap_or(copy);
        fs::create_dir_all(folder).map_err(|error| cannot("make", folder, &error))?;
        match fs::read_link(&from) {
            Ok(target) => symlink(target, &to),
            Err(_) => fs::copy(&from, &to).map(drop),
        }
        .map_err(|error| cannot("copy", &from, &error))?;
    }
    Ok(())
}
