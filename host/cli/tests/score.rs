//! `gavel score` and `gavel plugin inspect` as a user runs them.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use serde_json::{Value, json};
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn built(path: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target").join(path);
    assert!(path.exists(), "{} is missing: run `cargo xtask plugins`", path.display());
    path.canonicalize().unwrap()
}

fn gavel(folder: &Path, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_gavel")).current_dir(folder).args(args).output().unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn rows(path: &Path) -> Vec<Value> {
    std::fs::read_to_string(path).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

const ROWS: &str = r#"{"prompt":"Order: 3 1","response":"Answer: 1 3","reward_model":{"ground_truth":"1 3"},"extra_info":{"index":5}}
not json
{"prompt":"Order: 3 1","response":"I do not know","answer":"1 3"}
{"response":"Answer: 1"}
{"prompt":"no response here"}
"#;

#[test]
fn every_row_gets_a_line_in_order_and_unreadable_rows_are_named() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("data.jsonl"), ROWS).unwrap();
    let (answer, format) = (built("plugins/exact-answer.wasm"), built("plugins/format.wasm"));
    let output = gavel(
        folder.path(),
        &[
            "score",
            "--plugin",
            &format!("answer={}", answer.display()),
            "--plugin",
            &format!("{}:0.1", format.display()),
            "--params",
            r#"answer={"prefix":"Answer:"}"#,
            "--params",
            r#"format={"pattern":"Answer: [0-9 ]+"}"#,
            "--data",
            "data.jsonl",
            "--out",
            "scores.jsonl",
        ],
    );
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    assert!(stderr(&output).contains("data.jsonl, line 2: not a JSON object"), "{}", stderr(&output));
    assert!(stderr(&output).contains("\n1 more row cannot be read: --json lists both\n"), "{}", stderr(&output));
    let rows = rows(&folder.path().join("scores.jsonl"));
    let rewards: Vec<_> = rows.iter().map(|row| row["reward"].as_f64()).collect();
    assert_eq!(rewards, [Some(1.1), None, Some(0.0), None, None]);
    assert_eq!(rows[0]["id"], "data/5");
    assert_eq!(rows[0]["plugins"]["answer"]["outcome"], "scored");
    let reason = rows[4]["reason"].as_str().unwrap();
    assert!(reason.starts_with("data.jsonl, line 5: the row has none of `response`"), "{reason}");
    assert_eq!(rows[3]["outcome"], "fault");
    assert_eq!(rows[3]["plugins"]["format"]["score"], 1.0);
    for field in
        ["outcome", "score", "metrics", "reason", "elapsed_us", "cpu_us", "fuel", "peak_memory", "component", "input"]
    {
        assert!(rows[0]["plugins"]["answer"].get(field).is_some(), "{field}");
    }
}

#[test]
fn a_row_that_cannot_be_read_does_not_divide_its_group() {
    let folder = tempfile::tempdir().unwrap();
    let data = "{\"id\":\"a\",\"response\":\"long\"}\n{\"id\":\"a\"}\n{\"id\":\"a\",\"response\":\"x\"}\n{\n{\"id\":\"b\",\"response\":\"long\"}\n";
    std::fs::write(folder.path().join("data.jsonl"), data).unwrap();
    let plugin = built("guests/shortest.wasm").display().to_string();
    let args = ["score", "--plugin", &plugin, "--data", "data.jsonl", "--out", "scores.jsonl"];
    let output = gavel(folder.path(), &args);
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    let rewards: Vec<_> = rows(&folder.path().join("scores.jsonl")).iter().map(|row| row["reward"].as_f64()).collect();
    assert_eq!(rewards, [Some(0.0), None, Some(1.0), None, Some(1.0)]);
}

#[test]
fn rows_come_from_stdin_and_scores_go_to_stdout() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("data.jsonl"), ROWS).unwrap();
    let (plugin, params) =
        (format!("format={}", built("plugins/format.wasm").display()), r#"{"pattern":"Answer: .*"}"#);
    let scored = |data: &str, out: &str| {
        let arguments = ["score", "--plugin", &plugin, "--params", params, "--data", data, "--out", out];
        let stdin = std::fs::File::open(folder.path().join("data.jsonl")).unwrap();
        let mut gavel = Command::new(env!("CARGO_BIN_EXE_gavel"));
        gavel.current_dir(folder.path()).args(arguments).stdin(stdin).output().unwrap()
    };
    let output = scored("-", "-");
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    assert!(stderr(&output).contains("stdin, line 2: not a JSON object"), "{}", stderr(&output));
    assert!(stderr(&output).contains(" rows/s) -> stdout\n"), "{}", stderr(&output));
    let written: Vec<Value> = output
        .stdout
        .split(|byte| *byte == b'\n')
        .filter(|line| !line.is_empty())
        .map(|line| serde_json::from_slice(line).unwrap())
        .collect();
    scored("data.jsonl", "scores.jsonl");
    let verdicts = |rows: &[Value]| -> Vec<(Value, Value, Value)> {
        rows.iter().map(|row| (row["id"].clone(), row["reward"].clone(), row["outcome"].clone())).collect()
    };
    assert_eq!(verdicts(&written), verdicts(&rows(&folder.path().join("scores.jsonl"))));
    assert_eq!(written[0]["reward"], 1.0);
    assert!(!folder.path().join("-").exists());

    // What is no file is written to, and stays what it is.
    let pipe = folder.path().join("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let reader = std::thread::spawn({
        let pipe = pipe.clone();
        move || std::fs::read_to_string(pipe).unwrap()
    });
    let output = scored("data.jsonl", "pipe");
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    assert!(std::fs::symlink_metadata(&pipe).unwrap().file_type().is_fifo());
    assert_eq!(reader.join().unwrap().lines().count(), written.len());
}

#[test]
fn a_looping_plugin_costs_its_rows_and_not_the_job() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("data.jsonl"), "{\"response\":\"x\"}\n".repeat(6)).unwrap();
    let guest = built("hostile/endless-loop.wasm");
    let plugin = format!("loop={}", guest.display());
    let args =
        ["score", "--plugin", &plugin, "--data", "data.jsonl", "--out", "o.jsonl", "--timeout", "500ms", "--json"];
    let output = gavel(folder.path(), &args);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let summary: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(summary["outcomes"]["out-of-budget"], 6);
    assert!(rows(&folder.path().join("o.jsonl")).iter().all(|row| row["reward"].is_null()));
}

#[test]
fn a_reward_that_is_not_finite_is_a_fault_of_the_plugins_in_it() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("data.jsonl"), "{\"response\":\"x\",\"a\":1}\n{\"response\":\"x\"}\n").unwrap();
    // It scores the number of columns.
    let echo = built("guests/echo-metadata.wasm");
    let plugins = ["a", "b"].map(|name| format!("{name}={}:1.5e308", echo.display()));
    let args = ["score", "--plugin", &plugins[0], "--plugin", &plugins[1], "--data", "data.jsonl", "--out", "o.jsonl"];
    let output = gavel(folder.path(), &[&args[..], &["--json"]].concat());
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let summary: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&summary["outcomes"]["fault"], &summary["reward_mean"]), (&2.into(), &Value::Null));
    let rows = rows(&folder.path().join("o.jsonl"));
    assert_eq!((&rows[0]["reward"], &rows[0]["outcome"]), (&Value::Null, &"fault".into()));
    assert_eq!(
        rows[0]["reason"],
        "the reward is inf, which is not from -1e30 to 1e30: it is the sum of a (2e0 times 1.5e308) and b (2e0 times 1.5e308)"
    );
    assert_eq!(rows[0]["plugins"]["a"]["score"], 2.0);
}

#[test]
fn usage_and_configuration_errors_exit_with_2() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("data.jsonl"), "{\"response\":\"x\"}\n").unwrap();
    let plugin = built("plugins/format.wasm");
    let plugin = plugin.to_str().unwrap();
    let base = ["score", "--plugin", plugin, "--out", "o.jsonl", "--data"];
    let cases: [(&[&str], &str); 8] = [
        (&["missing.jsonl"], "cannot open dataset missing.jsonl"),
        (&["data.csv"], "must end in .jsonl or .parquet"),
        (&["data.jsonl"], "missing field `pattern`"),
        (&["data.jsonl", "--params", "other={}"], "the plugins are: format"),
        (&["data.jsonl", "--params", "format={\"pattern\":\"(\"}"], "pattern"),
        (&["data.jsonl", "--timeout", "fast"], "write 2s or 500ms"),
        (&["data.jsonl", "--ray", "auto"], "--ray needs the gavel of the Python package gavel-rl"),
        (&["data.jsonl", "--ray", "auto", "--record", "r"], "cannot be used with"),
    ];
    for (more, message) in cases {
        let output = gavel(folder.path(), &[&base[..], more].concat());
        assert_eq!(output.status.code(), Some(2), "{more:?}: {}", stderr(&output));
        assert!(stderr(&output).contains(message), "{more:?}: {}", stderr(&output));
        assert!(!folder.path().join("o.jsonl").exists());
    }
    let output = gavel(folder.path(), &["score", "--plugin", plugin, "--data", "-", "--out", "-", "--json"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("--json and --out - would both write to stdout\nhint: "), "{}", stderr(&output));
}

#[test]
fn inspect_prints_what_a_script_can_read() {
    let folder = tempfile::tempdir().unwrap();
    let plugin = built("plugins/exact-answer.wasm");
    let output = gavel(folder.path(), &["plugin", "inspect", "--json", plugin.to_str().unwrap()]);
    assert!(output.status.success(), "{}", stderr(&output));
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(found["contract"], "0.2.0");
    assert_eq!(found["info"]["name"], "exact-answer");
    let standings = found["imports"].as_array().unwrap().iter().map(|import| import["standing"].as_str().unwrap());
    assert!(
        standings.clone().count() > 5 && standings.clone().all(|standing| ["given", "stand-in"].contains(&standing))
    );
    assert_eq!(found["hash"].as_str().unwrap().len(), 64);
}

#[test]
fn who_caused_a_failure_is_recorded_and_found_again() {
    let folder = tempfile::tempdir().unwrap();
    let row = |id: &str, response: &str| json!({"id": id, "prompt": "?", "response": response}).to_string() + "\n";
    let take = "take 1000000000";
    let data =
        [row("a", "panic"), row("a", "score 1"), row("a", "abstain no"), row("b", "panic"), row("b", take)].concat();
    std::fs::write(folder.path().join("data.jsonl"), data).unwrap();
    let (obeys, trap) = (built("guests/obeys.wasm"), built("hostile/trap.wasm"));
    let (obeys, trap) = (format!("obeys={}", obeys.display()), format!("trap={}:0", trap.display()));
    #[rustfmt::skip]
    let output = gavel(folder.path(), &[
        "score", "--plugin", &obeys, "--plugin", &trap, "--params", r#"obeys={"range": [-1, 3]}"#, "--data", "data.jsonl",
        "--out", "out.jsonl", "--record", "kept",
    ]);
    assert!(output.status.success(), "{}", stderr(&output));
    let causes = |name: &str| {
        let rows = rows(&folder.path().join("out.jsonl"));
        rows.iter().map(|row| row["plugins"][name]["caused_by"].clone()).collect::<Vec<_>>()
    };
    let response = json!("response");
    assert_eq!(causes("obeys"), [&response, &Value::Null, &response, &response, &response].map(Value::clone));
    assert_eq!(causes("trap"), vec![json!("plugin"); 5]);
    let rows = rows(&folder.path().join("out.jsonl"));
    let lowest: Vec<_> = rows.iter().map(|row| row["lowest_reward"].as_f64()).collect();
    assert_eq!(lowest, [None, None, Some(-1.0), None, Some(-1.0)]);

    let replayed = |args: &[&str]| {
        let output = gavel(folder.path(), &[&["replay", "kept", "--json"], args].concat());
        serde_json::from_slice::<Value>(&output.stdout).unwrap()
    };
    let found = replayed(&[]);
    assert_eq!((&found["verdicts"], &found["different"]), (&json!(10), &json!(0)), "{found}");
    // A single sample, too, is judged beside the others of its group.
    let found = replayed(&["--sample", "0.0.0"]);
    assert_eq!((&found["samples"], &found["different"]), (&json!(1), &json!(0)), "{found}");

    // The rewards follow the run's `on_outcome`, with the range that the plugin now declares.
    let sets = folder.path().join("kept/plugins/lineups.json");
    let text = std::fs::read_to_string(&sets).unwrap();
    let mut kept: Value = serde_json::from_str(&text).unwrap();
    kept[0]["grouping"]["on_outcome"] = json!({"out-of-budget": "lowest-if-caused"});
    std::fs::write(&sets, kept.to_string()).unwrap();
    let found = replayed(&["--params", r#"obeys={"range": [-5, 5]}"#]);
    let rewards = (&found["rewards"]["recorded_mean"], &found["rewards"]["replayed_mean"]);
    assert_eq!(rewards, (&json!(0.0), &json!(-2.0)), "{found}");

    let step = folder.path().join("kept/trajectories/step-000000.jsonl");
    let edited =
        std::fs::read_to_string(&step).unwrap().replacen(r#""caused_by":"response""#, r#""caused_by":"plugin""#, 1);
    std::fs::write(&step, edited).unwrap();
    let found = replayed(&[]);
    let difference = &found["differences"][0];
    assert_eq!((&found["different"], &difference["what"]), (&json!(1), &json!("caused by")), "{found}");
    assert_eq!((&difference["recorded"], &difference["replayed"]), (&json!("plugin"), &json!("response")));
}

#[test]
fn a_plugin_is_its_folder_and_alone_it_needs_no_name() {
    let folder = tempfile::tempdir().unwrap();
    let path = |path: &str| folder.path().join(path);
    std::fs::create_dir_all(path("polite/build")).unwrap();
    std::fs::write(
        path("polite/plugin.toml"),
        "[plugin]\nname = \"order\"\nlanguage = \"c\"\nexports = [\"reward\"]\n",
    )
    .unwrap();
    std::fs::write(path("data.jsonl"), "{\"prompt\":\"Order\",\"response\":\"So: 1 3\",\"answer\":\"1 3\"}\n").unwrap();
    let score = |more: &[&str]| {
        gavel(folder.path(), &[&["score", "--data", "data.jsonl", "--out", "scores.jsonl"], more].concat())
    };
    let params = r#"{"prefix": "So:"}"#;
    let refused = |more: &[&str], expected: &str| {
        let output = score(more);
        assert_eq!((output.status.code(), stderr(&output)), (Some(2), expected.to_owned()));
    };
    let gone = "there is no polite/build/order.wasm\nhint: run `gavel plugin build polite`\n";
    refused(&["--plugin", "polite"], &format!("error: the plugin `order` is not built: {gone}"));
    refused(
        &["--plugin", "polite/build/order.wasm"],
        "error: plugin `order`: cannot read polite/build/order.wasm: No such file or directory (os error 2)\n\
         hint: run `gavel plugin build polite`\n",
    );
    std::fs::copy(built("plugins/exact-answer.wasm"), path("polite/build/order.wasm")).unwrap();
    let output = score(&["--plugin", "polite:0.5", "--params", params]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let row = &rows(&path("scores.jsonl"))[0];
    assert_eq!((&row["reward"], &row["plugins"]["order"]["score"]), (&json!(0.5), &json!(1.0)));
    refused(
        &["--plugin", "polite", "--plugin", "b=polite", "--params", params],
        "error: --params {\"prefix\": \"So:\"} does not name its plugin\n\
         hint: write NAME={…}, where NAME is one of: order, b\n",
    );
}

/// On a full disk, a write fails in the middle; a limit of a file's size does the same here, for any user. Its signal ends
/// only a process that has no handler.
#[test]
fn a_file_that_cannot_be_written_whole_leaves_the_former_one() {
    let folder = tempfile::tempdir().unwrap();
    let row = json!({"prompt": "x".repeat(1000), "response": "Answer: 1", "answer": "1"}).to_string();
    std::fs::write(folder.path().join("data.jsonl"), format!("{row}\n").repeat(200)).unwrap();
    std::fs::write(folder.path().join("scores.jsonl"), "former\n").unwrap();
    let answer = built("plugins/exact-answer.wasm");
    let score = |limit: &str, out: &[&str]| {
        let script = format!("ulimit -f {limit}; exec \"$@\"");
        let mut command = Command::new("bash");
        // A cache of its own: a plugin that another test drops could not be written under the limit.
        command.current_dir(folder.path()).env("GAVEL_CACHE_DIR", folder.path().join("cache"));
        command.args(["-c", &script, "_", env!("CARGO_BIN_EXE_gavel"), "score"]);
        command.args(["--plugin", &answer.display().to_string(), "--data", "data.jsonl"]).args(out).output().unwrap()
    };
    let former = || std::fs::read_to_string(folder.path().join("scores.jsonl")).unwrap();
    // The plugin is compiled now: later it comes from the cache.
    let output = score("unlimited", &["--out", "whole.jsonl"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let output = score("8", &["--out", "scores.jsonl"]);
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    assert!(stderr(&output).contains("error: cannot write scores.jsonl: File too large"), "{}", stderr(&output));
    assert_eq!(former(), "former\n");
    let output = score("8", &["--out", "other.jsonl", "--record", "kept"]);
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    assert!(stderr(&output).contains("error: cannot write kept/"), "{}", stderr(&output));
    assert!(!folder.path().join("other.jsonl").exists());
    let output = score("unlimited", &["--out", "scores.jsonl"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert_eq!(former().lines().count(), 200);
}

#[test]
fn many_rows_keep_their_order_and_a_pure_plugin_may_reuse_its_instances() {
    let folder = tempfile::tempdir().unwrap();
    // More than are in flight at once; every hundredth cannot be read.
    let row = |at: u64| match at % 100 {
        99 => "not json\n".to_owned(),
        rest => format!("{{\"id\":\"row {at}\",\"response\":\"Answer: {rest}\",\"answer\":\"{}\"}}\n", rest % 50),
    };
    std::fs::write(folder.path().join("data.jsonl"), (0..3000).map(row).collect::<String>()).unwrap();
    let score = |plugin: &str, more: &[&str]| {
        let args = ["score", "--plugin", plugin, "--data", "data.jsonl", "--out", "o.jsonl", "--json"];
        gavel(folder.path(), &[&args[..], more].concat())
    };
    let answer = built("plugins/exact-answer.wasm");
    let answer = answer.to_str().unwrap();
    for more in [&[][..], &["--reuse", "100"]] {
        let output = score(answer, more);
        assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
        let summary: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(summary["outcomes"], json!({"scored": 2970}));
        assert_eq!(summary["unreadable"].as_array().unwrap().len(), 30);
        let rows = rows(&folder.path().join("o.jsonl"));
        assert_eq!(rows.len(), 3000);
        for (at, row) in (0..).zip(&rows) {
            let expected = match at % 100 {
                99 => (Value::Null, Value::Null),
                rest => (json!(format!("row {at}")), json!(f64::from(rest < 50))),
            };
            assert_eq!((&row["id"], &row["reward"]), (&expected.0, &expected.1));
        }
    }
    let named = format!("answer={answer}");
    for (plugin, reuse, says) in [
        (answer, "0", "--reuse for `exact-answer`: \"0\" is not a number of calls from 1 to 4294967295"),
        (named.as_str(), "other=5", "--reuse names the plugin `other`, but the plugins are: answer"),
        (built("guests/stateful.wasm").to_str().unwrap(), "5", "cannot be reused: it does not declare itself pure"),
    ] {
        let output = score(plugin, &["--reuse", reuse]);
        assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
        assert!(stderr(&output).contains(says), "{}", stderr(&output));
    }
}
