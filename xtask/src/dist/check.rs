//! Tries a release archive.

use super::runpath;
use crate::command::Call;
use crate::failure::{Failure, Result};
use crate::setup::cannot;
use std::ffi::OsString;
use std::fs;
use std::path::Path;

/// Unpacks the archive in `place` and runs it in an environment that names no folder of this machine: it must start,
/// and score a row with a packed plugin.
pub fn unpacked(archive: &Path, name: &str, place: &Path) -> Result<()> {
    fs::create_dir_all(place).map_err(|error| cannot("make", place, &error))?;
    Call::new("tar", [Path::new("-xzf"), archive, Path::new("-C"), place]).read("cannot unpack the archive")?;
    let folder = place.join(name);
    let gavel = folder.join("bin/gavel");
    let found = runpath::of(&folder.join("bin/gavel-models"))?;
    if found != runpath::BESIDE {
        return Err(Failure::new(format!("the binary looks for libraries in {found}")));
    }
    let home = place.join("home");
    let run = |what: &str, arguments: &[OsString]| {
        let mut environment = OsString::from("HOME=");
        environment.push(&home);
        let clean = ["-i".into(), "PATH=".into(), environment, gavel.clone().into()];
        Call::new("/usr/bin/env", clean.iter().chain(arguments)).read(what)
    };
    let said = run("the unpacked gavel does not start", &["doctor".into()])?;
    let lib = folder.join("lib").canonicalize().map_err(|error| cannot("read", &folder, &error))?;
    if !said.lines().any(|line| line.starts_with("ok ") && line.ends_with(&format!(" {}", lib.display()))) {
        return Err(Failure::new("the unpacked gavel does not use the libtorch of the archive").why(said));
    }
    if !said.lines().any(|line| line.starts_with("ok ") && line.ends_with(" as released")) {
        return Err(Failure::new("the unpacked gavel does not find the components of the archive").why(said));
    }
    let rows = place.join("rows.jsonl");
    let row = r#"{"prompt": "2 + 2?", "response": "Answer: 4", "answer": "4"}"#;
    fs::write(&rows, format!("{row}\n")).map_err(|error| cannot("write", &rows, &error))?;
    let (plugin, out) = (folder.join("plugins/exact-answer.wasm"), place.join("scores.jsonl"));
    let arguments = ["score".into(), "--plugin".into(), plugin.into(), "--data".into(), rows.into()];
    let arguments = [&arguments[..], &["--out".into(), out.clone().into()]].concat();
    run("the unpacked gavel does not score", &arguments)?;
    let text = fs::read_to_string(&out).map_err(|error| cannot("read", &out, &error))?;
    let scored: serde_json::Value =
        serde_json::from_str(&text).map_err(|error| cannot("understand", &out, &error.into()))?;
    match scored["reward"].as_f64() {
        Some(1.0) => Ok(()),
        _ => Err(Failure::new("the unpacked gavel does not give a right answer the score 1").why(text)),
    }
}
