//! Training where a sample is made by a program that asks the policy over HTTP.
//!
//! It needs what `cargo xtask test` provides: the package openai in the Python that comes first.
#![cfg(feature = "train")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod project;

use project::{Project, lines, stderr};
use serde_json::{Map, Value, json};

/// Thinks, acts and observes in plain text, with Python's standard library. Of every third task, it drops its first reply
/// from the history.
const REACT: &str = r#"
import json, os, sys, urllib.request
text = sys.stdin.read()
if "PLANTED" in text + str(dict(os.environ)):
    sys.exit("the answer key is here")
task = json.loads(text)
number = int(task["prompt"][0]["content"].split()[1])
opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
def ask(messages):
    body = json.dumps({"model": "any", "messages": messages, "max_tokens": 6}).encode()
    headers = {"authorization": "Bearer " + os.environ["OPENAI_API_KEY"]}
    request = urllib.request.Request(os.environ["OPENAI_BASE_URL"] + "/chat/completions", body, headers)
    return json.load(opener.open(request))["choices"][0]["message"]
messages = list(task["prompt"])
for turn in range(3):
    reply = ask(messages)
    messages += [reply, {"role": "user", "content": "Result %d" % turn}]
    if number % 3 == 0 and turn == 0:
        del messages[1]
print("observed", turn)
print(json.dumps({"answer": reply["content"] + " a" * (number % 2), "extra": {"turns": turn + 1}}))
"#;

/// The same with the official client, streamed and in two branches.
const OPENAI: &str = r#"
import json, sys
import openai
task = json.load(sys.stdin)
client = openai.OpenAI()
assert [model.id for model in client.models.list()] == ["policy"]
messages = task["prompt"]
first = client.chat.completions.create(model="gpt-4o", messages=messages, max_tokens=6, temperature=0.2, n=2)
assert len(first.choices) == 2 and first.usage.completion_tokens <= 12
said = []
for choice in first.choices:
    branch = messages + [choice.message.model_dump(), {"role": "user", "content": "On"}]
    stream = client.chat.completions.create(model="gpt-4o", messages=branch, max_tokens=4, stream=True)
    said.append("".join(part.choices[0].delta.content or "" for part in stream if part.choices))
try:
    client.chat.completions.create(model="gpt-4o", messages=messages)
    raise SystemExit("a fifth turn was drawn")
except openai.PermissionDeniedError as error:
    assert error.code == "max_turns", error
# Some samples are right.
print(json.dumps({"answer": "a" if task["seed"] % 2 else "1"}))
"#;

fn arguments<'a>(command: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    let common = [
        "train",
        "-c",
        "train.toml",
        "--set",
        command,
        "--set",
        "agent.max_turns=4",
        "--set",
        "rollout.max_tokens=96",
        "--set",
        "model.init.max_position_embeddings=256",
        "--set",
        "log.token_ids=true",
        "--set",
        "train.mini_batch_prompts=4",
    ];
    [&common, more].concat()
}

fn project(program: &str) -> Project {
    let project = Project::new();
    project.write("agent.py", program);
    for name in ["train.jsonl", "validation.jsonl"] {
        // Each row of validation is a process.
        let count = if name == "train.jsonl" { 40 } else { 2 };
        let rows = lines(&project.path(name)).into_iter().take(count).map(|mut row| {
            row.insert("reward_model".to_owned(), json!({"ground_truth": "PLANTED"}));
            Value::Object(row).to_string() + "\n"
        });
        project.write(name, &rows.collect::<String>());
    }
    project
}

const COMMAND: &str = r#"agent.command=["python3", "agent.py"]"#;

fn trajectories(project: &Project, step: u32) -> Vec<Map<String, Value>> {
    lines(&project.path(&format!("runs/run/trajectories/step-{step:06}.jsonl")))
}

#[test]
fn a_program_trains_and_its_run_is_resumed_evaluated_and_replayed() {
    let project = project(REACT);
    let steps = ["--set", "train.steps=1"];
    let checked = project.succeed(&[&arguments(COMMAND, &steps)[..], &["--dry-run"]].concat());
    let checked = String::from_utf8(checked.stdout).unwrap();
    let says = "the program python3 agent.py, which asks the gateway at 127.0.0.1, a free port";
    assert!(checked.contains(says), "{checked}");
    project.succeed(&arguments(COMMAND, &steps));
    project.succeed(&arguments(COMMAND, &["--set", "train.steps=3", "--resume"]));
    let metrics = project.metrics("runs/run");
    assert_eq!(metrics.len(), 1 + 3);
    for line in &metrics[1..] {
        assert!(line["logprob_mismatch"].as_f64().unwrap() < 1e-4, "{line:?}");
        assert_eq!(line["num_turns/mean"], 3.0, "{line:?}");
    }
    let (mut rows, mut of_edited) = (0, 0);
    for line in (1..=3).flat_map(|step| trajectories(&project, step)) {
        assert!(line.get("error").is_none(), "{line:?}");
        assert!(!Value::Object(line.clone()).to_string().contains("exit"), "{line:?}");
        let is_second = line.get("trajectory") == Some(&json!(1));
        rows += 1;
        of_edited += usize::from(is_second);
        let prompt = line["prompt"][0]["content"].as_str().unwrap();
        let number: usize = prompt.strip_prefix("Say ").unwrap().parse().unwrap();
        assert!(!is_second || number.is_multiple_of(3), "{line:?}");
    }
    // A sample whose history was edited has a row for each part of it.
    assert_eq!(rows, 3 * 16 + of_edited);
    assert!(of_edited > 0);
    let evaluated = project.succeed(&[
        "eval",
        "-c",
        "train.toml",
        "--checkpoint",
        "runs/run/checkpoints/step-000003",
        "--set",
        COMMAND,
        "--set",
        "rollout.max_tokens=96",
    ]);
    assert!(!evaluated.stdout.is_empty());
    let replayed = project.succeed(&["replay", "runs/run"]);
    let said = String::from_utf8(replayed.stdout).unwrap();
    assert!(said.contains("all the same"), "{said}");
}

#[test]
fn the_official_client_asks_for_branches() {
    let project = project(OPENAI);
    let few = ["train.steps=1", "train.prompts_per_step=2", "train.mini_batch_prompts=2", "train.validate_every=1000"];
    let few: Vec<&str> = few.iter().flat_map(|setting| ["--set", setting]).collect();
    project.succeed(&arguments(COMMAND, &few));
    for line in &project.metrics("runs/run")[1..] {
        assert!(line["logprob_mismatch"].as_f64().unwrap() < 1e-4, "{line:?}");
        assert_eq!((&line["num_turns/mean"], &line["num_trajectories/mean"]), (&json!(4.0), &json!(2.0)), "{line:?}");
    }
}

#[test]
fn a_program_that_fails_costs_its_samples_and_one_that_is_missing_stops_the_run_before_it_starts() {
    let project = project("import sys\nsys.exit('out of luck')\n");
    let settings = ["--set", "train.steps=1", "--set", "train.max_failure_rate=1"];
    let output = project.run(&arguments(COMMAND, &settings));
    let lines = trajectories(&project, 1);
    assert!(!lines.is_empty(), "{}", stderr(&output));
    for line in lines {
        let error = Value::Object(line).to_string();
        assert!(error.contains("the agent failed: the program ended with exit code 1: out of luck"), "{error}");
    }
    let missing = r#"agent.command=["no-such-program-of-gavel"]"#;
    let said = stderr(&project.run(&arguments(missing, &[])));
    assert!(said.contains("agent.command: there is no program \"no-such-program-of-gavel\""), "{said}");
    let both = arguments(COMMAND, &["--set", "agent.kind='tools'"]);
    let said = stderr(&project.run(&both));
    assert!(said.contains("a program calls its tools itself"), "{said}");
    let said = stderr(&project.run(&["train", "-c", "train.toml", "--set", "gateway.address='127.0.0.1:8100'"]));
    assert!(said.contains("[gateway] is for agents that are programs, and there is none"), "{said}");
}
