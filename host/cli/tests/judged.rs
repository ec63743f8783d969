//! Judgers, tasksets and endpoints, in a run and offline.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "project/judge.rs"]
mod judge;
mod project;

use judge::Judge;
use project::{Project, built, lines, stderr};
use serde_json::{Value, json};

#[cfg(feature = "train")]
#[test]
fn a_run_learns_from_a_taskset_a_judger_and_a_model_and_replays_without_them() {
    let (project, judge) = (Project::new(), Judge::start());
    let text = std::fs::read_to_string(project.path("train.toml")).unwrap();
    let sums = built("guests/sums.wasm");
    let text = text.replace("\"train.jsonl\"", &format!("\"plugin:{}?rows=12&source=sums\"", sums.display()));
    let text = text.replace("\"validation.jsonl\"", &format!("\"plugin:{}?rows=3&seed=5\"", sums.display()));
    let endpoint = format!("[chat.judge]\nbase_url = \"http://{}/v1\"\nmodel = \"m\"\n", judge.address);
    project.write("train.toml", &format!("{text}\n{endpoint}"));
    project.add_reward("short", "guests/shortest.wasm", "weight = 0.5");
    project.add_reward(
        "asks",
        "guests/asks.wasm",
        "weight = 0.1\ngrant = { chat = [\"judge\"] }\nlimits = { timeout = \"120s\" }",
    );
    project.succeed(&["train", "-c", "train.toml", "--set", "train.steps=2"]);

    let samples = lines(&project.path("runs/run/trajectories/step-000001.jsonl"));
    assert_eq!(samples.len(), 16);
    assert!(samples.iter().all(|sample| sample["data_source"] == "sums"));
    for group in samples.chunks(4) {
        let score = |sample: &serde_json::Map<String, Value>| sample["plugins"]["short"]["score"].as_f64();
        let length = |sample: &serde_json::Map<String, Value>| sample["response"].as_str().unwrap().len();
        let shortest = group.iter().map(length).filter(|length| *length > 0).min();
        for sample in group {
            let expected = (length(sample) > 0).then(|| f64::from(Some(length(sample)) == shortest));
            assert_eq!(score(sample), expected, "{sample:?}");
        }
        assert_eq!(group[3]["plugins"]["asks"]["score"], json!(0.5));
    }
    let metrics = project.metrics("runs/run");
    assert_eq!(metrics[1]["reward/asks/mean"], json!(0.5));
    let asked = judge.asked();
    assert!(asked >= 2 * 16, "{asked}");
    assert!(metrics[1]["spent/asks/tokens"].as_u64().unwrap() >= 16 * 32, "{:?}", metrics[1]);
    assert!(metrics[2]["spent/tokens"].as_u64() > metrics[1]["spent/tokens"].as_u64());

    // Each request of a step is noted once, with its sample and the input of the reward's call.
    let of_steps = |folder: &str| {
        let of_step = |step| lines(&project.path(&format!("runs/run/{folder}/step-{step:06}.jsonl")));
        (1..=2).flat_map(of_step).collect::<Vec<_>>()
    };
    let sorted = |mut all: Vec<Value>| {
        all.sort_by_key(Value::to_string);
        all
    };
    let is_of_training = |call: &&serde_json::Map<String, Value>| call["for"].as_str().unwrap().starts_with(['1', '2']);
    let calls = of_steps("calls");
    let noted = calls.iter().filter(is_of_training);
    let noted = noted.map(|call| json!([call["for"], call["input"], call["seed"], call["endpoint"], call["ended"]]));
    let made = of_steps("trajectories").into_iter().map(|sample| {
        let asks = &sample["plugins"]["asks"];
        json!([sample["id"], asks["input"], asks["seed"], "judge", "answered"])
    });
    assert_eq!(sorted(noted.collect()), sorted(made.collect()));
    assert!(calls.iter().all(|call| !call.contains_key("question")), "{:?}", calls[0]);
    let of_validation = |folder: &str| lines(&project.path(&format!("runs/run/{folder}/step-000000.jsonl")));
    let noted = of_validation("calls").into_iter().map(|mut call| call.remove("for").unwrap());
    let answers = of_validation("validation/trajectories").into_iter();
    let answers = answers.map(|answer| json!(format!("{}.{}", answer["task_id"].as_str().unwrap(), answer["sample"])));
    assert_eq!(sorted(noted.collect()), sorted(answers.collect()));

    // A run that has spent its budget ends with a checkpoint, and continues with another one.
    let budget = |tokens: &str| format!("budget.tokens={tokens}");
    let (small, large) = (budget("100"), budget("1000000"));
    let name = ["train", "-c", "train.toml", "--set", "train.steps=2", "--set", "log.name=budget", "--set"];
    let output = project.run(&[&name[..], &[&small]].concat());
    assert!(stderr(&output).contains("tokens are spent, of budget.tokens = 100: the run ends"), "{}", stderr(&output));
    assert_eq!(project.metrics("runs/budget").len(), 2);
    project.succeed(&[&name[..], &[&large, "--resume"]].concat());
    assert_eq!(project.metrics("runs/budget").len(), 3);

    drop(judge);
    let output = project.succeed(&["replay", "runs/run"]);
    assert!(String::from_utf8_lossy(&output.stdout).contains("32 samples, 96 verdicts given again: all the same"));
    // A single selected sample is judged with its group.
    let output = project.succeed(&["replay", "runs/run", "--step", "2", "--sample", "2.1.3", "--json"]);
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&found["samples"], &found["different"]), (&json!(1), &json!(0)));
}

#[cfg(feature = "train")]
#[test]
fn what_is_wrong_with_a_taskset_or_an_endpoint_is_told_before_the_run() {
    let project = Project::new();
    let fails = |settings: &[&str], expected: &str| {
        let mut args = vec!["train", "-c", "train.toml", "--dry-run"];
        for setting in settings {
            args.extend(["--set", setting]);
        }
        let output = project.run(&args);
        assert_eq!(output.status.code(), Some(2), "{settings:?}");
        assert!(stderr(&output).contains(expected), "{settings:?}: {}", stderr(&output));
    };
    let taskset = |name: &str| format!("data.train=plugin:{}", built(name).display());
    let sums = "guests/sums.wasm";
    fails(&[&taskset(sums)], "it has no end\nhint: set how many rows are drawn from it, such as &rows=10000");
    fails(&[&format!("{}?rows=20", taskset(sums))], "row 13: invalid input: 13 is not summed");
    fails(&[&format!("{}?rowz=20", taskset(sums))], "unknown field `rowz`");
    // A plugin can report any length, and make rows of any size.
    fails(
        &[&format!("{}?length={}", taskset(sums), u64::MAX)],
        "it has 18446744073709551615 rows, more than the 1000000 that are drawn without a set number\nhint: set the number, such as &rows=10000",
    );
    fails(
        &[
            &format!("{}?length=1000&padding=1000000", taskset(sums)),
            "limits.memory=8MiB",
            "resources.plugin_memory=8MiB",
        ],
        "its rows up to row 8 take more than the 8.0 MiB of all plugins",
    );
    fails(&[&taskset("plugins/format.wasm")], "refuses its parameters");
    fails(&["data.train=plugin:sums"], "`sums` is neither a file nor the name of a [[reward]] (those are: letter)");
    fails(&["chat.judge.model=m"], "chat.judge: missing field `base_url`");
    fails(
        &["chat.judge.model=m", "chat.judge.base_url=http://127.0.0.1:1", "chat.judge.api_key_env=GAVEL_NO_SUCH_KEY"],
        "chat.judge.api_key_env: the variable GAVEL_NO_SUCH_KEY is not set",
    );
}

#[test]
fn rows_of_one_task_are_judged_together_offline_and_again() {
    let (project, judge) = (Project::empty(), Judge::start());
    let row = |id: &str, response: &str| json!({"id": id, "prompt": "?", "response": response}).to_string() + "\n";
    let rows = row("a", "long") + &row("a", "ab") + &row("b", "longer") + &row("a", "x");
    project.write("rows.jsonl", &rows);
    let short = format!("short={}", built("guests/shortest.wasm").display());
    let asks = format!("asks={}:0.1", built("guests/asks.wasm").display());
    let chat = format!("judge={{ base_url = \"http://{}/v1\", model = \"m\" }}", judge.address);
    #[rustfmt::skip]
    project.succeed(&[
        "score", "--plugin", &short, "--plugin", &asks, "--grant", "asks={ chat = [\"judge\"] }", "--chat", &chat,
        "--params", "asks={\"forgive\": false}", "--timeout", "120s", "--data", "rows.jsonl", "--out", "out.jsonl", "--record", "kept",
    ]);
    let scores = |file: &str| {
        let lines = lines(&project.path(file));
        lines.iter().map(|line| line["plugins"]["short"]["score"].as_f64()).collect::<Vec<_>>()
    };
    // The last row of `a` does not follow the others, so it is a separate group.
    assert_eq!(scores("out.jsonl"), [Some(0.0), Some(1.0), Some(1.0), Some(1.0)]);
    assert_eq!(judge.asked(), 4);
    let calls = lines(&project.path("kept/calls/step-000000.jsonl"));
    let mut noted: Vec<_> = calls.iter().map(|call| json!([call["for"], call["plugin"], call["ended"]])).collect();
    noted.sort_by_key(Value::to_string);
    let call = |id: &str| json!([id, "asks", "answered"]);
    assert_eq!(noted, [call("0.0.0"), call("0.0.1"), call("0.1.0"), call("0.2.0")]);
    drop(judge);
    project.succeed(&["score", "--replay", "kept", "--out", "again.jsonl"]);
    assert_eq!(scores("again.jsonl"), scores("out.jsonl"));
    let output = project.succeed(&["replay", "kept", "--json"]);
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&found["samples"], &found["different"]), (&json!(4), &json!(0)));
}

#[test]
fn a_group_stays_whole_around_a_sample_that_no_plugin_was_called_for() {
    let project = Project::empty();
    let row = |response: &str| json!({"id": "a", "prompt": "?", "response": response}).to_string() + "\n";
    project.write("rows.jsonl", &["longest", "longer", "ab"].map(row).concat());
    let short = format!("short={}", built("guests/shortest.wasm").display());
    project.succeed(&["score", "--plugin", &short, "--data", "rows.jsonl", "--out", "out.jsonl", "--record", "kept"]);
    // The record that a shut gate leaves.
    let step = project.path("kept/trajectories/step-000000.jsonl");
    let mut recorded = lines(&step);
    recorded[1].insert("plugins".into(), json!({}));
    std::fs::write(&step, recorded.into_iter().map(|line| Value::from(line).to_string() + "\n").collect::<String>())
        .unwrap();
    let output = project.run(&["score", "--replay", "kept", "--out", "again.jsonl"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("no plugin was called for it"), "{}", stderr(&output));
    let again = lines(&project.path("again.jsonl"));
    let scores = again.iter().map(|line| line["plugins"]["short"]["score"].as_f64()).collect::<Vec<_>>();
    assert_eq!(scores, [Some(0.0), None, Some(1.0)]);
}

#[test]
fn a_judger_after_another_reward_is_recorded_and_given_again() {
    let project = Project::empty();
    let row = |response: &str| json!({"id": "a", "prompt": "?", "response": response}).to_string() + "\n";
    let responses = ["score 0.25", "score 1\nmetric a 2\nnote fine", "score 0.5", "abstain no", "panic"];
    project.write("rows.jsonl", &responses.map(row).concat());
    let quality = format!("quality={}:0", built("guests/obeys.wasm").display());
    let rank = format!("rank={}", built("guests/ranks.wasm").display());
    let by = "rank={\"by\": \"quality\"}";
    #[rustfmt::skip]
    let score = [
        "score", "--plugin", &rank, "--plugin", &quality, "--params", by, "--data", "rows.jsonl", "--out", "out.jsonl",
    ];
    project.succeed(&[&score[..], &["--after", "rank=quality", "--record", "kept"]].concat());
    let rewards =
        |file: &str| lines(&project.path(file)).iter().map(|line| line["reward"].as_f64()).collect::<Vec<_>>();
    let shares = [Some(0.0), Some(2.0 / 3.0), Some(1.0 / 3.0), None, None];
    assert_eq!(rewards("out.jsonl"), shares);
    project.succeed(&["score", "--replay", "kept", "--out", "again.jsonl"]);
    assert_eq!(rewards("again.jsonl"), shares);

    let found = |project: &Project, args: &[&str]| {
        let output = project.run(&[&["replay", "kept", "--json"], args].concat());
        serde_json::from_slice::<Value>(&output.stdout).unwrap()
    };
    let verified = found(&project, &[]);
    assert_eq!((&verified["verdicts"], &verified["different"]), (&json!(10), &json!(0)), "{verified}");
    // A single selected sample is judged with the verdicts of the others.
    let verified = found(&project, &["--sample", "0.0.1"]);
    assert_eq!((&verified["samples"], &verified["different"]), (&json!(1), &json!(0)), "{verified}");
    // Another reward changes the ranks; another ranking does not change the reward.
    let plugins = |changed: &Value| {
        let plugins = changed["plugins"].as_array().unwrap().iter();
        plugins.map(|plugin| (plugin["name"].clone(), plugin["agreed"].clone())).collect::<Vec<_>>()
    };
    let changed = found(&project, &["--params", "quality={\"factor\": -1}"]);
    assert_eq!(plugins(&changed), [(json!("quality"), json!(2)), (json!("rank"), json!(3))], "{changed}");
    let changed = found(&project, &["--params", "rank={\"by\": \"nobody\"}"]);
    assert_eq!(plugins(&changed), [(json!("rank"), json!(2))], "{changed}");

    // The judger sees the recorded verdict, even a changed one: its input differs.
    let step = project.path("kept/trajectories/step-000000.jsonl");
    let mut recorded = lines(&step);
    recorded[0]["plugins"]["quality"]["score"] = json!(2);
    std::fs::write(&step, recorded.into_iter().map(|line| Value::from(line).to_string() + "\n").collect::<String>())
        .unwrap();
    let differs = found(&project, &[]);
    let what = |name: &str| {
        let all = differs["differences"].as_array().unwrap().iter();
        all.filter(|each| each["plugin"] == *name && each["sample"] == "0.0.0")
            .map(|each| each["what"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(
        (what("quality"), what("rank")),
        (vec!["score".to_owned()], ["input", "score", "reason"].map(str::to_owned).into()),
        "{differs}"
    );

    let output = project.run(&[&score[..], &["--after", "rank=qualty"]].concat());
    assert!(stderr(&output).contains("`after` names `qualty`"), "{}", stderr(&output));
    let output = project.run(&[&score[..], &["--after", "rang=quality"]].concat());
    assert!(stderr(&output).contains("--after names the plugin `rang`"), "{}", stderr(&output));
}

#[test]
fn a_dataset_is_no_reward() {
    let project = Project::empty();
    project.write("rows.jsonl", "{\"prompt\": \"?\", \"response\": \"x\"}\n");
    let sums = built("guests/sums.wasm").display().to_string();
    let output = project.run(&["score", "--plugin", &sums, "--data", "rows.jsonl", "--out", "out.jsonl"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("plugin `sums` scores nothing"), "{}", stderr(&output));

    let place = |component: &str, params: &str| {
        let component = format!("x={}", built(component).display());
        let score = ["score", "--plugin", &component, "--params", params, "--data", "rows.jsonl", "--out", "out.jsonl"];
        let output = project.run(&score);
        assert_eq!(output.status.code(), Some(2));
        let said = stderr(&output);
        assert!(said.contains("plugin `x` scores nothing: it exports neither `reward` nor `judger`\nhint: "), "{said}");
        said
    };
    // The same with parameters that it refuses.
    for params in ["{}", "{\"prefix\": \"Answer:\"}"] {
        assert!(place("plugins/calculator.wasm", params).contains("it is a tool, which belongs in a [[tool]] table"));
        assert!(place("plugins/react.wasm", params).contains("it is an agent; name it in agent.path"));
    }
    assert!(place("guests/sums.wasm", "{}").contains("a taskset belongs under [data]"));
}
