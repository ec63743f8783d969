//! Grants on the command line: `gavel score --grant` and `gavel plugin
//! inspect` against what is granted.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn guest(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../target/guests/{name}.wasm"));
    assert!(path.exists(), "{} is missing: run `cargo xtask plugins`", path.display());
    path.canonicalize().unwrap().display().to_string()
}

fn gavel(folder: &Path, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_gavel"))
        .current_dir(folder)
        .env("GAVEL_TEST_KEY", "s3cret-token")
        .args(args)
        .output()
        .unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A folder with one row and a folder `units` to grant.
fn folder() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().to_owned();
    std::fs::write(path.join("data.jsonl"), "{\"response\":\"x\"}\n").unwrap();
    std::fs::create_dir(path.join("units")).unwrap();
    std::fs::write(path.join("units/metre"), "m").unwrap();
    (folder, path)
}

#[test]
fn score_gives_a_plugin_what_its_grant_names() {
    let (_keep, folder) = folder();
    let plugin = format!("probe={}", guest("probe"));
    let score = |grant: &str| {
        let params = r#"probe={"read":["/units/metre"]}"#;
        let base = ["score", "--plugin", &plugin, "--params", params, "--data", "data.jsonl", "--out", "o.jsonl"];
        gavel(&folder, &[&base[..], &["--grant", grant]].concat())
    };
    let output = score(r#"probe={ read = ["units:/units"], env = ["GAVEL_TEST_KEY"] }"#);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let written = std::fs::read_to_string(folder.join("o.jsonl")).unwrap();
    assert!(!written.contains("s3cret-token"));
    let row: Value = serde_json::from_str(&written).unwrap();
    let seen: Value = serde_json::from_str(row["plugins"]["probe"]["reason"].as_str().unwrap()).unwrap();
    assert_eq!(seen["read"][0]["ok"], "m");
    assert_eq!(seen["env"]["GAVEL_TEST_KEY"], "$GAVEL_TEST_KEY");

    for (grant, message) in [
        (r#"probe={ read = ["absent:/units"] }"#, "plugin `probe`: grant.read: cannot open the folder absent"),
        (
            r#"probe={ env = ["GAVEL_TEST_ABSENT"] }"#,
            "plugin `probe`: grant.env: the variable GAVEL_TEST_ABSENT is not set",
        ),
        (r#"probe={ reads = [] }"#, "unknown field `reads`"),
        (r#"other={}"#, "--grant names the plugin `other`, but the plugins are: probe"),
    ] {
        let output = score(grant);
        assert_eq!(output.status.code(), Some(2), "{grant}");
        assert!(text(&output.stderr).contains(message), "{grant}: {}", text(&output.stderr));
    }
}

#[test]
fn inspect_says_how_each_import_stands_and_what_to_add() {
    let (_keep, folder) = folder();
    let fetch = guest("fetch");
    let line = |output: &Output, import: &str| {
        let found = text(&output.stdout);
        let line = found.lines().find(|line| line.contains(import));
        line.unwrap_or_else(|| panic!("{found}\n{}", text(&output.stderr))).to_owned()
    };
    let bare = gavel(&folder, &["plugin", "inspect", &fetch]);
    let http = line(&bare, "wasi:http/outgoing-handler@");
    assert!(http.contains("refused") && http.contains(r#"grant = { http = ["https://HOST"] }"#), "{http}");
    assert!(line(&bare, "wasi:clocks/monotonic-clock@").contains("stand-in"));
    assert!(line(&bare, "gavel:plugin/samples@").contains("given"));

    let grant = r#"{ http = ["http://127.0.0.1:8000"] }"#;
    let granted =
        line(&gavel(&folder, &["plugin", "inspect", &fetch, "--grant", grant]), "wasi:http/outgoing-handler@");
    assert!(granted.contains("granted") && granted.contains("http://127.0.0.1:8000"), "{granted}");

    let run = format!("[[reward]]\nname = \"judge\"\npath = \"{fetch}\"\nparams = {{ urls = [] }}\ngrant = {grant}\n");
    std::fs::write(folder.join("run.toml"), run).unwrap();
    let output = gavel(&folder, &["plugin", "inspect", &fetch, "-c", "run.toml"]);
    assert_eq!(line(&output, "wasi:http/outgoing-handler@"), granted);
    assert!(line(&output, "name ").contains("fetch"), "{}", text(&output.stdout));
    let (runs, child) = (guest("runs"), guest("child"));
    let program = format!("[exec.child]\npath = \"{child}\"\n");
    let reward = format!("[[reward]]\nname = \"runs\"\npath = \"{runs}\"\ngrant = {{ exec = [\"child\"] }}\n");
    // Tables without a component are skipped.
    let servers = "[[reward]]\nname = \"lean\"\nurl = \"http://a\"\n[[tool]]\nname = \"time\"\nmcp = [\"a\"]\n";
    let agent = format!("[agent]\npath = \"{}\"\ngrant = {{ http = [\"http://a\"] }}\n", guest("acts"));
    std::fs::write(folder.join("exec.toml"), reward + servers + &program + &agent).unwrap();
    let output = gavel(&folder, &["plugin", "inspect", &runs, "-c", "exec.toml"]);
    assert!(line(&output, "name ").contains("runs"), "{}", text(&output.stdout));
    assert!(line(&output, "gavel:plugin/exec@").contains("granted"));
    let output = gavel(&folder, &["plugin", "inspect", &guest("acts"), "-c", "exec.toml"]);
    assert!(line(&output, "exports ").contains("agent"), "{}", text(&output.stdout));

    let other = gavel(&folder, &["plugin", "inspect", &guest("probe"), "-c", "run.toml"]);
    assert!(
        text(&other.stderr)
            .contains("no [[reward]], no [[tool]], no [agent] and no [plugin.NAME] of run.toml has the component"),
        "{}",
        text(&other.stderr)
    );
}
