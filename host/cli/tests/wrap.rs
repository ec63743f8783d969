//! `gavel plugin new --from-verl` and `--from-trl`: existing functions, unchanged.
//!
//! It needs what `cargo xtask test` provides: componentize-py.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod project;

use project::{Project, lines, stderr};
use serde_json::{Value, json};
use std::process::Output;

fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// The verdicts of the plugin with this name.
fn scores(project: &Project, name: &str) -> Vec<Value> {
    project.succeed(&["plugin", "build", name]);
    let plugin = format!("{name}/build/{name}.wasm");
    project.succeed(&["score", "--plugin", &plugin, "--data", "rows.jsonl", "--out", "out.jsonl"]);
    lines(&project.path("out.jsonl")).into_iter().map(|line| line["plugins"][name].clone()).collect()
}

#[test]
fn a_function_for_verl_scores_as_it_is() {
    let project = Project::empty();
    project.write("normalise.py", "def normalise(text):\n    return text.replace(',', '').strip()\n");
    project.write(
        "reward.py",
        r#"import asyncio
import re

from normalise import normalise


async def compute_score(data_source, solution_str, ground_truth, extra_info=None, bonus=0.0):
    await asyncio.sleep(0)
    found = re.findall(r'#### (-?[\d,.]+)', solution_str)
    if not found:
        return {"score": 0.0, "answered": False}
    if extra_info["index"] == 2:
        raise ValueError("a bug of the author")
    correct = normalise(found[-1]) == ground_truth
    return {"score": 1.0 + bonus if correct else 0.0, "answered": True, "pred": found[-1]}
"#,
    );
    let task = |index: u32, truth: Value, more: Value| {
        let prompt = json!([{"role": "user", "content": "?"}]);
        let mut task =
            json!({"prompt": prompt, "reward_model": {"ground_truth": truth}, "extra_info": {"index": index}});
        task.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        format!("{task}\n")
    };
    let tests = json!([{"input": "1", "output": "2"}]);
    let data = task(0, json!("1200"), json!({"case": "its own"}))
        + &task(1, tests, json!({}))
        + &task(3, json!("7"), json!({"response": "#### 8"}))
        + &task(4, json!("9"), json!({}));
    project.write("data.jsonl", &data);
    let new = ["plugin", "new", "mine", "--from-verl", "reward.py", "--data", "data.jsonl"];
    let said = stdout(&project.succeed(&new));
    assert!(said.contains("made mine/ around `compute_score`") && said.contains("normalise.py"), "{said}");
    assert!(said.contains("3 of data.jsonl") && said.contains("the column `case` of data.jsonl is not in"), "{said}");
    let cases = lines(&project.path("mine/cases.jsonl"));
    let cases: Vec<_> = cases.iter().map(|case| (case["case"].as_str().unwrap(), &case["response"])).collect();
    let right = json!("The answer is \\boxed{1200}.\n#### 1200");
    let expected = [
        ("line 1: the ground truth as the response", &right),
        ("line 2: write a response", &json!("write a response here")),
        ("line 3: its response", &json!("#### 8")),
    ];
    assert_eq!(cases, expected);
    let row = |index: u32, response: &str| {
        json!({
            "data_source": "openai/gsm8k", "prompt": [{"role": "user", "content": "?"}], "response": response,
            "reward_model": {"style": "rule", "ground_truth": "1200"}, "extra_info": {"index": index}
        })
        .to_string()
            + "\n"
    };
    project.write("rows.jsonl", &(row(0, "#### 1,200") + &row(1, "1200") + &row(2, "#### 7")));
    let said = scores(&project, "mine");
    assert_eq!((&said[0]["score"], &said[0]["metrics"]), (&json!(1.0), &json!({"answered": 1.0})));
    assert_eq!((&said[1]["score"], &said[1]["metrics"]), (&json!(0.0), &json!({"answered": 0.0})));
    // Elsewhere, an exception would be a 0 or the end of the job.
    assert_eq!(
        (&said[2]["outcome"], &said[2]["whose"], &said[2]["score"]),
        (&json!("fault"), &json!("plugin"), &json!(null))
    );
    let reason = said[2]["reason"].as_str().unwrap();
    assert!(reason.contains("ValueError: a bug of the author") && reason.contains("reward.py"), "{reason}");
    // The cases of the dataset pass with any score.
    let said = stdout(&project.succeed(&["plugin", "test", "mine"]));
    assert!(said.contains("mine: 3 cases passed"), "{said}");
    assert!(said.contains("3 cases state only that they are scored: 1, 0, 0; `--update` writes the scores"), "{said}");
    let said = stdout(&project.succeed(&["plugin", "test", "mine", "--update"]));
    assert!(said.contains("3 of 3 expectations written"), "{said}");
    let expected: Vec<Value> =
        lines(&project.path("mine/cases.jsonl")).into_iter().map(|case| case["expect"]["score"].clone()).collect();
    assert_eq!(expected, [json!(1), json!(0), json!(0)]);
    // Without a dataset there is one, for the author to fill in.
    project.succeed(&["plugin", "new", "other", "--from-verl", "reward.py"]);
    assert_eq!(lines(&project.path("other/cases.jsonl")).len(), 1);
}

#[test]
fn a_function_for_trl_scores_as_it_is() {
    let project = Project::empty();
    project.write(
        "rewards.py",
        r#"def brief(completions, **kwargs):
    return [1.0 for _ in completions]


def right(prompts, completions, answer, **kwargs):
    texts = [completion[0]["content"] for completion in completions]
    return [None if truth is None else float(truth in text) for text, truth in zip(texts, answer)]
"#,
    );
    let output = project.run(&["plugin", "new", "mine", "--from-trl", "rewards.py"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("brief") && stderr(&output).contains("right"), "{}", stderr(&output));
    project.succeed(&["plugin", "new", "mine", "--from-trl", "rewards.py:right"]);
    let prompt = json!([{"role": "user", "content": "?"}]);
    let row = |answer: Value| json!({"prompt": prompt, "response": "It is 42.", "answer": answer}).to_string() + "\n";
    project.write("rows.jsonl", &(row(json!("42")) + &row(json!("43")) + &row(Value::Null)));
    let said = scores(&project, "mine");
    assert_eq!([&said[0]["score"], &said[1]["score"]], [&json!(1.0), &json!(0.0)]);
    assert_eq!(said[2]["outcome"], "abstained");
}

#[test]
fn a_function_that_wants_tokens_is_refused() {
    let project = Project::empty();
    project.write(
        "rewards.py",
        "def count(completions, completion_ids):\n    return [len(ids) for ids in completion_ids]\n",
    );
    let output = project.run(&["plugin", "new", "mine", "--from-trl", "rewards.py"]);
    assert_eq!(output.status.code(), Some(2));
    let expected =
        "error: `count` of rewards.py takes `completion_ids`, and a plugin has no tokens\nhint: let it work on";
    assert!(stderr(&output).starts_with(expected), "{}", stderr(&output));
    assert!(!project.path("mine").exists());
}

#[test]
fn what_cannot_come_along_is_named_before_a_run() {
    let project = Project::empty();
    project.write(
        "reward.py",
        "import requests\nimport numpy as np\n\ndef compute_score(data_source, solution_str, ground_truth, extra_info):\n    return float(requests.get('https://judge.example').ok)\n",
    );
    let said = stdout(&project.succeed(&["plugin", "new", "mine", "--from-verl", "reward.py"]));
    assert!(said.contains("requests") && said.contains("numpy") && said.contains("reward.py"), "{said}");
    let output = project.run(&["plugin", "build", "mine"]);
    assert_eq!(output.status.code(), Some(2));
    let said = stderr(&output);
    assert!(
        said.contains("requests")
            && said.contains("imports = [\"http\"]")
            && said.contains("chat")
            && said.contains("numpy"),
        "{said}"
    );
    let serve =
        "python -m gavel.service rewards.py:compute_score --verl --port 8000`, and url = \"http://127.0.0.1:8000\"";
    assert_eq!(said.matches(serve).count(), 2, "{said}");
}

#[test]
fn a_rule_of_verl_is_named_as_the_standard_reward() {
    let project = Project::empty();
    project.write(
        "reward.py",
        "from verl.utils.reward_score import gsm8k\n\ndef compute_score(data_source, solution_str, ground_truth, extra_info):\n    return gsm8k.compute_score(solution_str, ground_truth)\n",
    );
    let said = stdout(&project.succeed(&["plugin", "new", "mine", "--from-verl", "reward.py"]));
    let why = "reward.py line 1: `verl.utils.reward_score`: it is a package that is not part of the plugin\n";
    assert!(said.contains(why) && said.contains("docs/plugins.md, \"In place of verl's\""), "{said}");
    assert!(!said.contains("compiled for this machine"), "{said}");
}

#[test]
fn a_package_that_is_compiled_is_named_when_it_is_built() {
    let project = Project::empty();
    project.write(
        "reward.py",
        "def compute_score(data_source, solution_str, ground_truth, extra_info):\n    return 1.0\n",
    );
    project.write("requirements.txt", "ujson==5.10.0\n");
    project.succeed(&["plugin", "new", "mine", "--from-verl", "reward.py"]);
    let output = project.run(&["plugin", "build", "mine"]);
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("ujson") && said.contains("hint:") && said.contains("python -m gavel.service"), "{said}");
}

#[test]
fn packages_are_those_of_the_requirements_also_after_a_refusal() {
    let project = Project::empty();
    // The build ends once the packages are there.
    let text =
        "import absent\n\ndef compute_score(data_source, solution_str, ground_truth, extra_info):\n    return 1.0\n";
    project.write("reward.py", text);
    project.succeed(&["plugin", "new", "mine", "--from-verl", "reward.py"]);
    for (wanted, named, pure) in [("six==1.17.0\n", "absent", true), ("ujson==5.10.0\n", "ujson", false)].repeat(2) {
        project.write("mine/requirements.txt", wanted);
        let output = project.run(&["plugin", "build", "mine"]);
        assert!(stderr(&output).contains(named), "{wanted}: {}", stderr(&output));
        assert_eq!(project.path("mine/build/packages/six.py").exists(), pure, "{wanted}");
    }
}

#[test]
fn a_function_that_is_not_there_or_takes_other_arguments_is_named() {
    let project = Project::empty();
    project.write("reward.py", "def score_it(text):\n    return 1.0\n");
    for (args, expected) in [
        (["--from-verl", "reward.py"], "score_it"),
        (["--from-verl", "reward.py:gone"], "gone"),
        (["--from-verl", "none.py"], "none.py"),
        (["--from-verl", "reward.py:score_it"], "data_source"),
    ] {
        let output = project.run(&["plugin", "new", "mine", args[0], args[1]]);
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        assert!(stderr(&output).contains(expected), "{args:?}: {}", stderr(&output));
        assert!(!project.path("mine").exists(), "{args:?}");
    }
}
