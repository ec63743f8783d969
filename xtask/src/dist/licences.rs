//! The licences of the contents of an archive.

use crate::command::Call;
use crate::failure::{Failure, Result};
use crate::setup::cannot;
use crate::{node, programs};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

/// How the names of files with a licence begin.
const NAMES: [&str; 4] = ["LICENSE", "LICENCE", "COPYING", "NOTICE"];

/// Writes Gavel's licence, and `THIRD-PARTY-LICENSES.txt` with the licences of everything else: crates, Rust's standard
/// library, Python and the packages in plugins, the engine of JavaScript, the compiler of C, the plots of `gavel view`,
/// libtorch and its libraries.
pub fn write(root: &Path, libtorch: &Path, environment: &Path, folder: &Path) -> Result<()> {
    let own = folder.join("LICENSE");
    fs::copy(root.join("LICENSE"), &own).map_err(|error| cannot("write", &own, &error))?;
    let mut texts = Texts::default();
    let c = root.join("programs/c");
    for workspace in [root, &root.join("plugins"), &c] {
        crates(workspace, &mut texts)?;
    }
    rust(&mut texts)?;
    texts.add("wcc of xcc, in the program that runs C", &c.join("vendor/xcc"));
    python(&root.join("plugins"), environment, &mut texts)?;
    javascript(&mut texts)?;
    page(root, &mut texts);
    let beside = libtorch.parent().unwrap_or(libtorch);
    for about in distributions(beside, |name| name.starts_with("torch-") || name.starts_with("nvidia_cuda_")) {
        texts.add_distribution(&about);
    }
    texts.add("libtorch", libtorch);
    let all = folder.join("THIRD-PARTY-LICENSES.txt");
    fs::write(&all, texts.print()).map_err(|error| cannot("write", &all, &error))
}

/// Licences by their text, each with the names of the works under it: many crates share a text.
#[derive(Default)]
struct Texts(BTreeMap<String, Vec<String>>);

impl Texts {
    /// Adds the licences of `name` that are files of `folder`. Returns whether there is one.
    fn add(&mut self, name: &str, folder: &Path) -> bool {
        let entries = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
        let is_licence = |path: &PathBuf| {
            let file = path.file_name().unwrap_or_default().to_string_lossy().to_uppercase();
            NAMES.iter().any(|name| file.starts_with(name))
        };
        let found: Vec<bool> = entries.filter(is_licence).map(|path| self.add_file(name, &path)).collect();
        found.contains(&true)
    }

    /// Adds the licence of `name` in the file `path`. Returns whether the file can be read.
    fn add_file(&mut self, name: &str, path: &Path) -> bool {
        let Ok(text) = fs::read_to_string(path) else { return false };
        self.add_text(name, text.trim().replace("\r\n", "\n"));
        true
    }

    /// Adds the licence of `name` if only the name of the licence is known.
    fn add_named(&mut self, name: &str, licence: &str) {
        self.add_text(name, format!("{licence}\n(it has no file with the text of its licence)"));
    }

    fn add_text(&mut self, name: &str, text: String) {
        let names = self.0.entry(text).or_default();
        if !names.iter().any(|known| known == name) {
            names.push(name.to_owned());
        }
    }

    /// Adds the licences of a Python package, from the folder `NAME-VERSION.dist-info` that pip wrote.
    fn add_distribution(&mut self, about: &Path) {
        let name = about.file_stem().unwrap_or_default().to_string_lossy().replacen('-', " ", 1);
        let folders = [about.to_owned(), about.join("licenses")];
        let found = folders.map(|folder| self.add(&name, &folder));
        if !found.contains(&true) {
            let metadata = fs::read_to_string(about.join("METADATA")).unwrap_or_default();
            // A blank line ends the fields.
            let mut fields = metadata.lines().take_while(|line| !line.is_empty());
            let licence = fields
                .find_map(|line| line.strip_prefix("License-Expression: ").or_else(|| line.strip_prefix("License: ")));
            self.add_named(&name, licence.unwrap_or("its licence is not stated"));
        }
    }

    fn print(&self) -> String {
        let mut all = String::new();
        for (text, names) in &self.0 {
            let rule = "=".repeat(80);
            // Writing to a string cannot fail.
            let _ = writeln!(all, "{rule}\n{}\n{rule}\n\n{text}\n", names.join("\n"));
        }
        all
    }
}

/// Adds the crates that `workspace` depends on.
fn crates(workspace: &Path, texts: &mut Texts) -> Result<()> {
    let about = Call::cargo(["metadata", "--format-version=1", "--locked", "--quiet"]).within(workspace);
    let about = about.read("cannot list the crates")?;
    let about: Value =
        serde_json::from_str(&about).map_err(|error| Failure::new("cannot read what cargo lists").why(error))?;
    for package in about["packages"].as_array().into_iter().flatten() {
        // Gavel's own crates have no source.
        let (Some(name), Some(_), Some(manifest)) =
            (package["name"].as_str(), package["source"].as_str(), package["manifest_path"].as_str())
        else {
            continue;
        };
        let named = format!("{name} {}", package["version"].as_str().unwrap_or_default());
        let folder = Path::new(manifest).parent().unwrap_or(Path::new("."));
        if !texts.add(&named, folder) {
            texts.add_named(&named, package["license"].as_str().unwrap_or("its licence is not stated"));
        }
    }
    Ok(())
}

/// Adds Rust's standard library, which is in the binary and in plugins.
fn rust(texts: &mut Texts) -> Result<()> {
    let name = "the standard library of Rust";
    let root = PathBuf::from(Call::new("rustc", ["--print", "sysroot"]).read("cannot run rustc")?);
    let folder = root.join("share/doc/rust/licenses");
    let found = ["MIT.txt", "Apache-2.0.txt"].map(|file| texts.add_file(name, &folder.join(file)));
    if found.contains(&false) {
        texts.add_named(name, "MIT OR Apache-2.0");
    }
    Ok(())
}

/// Adds Python, which is in every plugin and program in Python, and the packages that plugins bring.
fn python(plugins: &Path, environment: &Path, texts: &mut Texts) -> Result<()> {
    let folders = "import sysconfig; print(sysconfig.get_path('stdlib')); print(sysconfig.get_path('purelib'))";
    let folders = Call::new(environment.join("bin/python3"), ["-c", folders]).read("cannot run Python")?;
    let (library, packages) = folders.split_once('\n').unwrap_or((&folders, ""));
    if !texts.add("Python", Path::new(library)) {
        texts.add_named("Python", "PSF-2.0");
    }
    for about in distributions(Path::new(packages), |name| name.starts_with("componentize_py-")) {
        texts.add_distribution(&about);
    }
    for name in programs::with_main(plugins, "main.py")? {
        for about in distributions(&plugins.join(name).join("build/packages"), |_| true) {
            texts.add_distribution(&about);
        }
    }
    Ok(())
}

/// Adds the engine of JavaScript, which is in the program that runs it.
fn javascript(texts: &mut Texts) -> Result<()> {
    let package = node::componentize_js()?.join(node::PACKAGE);
    if !texts.add("componentize-js, with StarlingMonkey", &package) {
        texts.add_named("componentize-js, with StarlingMonkey", "Apache-2.0 WITH LLVM-exception");
    }
    texts.add_named(
        "SpiderMonkey, in componentize-js; its source is at https://github.com/mozilla-firefox/firefox",
        "MPL-2.0, https://mozilla.org/MPL/2.0/",
    );
    Ok(())
}

/// Adds the library that draws the plots in the page of `gavel view`; its first line has its version.
fn page(root: &Path, texts: &mut Texts) {
    let folder = root.join("host/view/web/vendor");
    let script = fs::read_to_string(folder.join("uPlot.iife.min.js")).unwrap_or_default();
    let version = script.lines().next().and_then(|line| line.split_once("(v")?.1.split_once(')'));
    let name = version.map_or("uPlot".to_owned(), |(version, _)| format!("uPlot {version}"));
    if !texts.add(&name, &folder) {
        texts.add_named(&name, "MIT");
    }
}

/// The folders that pip wrote about the packages in `folder` with these names.
fn distributions(folder: &Path, is_wanted: impl Fn(&str) -> bool) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let is_wanted = |path: &PathBuf| {
        path.extension().is_some_and(|kind| kind == "dist-info")
            && path.file_name().is_some_and(|name| is_wanted(&name.to_string_lossy()))
    };
    let mut folders: Vec<PathBuf> = entries.filter(is_wanted).collect();
    folders.sort();
    folders
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_written_once_with_all_that_is_under_it() {
        let folder = tempfile::tempdir().unwrap();
        for (name, file, text) in [("a", "LICENSE-MIT", "same\n"), ("b", "license.md", "same"), ("b", "NOTICE", "own")]
        {
            let folder = folder.path().join(name);
            fs::create_dir_all(&folder).unwrap();
            fs::write(folder.join(file), text).unwrap();
        }
        let mut texts = Texts::default();
        assert!(texts.add("a 1.0.0", &folder.path().join("a")) && texts.add("b 2.0.0", &folder.path().join("b")));
        assert!(!texts.add("c", &folder.path().join("c")));
        let rule = "=".repeat(80);
        let expected = format!("{rule}\nb 2.0.0\n{rule}\n\nown\n\n{rule}\na 1.0.0\nb 2.0.0\n{rule}\n\nsame\n\n");
        assert_eq!(texts.print(), expected);
    }

    #[test]
    fn the_plots_of_the_page_have_their_version_and_licence() {
        let mut texts = Texts::default();
        page(&Path::new(env!("CARGO_MANIFEST_DIR")).join(".."), &mut texts);
        let printed = texts.print();
        assert!(printed.contains("\nuPlot 1.") && printed.contains("Leon Sorokin"), "{printed}");
    }

    #[test]
    fn a_package_without_a_licence_file_is_named_with_its_licence() {
        let folder = tempfile::tempdir().unwrap();
        let (with, without) = (folder.path().join("a-1.dist-info"), folder.path().join("b_c-2.0.dist-info"));
        fs::create_dir_all(with.join("licenses")).unwrap();
        fs::create_dir_all(&without).unwrap();
        fs::write(with.join("licenses/LICENSE"), "of a").unwrap();
        fs::write(without.join("METADATA"), "Name: b-c\nLicense: BSD\n\nLicense: not a field\n").unwrap();
        let mut texts = Texts::default();
        distributions(folder.path(), |_| true).iter().for_each(|about| texts.add_distribution(about));
        let printed = texts.print();
        assert!(printed.contains("\na 1\n") && printed.contains("\nb_c 2.0\n"), "{printed}");
        assert!(printed.contains("BSD\n(it has no file") && !printed.contains("not a field"), "{printed}");
    }
}
