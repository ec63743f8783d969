//! Embeds the contract, the SDKs and the templates, so that the binary has
//! everything that `gavel plugin new` and a build need.

use std::error::Error;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

/// The embedded files and folders, by their paths from this crate, and their
/// names in the table.
const EMBEDDED: [(&str, &str); 10] = [
    ("../../wit", "wit"),
    ("../wasi", "wasi"),
    ("../../LICENSE", "LICENSE"),
    ("../rust", "rust"),
    ("../python", "python"),
    ("../js", "js"),
    ("../c", "c"),
    // The code of a build: if it changes, components are built again.
    ("src/component.rs", "builder/component.rs"),
    ("src/contract.rs", "builder/contract.rs"),
    ("src/language", "builder/language"),
];

/// The crates that affect components, by their names in Cargo.lock.
const CRATES: [&str; 3] = ["wasi-preview1-component-adapter-provider", "wit-bindgen-c", "wit-component"];

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
    writeln!(table, "pub(super) const CRATES: &str = {:?};", crates(&root.join("../../Cargo.lock"))?)?;
    fs::write(PathBuf::from(std::env::var("OUT_DIR")?).join("embedded.rs"), table)?;
    Ok(())
}

/// The versions of [`CRATES`].
fn crates(lock: &Path) -> Result<String, Box<dyn Error>> {
    println!("cargo:rerun-if-changed={}", lock.display());
    let lock = fs::read_to_string(lock)?;
    let about = lock.split("[[package]]").filter_map(|package| {
        let value = |key: &str| package.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(" = "));
        let (name, version) = (value("name")?.trim_matches('"'), value("version")?.trim_matches('"'));
        CRATES.contains(&name).then(|| format!("{name} {version}\n"))
    });
    Ok(about.collect())
}

/// Adds the file `path`, or all files below that folder except files that tools
/// make.
fn collect(path: &Path, name: String, files: &mut Vec<(String, PathBuf)>) -> Result<(), Box<dyn Error>> {
    if !path.is_dir() {
        files.push((name, path.to_owned()));
        return Ok(());
    }
    for entry in fs::read_dir(path)? {
        let entry = entry?;
        let file = entry.file_name().into_string().map_err(|name| format!("{name:?} is not UTF-8"))?;
        let hidden = file.starts_with('.') && file != ".gitignore";
        if !hidden && !["target", "build", "node_modules", "__pycache__", "Cargo.lock"].contains(&file.as_str()) {
            collect(&entry.path(), format!("{name}/{file}"), files)?;
        }
    }
    Ok(())
}
