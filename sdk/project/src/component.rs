//! Checks a component against its manifest, by its imports and exports.

use crate::contract::{CONTRACTS, known};
use crate::error::Error;
use crate::manifest::{Import, MANIFEST, Manifest};
use std::collections::BTreeSet;
use wasmparser::{Encoding, Parser, Payload};

/// Interfaces of the contract that a component imports and exports, and the
/// versions that it names. `wasi:http` is among the imports as `http`.
#[derive(Default)]
struct Outside {
    imports: BTreeSet<String>,
    exports: BTreeSet<String>,
    versions: BTreeSet<String>,
}

/// Checks that the component `bytes` was built for this contract, exports what
/// the manifest names, and imports nothing else.
pub(crate) fn check(bytes: &[u8], manifest: &Manifest) -> Result<(), Error> {
    let name = &manifest.name;
    let outside = outside(bytes).map_err(|what| Error::Component {
        what: format!("the build of `{name}` did not give a component: {what}"),
        hint_text: "plugins are components of WASI preview 2; `gavel plugin new` makes a folder that builds one".into(),
    })?;
    let is_known = |version: &&String| CONTRACTS.iter().any(|contract| contract.version == version.as_str());
    if let Some(version) = outside.versions.iter().find(|version| !is_known(version)) {
        return Err(Error::Component {
            what: format!(
                "the component of `{name}` is built for gavel:plugin@{version}; this gavel supports {}",
                known()
            ),
            hint_text: "its SDK and this gavel are of different versions: take the SDK that `gavel plugin new` puts into `vendor/`".into(),
        });
    }
    let list = |names: &BTreeSet<String>| names.iter().map(String::as_str).collect::<Vec<_>>().join(", ");
    if outside.exports.is_empty() {
        return Err(Error::Component {
            what: format!("the component of `{name}` exports nothing of gavel:plugin"),
            hint_text: manifest.language.toolchain().how_to_export().into(),
        });
    }
    let declared = manifest.exports.iter().map(|export| export.as_str());
    if let Some(missing) = declared.clone().chain(["lifecycle"]).find(|export| !outside.exports.contains(*export)) {
        return Err(Error::Component {
            what: format!(
                "the component of `{name}` does not export `{missing}`, which {MANIFEST} names; it exports: {}",
                list(&outside.exports)
            ),
            hint_text: format!("{}, or correct `exports` in {MANIFEST}", manifest.language.toolchain().how_to_export()),
        });
    }
    let undeclared = |export: &&String| *export != "lifecycle" && !declared.clone().any(|known| known == *export);
    if let Some(export) = outside.exports.iter().find(undeclared) {
        return Err(Error::Component {
            what: format!("the component of `{name}` exports `{export}`, which {MANIFEST} does not name"),
            hint_text: format!("add \"{export}\" to `exports` in {MANIFEST}"),
        });
    }
    let undeclared = Import::ALL.into_iter().filter(|import| !manifest.imports.contains(import));
    if let Some(import) = undeclared.map(Import::as_str).find(|import| outside.imports.contains(*import)) {
        return Err(Error::Component {
            what: format!("the component of `{name}` imports `{import}`, which {MANIFEST} does not name"),
            hint_text: format!("add \"{import}\" to `imports` below [plugin] in {MANIFEST}"),
        });
    }
    Ok(())
}

/// Reads the outermost imports and exports.
fn outside(bytes: &[u8]) -> Result<Outside, String> {
    let mut outside = Outside::default();
    let mut depth = 0_u32;
    for payload in Parser::new(0).parse_all(bytes) {
        match payload.map_err(|error| error.message().to_owned())? {
            Payload::Version { encoding: Encoding::Module, .. } if depth == 0 => {
                return Err("it is a core module".into());
            }
            Payload::Version { .. } => depth += 1,
            Payload::End(_) => depth -= 1,
            Payload::ComponentImportSection(section) if depth == 1 => {
                for import in section {
                    let name = import.map_err(|error| error.message().to_owned())?.name.name;
                    if name.starts_with("wasi:http/") {
                        outside.imports.insert(Import::Http.as_str().to_owned());
                    }
                    outside.versions.extend(add(name, &mut outside.imports));
                }
            }
            Payload::ComponentExportSection(section) if depth == 1 => {
                for export in section {
                    let name = export.map_err(|error| error.message().to_owned())?.name.name;
                    outside.versions.extend(add(name, &mut outside.exports));
                }
            }
            _ => {}
        }
    }
    Ok(outside)
}

/// Adds the interface of `gavel:plugin/INTERFACE@VERSION` to `names` and gives
/// the version.
fn add(name: &str, names: &mut BTreeSet<String>) -> Option<String> {
    let (interface, version) = name.strip_prefix("gavel:plugin/")?.split_once('@')?;
    names.insert(interface.to_owned());
    Some(version.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::language::Language;
    use crate::manifest::{Export, PythonTable};

    fn manifest() -> Manifest {
        Manifest {
            name: "polite".into(),
            language: Language::Rust,
            exports: BTreeSet::from([Export::Reward]),
            imports: BTreeSet::new(),
            python: PythonTable::default(),
            test: None,
        }
    }

    /// A component that imports and exports empty instances of these names.
    fn component(imports: &[&str], exports: &[&str]) -> Vec<u8> {
        let imports: String = imports.iter().map(|name| format!("(import \"{name}\" (instance))")).collect();
        let exports: String = exports.iter().map(|name| format!("(export \"{name}\" (instance $empty))")).collect();
        wat::parse_str(format!("(component {imports} (component $c) (instance $empty (instantiate $c)) {exports})"))
            .unwrap()
    }

    const LIFECYCLE: &str = "gavel:plugin/lifecycle@0.1.0";
    const REWARD: &str = "gavel:plugin/reward@0.1.0";

    #[test]
    fn a_component_that_fits_its_manifest_passes() {
        check(&component(&["gavel:plugin/samples@0.1.0", "wasi:cli/stdin@0.2.0"], &[LIFECYCLE, REWARD]), &manifest())
            .unwrap();
    }

    #[test]
    fn what_does_not_fit_is_named() {
        let judger = "gavel:plugin/judger@0.1.0";
        for (imports, exports, what) in [
            (&[][..], &[][..], "exports nothing of gavel:plugin\nhint: export"),
            (
                &[],
                &[LIFECYCLE, judger],
                "does not export `reward`, which plugin.toml names; it exports: judger, lifecycle",
            ),
            (&[], &[REWARD], "does not export `lifecycle`"),
            (
                &[],
                &[LIFECYCLE, REWARD, judger],
                "exports `judger`, which plugin.toml does not name\nhint: add \"judger\"",
            ),
            (
                &["gavel:plugin/chat@0.1.0"],
                &[LIFECYCLE, REWARD],
                "imports `chat`, which plugin.toml does not name\nhint: add \"chat\" to `imports` below [plugin]",
            ),
            (&["gavel:plugin/exec@0.1.0"], &[LIFECYCLE, REWARD], "imports `exec`, which plugin.toml does not name"),
            (&["wasi:http/types@0.2.0"], &[LIFECYCLE, REWARD], "imports `http`, which plugin.toml does not name"),
            (
                &["gavel:plugin/samples@0.3.0"],
                &[LIFECYCLE, REWARD],
                "is built for gavel:plugin@0.3.0; this gavel supports gavel:plugin@0.1.0 and gavel:plugin@0.2.0",
            ),
        ] {
            let error = check(&component(imports, exports), &manifest()).unwrap_err().to_string();
            assert!(error.contains(what), "{error}");
        }
        let module = wat::parse_str("(module)").unwrap();
        let error = check(&module, &manifest()).unwrap_err().to_string();
        assert!(error.contains("did not give a component: it is a core module"), "{error}");
        assert!(check(b"nonsense", &manifest()).is_err());
    }
}
