//! `gavel replay`, and `gavel score` with `--record` and `--replay`, as a user runs them.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod project;

use project::{Project, built, lines, stderr};
use serde_json::{Map, Value, json};
use std::path::Path;
use std::process::Output;

fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn found(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}{}", stdout(output), stderr(output)))
}

/// The same component with other bytes: it has one more custom section.
fn another_build(of: &Path) -> Vec<u8> {
    let mut bytes = std::fs::read(of).unwrap();
    bytes.extend_from_slice(&[0, 2, 1, b'x']);
    bytes
}

/// A run whose only component is the project's own.
#[cfg(feature = "train")]
fn own_reward(project: &Project) {
    std::fs::copy(built("plugins/format.wasm"), project.path("reward.wasm")).unwrap();
    let text = std::fs::read_to_string(project.path("train.toml")).unwrap();
    let built = format!("{:?}", built("plugins/format.wasm"));
    project.write("train.toml", &text.replace(&built, "\"reward.wasm\""));
}

#[cfg(feature = "train")]
#[test]
fn a_run_replays_to_the_last_bit_without_its_data_and_components() {
    let project = Project::new();
    own_reward(&project);
    project.add_reward("echo", "guests/echo-metadata.wasm", "weight = 0.0");
    project.add_reward("loop", "hostile/endless-loop.wasm", "weight = 0.0\nlimits = { cpu = \"100ms\" }");
    project.add_reward("trap", "hostile/trap.wasm", "weight = 0.0");
    project.succeed(&["train", "-c", "train.toml", "--set", "train.steps=3"]);
    for gone in ["train.jsonl", "validation.jsonl", "reward.wasm", "runs/run/checkpoints"] {
        let gone = project.path(gone);
        if gone.is_dir() { std::fs::remove_dir_all(gone) } else { std::fs::remove_file(gone) }.unwrap();
    }
    let output = project.succeed(&["replay", "runs/run"]);
    assert!(
        stdout(&output).contains("48 samples, 192 verdicts given again: all the same, to the last bit"),
        "{}",
        stdout(&output)
    );
    let output = project.succeed(&["replay", "runs/run", "--step", "2", "--sample", "2.3.1", "--json"]);
    assert_eq!((&found(&output)["samples"], &found(&output)["verdicts"]), (&json!(1), &json!(4)));
    let line = &lines(&project.path("runs/run/trajectories/step-000002.jsonl"))[13];
    assert_eq!(line["id"], "2.3.1");
    let recorded = &found(&output)["recorded"][0];
    assert_eq!((&recorded["sample"], &recorded["reward"]), (&line["id"], &line["reward"]));
    assert_eq!(recorded["plugins"], line["plugins"]);
    for field in ["prompt", "response", "ground_truth"] {
        assert!(!line[field].is_null() && recorded[field] == line[field], "{field}: {recorded}");
    }
    let said = stdout(&project.succeed(&["replay", "runs/run", "--sample", "2.3.1"]));
    let truth = line["ground_truth"].as_str().unwrap();
    assert!(said.contains(&format!("\n    truth    {truth}\n")) && said.contains("\n    response "), "{said}");
    let asked = format!("\n    prompt   user: Say {truth}\n");
    for expected in [
        &asked,
        "\n2.3.1, task ",
        "\n  letter  scored ",
        "\n  loop  out-of-budget (cpu)\n",
        "\n  trap  fault\n    reason   ",
    ] {
        assert!(said.contains(expected), "{expected:?}: {said}");
    }
    let said = stdout(&project.succeed(&["replay", "runs/run", "--step", "2"]));
    assert!(!said.contains("task "), "{said}");
    let task = line["task_id"].as_str().unwrap();
    let output = project.succeed(&["replay", "runs/run", "--sample", task, "--json"]);
    assert_eq!(found(&output)["samples"], 4);
    let output = project.run(&["replay", "runs/run", "--step", "9"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(
        stderr(&output).contains("has no sample that was asked for (it has the steps 1 to 3)"),
        "{}",
        stderr(&output)
    );
}

#[cfg(feature = "train")]
#[test]
fn the_rows_that_a_step_of_sft_trained_on_are_printed() {
    let project = Project::new();
    project.succeed(&["sft", "-c", "sft.toml", "--set", "train.steps=2", "--set", "data.shuffle=false"]);
    let said = stdout(&project.succeed(&["replay", "runs/run", "--step", "2"]));
    assert_eq!(said.matches(", train.jsonl, line ").count(), 8, "{said}");
    assert!(said.starts_with("2.0, train.jsonl, line 9: step 2, loss "), "{said}");
    assert!(said.contains("\n    response 8 a<|im_end|>\n"), "{said}");
    let kept = lines(&project.path("runs/run/rows/step-000002.jsonl"));
    for sample in ["2.3", "train.jsonl, line 12"] {
        let output = project.succeed(&["replay", "runs/run", "--sample", sample, "--json"]);
        assert_eq!(found(&output), json!([kept[3]]), "{sample}");
    }
    let other = format!("letter={}", built("plugins/format.wasm").display());
    for (args, says) in [
        (&[][..], "runs/run is a run of gavel sft, which has no verdicts to repeat\nhint: see the rows that a step "),
        (&["--plugin", &other], "runs/run is a run of gavel sft, which has no verdicts to repeat"),
        (&["--step", "3"], "runs/run/rows has no row of step 3"),
        (&["--step", "2", "--sample", "1.0"], "runs/run/rows has no row 1.0 of step 2"),
    ] {
        let output = project.run(&[&["replay", "runs/run"], args].concat());
        assert!(output.status.code() == Some(2) && stderr(&output).contains(says), "{}", stderr(&output));
    }
}

#[cfg(feature = "train")]
#[test]
fn a_run_keeps_the_ids_of_tokens_where_it_is_asked_to() {
    let project = Project::new();
    project.succeed(&["train", "-c", "train.toml", "--set", "train.steps=2", "--set", "log.token_ids=true"]);
    let reader = gavel_runs::SampleReader::open(&project.path("runs/run")).unwrap();
    let samples: Vec<_> = reader.samples(2).unwrap().map(|sample| sample.unwrap()).collect();
    assert_eq!((samples.len(), reader.damage()), (16, vec![]));
    for recorded in &samples {
        let tokens = recorded.sample.trajectories[0].tokens().unwrap();
        let written = tokens.response.len();
        assert_eq!(recorded.response_lengths, [written]);
        assert!(written > 0 && tokens.loss_mask == vec![true; written] && tokens.versions == vec![1; written]);
        assert!(tokens.logprobs.iter().all(|logprob| *logprob <= 0.0) && !tokens.prompt.is_empty());
        assert!(matches!(recorded.advantages[..], [Some(_)]));
    }
    let output = project.succeed(&["replay", "runs/run"]);
    assert!(stdout(&output).contains("32 samples, 32 verdicts given again: all the same"), "{}", stdout(&output));
}

#[cfg(feature = "train")]
#[test]
fn what_was_changed_afterwards_is_named() {
    let project = Project::new();
    project.succeed(&["train", "-c", "train.toml", "--set", "train.steps=2"]);
    let path = project.path("runs/run/trajectories/step-000002.jsonl");
    let mut changed = lines(&path);
    changed[5]["messages"][0]["content"] = "something else".into();
    changed[6]["plugins"]["letter"]["score"] = 0.25.into();
    changed[7]["reward"] = 7.into();
    let text: String = changed.iter().map(|line| Value::Object(line.clone()).to_string() + "\n").collect();
    std::fs::write(&path, text).unwrap();
    let output = project.run(&["replay", "runs/run", "--json"]);
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    let found = found(&output);
    let has = |sample: &str, what: &str| {
        let differences = found["differences"].as_array().unwrap();
        differences.iter().any(|found| found["sample"] == sample && found["what"] == what)
    };
    assert!(has("2.1.1", "input") && has("2.1.2", "score") && has("2.1.3", "reward"), "{found}");
    assert_eq!(found["different"], 3);

    // Another component scored.
    let component = lines(&path)[0]["plugins"]["letter"]["component"].as_str().unwrap().to_owned();
    let kept = project.path(&format!("runs/run/plugins/{component}.wasm"));
    std::fs::write(&kept, another_build(&kept)).unwrap();
    let output = project.run(&["replay", "runs/run", "--step", "1"]);
    assert_eq!(output.status.code(), Some(2), "{}", stdout(&output));
    let said = format!("error: runs/run/plugins/{component}.wasm is not the component that was recorded: its hash is ");
    assert!(stderr(&output).starts_with(&said), "{}", stderr(&output));
    // The component is not needed if another one replaces it.
    let plugin = format!("letter={}", built("plugins/format.wasm").display());
    let output = project.run(&["replay", "runs/run", "--step", "1", "--plugin", &plugin]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
}

#[cfg(feature = "train")]
#[test]
fn a_torn_line_is_left_out_counted_and_named() {
    let project = Project::new();
    project.succeed(&["train", "-c", "train.toml", "--set", "train.steps=2"]);
    let path = "runs/run/trajectories/step-000001.jsonl";
    let text = std::fs::read_to_string(project.path(path)).unwrap();
    let torn = |number: usize| {
        let line = |(at, line): (usize, &str)| if at + 1 == number { line[..99].to_owned() } else { line.to_owned() };
        text.lines().enumerate().map(line).collect::<Vec<_>>().join("\n") + "\n"
    };
    project.write(path, &torn(5));
    let output = project.run(&["replay", "runs/run"]);
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    let said = stdout(&output);
    assert!(said.contains("31 samples, 31 verdicts given again: all the same, to the last bit"), "{said}");
    assert!(said.contains(&format!("  1 line is damaged or out of place:\n    {path}, line 5: EOF while ")), "{said}");
    let output = project.run(&["replay", "runs/run", "--json"]);
    let found = found(&output);
    assert_eq!((&found["damage"]["lines"][0]["line"], &found["different"]), (&json!(5), &json!(0)), "{found}");
    let output = project.run(&["replay", "runs/run", "--params", r#"letter={"pattern":"x"}"#]);
    assert!(stdout(&output).contains("  1 line is damaged or out of place:\n"), "{}", stdout(&output));

    // The group of an update is not complete, so it cannot be judged.
    let short = format!("letter={}", built("guests/shortest.wasm").display());
    let judged = |number: usize| {
        project.write(path, &torn(number));
        let args = ["replay", "runs/run", "--plugin", &short, "--params", "letter={}", "--step", "1"];
        stdout(&project.run(&args))
    };
    for (line, left_out) in [(6, 3), (5, 7)] {
        let expected = format!("  {left_out} samples left out: a judger needs whole groups, ");
        let said = judged(line);
        assert!(said.contains(&expected), "line {line}: {said}");
    }
    let output = project.run(&["replay", "runs/run", "--step", "1", "--sample", "zz"]);
    let says = "error: runs/run has no sample `zz` (it has the steps 1 to 2; 1 damaged line was left out)\n";
    assert_eq!((output.status.code(), stderr(&output).as_str()), (Some(2), says));
    let output = project.run(&["replay", "absent"]);
    assert_eq!((output.status.code(), stderr(&output).as_str()), (Some(2), "error: there is no folder absent\n"));
    project.write(path, "{\n");
    let output = project.run(&["replay", "runs/run", "--step", "1"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains(&format!("{path} is damaged: line 1: EOF while ")), "{}", stderr(&output));
}

#[test]
fn a_recording_whose_lines_are_not_those_that_were_written_is_not_the_same() {
    let project = Project::new();
    let row = |number| format!("{{\"id\":\"q{number}\",\"response\":\"Answer: {number}\",\"answer\":\"2\"}}\n");
    let rows: String = (0..6).map(row).collect();
    project.write("rows.jsonl", &rows);
    let plugin = built("plugins/exact-answer.wasm").display().to_string();
    let score = ["score", "--plugin", &plugin, "--params", r#"{"prefix":"Answer:"}"#, "--data", "rows.jsonl"];
    project.succeed(&[&score[..], &["--out", "out.jsonl", "--record", "kept"]].concat());
    let path = "kept/trajectories/step-000000.jsonl";
    let text = std::fs::read_to_string(project.path(path)).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    let [a, b, c, d, e, f] = &lines[..] else { panic!("{text}") };
    for (lines, samples, says) in [
        (&[*a, b, c, d, e, f][..], 6, ""),
        (&[*a, b, b, c, d, e, f], 6, "line 3: sample 0.1.0 is on line 2 too"),
        (&[*a, b, c, d, e, f, a], 6, "line 7: sample 0.0.0 is on line 1 too"),
        (&[*a, b, d, e, f], 5, "line 3: a line before it is missing"),
        (&[*a, b, c, d, e], 5, "line 5: the lines after it are missing"),
        (&[*a, b, c, d, f, e], 6, "line 5: a line before it is missing"),
    ] {
        project.write(path, &lines.iter().map(|line| format!("{line}\n")).collect::<String>());
        let output = project.run(&["replay", "kept"]);
        let said = stdout(&output);
        assert!(said.contains(&format!("{samples} samples, {samples} verdicts given again: all the same")), "{said}");
        let is_damaged = !says.is_empty();
        let status = Some(i32::from(is_damaged));
        assert_eq!((output.status.code(), said.contains("out of place")), (status, is_damaged));
        assert!(!is_damaged || said.contains(&format!("    {path}, {says}\n")), "{said}");
        // Scored again, it is named too.
        let output = project.run(&["score", "--replay", "kept", "--out", "again.jsonl"]);
        assert_eq!(output.status.code(), status, "{}", stderr(&output));
        assert!(stderr(&output).contains(says), "{}", stderr(&output));
    }
}

#[cfg(feature = "train")]
#[test]
fn another_reward_shows_what_it_would_have_changed() {
    let project = Project::new();
    project.succeed(&["train", "-c", "train.toml", "--set", "train.steps=4"]);
    // The new reward swaps right and wrong.
    let reversed = r#"letter={"pattern":"(?s)[^a-z]*"}"#;
    let output = project.run(&["replay", "runs/run", "--params", reversed, "--worst", "3", "--json"]);
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    let found = found(&output);
    let (plugin, rewards) = (&found["plugins"][0], &found["rewards"]);
    assert_eq!((&plugin["samples"], &plugin["agreed"]), (&json!(64), &json!(0)));
    let mean = |of: &Value, which: &str| of[which].as_f64().unwrap();
    assert!((mean(plugin, "recorded_mean") + mean(plugin, "replayed_mean") - 1.0).abs() < 1e-12);
    assert_eq!(plugin["recorded_mean"], rewards["recorded_mean"]);
    assert_eq!((&rewards["pairs"], &rewards["ties_changed"]), (&json!(4 * 4 * 6), &json!(0)));
    assert!(rewards["pairs_flipped"].as_u64().unwrap() > 0, "{rewards}");
    assert_eq!(rewards["advantage_sign_flipped"], rewards["advantage_sign_changed"]);
    // The advantages that training used have the same count.
    let used = (1..=4).flat_map(|step| lines(&project.path(&format!("runs/run/trajectories/step-{step:06}.jsonl"))));
    let used = used.filter(|line| line["advantage"].as_f64().unwrap() != 0.0).count();
    assert_eq!(rewards["advantage_sign_flipped"], used);
    let worst = found["worst"].as_array().unwrap();
    assert_eq!((worst.len(), &worst[0]["sample"], &worst[0]["step"]), (3, &json!("1.0.0"), &json!(1)));

    // With another component, the output has its outcomes, here as text.
    let plugin = format!("letter={}", built("guests/abstain.wasm").display());
    let output = project.run(&["replay", "runs/run", "--plugin", &plugin, "--params", "letter={}"]);
    let text = stdout(&output);
    assert!(
        text.contains("64 scored -> 64 abstained") && text.contains("worst disagreements"),
        "{text}{}",
        stderr(&output)
    );
    // The same component gives the same verdicts, whoever built it.
    project.write("same.wasm", "");
    std::fs::write(project.path("same.wasm"), another_build(&built("plugins/format.wasm"))).unwrap();
    let output = project.succeed(&["replay", "runs/run", "--plugin", "same.wasm"]);
    assert!(stdout(&output).contains("64 (100.0 %) of 64 samples"), "{}", stdout(&output));
    let output = project.run(&["replay", "runs/run", "--params", "other={}"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("runs/run has no plugin `other`; its plugins are: letter"), "{}", stderr(&output));
}

#[cfg(feature = "train")]
#[test]
fn a_killed_run_that_was_resumed_replays_as_a_whole() {
    let project = Project::new();
    let args = ["train", "-c", "train.toml", "--set", "train.steps=30"];
    project.kill_after_some_steps(&args, "runs/run", 30);
    // The run is killed in the middle of whatever it is writing.
    let tasks = project.path("runs/run/tasks.jsonl");
    let mut text = std::fs::read(&tasks).unwrap();
    text.extend_from_slice(b"{\"hash\":\"0123");
    std::fs::write(&tasks, text).unwrap();
    project.succeed(&[&args[..], &["--resume"]].concat());
    let output = project.succeed(&["replay", "runs/run", "--json"]);
    assert_eq!((&found(&output)["samples"], &found(&output)["different"]), (&json!(30 * 16), &json!(0)));
    let tasks = lines(&tasks);
    let mut hashes: Vec<_> = tasks.iter().map(|line| line["hash"].as_str().unwrap()).collect();
    hashes.sort_unstable();
    hashes.dedup();
    // Each of the 40 rows was drawn several times.
    assert_eq!((hashes.len(), tasks.len()), (40, 40));
}

#[cfg(feature = "train")]
#[test]
fn a_run_goes_on_with_other_plugins_only_when_told_to() {
    let project = Project::new();
    own_reward(&project);
    project.succeed(&["train", "-c", "train.toml", "--set", "train.steps=3"]);
    std::fs::write(project.path("reward.wasm"), another_build(&project.path("reward.wasm"))).unwrap();
    let longer = ["train", "-c", "train.toml", "--resume", "--set", "train.steps=5"];
    // Without its own copy, the run has only the other component.
    let component = |step: u64| {
        lines(&project.path(&format!("runs/run/trajectories/step-{step:06}.jsonl")))[0]["plugins"]["letter"]["component"]
            .clone()
    };
    let recorded = component(3);
    let kept = project.path(&format!("runs/run/plugins/{}.wasm", recorded.as_str().unwrap()));
    let away = kept.with_extension("away");
    std::fs::rename(&kept, &away).unwrap();
    let output = project.run(&longer);
    assert_eq!(output.status.code(), Some(2));
    for words in [
        "the plugins of runs/run differ from those",
        "`letter` has another component (format ",
        "--allow-changed-plugins",
    ] {
        assert!(stderr(&output).contains(words), "{words}: {}", stderr(&output));
    }
    assert_eq!(project.metrics("runs/run").len(), 4);
    // With it, the run continues as if nothing had changed.
    std::fs::rename(&away, &kept).unwrap();
    let output = project.succeed(&["train", "-c", "train.toml", "--resume", "--set", "train.steps=4"]);
    let says = "the reward `letter` continues with the run's own copy of its component (hash ";
    assert!(stderr(&output).contains(says), "{}", stderr(&output));
    assert_eq!((component(4), project.metrics("runs/run").len()), (recorded.clone(), 5));
    let output = project.succeed(&[&longer[..], &["--allow-changed-plugins"]].concat());
    assert!(!stderr(&output).contains(says), "{}", stderr(&output));
    assert_eq!(project.metrics("runs/run").len(), 6);

    // Other parameters are another reward too.
    let text = std::fs::read_to_string(project.path("train.toml")).unwrap();
    project.write("train.toml", &text.replace("[a-z]", "[A-Z]"));
    let output = project.run(&["train", "-c", "train.toml", "--resume", "--set", "train.steps=6"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("`letter` has another set of parameters"), "{}", stderr(&output));

    // Each step is replayed with the component of its time.
    let output = project.succeed(&["replay", "runs/run", "--json"]);
    assert_eq!(found(&output)["verdicts"], 5 * 16);
    assert_ne!(component(5), recorded);
}

/// The rows of an output without what depends on the clock.
fn scores(path: &Path) -> Vec<Map<String, Value>> {
    let mut rows = lines(path);
    for plugin in rows.iter_mut().flat_map(|row| row["plugins"].as_object_mut().unwrap().values_mut()) {
        plugin.as_object_mut().unwrap().retain(|name, _| name != "elapsed_us" && name != "cpu_us");
    }
    rows
}

#[test]
fn offline_scores_are_recorded_and_given_again() {
    let project = Project::empty();
    let rows = [
        json!({"prompt": "Order: 3 1", "response": "Answer: 1 3", "answer": "1 3", "weight": 0.1}),
        json!({"messages": [{"role": "user", "content": "q"}, {"role": "assistant", "content": "b"}], "answer": "b"}),
        json!({"response": "x", "id": 7}),
    ];
    project.write("data.jsonl", &rows.map(|row| row.to_string() + "\n").concat());
    let answer = format!("answer={}", built("plugins/exact-answer.wasm").display());
    let echo = format!("echo={}:0", built("guests/echo-metadata.wasm").display());
    let plugins = ["--plugin", &answer, "--params", r#"answer={"prefix":"Answer:"}"#, "--plugin", &echo];
    let data = ["--data", "data.jsonl", "--seed", "3"];
    let record = ["score", "--out", "first.jsonl", "--record", "kept"];
    project.succeed(&[&record[..], &plugins, &data].concat());
    let first = scores(&project.path("first.jsonl"));
    assert_eq!(first.len(), 3);
    assert_eq!(first[0]["reward"], 1.0);

    // With the rows and plugins named, with one of them, and from the recording alone.
    let replay = ["score", "--out", "again.jsonl", "--replay", "kept"];
    for more in [&[&plugins[..], &data[..]].concat()[..], &data, &plugins, &[]] {
        project.succeed(&[&replay[..], more].concat());
        assert_eq!(scores(&project.path("again.jsonl")), first, "{more:?}");
    }
    let output = project.succeed(&["replay", "kept"]);
    assert!(stdout(&output).contains("3 samples, 6 verdicts given again: all the same"), "{}", stdout(&output));

    let output = project.run(&[&record[..], &plugins, &data].concat());
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("--record kept: the folder is not empty"), "{}", stderr(&output));
    let output = project.run(&["replay", "."]);
    assert!(stderr(&output).contains(". holds no recorded samples"), "{}", stderr(&output));
    assert_eq!(project.run(&["score", "--out", "x.jsonl", "--data", "data.jsonl"]).status.code(), Some(2));
}

#[test]
fn a_recording_that_was_edited_is_not_believed() {
    let project = Project::empty();
    // Without a word, no child runs, so no time differs.
    project.write("data.jsonl", "{\"response\":\"\"}\n");
    let plugin = format!("echo={}", built("guests/echo-metadata.wasm").display());
    let runs = format!("runs={}:0", built("guests/runs.wasm").display());
    let python = format!("child={}", built("guests/child.wasm").display());
    let record = ["score", "--data", "data.jsonl", "--out", "first.jsonl", "--record", "kept", "--plugin", &plugin];
    let granted = ["--plugin", &runs, "--grant", "runs={ exec = [\"child\"] }", "--exec", &python];
    project.succeed(&[&record[..], &granted].concat());
    let path = project.path("kept/plugins/lineups.json");
    let kept = std::fs::read_to_string(&path).unwrap();
    let lineups: Value = serde_json::from_str(&kept).unwrap();
    let hash = |of: &str| lineups[0][of][0]["component"].as_str().unwrap().to_owned();
    let commands: [&[&str]; 2] = [&["replay", "kept"], &["score", "--replay", "kept", "--out", "again.jsonl"]];
    let refused = |what: &str| {
        for command in commands {
            let output = project.run(command);
            assert_eq!(output.status.code(), Some(2), "{command:?}: {}", stdout(&output));
            assert!(stderr(&output).contains(what), "{command:?}: {}", stderr(&output));
        }
    };
    let edit = |change: &dyn Fn(&mut Value)| {
        let mut edited = lineups.clone();
        change(&mut edited[0]);
        std::fs::write(&path, edited.to_string()).unwrap();
    };
    // A name must be a hash, not a path.
    std::fs::copy(built("guests/abstain.wasm"), project.path("x.wasm")).unwrap();
    let upper = hash("plugins").to_uppercase();
    for name in ["../../x", "", &upper] {
        for of in ["plugins", "programs"] {
            edit(&|lineup| lineup[of][0]["component"] = name.into());
            refused(&format!("kept/plugins/lineups.json is damaged: {name:?} is not the hash of a component"));
        }
    }
    // A component or a program whose content does not match its name does not run.
    edit(&|_| {});
    for of in ["plugins", "programs"] {
        let component = project.path(&format!("kept/plugins/{}.wasm", hash(of)));
        let bytes = std::fs::read(&component).unwrap();
        std::fs::copy(built("guests/abstain.wasm"), &component).unwrap();
        refused(&format!("kept/plugins/{}.wasm is not the component that was recorded", hash(of)));
        std::fs::write(&component, bytes).unwrap();
    }
    // A file alone does not grant anything of this machine. Programs are deterministic.
    commands.iter().for_each(|command| drop(project.succeed(command)));
    edit(&|lineup| lineup["plugins"][0]["grants"] = json!({"env": ["HOME"], "read": ["/etc:/etc"], "clock": "real"}));
    refused(
        "the recording kept grants its plugins something of this machine: `echo` has read = [\"/etc:/etc\"], env = [\"HOME\"], clock = \"real\"\nhint: if you trust who made it, add --allow-grants\n",
    );
    for command in commands {
        let output = project.succeed(&[command, &["--allow-grants"]].concat());
        let said = "granted as recorded: `echo` has read = [\"/etc:/etc\"], env = [\"HOME\"], clock = \"real\"\n";
        assert!(stderr(&output).contains(said), "{command:?}: {}", stderr(&output));
    }
    // If the plugins are named, the recording's plugins do not matter.
    project.succeed(&[commands[1], &["--plugin", &plugin]].concat());
}
