//! The world that a component is built against: what its manifest names, and
//! no more, so that it imports no more.

use crate::embedded;
use crate::error::Error;
use crate::manifest::{Manifest, Project};
use std::fs;
use std::path::PathBuf;

/// The name of the generated world.
pub(crate) const WORLD: &str = "plugin";

/// Writes the project's world to `build/wit`, with the contract below its
/// `deps`, and gives that folder.
pub(crate) fn write(project: &Project) -> Result<PathBuf, Error> {
    let folder = project.build_folder().join("wit");
    let contract = folder.join("deps/gavel-plugin");
    fs::create_dir_all(&contract).map_err(Error::file("make", &contract))?;
    for (name, bytes) in embedded::under("wit") {
        let path = contract.join(name);
        fs::write(&path, bytes).map_err(Error::file("write", &path))?;
    }
    let path = folder.join("plugin.wit");
    fs::write(&path, world(&project.manifest)).map_err(Error::file("write", &path))?;
    Ok(folder)
}

/// The full name of an interface of the contract.
pub(crate) fn interface(name: &str) -> String {
    format!("gavel:plugin/{name}@{}", embedded::CONTRACT_VERSION)
}

fn world(manifest: &Manifest) -> String {
    let item = |word: &str, name: &str| format!("  {word} {};\n", interface(name));
    let imports = manifest.imports.iter().map(|import| item("import", import.as_str()));
    let exports = manifest.exports.iter().map(|export| item("export", export.as_str()));
    let items: String = imports.chain([item("export", "lifecycle")]).chain(exports).collect();
    format!("package local:plugin;\n\nworld {WORLD} {{\n{items}}}\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::language::Language;
    use crate::manifest::{Export, Import, PythonTable};
    use std::collections::BTreeSet;

    #[test]
    fn the_world_names_what_the_manifest_names() {
        let mut manifest = Manifest {
            name: "polite".into(),
            language: Language::C,
            exports: BTreeSet::from([Export::Reward]),
            imports: BTreeSet::from([Import::Chat]),
            python: PythonTable::default(),
            test: None,
        };
        assert_eq!(
            world(&manifest),
            "package local:plugin;\n\nworld plugin {\n  import gavel:plugin/chat@0.1.0;\n  \
             export gavel:plugin/lifecycle@0.1.0;\n  export gavel:plugin/reward@0.1.0;\n}\n"
        );
        manifest.imports.clear();
        assert!(!world(&manifest).contains("import"));
    }
}
