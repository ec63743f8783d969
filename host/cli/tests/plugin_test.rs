//! `gavel plugin test` as a user runs it: each folder of `plugin-test` has its arguments, its cases or its project, and
//! the expected output. `SNAPSHOTS=overwrite` records what is printed now.
#![allow(clippy::print_stderr, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use snapbox::data::DataFormat;
use snapbox::{Assert, Data};
use std::path::{Path, PathBuf};
use std::process::Command;

fn built(path: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target").join(path);
    assert!(path.exists(), "{} is missing: run `cargo xtask plugins`", path.display());
    path.canonicalize().unwrap()
}

#[test]
fn every_folder_prints_what_it_must() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/plugin-test");
    let mut names: Vec<PathBuf> = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    names.sort();
    assert!(names.len() > 20, "{names:?}");
    for case in names {
        run(&case);
    }
}

fn run(case: &Path) {
    let work = tempfile::tempdir().unwrap();
    for file in ["cases.jsonl", "plugin.toml"] {
        if case.join(file).exists() {
            std::fs::copy(case.join(file), work.path().join(file)).unwrap();
        }
    }
    let args = std::fs::read_to_string(case.join("args")).unwrap();
    let guests = ["acts", "draws", "estimators", "obeys", "shortest", "sums", "toolbox"]
        .map(|name| (name.to_uppercase(), built(&format!("guests/{name}.wasm")).display().to_string()));
    let path = |arg| guests.iter().find(|(name, _)| name == arg).map_or(arg, |(_, path)| path.as_str());
    let given = args.split_whitespace().map(path);
    let output = Command::new(env!("CARGO_BIN_EXE_gavel"))
        .args(["plugin", "test"])
        .args(given)
        .current_dir(work.path())
        .env("NO_COLOR", "1")
        .output()
        .unwrap();
    let text = |bytes: Vec<u8>| {
        let text = String::from_utf8(bytes).unwrap();
        timeless(&guests.iter().fold(text, |text, (name, path)| text.replace(path, name)))
    };
    let said = format!("{}{}exit status {}\n", text(output.stdout), text(output.stderr), output.status.code().unwrap());
    eprintln!("{}", case.display());
    let must = |file: &str| Data::read_from(&case.join(file), Some(DataFormat::Text)).raw();
    let assert = Assert::new().action_env("SNAPSHOTS");
    assert.eq(said, must("output"));
    for (file, made) in [("after.jsonl", "cases.jsonl"), ("results.xml", "results.xml")] {
        if case.join(file).exists() {
            let made = timeless(&std::fs::read_to_string(work.path().join(made)).unwrap());
            assert.eq(made, must(file));
        }
    }
}

/// Replaces numbers that measure the machine by `#`. In a table of such numbers, every number is replaced, and columns
/// have no widths.
fn timeless(text: &str) -> String {
    let table = text.contains(": what each case used\n");
    let measures = |before: &str, after: &str| {
        let units = [" ms", " MiB", " fuel", " bytes asked for", "\" name=\"fuel", "\"/>"];
        table || before.ends_with("time=\"") || units.iter().any(|unit| after.starts_with(unit))
    };
    let mut kept = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(|c: char| c.is_ascii_digit()) {
        let end = rest[at..].find(|c: char| !c.is_ascii_digit() && c != '.').map_or(rest.len(), |length| at + length);
        kept.push_str(&rest[..at]);
        kept.push_str(if measures(&kept, &rest[end..]) { "#" } else { &rest[at..end] });
        rest = &rest[end..];
    }
    kept.push_str(rest);
    if !table {
        return kept;
    }
    let narrow = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ") + "\n";
    kept.lines().map(narrow).collect()
}
