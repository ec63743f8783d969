//! A configuration of several files, and what `--set` changes in it, as a user sees it.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
#![cfg(feature = "train")]

mod project;

use project::{Project, built, stderr};

/// The error of `gavel train` with these settings.
fn refused(project: &Project, config: &str, settings: &[&str]) -> String {
    let settings: Vec<&str> = settings.iter().flat_map(|setting| ["--set", setting]).collect();
    let output = project.run(&[&["train", "-c", config, "--dry-run"], &settings[..]].concat());
    assert_eq!(output.status.code(), Some(2), "{settings:?}: {}", stderr(&output));
    stderr(&output)
}

/// The configuration that a dry run prints.
fn resolved(project: &Project, config: &str, settings: &[&str]) -> toml::Table {
    let settings: Vec<&str> = settings.iter().flat_map(|setting| ["--set", setting]).collect();
    let output = project.succeed(&[&["train", "-c", config, "--dry-run"], &settings[..]].concat());
    String::from_utf8(output.stdout).unwrap().parse().unwrap()
}

#[test]
fn a_setting_names_a_reward() {
    let project = Project::new();
    project.add_reward("format.v2", "plugins/format.wasm", "weight = 0.5\nparams = { pattern = 'a' }");
    let settings =
        ["reward.format.v2.weight=0.2", "reward.letter.limits.cpu=\"7s\"", "reward.letter.params.pattern=b|c"];
    let config = resolved(&project, "train.toml", &settings);
    assert_eq!(config["reward"][1]["weight"].as_float(), Some(0.2));
    assert_eq!(config["reward"][1]["params"]["pattern"].as_str(), Some("a"));
    assert_eq!(config["reward"][0]["limits"]["cpu"].as_str(), Some("7s"));
    assert_eq!(config["reward"][0]["params"]["pattern"].as_str(), Some("b|c"));
    for (setting, message) in [
        ("reward.lettre.weight=1", "no [[reward]] is named `lettre`; there are: letter, format.v2"),
        ("reward.letter={}", "reward.letter is a table\nhint: set a key of it, such as reward.letter.weight=0.5"),
        ("reward.letter.wieght=1", "unknown field `wieght`, expected one of `name`, `path`, `url`, "),
        ("reward.letter.weight=much", "invalid type: string \"much\", expected a number"),
        ("rewards.letter.weight=1", "rewards: unknown field `rewards`, expected one of "),
        ("rewards.letter.weight=1", "\nhint: did you mean `reward`?\n"),
        ("train.learning_rte=1", "unknown field `learning_rte`, expected one of "),
        ("train.learning_rte=1", "\nhint: did you mean `learning_rate`?\n"),
        ("train.lr=1", "\nhint: the name here is `train.learning_rate`\n"),
        ("rollout.n=8", "\nhint: the name here is `rollout.group_size`\n"),
        ("train.seed=1", "\nhint: the name here is `seed`, above the first table\n"),
        ("critic.optim.lr=1", "\nhint: the name here is `train.critic.learning_rate`\n"),
        ("reward.letter.path.x=1", "reward.letter.path is a value, not a table"),
    ] {
        let error = refused(&project, "train.toml", &[setting]);
        assert!(error.starts_with(&format!("error: --set {setting}: ")) && error.contains(message), "{error}");
    }
    let toolbox = built("guests/toolbox.wasm");
    let tools = format!("{}[[tool]]\nname = \"box\"\npath = {toolbox:?}\n", project.read("train.toml"));
    project.write("tools.toml", &tools);
    for (config, setting, message) in [
        ("tools.toml", "tool.box.limits.cpu=much", "invalid value: string \"much\", expected a duration"),
        ("tools.toml", "tool.bix.retries=1", "no [[tool]] is named `bix`; there are: box"),
        ("tools.toml", "tool.box={}", "tool.box is a table\nhint: set a key of it, such as tool.box.retries=2"),
        ("train.toml", "tool.box.retries=1", "the configuration has no [[tool]]"),
    ] {
        let error = refused(&project, config, &[setting]);
        assert!(error.starts_with(&format!("error: --set {setting}: ")) && error.contains(message), "{error}");
    }
    let error = refused(&project, "train.toml", &["rollout.stop=[\"x\"]", "rollout.stop.x=1"]);
    assert!(error.contains("--set rollout.stop.x=1: rollout.stop is a list; change it in the file"), "{error}");
    let error = refused(&project, "sft.toml", &["reward=[]", "reward.letter.weight=1"]);
    assert!(error.contains("--set reward.letter.weight=1: reward is empty"), "{error}");
    project.write("bare.toml", "[model]\npath = \"m\"\n");
    let error = refused(&project, "bare.toml", &["reward.letter.weight=1"]);
    assert!(error.contains("the configuration has no [[reward]]"), "{error}");
}

#[test]
fn a_dry_run_prints_the_values_that_count() {
    let project = Project::new();
    let written = project.read("train.toml");
    project.write("train.toml", &written.replace("mini_batch_prompts = 2\n", ""));
    let config = resolved(&project, "train.toml", &["limits.cpu=\"3s\"", "train.on_outcome.fault=\"drop\""]);
    let limits = |key: &str| config["limits"][key].as_str();
    let sizes = ["memory", "output", "log"].map(limits);
    assert_eq!((limits("timeout"), limits("cpu")), (Some("10s"), Some("3s")));
    assert_eq!(sizes, [Some("256.0 MiB"), Some("4.0 MiB"), Some("1.0 MiB")]);
    let of_train = |key: &str| &config["train"][key];
    assert_eq!(of_train("mini_batch_prompts"), of_train("prompts_per_step"));
    assert_eq!(of_train("on_outcome")["out-of-budget"].as_str(), Some("lowest-if-caused"));
    assert_eq!(of_train("on_outcome")["unavailable"].as_str(), Some("drop"));
    // The output is a configuration of the same run.
    project.write("again.toml", &toml::to_string(&config).unwrap());
    assert_eq!(resolved(&project, "again.toml", &[]), config);
}

#[test]
fn a_run_of_several_files_is_one_run() {
    let project = Project::new();
    std::fs::create_dir(project.path("conf")).unwrap();
    std::fs::rename(project.path("train.toml"), project.path("conf/base.toml")).unwrap();
    let format = built("plugins/format.wasm");
    project.write(
        "run.toml",
        &format!(
            "include = \"conf/base.toml\"\n[train]\nsteps = 2\n[[reward]]\nname = \"letter\"\nweight = 0.5\n\
             [[reward]]\nname = \"digit\"\npath = {format:?}\nparams = {{ pattern = '[0-9]' }}\n"
        ),
    );
    project.succeed(&["train", "-c", "run.toml", "--set", "reward.digit.weight=0.25"]);
    let written: toml::Table = project.read("runs/run/config.toml").parse().unwrap();
    assert!(project.read("runs/run/config.toml").starts_with("# gavel "));
    assert!(!written.contains_key("include"));
    assert_eq!(written["train"]["steps"].as_integer(), Some(2));
    assert_eq!(written["train"]["prompts_per_step"].as_integer(), Some(4));
    let rewards: Vec<_> = written["reward"].as_array().unwrap().iter().collect();
    assert_eq!(rewards.len(), 2);
    assert_eq!((rewards[0]["weight"].as_float(), rewards[1]["weight"].as_float()), (Some(0.5), Some(0.25)));
    assert_eq!(rewards[0]["path"].as_str(), format.to_str());

    let resume = ["train", "-c", "run.toml", "--resume", "--set", "reward.digit.weight=0.25", "--set"];
    project.succeed(&[&resume[..], &["train.steps=3"]].concat());
    assert_eq!(project.metrics("runs/run").len(), 4);
    let kept = project.read("runs/run/config.toml");
    let commands = [" train -c run.toml --set reward.digit.weight=0.25", " --set train.steps=3"];
    for (line, command) in kept.lines().zip(commands) {
        assert!(line.starts_with("# gavel ") && line.ends_with(command), "{line}");
    }
    assert_eq!(kept.matches("# gavel ").count(), 2, "{kept}");
    let base = project.read("conf/base.toml");
    project.write("conf/base.toml", &base.replace("learning_rate = 1e-3", "learning_rate = 1e-2"));
    let output = project.run(&[&resume[..], &["train.steps=4"]].concat());
    assert!(stderr(&output).contains("another configuration, in train.learning_rate"), "{}", stderr(&output));
    // `gavel plugin inspect` reads the same configuration.
    let inspected = project.succeed(&["plugin", "inspect", format.to_str().unwrap(), "-c", "run.toml"]);
    assert!(String::from_utf8_lossy(&inspected.stdout).contains("exports   "));
}

#[test]
fn mistakes_name_the_file_in_which_they_stand() {
    let project = Project::new();
    let base = project.read("train.toml");
    project.write("run.toml", "include = [\"train.toml\", \"more.toml\"]\n[train]\nsteps = 2\n");
    for (base, more, message) in [
        (base.replace("steps = 6", "setps = 6"), "", "error: train.toml, line 24: train.setps: unknown field `setps`"),
        (
            base.replace("group_size = 4", "group_size = \"4\""),
            "",
            "error: train.toml, line 15: rollout.group_size: invalid type",
        ),
        (base.clone(), "[rollout]\ngroup_size = \"4\"", "error: more.toml, line 2: rollout.group_size: invalid type"),
        (
            base.clone(),
            "[[reward]]\nname = \"letter\"\nweight = \"1\"",
            "error: more.toml, line 3: reward.letter.weight: invalid",
        ),
        (
            base.clone(),
            "[[reward]]\nname = \"new\"",
            "error: more.toml, line 1: reward `new`: it has none of path, url and reward_model",
        ),
        (
            base.clone(),
            "[model.init]\nhiden_size = 8",
            "error: more.toml, line 2: model.init: unknown field `hiden_size`",
        ),
        (
            base.clone(),
            "[train]\n\"a\\nhint: forged\" = 1",
            "error: more.toml, line 2: train.a\\nhint: forged: unknown field `a\\nhint: forged`, expected one of ",
        ),
        (base.clone(), "include = \"none.toml\"", "error: cannot read the configuration none.toml: "),
        (
            base.clone(),
            "include = \"run.toml\"",
            "error: more.toml: include: the files include each other: run.toml -> more.toml -> run.toml",
        ),
        (
            base.clone(),
            "[train.optimizer]\nkind = \"AdamW\"",
            "error: more.toml, line 2: train.optimizer.kind: unknown variant `AdamW`, expected one of `adamw`, `adamw_8bit`, `muon`\nhint: did you mean `adamw`?\n",
        ),
        (
            base.replace("learning_rate = 1e-3", "learning_rate = -1.0"),
            "",
            "error: train.toml, line 27: train.learning_rate must be a number above 0, not -1\n",
        ),
        (base.replace("[data]", "[date]"), "", "error: train.toml, line 11: date: unknown field `date`"),
        (String::new(), "[rollout]\nmax_tokens = 8", "error: run.toml, line 2: train: missing field `learning_rate`"),
    ] {
        project.write("train.toml", &base);
        project.write("more.toml", more);
        let error = refused(&project, "run.toml", &[]);
        assert!(error.starts_with(message), "{error}");
    }
}

#[test]
fn the_folder_of_a_plugin_stands_for_what_was_built_there() {
    let project = Project::new();
    std::fs::create_dir_all(project.path("polite/build")).unwrap();
    project.write("polite/plugin.toml", "[plugin]\nname = \"polite\"\nlanguage = \"python\"\nexports = [\"reward\"]\n");
    let settings = ["reward.letter.path=polite"];
    let told = refused(&project, "train.toml", &settings);
    let expected = "error: the plugin `polite` is not built: there is no polite/build/polite.wasm\nhint: run `gavel plugin build polite`\n";
    assert_eq!(told, expected);
    std::fs::copy(built("plugins/format.wasm"), project.path("polite/build/polite.wasm")).unwrap();
    let config = resolved(&project, "train.toml", &settings);
    assert_eq!(config["reward"][0]["path"].as_str(), Some("polite/build/polite.wasm"));

    // Its sources differ from the sources in the stamp.
    project.write("polite/main.py", "");
    project.write("polite/build/polite.stamp.json", r#"{"component": "", "inputs": {"main.py": "blake3:0"}}"#);
    for path in ["polite", "polite/build/polite.wasm"] {
        let path = format!("reward.letter.path={path}");
        let output = project.succeed(&["train", "-c", "train.toml", "--dry-run", "--set", &path]);
        let told = stderr(&output);
        let warning = "WARN polite/build/polite.wasm was built before its sources changed: main.py changed, ";
        assert!(told.matches(warning).count() == 1 && told.contains("; run `gavel plugin build polite`"), "{told}");
    }
}
