//! Builds the hostile suite. An attack is a folder of `tests/hostile` with the
//! outcome that it must get in `expect.toml`. It is one of
//! - a crate (`Cargo.toml`), compiled like any guest;
//! - a component or a module in text (`component.wat`), assembled as it is;
//! - the hostile part of a component (`attack.wat`), assembled inside
//!   `reward.wat`;
//! - another attack's component with other settings (`guest = "…"` in its
//!   `expect.toml`).

use crate::failure::{Failure, Result};
use crate::guests::{Guests, place, put, remove_others};
use crate::setup::cannot;
use crate::ui;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

const HOSTILE: Guests = Guests { title: "attacks", workspace: "tests/hostile", folder: "target/hostile" };

/// Where an attack's component comes from.
#[derive(Debug, PartialEq)]
enum Source {
    Crate,
    Component,
    Part,
    Guest(String),
}

/// Builds every attack to `target/hostile/<name>.wasm`.
pub fn build(root: &Path) -> Result<()> {
    let (workspace, folder) = (root.join(HOSTILE.workspace), root.join(HOSTILE.folder));
    ui::loud_step(HOSTILE.title, "building", || {
        let attacks = find(&workspace)?;
        let of = |wanted: fn(&Source) -> bool| {
            attacks.iter().filter(move |(_, source)| wanted(source)).map(|(name, _)| name.clone())
        };
        place(&of(|source| *source == Source::Crate).collect(), &HOSTILE.compile(root, &["--workspace"])?, &folder)?;
        for name in of(|source| *source == Source::Component) {
            let path = workspace.join(&name).join("component.wat");
            put(&folder, &name, &assemble(&path, &read(&path)?)?)?;
        }
        let reward = read(&workspace.join("reward.wat"))?;
        for name in of(|source| *source == Source::Part) {
            let path = workspace.join(&name).join("attack.wat");
            put(&folder, &name, &assemble(&path, &reward.replace("\nATTACK\n", &format!("\n{}\n", read(&path)?)))?)?;
        }
        let built: BTreeSet<String> = of(|source| !matches!(source, Source::Guest(_))).collect();
        remove_others(&built, &folder)?;
        Ok(((), format!("{} in {}/", attacks.len(), HOSTILE.folder)))
    })
}

/// All attacks by name; an error if one does not have a valid expected outcome.
fn find(workspace: &Path) -> Result<BTreeMap<String, Source>> {
    let entries = fs::read_dir(workspace).map_err(|error| cannot("read", workspace, &error))?;
    let mut attacks = BTreeMap::new();
    for entry in entries {
        let entry = entry.map_err(|error| cannot("read", workspace, &error))?;
        let name = entry.file_name().to_string_lossy().into_owned();
        // `src` has the code that the crates share.
        if entry.path().is_dir() && !name.starts_with('.') && name != "src" {
            attacks.insert(name.clone(), source(&name, &entry.path())?);
        }
    }
    for (name, source) in &attacks {
        if let Source::Guest(guest) = source
            && matches!(attacks.get(guest), None | Some(Source::Guest(_)))
        {
            return Err(Failure::new(format!("the attack `{name}` has the guest `{guest}`, which is not a component"))
                .hint("name an attack that is built from source"));
        }
    }
    Ok(attacks)
}

fn source(name: &str, folder: &Path) -> Result<Source> {
    let path = folder.join("expect.toml");
    if !path.exists() {
        return Err(Failure::new(format!("the attack `{name}` has no expect.toml"))
            .hint("write into it the outcome that the attack must get; tests/hostile/README.md shows how"));
    }
    let invalid = |why: String| {
        Failure::new(format!("{} does not have a valid expected outcome", path.display()))
            .why(why)
            .hint("tests/hostile/README.md shows the keys")
    };
    let expected: toml::Table = read(&path)?.parse().map_err(|error: toml::de::Error| invalid(error.to_string()))?;
    if expected.contains_key("load") == expected.contains_key("outcome") {
        return Err(invalid("it needs one of the tables [load] and [outcome]".into()));
    }
    let guest = expected.get("guest").and_then(toml::Value::as_str).map(|guest| Source::Guest(guest.to_owned()));
    let files = [("Cargo.toml", Source::Crate), ("component.wat", Source::Component), ("attack.wat", Source::Part)];
    let mut sources =
        files.into_iter().filter(|(file, _)| folder.join(file).exists()).map(|(_, source)| source).chain(guest);
    match (sources.next(), sources.next()) {
        (Some(source), None) => Ok(source),
        _ => Err(Failure::new(format!("the attack `{name}` must have one source"))
            .hint("that is Cargo.toml, component.wat, attack.wat or `guest` in expect.toml")),
    }
}

fn read(path: &Path) -> Result<String> {
    fs::read_to_string(path).map_err(|error| cannot("read", path, &error))
}

fn assemble(path: &Path, text: &str) -> Result<Vec<u8>> {
    wat::parse_str(text).map_err(|error| Failure::new(format!("cannot assemble {}", path.display())).why(error))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(files: &[(&str, &str)]) -> std::result::Result<BTreeMap<String, Source>, String> {
        let folder = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        find(folder.path()).map_err(|failure| failure.to_string())
    }

    #[test]
    fn an_attack_is_known_by_its_files() {
        let attacks = found(&[
            ("src/lib.rs", ""),
            (".cargo/config.toml", ""),
            ("loop/Cargo.toml", ""),
            ("loop/expect.toml", "[outcome]"),
            ("empty/component.wat", ""),
            ("empty/expect.toml", "[load]"),
            ("loop-again/expect.toml", "guest = \"loop\"\n[outcome]"),
        ])
        .unwrap();
        let expected = [
            ("empty".to_owned(), Source::Component),
            ("loop".to_owned(), Source::Crate),
            ("loop-again".to_owned(), Source::Guest("loop".to_owned())),
        ];
        assert_eq!(attacks, BTreeMap::from(expected));
    }

    #[test]
    fn an_attack_that_expects_nothing_is_refused_by_name() {
        let error = found(&[("loop/Cargo.toml", "")]).unwrap_err();
        assert!(error.starts_with("the attack `loop` has no expect.toml\n"), "{error}");
        let error = found(&[("loop/Cargo.toml", ""), ("loop/expect.toml", "")]).unwrap_err();
        assert!(error.contains("[load] and [outcome]"), "{error}");
        let error = found(&[("loop/Cargo.toml", ""), ("loop/expect.toml", "[outcome")]).unwrap_err();
        assert!(error.contains("does not have a valid expected outcome"), "{error}");
    }

    #[test]
    fn an_attack_has_one_source() {
        let error = found(&[("loop/expect.toml", "[outcome]")]).unwrap_err();
        assert!(error.starts_with("the attack `loop` must have one source"), "{error}");
        let error = found(&[("loop/expect.toml", "guest = \"lop\"\n[outcome]")]).unwrap_err();
        assert!(error.contains("the guest `lop`, which is not a component"), "{error}");
    }
}
