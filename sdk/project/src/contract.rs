//! The world that a component is built against. It has only what the manifest
//! names, so that the component imports nothing else.

use crate::embedded;
use crate::error::Error;
use crate::manifest::{Export, Import, Manifest, Project};
use std::fs;
use std::path::PathBuf;

/// The name of the generated world.
pub(crate) const WORLD: &str = "plugin";

/// The imports of an HTTP client, in the version that every toolchain has.
const HTTP_CLIENT: [&str; 2] = ["wasi:clocks/monotonic-clock@0.2.0", "wasi:http/outgoing-handler@0.2.0"];

/// Writes the project's world to `build/wit`, with the contract below its
/// `deps`, and returns that folder.
pub(crate) fn write(project: &Project) -> Result<PathBuf, Error> {
    write_with(project, project.manifest.imports.contains(&Import::Http))
}

/// The same for a toolchain that adds the imports of `http` itself.
pub(crate) fn write_without_http(project: &Project) -> Result<PathBuf, Error> {
    write_with(project, false)
}

fn write_with(project: &Project, http: bool) -> Result<PathBuf, Error> {
    let folder = project.build_folder().join("wit");
    let save = |path: PathBuf, bytes: &[u8]| {
        let parent = path.parent().unwrap_or(&folder);
        fs::create_dir_all(parent).map_err(Error::file("make", parent))?;
        fs::write(&path, bytes).map_err(Error::file("write", &path))
    };
    for (name, bytes) in embedded::under("wit") {
        save(folder.join("deps/gavel-plugin").join(name), bytes)?;
    }
    if http {
        for (name, bytes) in embedded::under("wasi") {
            save(folder.join("deps").join(name), bytes)?;
        }
    }
    save(folder.join("plugin.wit"), world(&project.manifest, http).as_bytes())?;
    Ok(folder)
}

/// The full name of an interface of the contract.
pub(crate) fn interface(name: &str) -> String {
    format!("gavel:plugin/{name}@{}", embedded::CONTRACT_VERSION)
}

/// The imports that every agent needs.
pub(crate) fn of_agent(manifest: &Manifest) -> &'static [&'static str] {
    if manifest.exports.contains(&Export::Agent) { &["policy", "tools"] } else { &[] }
}

fn world(manifest: &Manifest, http: bool) -> String {
    let item = |word: &str, name: &str| format!("  {word} {name};\n");
    let own = |word: &str, name: &str| item(word, &interface(name));
    let client: &[&str] = if http { &HTTP_CLIENT } else { &[] };
    let imports = client.iter().map(|name| item("import", name));
    let granted = manifest.imports.iter().filter(|import| import.of_contract());
    let imports = imports.chain(granted.map(|import| own("import", import.as_str())));
    let imports = imports.chain(of_agent(manifest).iter().map(|name| own("import", name)));
    let exports = manifest.exports.iter().map(|export| own("export", export.as_str()));
    let items: String = imports.chain([own("export", "lifecycle")]).chain(exports).collect();
    format!("package local:plugin;\n\nworld {WORLD} {{\n{items}}}\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::language::Language;
    use crate::manifest::PythonTable;
    use std::collections::BTreeSet;

    #[test]
    fn the_world_names_what_the_manifest_names() {
        let mut manifest = Manifest {
            name: "polite".into(),
            language: Language::C,
            exports: BTreeSet::from([Export::Reward]),
            imports: BTreeSet::from([Import::Chat, Import::Http]),
            python: PythonTable::default(),
            test: None,
        };
        assert_eq!(
            world(&manifest, false),
            "package local:plugin;\n\nworld plugin {\n  import gavel:plugin/chat@0.1.0;\n  \
             export gavel:plugin/lifecycle@0.1.0;\n  export gavel:plugin/reward@0.1.0;\n}\n"
        );
        assert!(world(&manifest, true).contains("  import wasi:http/outgoing-handler@0.2.0;\n"));
        manifest.imports.clear();
        assert!(!world(&manifest, false).contains("import"));
        manifest.exports = BTreeSet::from([Export::Agent]);
        assert!(world(&manifest, false).contains("  import gavel:plugin/policy@0.1.0;\n"));
    }
}
