//! What a run without enough memory prints, before its start and while it runs.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
#![cfg(feature = "train")]

mod project;

use project::{Project, built, lines, stderr};
use std::process::{Command, Output};

/// Rows and a model whose activations take some gibibytes at once.
fn large() -> Project {
    let project = Project::new();
    let row = serde_json::json!({"prompt": "p".repeat(400), "response": "r".repeat(90)});
    project.write("train.jsonl", &format!("{row}\n").repeat(64));
    let config = std::fs::read_to_string(project.path("sft.toml")).unwrap();
    let config = config
        .replace("hidden_size = 32", "hidden_size = 128")
        .replace("intermediate_size = 64", "intermediate_size = 512")
        .replace("num_hidden_layers = 1", "num_hidden_layers = 8")
        .replace("max_position_embeddings = 64", "max_position_embeddings = 512")
        .replace("validation = \"validation.jsonl\"\n", "")
        .replace("batch_size = 8", "batch_size = 64\nmax_tokens_per_micro_batch = 1000000");
    project.write("sft.toml", &config);
    project
}

/// Runs `gavel` with at most this many bytes of writable memory.
fn limited(project: &Project, bytes: u64, args: &[&str]) -> Output {
    within(project, &format!("-d {}", bytes / 1024), args)
}

/// Runs `gavel` within a limit of the shell's `ulimit`.
fn within(project: &Project, limit: &str, args: &[&str]) -> Output {
    let gavel = env!("CARGO_BIN_EXE_gavel");
    let mut shell = Command::new("sh");
    shell.args(["-c", &format!("ulimit {limit} && exec \"$0\" \"$@\""), gavel]).args(args);
    shell.current_dir(project.path("")).env("NO_COLOR", "1").output().unwrap()
}

#[test]
fn a_micro_batch_that_does_not_fit_is_named_with_its_setting() {
    let project = large();
    let output = limited(&project, 800 << 20, &["sft", "-c", "sft.toml"]);
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    let said = stderr(&output);
    assert!(said.contains("step 1: out of memory in training, while a micro-batch of "), "{said}");
    assert!(said.contains("hint: lower train.max_tokens_per_micro_batch"), "{said}");
    // The hint works, and a run may be resumed with another size.
    for (tokens, steps, resume) in [(1000, 1, &[][..]), (800, 2, &["--resume"])] {
        let tokens = format!("train.max_tokens_per_micro_batch={tokens}");
        let steps = format!("train.steps={steps}");
        let smaller = ["sft", "-c", "sft.toml", "--set", &tokens, "--set", &steps];
        let output = limited(&project, 1500 << 20, &[&smaller[..], resume].concat());
        assert!(output.status.success(), "{}", stderr(&output));
    }
}

#[test]
fn plugins_in_a_small_address_space_take_turns_or_do_not_start() {
    let project = Project::empty();
    let row = |number: u32| serde_json::json!({"prompt": "Say", "response": number.to_string()}).to_string() + "\n";
    project.write("rows.jsonl", &(0..2000).map(row).collect::<String>());
    let plugin = built("plugins/format.wasm").display().to_string();
    let params = r#"{"pattern": "[0-9]*5"}"#;
    let args = ["score", "--plugin", &plugin, "--params", params, "--data", "rows.jsonl", "--out", "scores.jsonl"];
    let rewards = || -> Vec<_> {
        lines(&project.path("scores.jsonl")).into_iter().map(|mut line| line.remove("reward")).collect()
    };
    project.succeed(&args);
    let expected = rewards();
    assert_eq!(expected.iter().filter(|reward| **reward == Some(serde_json::json!(1.0))).count(), 200);
    let said = |gib: u64| {
        let output = within(&project, &format!("-v {}", gib << 20), &args);
        (output.status.code(), stderr(&output))
    };
    // Room for a few calls at once.
    let (code, told) = said(100);
    assert_eq!(code, Some(0), "{told}");
    assert!(told.contains("is limited to 102400 MiB: plugins run without a pool, with "), "{told}");
    assert!(rewards() == expected);
    let (code, told) = said(50);
    assert_eq!(code, Some(2), "{told}");
    assert!(told.contains("is limited to 51200 MiB, and plugins need "), "{told}");
    assert!(told.contains("\nhint: `ulimit -v unlimited` lifts the limit"), "{told}");
}

#[test]
fn keys_and_values_that_do_not_fit_are_named_with_their_setting() {
    let project = Project::new();
    project.succeed(&["sft", "-c", "sft.toml"]);
    let model = "runs/run/checkpoints/step-000006";
    // A cache of 100,000 rows of 64 tokens.
    let args =
        ["generate", "-m", model, "--prompt", "a", "--n", "100000", "--max-batch", "100000", "--max-tokens", "60"];
    // More than there is, whatever is free on this machine.
    let args = [&args[..], &["--cache-memory", "4GiB"]].concat();
    let output = limited(&project, 1000 << 20, &args);
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("out of memory in rollout, while "), "{said}");
    assert!(said.contains("\nhint: "), "{said}");
}

#[test]
fn a_cache_without_room_for_the_longest_response_is_refused_before_the_start() {
    let project = Project::new();
    for dry_run in [&["--dry-run"][..], &[]] {
        let args = ["train", "-c", "train.toml", "--set", "rollout.cache_memory=1KiB"];
        let output = project.run(&[&args[..], dry_run].concat());
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains("rollout.cache_memory 1.0 KiB has no room for the longest prompt, "), "{said}");
        assert!(said.contains("\nhint: give at least 1MiB"), "{said}");
    }
}

#[test]
fn a_tight_cache_changes_no_metric() {
    let project = Project::new();
    let metrics = |name: &str, more: &[&str]| {
        let name = format!("log.name={name}");
        // Rows beside other rows are rounded differently, and steps must not amplify the difference.
        let args = ["train", "-c", "train.toml", "--set", "train.learning_rate=1e-9", "--set", &name];
        project.succeed(&[&args, more].concat());
        project.metrics(&format!("runs/{}", &name[9..]))
    };
    let roomy = metrics("roomy", &[]);
    let tight = metrics("tight", &["--set", "rollout.cache_memory=96KiB"]);
    assert_eq!(roomy.len(), tight.len());
    // Line 0 is the state before the first step.
    for (roomy, tight) in roomy.iter().zip(&tight).skip(1) {
        assert_eq!(roomy["reward/mean"], tight["reward/mean"]);
        assert_eq!(roomy["response_length/mean"], tight["response_length/mean"]);
    }
}

#[test]
fn a_dry_run_tells_the_memory_and_what_would_save_some() {
    let project = large();
    let told = |settings: &[&str]| {
        let settings = settings.iter().flat_map(|setting| ["--set", setting]);
        let args: Vec<&str> = ["sft", "-c", "sft.toml", "--dry-run"].into_iter().chain(settings).collect();
        String::from_utf8(project.succeed(&args).stdout).unwrap()
    };
    let plain = told(&[]);
    for part in [
        "# memory, always: weights: ",
        "# memory, always: optimiser: ",
        "# memory, in an update: gradients: ",
        "# memory, in an update: activations of a micro-batch of ",
        "# memory, in an update: logits of ",
        "# memory, at most: ",
    ] {
        assert!(plain.contains(part), "no {part:?} in {plain}");
    }
    let small = told(&["train.max_tokens_per_micro_batch=1000"]);
    assert!(!small.contains("# warning"), "{small}");
    // Half a million rows of 490 tokens fit nowhere.
    let mut settings = vec!["train.batch_size=500000", "train.max_tokens_per_micro_batch=1000000000"];
    let warned = told(&settings);
    assert!(warned.contains("# warning: the run may need "), "{warned}");
    assert!(warned.contains("# warning: hint: train.gradient_checkpointing = true would save "), "{warned}");
    settings.push("train.gradient_checkpointing=true");
    let again = told(&settings);
    assert!(again.contains("# warning: hint: train.max_tokens_per_micro_batch = "), "{again}");
    assert!(warned.parse::<toml::Table>().is_ok());
}

#[test]
fn a_plan_for_gpus_needs_no_gpu() {
    let project = Project::new();
    let planned = |gpu: &str| {
        let args = ["sft", "-c", "sft.toml", "--dry-run", "--ranks", "8", "--device-memory", gpu];
        let output = project.succeed(&[&args[..], &["--set", "model.device=cuda"]].concat());
        String::from_utf8(output.stdout).unwrap()
    };
    let large = planned("80GiB");
    assert!(
        large.contains("# memory, always: CUDA's context, workspaces of products, and connections of ranks: "),
        "{large}"
    );
    assert!(large.contains("; the GPU has 80.0 GiB, and the run fits\n") && !large.contains("# warning"), "{large}");
    assert!(planned("H100").contains("; H100 has 79.1 GiB, and the run fits\n"));
    let small = planned("1GiB");
    assert!(small.contains("; the GPU has 1.0 GiB, and the run does not fit\n"), "{small}");
    assert!(small.contains("# warning: the run may need ") && small.contains("# warning: hint: "), "{small}");
    for wrong in [&["--device-memory", "80GiB"][..], &["--dry-run", "--device-memory", "H1000"]] {
        let output = project.run(&[&["sft", "-c", "sft.toml"], wrong].concat());
        assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    }
}
