//! When a component is built again. The fake tools count their runs and, like
//! the real ones, never make the same bytes twice.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use gavel_project::{Built, Error, Kind, New, Project, Step, build, create};
use std::fs;
use std::path::PathBuf;
use std::process::Command;

/// A new project with such tools.
struct Place {
    _folder: tempfile::TempDir,
    root: PathBuf,
}

/// Copies a component to the file after `$1`, with a section that differs each
/// time.
const MAKE: &str = r#"
while [ "$1" != "$option" ]; do shift; done
echo run >> "$tool/runs"
test -e "$tool/broken" && exit 1
{ cat "$tool/component.wasm"; printf '\000\003\001a%s' "$(wc -l < "$tool/runs" | tr -d ' ')"; } > "$2"
"#;

impl Place {
    fn new(language: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let new = New { name: "polite", template: language.parse().unwrap(), kind: Kind::Reward };
        let root = create(new, folder.path()).unwrap().project.folder;
        let place = Self { _folder: folder, root };
        let empty = |name: &str| format!("(export \"gavel:plugin/{name}@0.1.0\" (instance $empty))");
        let component = format!(
            "(component (component $c) (instance $empty (instantiate $c)) {}{})",
            empty("lifecycle"),
            empty("reward")
        );
        place.write(".tool/component.wasm", wat::parse_str(component).unwrap());
        place.write(".tool/version", "1.0");
        place
    }

    fn python() -> Self {
        let place = Self::new("python");
        place.program(".venv/bin/componentize-py", "-o", MAKE);
        place
    }

    fn js() -> Self {
        let place = Self::new("js");
        place.program("node_modules/.bin/componentize-js", "--out", MAKE);
        place.program("node_modules/.bin/esbuild", "", "cp .tool/bundle.json build/js/bundle.json; : > build/js/bundle.js; echo '{\"sources\":[],\"mappings\":\"\"}' > build/js/bundle.js.map");
        let inputs = r#"{"inputs": {"build/js/component.js": {}, "main.js": {}, "node_modules/deep/index.js": {}, "../shared.js": {}}}"#;
        place.write(".tool/bundle.json", inputs);
        place.write("node_modules/deep/package.json", r#"{"name": "deep", "version": "1.0.0"}"#);
        place.write("node_modules/deep/index.js", "");
        place.write("../shared.js", "");
        place
    }

    fn program(&self, path: &str, option: &str, text: &str) {
        let head = format!("#!/bin/sh\ntool={}/.tool\noption={option}\n", self.root.display());
        let version = "if [ \"$1\" = --version ]; then cat \"$tool/version\"; exit; fi\n";
        let path = self.root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        // By another process: if this one started a child while it has the file open, the file would be busy for a
        // moment.
        let mut written = Command::new("sh");
        written.args(["-c", "printf %s \"$1\" > \"$2\" && chmod +x \"$2\"", "sh", &(head + version + text)]).arg(&path);
        assert!(written.status().unwrap().success());
    }

    fn write(&self, path: &str, content: impl AsRef<[u8]>) {
        let path = self.root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    fn edit(&self, path: &str, change: impl Fn(String) -> String) {
        self.write(path, change(fs::read_to_string(self.root.join(path)).unwrap()));
    }

    /// Builds. Returns the messages and the result.
    fn build(&self) -> (String, Result<Built, Error>) {
        let mut said = String::from("unchanged");
        let project = Project::open(&self.root).unwrap();
        let built = build(&project, &mut |step| {
            said = match step {
                Step::Building(reason) => reason.unwrap().to_string(),
                other => format!("{other:?}"),
            }
        });
        (said, built)
    }

    /// Builds, and checks that this is the reason.
    fn says(&self, reason: &str) -> Built {
        let (said, built) = self.build();
        let built = built.unwrap();
        assert_eq!(said, reason);
        assert_eq!(built.unchanged, reason == "unchanged");
        let component = fs::read(&built.component).unwrap();
        assert_eq!(built.hash, blake3::hash(&component).to_string());
        assert_eq!(built.size, component.len() as u64);
        built
    }

    fn runs(&self) -> usize {
        fs::read_to_string(self.root.join(".tool/runs")).unwrap_or_default().lines().count()
    }
}

#[test]
fn a_component_is_built_again_only_where_something_changed_that_it_is_made_from() {
    let place = Place::python();
    let first = place.says("it was not built before");
    assert_eq!(place.says("unchanged").hash, first.hash);
    // Files that no build reads, and a file that was written again with the same content.
    place.edit("cases.jsonl", |text| text + "\n");
    place.edit("README.md", |text| text + "more");
    place.edit("test_main.py", |text| text + "\n");
    place.edit("plugin.toml", |text| text + "limits = { cpu = \"1s\" }\n");
    place.edit("main.py", |text| text);
    assert_eq!(place.says("unchanged").hash, first.hash);
    assert_eq!(place.runs(), 1);

    place.edit("main.py", |text| text + "\n");
    assert_ne!(place.says("main.py changed").hash, first.hash);
    place.write("table.json", "{}");
    place.edit("vendor/gavel/answers.py", |text| text + "\n");
    place.says("vendor/gavel/answers.py changed, table.json is new");
    place.edit("plugin.toml", |text| text + "\n[python]\nno-deps = true\n");
    place.says("`no-deps` of plugin.toml was false, now true");
    place.write(".tool/version", "1.1");
    place.says("the tool componentize-py was 1.0, now 1.1");
    place.write("build/polite.wasm", "other");
    place.says("its component is not the one that was built");
    assert_eq!(place.runs(), 6);
    place.says("unchanged");
}

#[test]
fn a_package_that_was_installed_over_is_built_in() {
    let place = Place::python();
    // The file as pip leaves it.
    place.write("requirements.txt", "six==1.17.0\n");
    place.write("build/packages.txt", "six==1.17.0\n\n");
    place.write("build/packages/six.py", "1.17");
    place.write("build/packages/six-1.17.0.dist-info/METADATA", "");
    place.says("it was not built before");
    place.write("build/packages/__pycache__/six.pyc", "");
    place.says("unchanged");
    place.write("build/packages/six.py", "1.16");
    place.says("the package six.py changed");
    place.says("unchanged");
}

#[test]
fn a_test_that_the_plugin_imports_counts() {
    let place = Place::python();
    place.write("test_rule.py", "LIMIT = 1\n");
    place.edit("main.py", |text| text + "\nfrom test_rule import LIMIT\n");
    place.says("it was not built before");
    place.write("test_rule.py", "LIMIT = 2\n");
    place.says("test_rule.py changed");
    place.says("unchanged");
}

#[test]
fn a_build_that_fails_leaves_what_was_there() {
    let place = Place::python();
    let first = place.says("it was not built before");
    place.write(".tool/broken", "");
    place.edit("main.py", |text| text + "#");
    let (said, built) = place.build();
    assert_eq!(said, "main.py changed");
    assert!(built.unwrap_err().to_string().contains("componentize-py failed with status 1"));
    place.edit("main.py", |text| text.trim_end_matches('#').to_owned());
    assert_eq!(place.says("unchanged").hash, first.hash);
}

#[test]
fn warnings_are_shown_also_where_nothing_changed() {
    let place = Place::python();
    place.edit("main.py", |text| text + "\ndef later():\n    open('x')\n");
    let first = place.says("it was not built before");
    assert!(first.warnings.contains("there are no files in the sandbox"), "{}", first.warnings);
    assert_eq!(place.says("unchanged").warnings, first.warnings);
}

#[test]
fn modules_of_other_folders_count() {
    let place = Place::js();
    place.says("it was not built before");
    place.says("unchanged");
    place.write("../shared.js", "1");
    place.says("../shared.js changed");
    place.write("node_modules/deep/index.js", "1");
    place.says("node_modules/deep/index.js changed");
    place.write("node_modules/deep/package.json", r#"{"name": "deep", "version": "1.0.1"}"#);
    place.says("the package node_modules/deep was 1.0.0, now 1.0.1");
    place.write("main.test.js", "");
    place.says("unchanged");
    place.write("main.ts", "");
    place.says("main.ts is new");
}

#[test]
fn of_two_builds_at_once_the_second_waits_and_has_nothing_to_do() {
    let place = Place::python();
    place.program(".venv/bin/componentize-py", "-o", &format!("sleep 0.5\n{MAKE}"));
    let [one, two] = std::thread::scope(|threads| {
        [(); 2].map(|()| threads.spawn(|| place.build().1.unwrap())).map(|thread| thread.join().unwrap())
    });
    assert_eq!((place.runs(), &one.hash), (1, &two.hash));
    assert_ne!(one.unchanged, two.unchanged);
}
