//! Rust: cargo, for the target `wasm32-wasip2`.

use super::{Compiled, Prepared, Toolchain};
use crate::build::Step;
use crate::error::Error;
use crate::inputs::Inputs;
use crate::manifest::Project;
use crate::rust_flags::{path_flags, renamed};
use crate::tool::{self, Tool};
use serde::Deserialize;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

const TARGET: &str = "wasm32-wasip2";

static CARGO: Tool = Tool {
    name: "cargo",
    purpose: "builds Rust",
    install: "curl --proto '=https' --tlsv1.2 -sSf https://sh.rustup.rs | sh",
};
static STANDARD_LIBRARY: Tool = Tool {
    name: "the Rust target wasm32-wasip2",
    purpose: "makes components of Rust code",
    install: "rustup target add wasm32-wasip2",
};

pub(super) struct Rust;

impl Toolchain for Rust {
    fn sdk(&self) -> (&'static str, &'static str) {
        ("rust", "gavel-sdk")
    }

    /// Cargo runs each time, as it knows all inputs of a crate, in any folder.
    fn prepare<'a>(&self, project: &'a Project, _: &mut dyn FnMut(Step<'_>)) -> Result<Prepared<'a>, Error> {
        if let Some(tool) = self.missing(&project.folder).first() {
            return Err(Error::missing(tool));
        }
        Ok(Prepared { inputs: None, make: Box::new(|| compile(project)) })
    }

    fn missing(&self, folder: &Path) -> Vec<&'static Tool> {
        if !tool::works(Command::new("cargo").arg("--version")) {
            return vec![&CARGO];
        }
        // In the project's folder, which may have another toolchain.
        let asked =
            Command::new("rustc").args(["--print", "target-libdir", "--target", TARGET]).current_dir(folder).output();
        let there = asked.is_ok_and(|output| Path::new(String::from_utf8_lossy(&output.stdout).trim()).is_dir());
        if there { Vec::new() } else { vec![&STANDARD_LIBRARY] }
    }

    fn how_to_export(&self) -> &'static str {
        "export it in src/lib.rs with `gavel_sdk::export_reward!(Type);`, `export_judger!(Type);`, `export_taskset!(Type);`, `export_tool!(Type);`, `export_agent!(Type);`, `export_advantage!(Type);` or `export_sampler!(Type);`"
    }
}

fn compile(project: &Project) -> Result<Compiled, Error> {
    let name = &project.manifest.name;
    let root = project.folder.canonicalize().map_err(Error::file("open", &project.folder))?;
    let mut cargo = Command::new("cargo");
    // `rustc` is `build` with flags only for this crate: others are compiled once for all folders.
    cargo.args(["rustc", "--release", "--lib", "--target", TARGET, "--message-format=json-render-diagnostics"]);
    remap(&mut cargo, &root);
    cargo.arg("--").arg(renamed(&root, "/plugin"));
    let output = tool::output(cargo.current_dir(&root), &CARGO)?;
    // Messages for people are on standard error.
    let said = tool::text(&output.stderr);
    if !output.status.success() {
        return Err(tool::failed(output.status, &CARGO, &format!("cannot compile `{name}`"), said));
    }
    let path = component(&tool::text(&output.stdout), &root.join("Cargo.toml")).ok_or_else(|| Error::Source {
        what: format!("the crate of `{name}` does not give a component"),
        hint_text: "write crate-type = [\"cdylib\"] below [lib] in its Cargo.toml".into(),
    })?;
    let component = std::fs::read(&path).map_err(Error::file("read", &path))?;
    // Its warnings are mixed with its progress.
    Ok(Compiled { component, said, warnings: String::new(), elsewhere: Inputs::default() })
}

/// Keeps this machine's folders out of the component, so that the same sources
/// give the same component in any folder. Crates in the plugin's workspace are
/// compiled by relative paths.
fn remap(cargo: &mut Command, root: &Path) {
    // This form replaces RUSTFLAGS, so the flags of RUSTFLAGS come first.
    let mut flags: Vec<OsString> = match std::env::var_os("CARGO_ENCODED_RUSTFLAGS") {
        Some(flags) if !flags.is_empty() => vec![flags],
        _ => std::env::var("RUSTFLAGS").unwrap_or_default().split_whitespace().map(OsString::from).collect(),
    };
    flags.push(path_flags(target(root).map(|folder| (folder, "/target"))));
    cargo.env("CARGO_ENCODED_RUSTFLAGS", flags.join(std::ffi::OsStr::new("\u{1f}")));
}

/// Cargo's target folder for the crate in `root`. `None` if cargo cannot read
/// the manifest, which it will report itself.
fn target(root: &Path) -> Option<PathBuf> {
    #[derive(Deserialize)]
    struct Metadata {
        target_directory: PathBuf,
    }
    let asked = ["metadata", "--no-deps", "--format-version=1"];
    let output = Command::new("cargo").args(asked).current_dir(root).output().ok()?;
    Some(serde_json::from_slice::<Metadata>(&output.stdout).ok()?.target_directory)
}

/// The component among cargo's messages: the `cdylib` of the package of
/// `manifest`.
fn component(messages: &str, manifest: &Path) -> Option<PathBuf> {
    #[derive(Deserialize)]
    struct Message {
        reason: String,
        manifest_path: Option<PathBuf>,
        #[serde(default)]
        filenames: Vec<PathBuf>,
    }
    messages
        .lines()
        .filter_map(|line| serde_json::from_str::<Message>(line).ok())
        .filter(|message| message.reason == "compiler-artifact" && message.manifest_path.as_deref() == Some(manifest))
        .flat_map(|message| message.filenames)
        .find(|file| file.extension().is_some_and(|extension| extension == "wasm"))
}
