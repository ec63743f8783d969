//! Embeds the contract, the SDKs and the templates: what `gavel plugin new`
//! puts into a project and what a build needs lies in the binary.

use std::error::Error;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

/// What is embedded, from this crate's folder, and its name in the table.
const EMBEDDED: [(&str, &str); 6] = [
    ("../../wit", "wit"),
    ("../../LICENSE", "LICENSE"),
    ("../rust", "rust"),
    ("../python", "python"),
    ("../js", "js"),
    ("../c", "c"),
];

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo:rerun-if-changed=build.rs");
    let root = PathBuf::from(std::env::var("CARGO_MANIFEST_DIR")?);
    let mut files = Vec::new();
    for (place, name) in EMBEDDED {
        let place = root.join(place);
        println!("cargo:rerun-if-changed={}", place.display());
        let place = place.canonicalize().map_err(|error| format!("{}: {error}", place.display()))?;
        collect(&place, name.to_owned(), &mut files)?;
    }
    files.sort();
    let mut table = String::from("pub(super) static FILES: &[(&str, &[u8])] = &[\n");
    for (name, path) in &files {
        writeln!(table, "    ({name:?}, include_bytes!({path:?})),")?;
    }
    table += "];\n";
    let types = fs::read_to_string(root.join("../../wit/types.wit"))?;
    let version = types.lines().next().and_then(|line| line.strip_prefix("package gavel:plugin@")?.strip_suffix(';'));
    let version = version.ok_or("wit/types.wit does not begin with its package")?;
    writeln!(table, "pub(super) const VERSION: &str = {version:?};")?;
    fs::write(PathBuf::from(std::env::var("OUT_DIR")?).join("embedded.rs"), table)?;
    Ok(())
}

/// Adds the file `path`, or all below that folder save what tools leave there.
fn collect(path: &Path, name: String, files: &mut Vec<(String, PathBuf)>) -> Result<(), Box<dyn Error>> {
    if !path.is_dir() {
        files.push((name, path.to_owned()));
        return Ok(());
    }
    for entry in fs::read_dir(path)? {
        let entry = entry?;
        let file = entry.file_name().into_string().map_err(|name| format!("{name:?} is no UTF-8"))?;
        let hidden = file.starts_with('.') && file != ".gitignore";
        if !hidden && !["target", "build", "node_modules", "__pycache__", "Cargo.lock"].contains(&file.as_str()) {
            collect(&entry.path(), format!("{name}/{file}"), files)?;
        }
    }
    Ok(())
}
