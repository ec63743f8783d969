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

/// The plugin that takes as long as all others together: it has a lane of its own.
const SLOWEST: &str = "json-schema";
/// The target folder of its lane, from the other lane's.
const BESIDE: &str = "beside";

/// Builds all of them to `<folder>/<name>.wasm` and returns their names.
pub fn build(root: &Path, folder: &Path) -> Result<BTreeSet<String>> {
    let names = names(&root.join("plugins"))?;
    build_named(root, &names.iter().map(String::as_str).collect::<Vec<_>>(), folder)?;
    Ok(names)
}

/// Builds the plugins with these names.
pub fn build_named(root: &Path, names: &[&str], folder: &Path) -> Result<()> {
    // The target folder as in the workspace's own configuration, whatever CARGO_TARGET_DIR says.
    let target = root.join("target/wasm");
    in_lanes(names, |lane, names| {
        let target = if lane == 0 { target.clone() } else { target.join(BESIDE) };
        for name in names {
            ui::step(&format!("plugin {name}"), || {
                compile(root, name, &target, &[])?;
                place(&BTreeSet::from([(*name).to_owned()]), &target.join(GUEST_TARGET).join("release"), folder)?;
                let component = folder.join(format!("{name}.wasm"));
                Ok(((), component.strip_prefix(root).unwrap_or(&component).display().to_string()))
            })?;
        }
        Ok(())
    })
    .map(drop)
}

/// Calls `build` with the plugins that are built one after the other, in each of the lanes at the same time. A lane needs
/// a target folder of its own, in which cargo makes one build at a time.
pub fn in_lanes<T: Send>(names: &[&str], build: impl Fn(usize, &[&str]) -> Result<T> + Sync) -> Result<[T; 2]> {
    let (slowest, others): (Vec<&str>, Vec<&str>) = names.iter().copied().partition(|name| *name == SLOWEST);
    std::thread::scope(|scope| {
        let beside = scope.spawn(|| build(1, &slowest));
        let others = build(0, &others);
        Ok([others?, beside.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?])
    })
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
