//! Which tests name a file or a component in their sources.

use super::packages::Package;
use super::selection::Suites;
use crate::failure::Result;
use crate::setup::cannot;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Kinds of files whose text may name what a test reads.
const KINDS: [&str; 5] = ["rs", "toml", "trycmd", "py", "md"];

/// Whether `text` has a path that ends with a component of `path`: the file itself, or a folder that holds it, whose
/// content may be read.
pub fn path_is_named(text: &str, path: &Path) -> bool {
    path.iter().any(|component| {
        let component = component.to_string_lossy();
        let ends = ["\"", "/\"", "/{", "/*"].map(|end| format!("{component}{end}"));
        ends.iter().any(|end| ["\"", "/"].iter().any(|begin| text.contains(&format!("{begin}{end}"))))
    })
}

/// Whether `text` names the component `name` of a folder like `guests`, or lists that folder.
pub fn component_is_named(text: &str, folder: &str, name: &str) -> bool {
    let listed = [format!("join(\"{folder}\")"), format!("../{folder}\"")];
    let named = [format!("\"{name}\""), format!("{name}.wasm"), format!("{folder}/{name}")];
    named.iter().chain(&listed).any(|words| text.contains(words))
}

/// Whether `text` is of a test that is compiled with the module or folder of `path`, whose components these are.
pub fn part_is_named(text: &str, path: &Path) -> bool {
    let module = path.iter().next().map(Path::new).and_then(Path::file_stem).unwrap_or_default();
    text.contains(&format!("mod {};", module.to_string_lossy())) || path_is_named(text, path)
}

/// The suites of `package` with a source that satisfies `named`.
pub fn suites(root: &Path, package: &Package, named: &dyn Fn(&str) -> bool) -> Result<Option<Suites>> {
    let (mut tests, mut sources) = (BTreeSet::new(), false);
    for folder in ["src", "tests"] {
        for file in files(&root.join(&package.folder).join(folder))? {
            let Ok(text) = fs::read_to_string(&file) else { continue };
            if !named(&text) {
                continue;
            }
            if folder == "src" {
                sources = true;
            } else if let Some(test) = package.test_of(file.strip_prefix(root).unwrap_or(&file)) {
                tests.insert(test.to_owned());
            } else {
                return Ok(Some(Suites::All));
            }
        }
    }
    Ok((sources || !tests.is_empty()).then_some(Suites::Some { tests, sources }))
}

/// The files of a folder below `root` whose text counts, by their paths from there, and their texts.
pub fn texts(root: &Path, folder: &str) -> Result<Vec<(PathBuf, String)>> {
    let named = |file: PathBuf| {
        let text = fs::read_to_string(&file).ok()?;
        Some((file.strip_prefix(root).unwrap_or(&file).to_owned(), text))
    };
    Ok(files(&root.join(folder))?.into_iter().filter_map(named).collect())
}

/// All files in a folder whose text counts; none if there is no such folder.
fn files(folder: &Path) -> Result<Vec<PathBuf>> {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(cannot("read", folder, &error)),
    };
    let mut found = Vec::new();
    for path in entries.flatten().map(|entry| entry.path()) {
        if path.is_dir() {
            found.extend(files(&path)?);
        } else if path.extension().is_some_and(|kind| KINDS.iter().any(|counts| kind == *counts)) {
            found.push(path);
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_named_by_its_file_or_a_folder_that_holds_it() {
        let path = Path::new("tests/parity/algorithms/gae.safetensors");
        for text in [
            "join(\"../../tests/parity\")",
            "\"{}/../../tests/parity/algorithms/{name}.safetensors\"",
            "join(\"gae.safetensors\")",
            "include_bytes!(\"../algorithms/gae.safetensors\")",
            "\"../../tests/parity/\".to_owned() + file",
            "glob(\"../../tests/parity/algorithms/*.safetensors\")",
        ] {
            assert!(path_is_named(text, path), "{text}");
        }
        for text in ["\"../../tests/parity/models\"", "the algorithms of parity", "\"other-gae.safetensors\""] {
            assert!(!path_is_named(text, path), "{text}");
        }
    }

    #[test]
    fn a_component_is_named_by_its_name_its_file_or_the_list_of_all() {
        for text in [
            "guest(\"math\")",
            "\"target/plugins/math.wasm\"",
            "\"plugins/math/cases.jsonl\"",
            "join(\"plugins\")",
            "\"/../../plugins\"",
        ] {
            assert!(component_is_named(text, "plugins", "math"), "{text}");
        }
        for text in ["join(\"guests\")", "\"mathematics\"", "\"target/plugins/{name}.wasm\"", "// math"] {
            assert!(!component_is_named(text, "plugins", "math"), "{text}");
        }
    }
}
