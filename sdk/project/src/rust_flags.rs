//! Flags of the Rust compiler that keep this machine's folders out of a component.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The flags that rename `folders`, and the folders of cargo and rustup, so that the same sources give the same
/// component on any machine. They are in the form of `CARGO_ENCODED_RUSTFLAGS`, which keeps spaces in a folder's name.
pub fn path_flags(folders: impl IntoIterator<Item = (PathBuf, &'static str)>) -> OsString {
    let home = |variable: &str, default: &str| {
        let set = std::env::var_os(variable).map(PathBuf::from);
        set.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(default)))
    };
    let tools = [(home("CARGO_HOME", ".cargo"), "/cargo"), (home("RUSTUP_HOME", ".rustup"), "/rustup")];
    let tools = tools.into_iter().filter_map(|(folder, name)| Some((folder?, name)));
    let mut flags: Vec<OsString> =
        folders.into_iter().chain(tools).map(|(folder, name)| renamed(&folder, name)).collect();
    // The last flag that fits counts. Without its sources, the standard library already has this name.
    flags.extend(standard_library().map(|(folder, name)| renamed(&folder, &name)));
    flags.join("\u{1f}".as_ref())
}

/// The flag that replaces `folder` by `name`.
pub(crate) fn renamed(folder: &Path, name: &str) -> OsString {
    let mut flag = OsString::from("--remap-path-prefix=");
    flag.push(folder);
    flag.push("=");
    flag.push(name);
    flag
}

/// Where the sources of the standard library are installed, if they are, and their name in a compiled one.
fn standard_library() -> Option<(PathBuf, String)> {
    let ask = |argument: &[&str]| {
        let output = Command::new("rustc").args(argument).output().ok()?;
        String::from_utf8(output.stdout).ok()
    };
    let (root, about) = (ask(&["--print", "sysroot"])?, ask(&["-vV"])?);
    let commit = about.lines().find_map(|line| line.strip_prefix("commit-hash: "))?;
    Some((Path::new(root.trim()).join("lib/rustlib/src/rust"), format!("/rustc/{commit}")))
}
