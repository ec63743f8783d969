//! Builds the standard plugins that are written in Rust. A component has the same bytes in any folder, and whatever is
//! built before it or beside it: a run can be resumed, and a verdict repeated, with a plugin that was built again.

use crate::command::Call;
use crate::failure::Result;
use crate::guests::{names, place};
use crate::setup::GUEST_TARGET;
use crate::ui;
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::Path;

/// The variable that holds [`flags`]. It replaces other settings of flags, of the user or the machine.
pub const FLAGS: &str = "CARGO_ENCODED_RUSTFLAGS";

/// The plugin that takes as long as all others together, and is built beside them.
const SLOWEST: &str = "json-schema";
/// Its target folder, in the target folder of the others. `.ci/dependencies` knows it too.
const BESIDE: &str = "beside";

/// Builds all of them to `<folder>/<name>.wasm` and returns their names.
pub fn build(root: &Path, folder: &Path) -> Result<BTreeSet<String>> {
    let names = names(&root.join("plugins"))?;
    build_named(root, &names.iter().map(String::as_str).collect::<Vec<_>>(), folder)?;
    Ok(names)
}

/// Builds the plugins with these names. The slowest one has a target folder of its own, as cargo makes one build at a time
/// in a folder.
pub fn build_named(root: &Path, names: &[&str], folder: &Path) -> Result<()> {
    // The target folder as in the workspace's own configuration, whatever CARGO_TARGET_DIR says.
    let target = root.join("target/wasm");
    let (slowest, others): (Vec<&str>, Vec<&str>) = names.iter().copied().partition(|name| *name == SLOWEST);
    std::thread::scope(|scope| {
        let beside = scope.spawn(|| build_in(&target.join(BESIDE), root, &slowest, folder));
        build_in(&target, root, &others, folder)?;
        beside.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// Builds plugins in the target folder `target`, one after another.
fn build_in(target: &Path, root: &Path, names: &[&str], folder: &Path) -> Result<()> {
    for name in names {
        ui::step(&format!("plugin {name}"), || {
            compile(root, name, target, &[])?;
            place(&BTreeSet::from([(*name).to_owned()]), &target.join(GUEST_TARGET).join("release"), folder)?;
            let component = folder.join(format!("{name}.wasm"));
            Ok(((), component.strip_prefix(root).unwrap_or(&component).display().to_string()))
        })?;
    }
    Ok(())
}

/// Compiles the plugin `name` of the repository at `root` into the folder `target`. Cargo unites the features of all
/// packages of a call, and the names of symbols depend on them: so each plugin has a call of its own.
pub fn compile(root: &Path, name: &str, target: &Path, more: &[&str]) -> Result<()> {
    let arguments = ["build", "--quiet", "--release", "--target", GUEST_TARGET, "--package", name, "--target-dir"];
    let arguments = arguments.map(Path::new).into_iter().chain([target]).chain(more.iter().map(Path::new));
    let mut call = Call::cargo(arguments).within(&root.join("plugins")).env(FLAGS, flags(root));
    // Settings that change the code that is generated; clippy's driver turns optimisations off.
    for name in ["RUSTC_WORKSPACE_WRAPPER", "RUSTC_WRAPPER", "CARGO_INCREMENTAL"] {
        call = call.without_env(name);
    }
    for (name, _) in std::env::vars_os() {
        if let Some(name) = name.to_str().filter(|name| name.starts_with("CARGO_PROFILE_")) {
            call = call.without_env(name);
        }
    }
    call.show(&format!("cannot build the plugin `{name}`"))
        .map_err(|failure| failure.hint("the compiler's message above names the file and the error"))
}

/// The compiler's flags for the repository at `root`.
pub fn flags(root: &Path) -> OsString {
    gavel_project::path_flags([(root.to_owned(), "/gavel")])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_slowest_plugin_is_there() {
        let plugins = Path::new(env!("CARGO_MANIFEST_DIR")).join("../plugins");
        assert!(names(&plugins).unwrap().contains(SLOWEST));
    }
}
