//! `gavel plugin new` and `gavel plugin build` as a user runs them, mostly with something wrong. `SNAPSHOTS=overwrite`
//! records what is printed now.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use snapbox::data::Inline;
use snapbox::{Assert, str};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// An empty folder to work in.
struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self, path: &str) -> PathBuf {
        self.0.path().join(path)
    }

    fn edit(&self, path: &str, change: impl Fn(String) -> String) {
        let path = self.path(path);
        let before = std::fs::read_to_string(&path).unwrap_or_default();
        // In one operation: `watch` must not find half of it, and ignores hidden files.
        let changed = path.with_file_name(".changed");
        std::fs::write(&changed, change(before)).unwrap();
        std::fs::rename(changed, path).unwrap();
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_gavel"));
        // A template is not linted as this repository is.
        command.env_remove("RUSTC_WORKSPACE_WRAPPER");
        command.current_dir(self.0.path()).args(args).env("NO_COLOR", "1");
        // The crates of this repository are already there, so that nothing is downloaded. One target folder serves all
        // tests, so that what plugins depend on is compiled once.
        command
            .env("CARGO_NET_OFFLINE", "true")
            .env("CARGO_TARGET_DIR", Path::new(env!("CARGO_TARGET_TMPDIR")).join("guests"));
        command.env_remove("WASI_SDK_PATH");
        command
    }

    fn run(&self, args: &[&str]) -> Output {
        self.command(args).output().unwrap()
    }

    fn succeed(&self, args: &[&str]) -> String {
        let output = self.run(args);
        assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    /// Fails with these words on stderr.
    fn fail(&self, args: &[&str], expected: Inline) {
        self.failed(self.run(args), expected);
    }

    fn failed(&self, output: Output, expected: Inline) {
        assert_eq!(output.status.code(), Some(2), "{}", String::from_utf8_lossy(&output.stderr));
        let said = String::from_utf8(output.stderr).unwrap();
        // Where the system's folder for temporary files is a link, both names occur.
        let said = said.replace(&self.0.path().canonicalize().unwrap().display().to_string(), "[PLACE]");
        Assert::new()
            .action_env("SNAPSHOTS")
            .eq(said.replace(&self.0.path().display().to_string(), "[PLACE]"), expected);
    }
}

/// Writes a script. Another process writes it: if this one started a child while the file is open, the file would be busy.
fn executable(path: &Path, text: &str) {
    let mut written = Command::new("sh");
    written.args(["-c", "printf %s \"$1\" > \"$2\" && chmod +x \"$2\"", "sh", text]).arg(path);
    assert!(written.status().unwrap().success());
}

fn hash(said: &str) -> &str {
    said.lines().find_map(|line| line.trim().strip_prefix("hash")).unwrap().trim()
}

fn exports(inspected: &str) -> Vec<&str> {
    let line = inspected.lines().find_map(|line| line.trim().strip_prefix("exports")).unwrap();
    let mut names: Vec<&str> = line.trim().split(", ").collect();
    names.sort_unstable();
    names
}

#[test]
fn the_same_sources_give_the_same_component_in_any_folder() {
    let (here, there) = (Place::new(), Place::new());
    for place in [&here, &there] {
        place.succeed(&["plugin", "new", "same", "--lang", "rust"]);
    }
    let built = here.succeed(&["plugin", "build", "same"]);
    assert_eq!(hash(&built), hash(&there.succeed(&["plugin", "build", "same"])));
    assert!(here.path("same/build/same.wasm").is_file());
    let inspected = here.succeed(&["plugin", "inspect", "same/build/same.wasm"]);
    assert_eq!(hash(&built), hash(&inspected));
    assert!(inspected.contains("name      same 0.1.0\n"), "{inspected}");
    assert_eq!(exports(&inspected), ["lifecycle", "reward"]);
}

#[test]
fn what_is_built_and_why_is_said() {
    let place = Place::new();
    place.succeed(&["plugin", "new", "polite", "--lang", "python"]);
    // In place of componentize-py, which takes ten seconds: a component of the standard plugins.
    let made = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/plugins/exact-answer.wasm");
    assert!(made.exists(), "{} is missing: run `cargo xtask plugins`", made.display());
    let tool = place.path("polite/.venv/bin/componentize-py");
    std::fs::create_dir_all(tool.parent().unwrap()).unwrap();
    let copy = "while [ \"$1\" != -o ]; do shift; done; cp";
    let text = format!("#!/bin/sh\n[ \"$1\" = --version ] && exit\n{copy} '{}' \"$2\"\n", made.display());
    executable(&tool, &text);

    let says = |args: &[&str], expected: Inline| {
        let output = place.run(args);
        Assert::new().action_env("SNAPSHOTS").eq(String::from_utf8(output.stderr).unwrap(), expected);
        String::from_utf8(output.stdout).unwrap()
    };
    let built = says(
        &["plugin", "build", "polite"],
        str![[r#"
building polite (Python)

"#]],
    );
    assert!(built.starts_with("built polite/build/polite.wasm in "), "{built}");
    let again = says(
        &["plugin", "build", "polite"],
        str![[r#"
unchanged polite (Python)

"#]],
    );
    assert!(again.starts_with("unchanged polite/build/polite.wasm\n"), "{again}");
    assert_eq!(hash(&built), hash(&again));
    // The arguments and the output of the stand-in.
    place.edit("polite/plugin.toml", |text| text.replace("params = { tolerance = 0.01 }\n", ""));
    let case = r#"{"case": "right", "response": "4", "ground_truth": "4", "expect": {"score": 1}}"#;
    place.edit("polite/cases.jsonl", |_| format!("{case}\n"));
    says(
        &["plugin", "test", "polite"],
        str![[r#"
unchanged polite (Python)

"#]],
    );
    place.edit("polite/main.py", |text| text + "\n");
    says(
        &["plugin", "check", "polite"],
        str![[r#"
building polite (Python): main.py changed

"#]],
    );

    // A run takes what was built, and says that it is old.
    place.edit("polite/main.py", |text| text + "\n");
    place.edit("rows.jsonl", |_| r#"{"response": "4", "ground_truth": "4"}"#.into());
    let score = |plugin| ["score", "--plugin", plugin, "--data", "rows.jsonl", "--out", "scores.jsonl", "--json"];
    for plugin in ["polite", "polite/build/polite.wasm"] {
        says(
            &score(plugin),
            str![[r#"
 WARN polite/build/polite.wasm was built before its sources changed: main.py changed; run `gavel plugin build polite`

"#]],
        );
    }
    let inspected = says(
        &["plugin", "inspect", "polite"],
        str![[r#"
 WARN polite/build/polite.wasm was built before its sources changed: main.py changed; run `gavel plugin build polite`

"#]],
    );
    assert!(inspected.starts_with("polite/build/polite.wasm\n"), "{inspected}");
    place.succeed(&["plugin", "build", "polite"]);
    says(&score("polite"), str![]);
}

#[test]
fn a_judger_is_built() {
    let place = Place::new();
    place.succeed(&["plugin", "new", "short", "--lang", "rust", "--kind", "judger"]);
    place.succeed(&["plugin", "build", "short"]);
    let inspected = place.succeed(&["plugin", "inspect", "short/build/short.wasm"]);
    assert_eq!(exports(&inspected), ["judger", "lifecycle"]);
}

#[test]
fn a_source_in_cpp_is_compiled_with_its_library() {
    let place = Place::new();
    place.succeed(&["plugin", "new", "cpp", "--lang", "c"]);
    let source = std::fs::read_to_string(place.path("cpp/src/plugin.c")).unwrap();
    let source =
        source.replace("#include <math.h>", "#include <cmath>\n#include <string>\n#include <vector>\nusing std::fabs;");
    // A construct that only C++ has.
    let source = source.replace(
        "    double truth, found;",
        "    std::vector<std::string> all{\"c\", \"++\"};\n    double truth, found = double(all.size());",
    );
    std::fs::remove_file(place.path("cpp/src/plugin.c")).unwrap();
    std::fs::write(place.path("cpp/src/plugin.cpp"), source).unwrap();
    let tested = place.succeed(&["plugin", "test", "cpp"]);
    assert!(tested.contains("cpp: 9 cases passed"), "{tested}");
}

#[test]
fn a_new_plugin_needs_a_name_a_language_and_a_place() {
    let place = Place::new();
    place.fail(
        &["plugin", "new", "Polite", "--lang", "rust"],
        str![[r#"
error: `Polite` cannot be the name of a plugin: only lower-case letters, digits and dashes may be in it
hint: take lower-case letters, digits and dashes, such as `exact-answer`

"#]],
    );
    place.fail(
        &["plugin", "new", "polite", "--lang", "go"],
        str![[r#"
error: invalid value 'go' for '--lang <LANGUAGE>'
  [possible values: rust, python, js, ts, c, cpp]

For more information, try '--help'.

"#]],
    );
    place.succeed(&["plugin", "new", "polite", "--lang", "c"]);
    place.fail(
        &["plugin", "new", "polite", "--lang", "c"],
        str![[r#"
error: polite exists and is not empty
hint: take another name, or remove the folder

"#]],
    );
}

#[test]
fn a_folder_must_be_a_plugin() {
    let place = Place::new();
    place.fail(
        &["plugin", "build"],
        str![[r#"
error: there is no plugin.toml in .
hint: name the folder of a plugin, or make one with `gavel plugin new NAME --lang LANGUAGE`

"#]],
    );
    place.fail(
        &["plugin", "watch", "absent"],
        str![[r#"
error: there is no plugin.toml in absent
hint: name the folder of a plugin, or make one with `gavel plugin new NAME --lang LANGUAGE`

"#]],
    );
    place.succeed(&["plugin", "new", "polite", "--lang", "c"]);
    let manifest = |change: (&str, &str), expected| {
        place.edit("polite/plugin.toml", |text| text.replace(change.0, change.1));
        place.fail(&["plugin", "build", "polite"], expected);
        place.edit("polite/plugin.toml", |text| text.replace(change.1, change.0));
    };
    manifest(
        ("exports =", "export ="),
        str![[r#"
error: polite/plugin.toml: line 4: unknown field `export`, expected one of `name`, `language`, `exports`, `imports`

"#]],
    );
    manifest(
        ("\"c\"", "\"go\""),
        str![[r#"
error: polite/plugin.toml: plugin.language: there is no SDK for the language `go`
hint: the languages are rust, python, js (also for TypeScript) and c (also for C++)

"#]],
    );
    manifest(
        ("[\"reward\"]", "[]"),
        str![[r#"
error: polite/plugin.toml: plugin.exports: the plugin exports nothing
hint: name one or more of reward, judger, taskset, advantage and sampler, or of tool and agent, such as exports = ["reward"]

"#]],
    );
    manifest(
        ("[\"reward\"]", "[\"rewards\"]"),
        str![[r#"
error: polite/plugin.toml: plugin.exports: there is no `rewards`
hint: known are: reward, judger, taskset, tool, agent, advantage, sampler

"#]],
    );
}

#[test]
fn a_missing_tool_is_named_with_the_command_that_installs_it() {
    let place = Place::new();
    for (language, expected) in [
        (
            "rust",
            str![[r#"
error: cargo is not installed: it builds Rust
hint: install it with `curl --proto '=https' --tlsv1.2 -sSf https://sh.rustup.rs | sh`

"#]],
        ),
        (
            "c",
            str![[r#"
error: zig is not installed: it compiles C to WebAssembly
hint: install it with `python3 -m pip install ziglang`

"#]],
        ),
    ] {
        let name = format!("{language}-plugin");
        place.succeed(&["plugin", "new", &name, "--lang", language]);
        let output = place.command(&["plugin", "build", &name]).env("PATH", "").output().unwrap();
        place.failed(output, expected);
    }
}

#[test]
fn a_tool_of_python_is_found_above_the_plugin_and_in_the_current_folder() {
    let place = Place::new();
    place.succeed(&["plugin", "new", "polite", "--lang", "python"]);
    std::fs::create_dir(place.path("elsewhere")).unwrap();
    // Python without packages.
    let build = |folder: &str, plugin: &str| {
        let mut command = place.command(&["plugin", "build", plugin]);
        command.current_dir(place.path(folder)).env_remove("VIRTUAL_ENV").env("PATH", place.path("bin"));
        String::from_utf8(command.output().unwrap().stderr).unwrap()
    };
    std::fs::create_dir(place.path("bin")).unwrap();
    let python = "#!/bin/sh\n[ \"$1\" = -c ] && echo 3.12 || exit 1\n";
    executable(&place.path("bin/python3"), python);
    let told = build("elsewhere", "../polite");
    let [start, _] = told.split_once("\nhint: ").map(|(start, hint)| [start, hint]).unwrap();
    assert!(
        start.starts_with("error: componentize-py is not installed: it makes components of Python code; it is not in ")
    );
    for folder in ["polite", "", "elsewhere"] {
        let venv = place.path(folder).canonicalize().unwrap().join(".venv");
        assert!(start.contains(&format!("{}, ", venv.display())), "{start}");
    }
    assert!(start.ends_with(", PATH"), "{start}");

    // It is found, and its failure shown.
    let tool = "#!/bin/sh\n[ \"$1\" = --version ] && echo 0.25.1 && exit\necho it ran >&2; exit 1\n";
    for (venv, folder, plugin) in [("", "elsewhere", "../polite"), ("elsewhere", "elsewhere", "../polite")] {
        let bin = place.path(venv).join(".venv/bin");
        std::fs::create_dir_all(&bin).unwrap();
        executable(&bin.join("componentize-py"), tool);
        let told = build(folder, plugin);
        assert!(!told.contains("is not installed"), "{told}");
        let mut doctor = place.command(&["doctor"]);
        doctor.current_dir(place.path(folder)).env_remove("VIRTUAL_ENV").env("PATH", place.path("bin"));
        let told = String::from_utf8(doctor.output().unwrap().stdout).unwrap();
        assert!(told.contains("ok       plugins in Python          can be built"), "{told}");
        std::fs::remove_dir_all(place.path(venv).join(".venv")).unwrap();
    }
}

#[test]
fn a_file_that_is_no_plugin_and_one_that_is_not_python_are_named() {
    let place = Place::new();
    place.succeed(&["plugin", "new", "polite", "--lang", "python"]);
    place.fail(
        &["plugin", "build", "polite/main.py"],
        str![[r#"
error: polite/main.py is a file, and a plugin is a folder with a plugin.toml
hint: name the folder, or make one of the function with `gavel plugin new NAME --from-verl polite/main.py` or --from-trl

"#]],
    );
    place.fail(
        &["plugin", "build", "polite/plugin.toml"],
        str![[r#"
error: polite/plugin.toml is a file, and a plugin is a folder with a plugin.toml
hint: name the folder

"#]],
    );
    let bin = place.path("polite/.venv/bin");
    std::fs::create_dir_all(&bin).unwrap();
    executable(&bin.join("componentize-py"), "#!/bin/sh\necho 0.25.1\n");
    place.edit("polite/main.py", |_| "import json\n\ndef score(sample:\n".into());
    place.fail(
        &["plugin", "build", "polite"],
        str![[r#"
building polite (Python)
error: `polite` cannot be built: main.py line 3: '(' was never closed: `def score(sample:`
hint: correct that line

"#]],
    );
}

#[test]
fn what_does_not_fit_the_manifest_is_not_built() {
    let place = Place::new();
    place.succeed(&["plugin", "new", "wrong", "--lang", "rust"]);
    let build = |expected| place.fail(&["plugin", "build", "wrong"], expected);
    let change = |file: &str, from: &str, to: &str| place.edit(file, |text| text.replace(from, to));

    change("wrong/src/lib.rs", "f64::from(correct)", "correct");
    build(str![[r#"
building wrong (Rust)
error: cannot compile `wrong`: cargo failed with status 101; its output:

...
  error[E0308]: mismatched types
    --> src/lib.rs:52:23
...
  error: could not compile `wrong` (lib) due to 1 previous error

"#]]);
    change("wrong/src/lib.rs", "Score::new(correct)", "Score::new(f64::from(correct))");

    change("wrong/plugin.toml", "[\"reward\"]", "[\"judger\"]");
    build(str![[r#"
building wrong (Rust)
error: the component of `wrong` does not export `judger`, which plugin.toml names; it exports: lifecycle, reward
hint: export it in src/lib.rs with `gavel_sdk::export_reward!(Type);`, `export_judger!(Type);`, `export_taskset!(Type);`, `export_tool!(Type);`, `export_agent!(Type);`, `export_advantage!(Type);` or `export_sampler!(Type);`, or correct `exports` in plugin.toml

"#]]);
    change("wrong/plugin.toml", "[\"judger\"]", "[\"reward\", \"judger\"]");
    build(str![[r#"
building wrong (Rust)
error: the component of `wrong` does not export `judger`, which plugin.toml names; it exports: lifecycle, reward
hint: export it in src/lib.rs with `gavel_sdk::export_reward!(Type);`, `export_judger!(Type);`, `export_taskset!(Type);`, `export_tool!(Type);`, `export_agent!(Type);`, `export_advantage!(Type);` or `export_sampler!(Type);`, or correct `exports` in plugin.toml

"#]]);
    change("wrong/plugin.toml", "[\"reward\", \"judger\"]", "[\"reward\"]");

    change("wrong/src/lib.rs", "gavel_sdk::export_reward!(NumericAnswer);", "");
    build(str![[r#"
building wrong (Rust)
error: the component of `wrong` exports nothing of gavel:plugin
hint: export it in src/lib.rs with `gavel_sdk::export_reward!(Type);`, `export_judger!(Type);`, `export_taskset!(Type);`, `export_tool!(Type);`, `export_agent!(Type);`, `export_advantage!(Type);` or `export_sampler!(Type);`

"#]]);
    change("wrong/Cargo.toml", "crate-type = [\"cdylib\"]", "");
    build(str![[r#"
building wrong (Rust)
error: the crate of `wrong` does not give a component
hint: write crate-type = ["cdylib"] below [lib] in its Cargo.toml

"#]]);
    assert!(!place.path("wrong/build/wrong.wasm").exists());
}

#[test]
fn a_component_for_another_contract_is_not_built() {
    let place = Place::new();
    place.succeed(&["plugin", "new", "late", "--lang", "rust"]);
    // Another version, or other tests would take this SDK from the target folder for their own.
    let manifest = place.path("late/vendor/gavel-sdk/Cargo.toml");
    let text = std::fs::read_to_string(&manifest).unwrap();
    std::fs::write(&manifest, text.replacen("version = \"0.1.0\"", "version = \"0.2.0\"", 1)).unwrap();
    for file in std::fs::read_dir(place.path("late/vendor/gavel-sdk/src/bindings")).unwrap() {
        let path = file.unwrap().path();
        // Where the encoded world is broken into lines, a name may be too.
        let text = std::fs::read_to_string(&path).unwrap().replace("\\\n", "");
        std::fs::write(&path, text.replace("@0.2.0", "@0.3.0")).unwrap();
    }
    place.fail(
        &["plugin", "build", "late"],
        str![[r#"
building late (Rust)
error: the component of `late` is built for gavel:plugin@0.3.0; this gavel supports gavel:plugin@0.1.0 and gavel:plugin@0.2.0
hint: its SDK and this gavel are of different versions: take the SDK that `gavel plugin new` puts into `vendor/`

"#]],
    );
}

#[test]
fn parameters_that_a_plugin_refuses_are_those_of_its_manifest() {
    let place = Place::new();
    place.succeed(&["plugin", "new", "polite", "--lang", "c"]);
    place.edit("polite/plugin.toml", |text| {
        let others: Vec<&str> = text.lines().filter(|line| !line.starts_with("params")).collect();
        others.join("\n") + "\nparams = { prefx = 1 }\n"
    });
    let refused = |args: &[&str]| {
        let output = place.run(args);
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        String::from_utf8(output.stderr).unwrap()
    };
    let in_manifest =
        "error: polite/plugin.toml: [test] params: plugin `polite` refuses its parameters {\"prefx\":1}: ";
    for command in ["test", "check", "bench"] {
        let said = refused(&["plugin", command, "polite"]);
        assert!(said.contains(in_manifest), "{command}: {said}");
        // Parameters of an argument are not the manifest's.
        let said = refused(&["plugin", command, "polite", "--params", "{\"prefx\": 2}"]);
        assert!(said.contains("error: plugin `polite` refuses its parameters {\"prefx\":2}: "), "{command}: {said}");
    }
}

/// A command that is killed if an assertion fails.
struct Watch(std::process::Child);

impl Drop for Watch {
    fn drop(&mut self) {
        // The command may have ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn watching_goes_on_after_a_failure_and_ends_with_control_c() {
    let place = Place::new();
    place.succeed(&["plugin", "new", "polite", "--lang", "c"]);
    // Without tools each build fails, and at once.
    let mut command = place.command(&["plugin", "watch", "polite"]);
    let mut watch = Watch(command.env("PATH", "").stderr(Stdio::piped()).spawn().unwrap());
    let mut lines = BufReader::new(watch.0.stderr.take().unwrap()).lines().map(Result::unwrap);
    let mut until_it_waits = || {
        let said: Vec<String> = lines.by_ref().take_while(|line| !line.starts_with("waiting for a change")).collect();
        said.join("\n")
    };
    assert!(until_it_waits().contains("zig is not installed"));
    place.edit("polite/src/plugin.c", |text| text + "\n");
    assert!(until_it_waits().contains("zig is not installed"));
    place.edit("polite/plugin.toml", |text| text.replace("[plugin]", "[plugins]"));
    assert!(until_it_waits().contains("unknown field `plugins`"));

    let interrupted = Command::new("kill").args(["-INT", &watch.0.id().to_string()]).status().unwrap();
    assert!(interrupted.success());
    assert_eq!(watch.0.wait().unwrap().code(), Some(0));
}
