//! The parts of the SDK for C that need no host, compiled for this machine and
//! run on the test rows that all SDKs share.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::fs::File;
use std::path::Path;
use std::process::{Command, Stdio};

fn run(program: &str, input: Stdio) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../c");
    let built = tempfile::tempdir().unwrap();
    let binary = built.path().join(program);
    let compiled = Command::new("cc")
        .current_dir(&folder)
        .args([
            "-std=gnu17",
            "-Wall",
            "-Wextra",
            "-Werror",
            "-fsanitize=address,undefined",
            "-fno-sanitize-recover",
            "-o",
        ])
        .arg(&binary)
        .args([&format!("tests/{program}.c"), "answer.c", "json.c", "text.c"])
        .output()
        .unwrap();
    assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));
    // The memory of a call is freed at its end, and the call never ends here.
    let mut command = Command::new(&binary);
    // The sanitizer refuses to run after a library that is loaded before it.
    command.env("ASAN_OPTIONS", "detect_leaks=0").env_remove("LD_PRELOAD");
    let output = command.stdin(input).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
}

#[test]
fn the_answers_are_those_of_every_sdk() {
    let rows = Path::new(env!("CARGO_MANIFEST_DIR")).join("../testdata/answers.jsonl");
    run("answers", File::open(rows).unwrap().into());
}

#[test]
fn json_is_read_and_what_is_none_is_refused() {
    run("json", Stdio::null());
}
