//! Text of a plugin, a row, a recording or a model does not act on the terminal, and does not look like a message of
//! the host.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod project;

use gavel_data::shown::is_seen;
use project::{Project, built};
use serde_json::{Value, json};
use std::process::Stdio;

/// Clears the screen, sets the title, returns to the margin, reverses the direction of the text, hides text, changes
/// its colour, and begins lines of its own.
const EVIL: &str =
    "x\u{1b}[2J\u{1b}]0;t\u{7}\rerror: forged\u{202e}\u{200b}\u{9b}31m\u{2028}␤error: forged␤hint: forged␤y";

fn evil() -> String {
    EVIL.replace('␤', "\n")
}

/// Runs a command and gives its output, in which nothing acts on a terminal or looks like the host's.
fn printed(project: &Project, status: i32, args: &[&str]) -> String {
    let output = project.run(args);
    let text = [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).unwrap()).concat();
    assert_eq!(output.status.code(), Some(status), "{args:?}: {text}");
    let acting: Vec<char> = text.chars().filter(|c| *c != '\n' && !is_seen(*c)).collect();
    assert!(acting.is_empty(), "{args:?} prints {acting:?}: {text}");
    let forged = text.lines().find(|line| line.starts_with("error: forged") || line.starts_with("hint: forged"));
    assert_eq!(forged, None, "{args:?}: {text}");
    assert!(text.contains(r"\u{1b}[2J") || text.contains(r"\u001b[2J"), "{args:?} does not show it: {text}");
    text
}

fn rows(project: &Project, name: &str, rows: &[Value]) {
    project.write(name, &rows.iter().map(|row| row.to_string() + "\n").collect::<String>());
}

#[test]
fn a_plugin_cannot_write_to_the_terminal() {
    let project = Project::empty();
    let obeys = built("guests/obeys.wasm").display().to_string();
    let named = json!({"name": evil()}).to_string();
    let refused = json!({"refuse": evil()}).to_string();
    let case = |say: &str| json!({"case": evil(), "response": format!("{say} {EVIL}"), "expect": {"score": 7}});
    let says = ["note", "metric", "complain", "print", "abstain", "unavailable", "internal", "panic", "unknown"];
    let cases: Vec<Value> = says.into_iter().map(case).collect();
    rows(&project, "cases.jsonl", &cases);
    let of_cases = |command: &'static str| vec!["plugin", command, obeys.as_str(), "--params", named.as_str()];

    let told = printed(&project, 1, &[&of_cases("test")[..], &["--cases", "cases.jsonl"]].concat());
    assert!(told.contains("obeys: 9 of 9 cases failed") && told.contains("            hint: forged\n"), "{told}");
    printed(&project, 1, &[&of_cases("test")[..], &["--cases", "cases.jsonl", "--usage"]].concat());
    printed(&project, 1, &[&of_cases("check")[..], &["--data", "cases.jsonl"]].concat());
    printed(&project, 1, &[&of_cases("check")[..], &["--data", "cases.jsonl", "--json"]].concat());
    printed(&project, 0, &[&of_cases("bench")[..], &["--data", "cases.jsonl", "--seconds", "1"]].concat());
    printed(&project, 0, &[&of_cases("test")[..], &["--cases", "cases.jsonl", "--update"]].concat());

    let args = ["plugin", "test", &obeys, "--cases", "cases.jsonl", "--params", &refused];
    let told = printed(&project, 2, &args);
    // The parameters are shown as JSON, and the plugin's message about them in lines.
    assert!(told.starts_with("error: plugin `obeys` refuses its parameters {\"refuse\":"), "{told}");
    assert!(told.contains("\n  error: forged\n  hint: forged\n  y\n"), "{told}");
    for params in [&named, &refused] {
        let toml: toml::Table = serde_json::from_str(params).unwrap();
        project.write("run.toml", &format!("[[reward]]\nname = \"o\"\npath = {obeys:?}\n[reward.params]\n{toml}"));
        printed(&project, 0, &["plugin", "inspect", &obeys, "-c", "run.toml"]);
        printed(&project, 0, &["plugin", "inspect", &obeys, "-c", "run.toml", "--json"]);
    }
}

#[test]
fn a_row_and_a_recording_cannot_write_to_the_terminal() {
    let project = Project::empty();
    let obeys = built("guests/obeys.wasm").display().to_string();
    let data = [
        json!({"id": evil(), "response": format!("score 1\nnote {EVIL}"), "data_source": evil()}),
        json!({"id": "b", "response": format!("abstain {EVIL}")}),
    ];
    rows(&project, "data.jsonl", &data);
    let score = ["score", "--plugin", &obeys, "--data", "data.jsonl", "--out", "out.jsonl", "--record", "kept"];
    project.succeed(&score);
    let changed = json!({"factor": 2, "name": evil()});
    let changed = format!("obeys={changed}");
    let told = printed(&project, 1, &["replay", "kept", "--params", &changed]);
    assert!(told.contains("worst disagreements"), "{told}");
    printed(&project, 1, &["replay", "kept", "--params", &changed, "--json"]);
    printed(
        &project,
        1,
        &["plugin", "diff", &obeys, &built("guests/abstain.wasm").display().to_string(), "--data", "data.jsonl"],
    );

    // A recording that somebody else wrote.
    let path = project.path("kept/trajectories/step-000000.jsonl");
    let text = std::fs::read_to_string(&path).unwrap();
    let mut lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    lines[0]["id"] = evil().into();
    lines[0]["plugins"]["obeys"]["reason"] = format!("another {}", evil()).into();
    rows(&project, "kept/trajectories/step-000000.jsonl", &lines);
    let told = printed(&project, 1, &["replay", "kept"]);
    assert!(told.contains("1 differ"), "{told}");
    printed(&project, 1, &["replay", "kept", "--json"]);

    let score = ["score", "--plugin", &obeys, "--data", "bad.jsonl", "--out", "out.jsonl"];
    for row in [json!({evil(): 1}), json!({"messages": [{"role": evil(), "content": ""}]})] {
        rows(&project, "bad.jsonl", &[row]);
        let told = printed(&project, 1, &score);
        assert_eq!(told.lines().filter(|line| line.starts_with("error: bad.jsonl, line ")).count(), 1, "{told}");
        printed(&project, 1, &[&score[..], &["--json"]].concat());
    }
}

#[cfg(feature = "train")]
#[test]
fn a_model_cannot_write_to_the_terminal() {
    use std::process::Command;
    let project = Project::new();
    project.succeed(&["sft", "-c", "sft.toml", "--set", "train.steps=1", "--set", "log.name=start"]);
    let model = "runs/start/checkpoints/step-000001";
    let args = ["generate", "-m", model, "--prompt", "a", "--max-tokens", "60", "--temperature", "3"];
    let acts = |text: &str| text.chars().any(|c| c != '\n' && c != '\t' && !is_seen(c));
    // A program gets exactly what the model wrote.
    let piped = String::from_utf8(project.succeed(&args).stdout).unwrap();
    assert!(acts(&piped), "{piped:?}");
    for more in [&[][..], &["--n", "2"]] {
        let python = "import pty, sys; sys.exit(pty.spawn(sys.argv[1:]) >> 8)";
        let mut command = Command::new("python3");
        command.args(["-c", python, env!("CARGO_BIN_EXE_gavel")]).args(args).args(more);
        let output = command.current_dir(project.path("")).output().unwrap();
        // A terminal ends lines with `\r\n`.
        let shown = String::from_utf8(output.stdout).unwrap().replace("\r\n", "\n");
        assert!(output.status.success() && shown.contains(r"\u{") && !acts(&shown), "{shown:?}");
    }

    // The message about a sample of this model.
    project.add_reward("obeys", "guests/obeys.wasm", "");
    let args = ["train", "-c", "train.toml", "--set", "train.steps=3", "--set", "train.max_failure_rate=1.0"];
    let output = project.run(&args);
    let text = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{text}");
    assert!(text.contains("is not an instruction") && text.contains(r"\u{") && !acts(&text), "{text:?}");
}

#[test]
fn a_reader_that_goes_away_is_no_failure() {
    let project = Project::empty();
    let component = built("plugins/gsm8k.wasm");
    let mut command = project.command(&["plugin", "inspect", component.to_str().unwrap()]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // As `gavel plugin inspect … | head -0` does.
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success() && !said.contains("panicked"), "{said}");
}
