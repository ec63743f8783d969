//! What a run tries before its first step, as a user sees it: its folder, its rewards and their endpoints.
#![cfg(feature = "train")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "project/judge.rs"]
mod judge;
mod project;

use judge::Judge;
use project::{Project, stderr};
use serde_json::{Value, json};

const TRAIN: [&str; 5] = ["train", "-c", "train.toml", "--set", "train.steps=1"];

/// The error with which a run and its dry run fail before they write anything.
fn refused(project: &Project, settings: &[&str]) -> String {
    let settings: Vec<&str> = settings.iter().flat_map(|setting| ["--set", setting]).collect();
    let outputs = [&[][..], &["--dry-run"]].map(|more| project.run(&[&TRAIN[..], &settings, more].concat()));
    assert!(!project.path("runs").exists());
    let errors = outputs.map(|output| {
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{said}");
        said[said.find("error: ").unwrap()..].to_owned()
    });
    assert_eq!(errors[0], errors[1]);
    errors[0].clone()
}

/// The lines of a dry run about rewards that were tried.
fn tried(project: &Project, settings: &[&str]) -> String {
    let settings: Vec<&str> = settings.iter().flat_map(|setting| ["--set", setting]).collect();
    let output = project.succeed(&[&TRAIN[..], &["--dry-run"], &settings].concat());
    String::from_utf8(output.stdout).unwrap()
}

/// An endpoint at `address` and a reward that asks it.
fn add_asks(project: &Project, address: &str) {
    let chat = format!("[chat.judge]\nbase_url = \"http://{address}/v1\"\nmodel = \"m\"\nretries = 0\n");
    project.add_reward("asks", "guests/asks.wasm", &format!("grant = {{ chat = [\"judge\"] }}\n{chat}"));
}

#[test]
fn a_dataset_without_ground_truth_is_found() {
    let project = Project::new();
    let text = project.read("train.jsonl");
    project.write("train.jsonl", &text.replace("reward_model", "reward"));
    project.add_reward("exact", "plugins/exact-answer.wasm", "weight = 0.5");
    let error = refused(&project, &[]);
    let said = "error: the reward `exact` was tried with the response \"I do not know.\" and failed on 4 of 4 rows of train.jsonl; the first: train/0: invalid input: ";
    assert!(error.starts_with(said), "{error}");
    // The validation set has ground truth, and `max_failure_rate` lets a run start nevertheless.
    let text = tried(&project, &["train.max_failure_rate=1.0"]);
    assert!(text.contains("# ok: reward tried: exact: 4 rows of train.jsonl: 4 fault (the first: "), "{text}");
    assert!(text.contains("# ok: reward tried: exact: 4 rows of validation.jsonl: 4 scored\n"), "{text}");
    assert!(text.contains("\n# warning: the reward `exact` was tried with "), "{text}");
    assert!(text.parse::<toml::Table>().is_ok());
    // A reward with the weight 0 does not stop a run.
    let text = project.read("train.toml");
    project.write("train.toml", &text.replace("weight = 0.5", "weight = 0"));
    assert!(tried(&project, &[]).contains("\n# warning: the reward `exact` was tried with "));
}

#[test]
fn an_endpoint_that_is_down_is_found_and_one_that_answers_is_asked_once() {
    let project = Project::new();
    add_asks(&project, "127.0.0.1:1");
    let error = refused(&project, &[]);
    assert!(
        error.contains("`asks` was tried with") && error.contains("failed on 1 of 1 row of train.jsonl"),
        "{error}"
    );
    assert!(error.contains("http://127.0.0.1:1/v1"), "{error}");

    let (project, judge) = (Project::new(), Judge::start());
    add_asks(&project, &judge.address.to_string());
    let text = tried(&project, &[]);
    assert!(text.contains("# ok: reward tried: asks: 1 row of train.jsonl: 1 scored\n"), "{text}");
    assert_eq!(judge.asked(), 1);
}

#[test]
fn a_bug_that_one_response_meets_is_a_warning() {
    let project = Project::new();
    project.add_reward("broken", "hostile/trap.wasm", "");
    let text = tried(&project, &[]);
    assert!(text.contains("\n# warning: the reward `broken` was tried with "), "{text}");
    assert!(text.contains("panics on every sample") && text.contains("\n# warning:   at "), "{text}");
}

#[test]
fn an_abstention_is_no_failure() {
    let project = Project::new();
    project.add_reward("none", "guests/abstain.wasm", "");
    let text = tried(&project, &[]);
    assert!(text.contains("none: 4 rows of train.jsonl: 4 abstained (the first: this plugin abstains"), "{text}");
    assert!(!text.contains("# warning: the reward"), "{text}");
}

#[test]
fn a_folder_that_cannot_be_written_is_found() {
    let project = Project::new();
    let error = refused(&project, &["log.dir=train.jsonl/runs"]);
    assert!(error.contains("cannot make a folder in ") && error.contains("train.jsonl: "), "{error}");
}

/// Opens a thought in the prompt, and reads what is said after it.
const THINKS: &str = "{% for message in messages %}{{ message.role }}:{{ message.content }}<|im_end|>{% endfor %}{% if add_generation_prompt %}assistant:{{ '' if quiet else '<think>\\n' }}{% endif %}";

/// What `--show` prints of the first rows.
fn shown(project: &Project, command: &str, more: &[&str]) -> String {
    let config = match command {
        "train" => "train.toml",
        "sft" => "sft.toml",
        _ => "pairs.toml",
    };
    let template = ["--set", "model.chat_template=thinks.jinja"];
    let output = project.succeed(&[&[command, "-c", config][..], &template, more].concat());
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn rows_are_shown_as_the_model_reads_them() {
    let project = Project::new();
    project.write("thinks.jinja", THINKS);
    let rows = [
        json!({"prompt": "a\nb", "response": "<think>\nc\n</think>\n\nd", "chosen": "c</think>e", "rejected": "c</think>f"}),
        json!({"prompt": "g", "response": "h", "chosen": "i", "rejected": "j", "chat_template_kwargs": {"quiet": true}}),
        json!({"prompt": "not shown", "response": "k", "chosen": "k", "rejected": "k"}),
    ];
    project.write("train.jsonl", &rows.map(|row| format!("{row}\n")).concat());
    let train = project.read("sft.toml");
    let (head, tail) = (train.find("[rollout]").unwrap(), train.find("[checkpoint]").unwrap());
    project.write(
        "pairs.toml",
        &format!("{}{}", &train[..head], &train[tail..]).replace("validation.jsonl", "train.jsonl"),
    );

    let first = "  user:a\n  b<|im_end|>assistant:<think>\n";
    let second = "  user:g<|im_end|>assistant:\n";
    let title = |place: &str, counts: &str| format!("== train.jsonl, {place}: {counts}\n");
    let expected = [
        title("line 1", "27 tokens read, 14 learned"),
        format!("{first}> c\n> </think>\n> \n> d<|im_end|>\n"),
        title("line 2", "17 tokens read, 2 learned"),
        format!("{second}>…h<|im_end|>\n"),
    ];
    assert_eq!(shown(&project, "sft", &["--show", "2"]), expected.concat());
    let expected = [
        title("line 1", "27 tokens read, then the policy writes"),
        format!("{first}> \n"),
        title("line 2", "17 tokens read, then the policy writes"),
        format!("{second}>…\n"),
    ];
    assert_eq!(shown(&project, "train", &["--show", "2"]), expected.concat());
    let expected = [
        title("line 1, chosen", "27 tokens read, 11 learned"),
        format!("{first}> c</think>e<|im_end|>\n"),
        title("line 1, rejected", "27 tokens read, 11 learned"),
        format!("{first}> c</think>f<|im_end|>\n"),
    ];
    assert_eq!(shown(&project, "dpo", &["--show", "1"]), expected.concat());
    let expected = [
        title("line 1, chosen", "30 tokens read"),
        "  user:a\n  b<|im_end|>assistant:c</think>e<|im_end|>\n".into(),
        title("line 1, rejected", "30 tokens read"),
        "  user:a\n  b<|im_end|>assistant:c</think>f<|im_end|>\n".into(),
    ];
    assert_eq!(shown(&project, "reward-model", &["--show", "1"]), expected.concat());

    let lines: Vec<Value> = shown(&project, "sft", &["--show", "9", "--json"])
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let parts = json!([
        {"text": "user:g<|im_end|>assistant:", "tokens": 17, "learned": false},
        {"text": "h<|im_end|>", "tokens": 2, "learned": true},
    ]);
    assert_eq!((lines.len(), &lines[1]), (3, &json!({"row": "train.jsonl, line 2", "name": null, "parts": parts})));
    assert!(!project.path("runs").exists());
    let output = project.run(&["sft", "-c", "sft.toml", "--show", "1", "--dry-run"]);
    assert!(stderr(&output).contains("cannot be used with"), "{}", stderr(&output));
}

#[test]
fn variables_that_are_none_are_refused_with_their_place() {
    let project = Project::new();
    let row = json!({"prompt": "a", "response": "b", "chat_template_kwargs": {"add_generation_prompt": false}});
    project.write("train.jsonl", &format!("{row}\n"));
    let said = "error: train.jsonl, line 1: `chat_template_kwargs` must be an object with variables of the chat template, or its JSON text: `add_generation_prompt` is not a variable of the chat template that can be set";
    let error = refused(&project, &[]);
    assert!(error.starts_with(said), "{error}");
    let error = refused(&project, &["model.chat_template_kwargs={ messages = [] }"]);
    assert!(error.contains("model.chat_template_kwargs: `messages` is not a variable of the chat template"), "{error}");
}

#[test]
fn a_plugin_for_advantages_is_tried_on_made_up_groups() {
    let project = Project::new();
    let guest = project::built("guests/estimators.wasm");
    let text = project.read("train.toml");
    let tried = |estimator: &str| {
        let plugin = format!("[plugin.own]\npath = {guest:?}\nparams = {{ estimator = {estimator:?} }}\n");
        project.write("train.toml", &format!("{text}\n{plugin}"));
        tried(&project, &["train.advantage=plugin:own"])
    };
    let said = tried("grpo");
    assert!(said.contains("# ok: advantage: own: estimators 0.1.0, hash "), "{said}");
    assert!(
        said.contains("# ok: advantage tried: own: 2 groups of 4 made-up samples: all have advantages\n"),
        "{said}"
    );
    assert!(said.contains("\nadvantage = \"plugin:own\"\n") && !said.contains("algorithm"), "{said}");
    let said = tried("careless");
    let warning = "# warning: on 2 groups of 4 made-up samples, the advantage plugin `own` returned no advantages: group 1 (task made-up/1), sample 0: the advantage is NaN";
    assert!(said.contains(warning), "{said}");
    // A table that is missing, and one for nothing.
    let error = refused(&project, &["train.advantage=plugin:none"]);
    assert!(error.contains("train.advantage: there is no [plugin.none]\nhint: add that table"), "{error}");
    let error = refused(&project, &[]);
    assert!(error.contains("nothing names [plugin.own]\nhint: set train.advantage = \"plugin:own\""), "{error}");
}

#[test]
fn a_sampler_is_tried_on_the_datasets_of_the_run() {
    let project = Project::new();
    let guest = project::built("guests/draws.wasm");
    let text = project.read("train.toml");
    let tried = |how: &str| {
        let plugin = format!("[plugin.own]\npath = {guest:?}\nparams = {{ how = {how:?} }}\n");
        project.write("train.toml", &format!("{text}\n{plugin}"));
        tried(&project, &["data.sampler=plugin:own"])
    };
    let said = tried("in-order");
    assert!(said.contains("# ok: sampler: own: draws 0.1.0, hash "), "{said}");
    let ok = "# ok: sampler tried: own: twice 8 tasks, and groups of 4 made-up samples: all were drawn\n";
    assert!(said.contains(ok), "{said}");
    assert!(said.contains("\nsampler = \"plugin:own\"\n"), "{said}");
    let said = tried("fails");
    let warning = "# warning: tried with 8 tasks and groups of 4 made-up samples, the sampler `own` returned no answer: task 0 is of dataset 1, and there are 1 datasets";
    assert!(said.contains(warning), "{said}");
    let error = refused(&project, &["data.sampler=own"]);
    assert!(error.contains("\"own\" is not \"plugin:NAME\", which names the table [plugin.NAME]"), "{error}");
    let error = refused(&project, &["data.sampler=plugin:own", "data.shuffle=false"]);
    assert!(error.contains("data.sampler: data.shuffle = false sets the order of rows"), "{error}");
}
