//! The world that a component is built against. It has only what the manifest
//! names, so that the component imports nothing else.

use crate::embedded;
use crate::error::Error;
use crate::manifest::{Export, Import, Manifest, Project};
use std::fs;
use std::io::ErrorKind;
use std::path::PathBuf;

/// The name of the generated world.
pub(crate) const WORLD: &str = "plugin";

/// The imports of an HTTP client, in the version that every toolchain has.
const HTTP_CLIENT: [&str; 2] = ["wasi:clocks/monotonic-clock@0.2.0", "wasi:http/outgoing-handler@0.2.0"];

/// The file in a copy of an SDK that names the contract which the SDK implements.
const SDK_CONTRACT: &str = "CONTRACT";

/// The contract that a project is built for: its SDK's, which is older than this gavel's if the project is.
#[derive(Clone, Copy)]
pub(crate) struct Contract {
    /// The version, such as `0.2.0`.
    pub(crate) version: &'static str,
    /// Its folder among the embedded files.
    folder: &'static str,
}

/// Every contract that a component may be built for. The first is the contract of SDKs that name none.
pub(crate) const CONTRACTS: [Contract; 2] =
    [Contract { version: "0.1.0", folder: "wit/0.1" }, Contract { version: embedded::CONTRACT_VERSION, folder: "wit" }];

impl Contract {
    /// The contract of the project's SDK.
    pub(crate) fn of(project: &Project) -> Result<Self, Error> {
        let sdk = project.folder.join("vendor").join(project.manifest.language.toolchain().sdk().1);
        let path = sdk.join(SDK_CONTRACT);
        let found = match fs::read_to_string(&path) {
            Ok(text) => text.trim().to_owned(),
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(CONTRACTS[0]),
            Err(error) => return Err(Error::file("read", &path)(error)),
        };
        CONTRACTS.into_iter().find(|contract| contract.version == found).ok_or_else(|| Error::Component {
            what: format!("the SDK in {} is for gavel:plugin@{found}; this gavel supports {}", sdk.display(), known()),
            hint_text: "build with the gavel that made this folder, or take the SDK from `gavel plugin new`".into(),
        })
    }

    /// The full name of an interface.
    pub(crate) fn interface(self, name: &str) -> String {
        format!("gavel:plugin/{name}@{}", self.version)
    }
}

/// The contracts that this gavel supports, in words.
pub(crate) fn known() -> String {
    CONTRACTS.map(|contract| format!("gavel:plugin@{}", contract.version)).join(" and ")
}

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
    let contract = Contract::of(project)?;
    // The folder of a contract may have folders of older ones.
    for (name, bytes) in embedded::under(contract.folder).filter(|(name, _)| !name.contains('/')) {
        save(folder.join("deps/gavel-plugin").join(name), bytes)?;
    }
    if http {
        for (name, bytes) in embedded::under("wasi") {
            save(folder.join("deps").join(name), bytes)?;
        }
    }
    save(folder.join("plugin.wit"), world(&project.manifest, contract, http).as_bytes())?;
    Ok(folder)
}

/// The imports that every agent needs.
pub(crate) fn of_agent(manifest: &Manifest) -> &'static [&'static str] {
    if manifest.exports.contains(&Export::Agent) { &["policy", "tools"] } else { &[] }
}

fn world(manifest: &Manifest, contract: Contract, http: bool) -> String {
    let item = |word: &str, name: &str| format!("  {word} {name};\n");
    let own = |word: &str, name: &str| item(word, &contract.interface(name));
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
            world(&manifest, CONTRACTS[0], false),
            "package local:plugin;\n\nworld plugin {\n  import gavel:plugin/chat@0.1.0;\n  \
             export gavel:plugin/lifecycle@0.1.0;\n  export gavel:plugin/reward@0.1.0;\n}\n"
        );
        let world = |manifest: &Manifest, http| world(manifest, CONTRACTS[1], http);
        assert!(world(&manifest, true).contains("  import wasi:http/outgoing-handler@0.2.0;\n"));
        manifest.imports.clear();
        assert!(!world(&manifest, false).contains("import"));
        manifest.exports = BTreeSet::from([Export::Agent]);
        assert!(world(&manifest, false).contains("  import gavel:plugin/policy@0.2.0;\n"));
    }
}
