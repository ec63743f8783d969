//! The commands that train, as several processes that the variables of torchrun start.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
#![cfg(feature = "train")]

#[path = "project/judge.rs"]
mod judge;
mod project;

use judge::Judge;
use project::{Project, lines, stderr};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::net::TcpListener;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// As torchrun sets them on one machine.
fn rank(project: &Project, rank: usize, size: usize, port: u16, args: &[&str]) -> Command {
    let mut command = project.command(args);
    command.args(["--set", "resources.torch_threads=1", "--set", "resources.plugin_threads=1"]);
    let variables = [("RANK", rank), ("LOCAL_RANK", rank), ("WORLD_SIZE", size), ("LOCAL_WORLD_SIZE", size)];
    command.envs(variables.map(|(name, value)| (name, value.to_string())));
    command.env("MASTER_ADDR", "127.0.0.1").env("MASTER_PORT", port.to_string());
    command.stdout(Stdio::null()).stderr(Stdio::piped());
    command
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

fn start(project: &Project, size: usize, args: &[&str]) -> Vec<Child> {
    let port = free_port();
    (0..size).map(|number| rank(project, number, size, port, args).spawn().unwrap()).collect()
}

/// How each rank ended, and what it wrote to stderr.
fn ends(ranks: Vec<Child>) -> Vec<(ExitStatus, String)> {
    let ends = ranks.into_iter().map(|child| std::thread::spawn(|| child.wait_with_output().unwrap()));
    let ends: Vec<_> = ends.collect();
    ends.into_iter().map(|end| end.join().unwrap()).map(|output| (output.status, stderr(&output))).collect()
}

fn succeed(project: &Project, size: usize, args: &[&str]) -> Vec<String> {
    let ends = ends(start(project, size, args));
    for (number, (status, said)) in ends.iter().enumerate() {
        assert!(status.success(), "rank {number} of {size}: {said}");
    }
    ends.into_iter().map(|(_, said)| said).collect()
}

/// The metrics of a run that do not depend on a clock or on the ranks.
fn metrics(project: &Project, run: &str) -> Vec<Map<String, Value>> {
    let mut steps = project.metrics(run);
    steps.iter_mut().for_each(|step| step.retain(|name, _| !name.starts_with("ranks/")));
    steps
}

fn assert_close(one: &[Map<String, Value>], other: &[Map<String, Value>], what: &str) {
    assert_eq!(one.len(), other.len(), "{what}");
    for (one, other) in one.iter().zip(other) {
        assert_eq!(one.keys().collect::<Vec<_>>(), other.keys().collect::<Vec<_>>(), "{what}");
        for (name, value) in one {
            let (value, found) = (value.as_f64().unwrap_or(0.0), other[name].as_f64().unwrap_or(0.0));
            assert!((value - found).abs() <= 1e-3 * value.abs().max(1e-2), "{what}: {name} {value} {found} in {one:?}");
        }
    }
}

/// How often each sample is in a run's trajectories, by `STEP.GROUP.SAMPLE`.
fn samples(project: &Project, run: &str) -> BTreeMap<String, usize> {
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir(project.path(run).join("trajectories")).unwrap() {
        for line in lines(&entry.unwrap().path()) {
            *found.entry(line["id"].as_str().unwrap().to_owned()).or_default() += 1;
        }
    }
    found
}

fn weights(project: &Project, run: &str) -> Vec<u8> {
    std::fs::read(project.path(run).join("checkpoints/step-000006/model.safetensors")).unwrap()
}

#[test]
fn several_ranks_are_one_run() {
    let project = Project::new();
    let args = |name: &'static str| ["train", "-c", "train.toml", "--set", name];
    succeed(&project, 1, &args("log.name=one"));
    let one = metrics(&project, "runs/one");
    assert!(one[1..].iter().any(|step| step["grad_norm"].as_f64().unwrap() > 0.0), "nothing was learned from");
    // 4 groups a step: with 5 ranks, one has nothing.
    for (size, name, run) in [(2, "log.name=two", "runs/two"), (5, "log.name=five", "runs/five")] {
        let said = succeed(&project, size, &args(name));
        assert!(said[0].contains(&format!("{size} ranks")), "{}", said[0]);
        assert!(said[1..].iter().all(|said| !said.contains("step ")), "{said:?}");
        assert_close(&one, &metrics(&project, run), run);
        assert_eq!(samples(&project, run), samples(&project, "runs/one"));
        assert!(project.path(run).join("trajectories/step-000001.rank-1.jsonl").exists());
        let replayed = project.succeed(&["replay", run, "--json"]);
        let replayed: Value = serde_json::from_slice(&replayed.stdout).unwrap();
        assert_eq!((replayed["samples"].as_u64(), replayed["different"].as_u64()), (Some(96), Some(0)));
    }
    assert_eq!(project.metrics("runs/two")[1]["ranks/size"], 2);
    succeed(&project, 2, &args("log.name=two"));
    assert_eq!(metrics(&project, "runs/two-2"), metrics(&project, "runs/two"));
    assert!(weights(&project, "runs/two-2") == weights(&project, "runs/two"), "the weights differ");
}

/// Adds the reward `asks`, which asks `judge`, and leaves out validation: its answers would count in the next step.
fn ask_judge(project: &Project, judge: &Judge) {
    let text = project.read("train.toml").replace("validation = \"validation.jsonl\"\n", "");
    let endpoint = format!("[chat.judge]\nbase_url = \"http://{}/v1\"\nmodel = \"m\"\n", judge.address);
    project.write("train.toml", &format!("{text}\n{endpoint}"));
    let more = "weight = 0.1\ngrant = { chat = [\"judge\"] }\nlimits = { timeout = \"120s\" }";
    project.add_reward("asks", "guests/asks.wasm", more);
}

#[test]
fn the_metrics_of_an_endpoint_are_those_of_all_ranks() {
    let (project, judge) = (Project::new(), Judge::start());
    // Rank 1 draws every second group.
    ask_judge(&project, &judge);
    succeed(&project, 2, &["train", "-c", "train.toml", "--set", "train.steps=3"]);
    let steps = lines(&project.path("runs/run/metrics.jsonl"));
    let sum = |name: &str| steps[1..].iter().map(|step| step[name].as_f64().unwrap()).sum::<f64>();
    assert!(judge.asked() >= 3 * 16, "{}", judge.asked());
    assert_eq!(sum("chat/judge/requests"), judge.asked() as f64);
    // The judge reports 32 tokens for each answer. The attempt before the run is not spent by a step.
    assert_eq!(sum("spent/asks/tokens"), f64::from(32 * 3 * 16));
    assert!(steps[1..].iter().all(|step| step["reward/asks/latency_p99"].is_number()), "{steps:?}");
}

#[test]
fn ranks_whose_judge_is_gone_stop_together_with_a_checkpoint() {
    let (project, judge) = (Project::new(), Judge::start());
    ask_judge(&project, &judge);
    // One attempt before the run, and 16 in each step.
    judge.answer_at_most(1 + 16 + 8);
    let train = ["train", "-c", "train.toml", "--set", "train.steps=3", "--set", "train.max_pause=1ns"];
    for (number, (status, said)) in ends(start(&project, 2, &train)).into_iter().enumerate() {
        assert!(!status.success(), "rank {number}");
        assert!(said.contains("error: step 2: the endpoint `judge`: it has not answered for "), "{number}: {said}");
        assert!(said.contains("--resume continues from ") == (number == 0), "{number}: {said}");
    }
    assert!(project.path("runs/run/checkpoints/step-000001").exists());
    judge.answer_at_most(usize::MAX);
    succeed(&project, 2, &[&train[..], &["--resume"]].concat());
    assert_eq!(project.metrics("runs/run").last().unwrap()["step"], json!(3));
}

/// Trains a reward model, and adds the reward `liked` that asks it.
fn write_liked(project: &Project) {
    write_pairs(project, 2);
    project.succeed(&["reward-model", "-c", "pairs.toml", "--set", "log.name=rm"]);
    let reward = "[[reward]]\nname = \"liked\"\nreward_model = \"quality\"\nlimits = { cpu = \"60s\", timeout = \"5m\" }\n[reward_model.quality]\npath = \"runs/rm\"\n[checkpoint]";
    project.write("train.toml", &project.read("train.toml").replace("[checkpoint]", reward));
}

/// The scores of the samples of a run's first step by the reward `liked`.
fn scores(project: &Project, run: &str) -> BTreeMap<String, f64> {
    let files = std::fs::read_dir(project.path(run).join("trajectories")).unwrap().map(|entry| entry.unwrap());
    let first = files.filter(|file| file.file_name().to_string_lossy().starts_with("step-000001"));
    let lines = first.flat_map(|file| lines(&file.path()));
    lines
        .map(|line| (line["id"].as_str().unwrap().to_owned(), line["plugins"]["liked"]["score"].as_f64().unwrap()))
        .collect()
}

#[test]
fn a_reward_model_on_ranks_of_its_own_gives_the_scores_of_one_process() {
    let project = Project::new();
    write_liked(&project);
    let args = |more: &[&'static str]| [&["train", "-c", "train.toml"][..], more].concat();
    project.succeed(&args(&["--set", "log.name=one"]));
    let (one, found) = (metrics(&project, "runs/one"), scores(&project, "runs/one"));
    assert!(found.len() == 16 && found.values().any(|score| *score != found["1.0.0"]), "{found:?}");
    let on = |ranks: &'static str, name: &'static str| ["--set", ranks, "--set", name];
    let (second, first) = ("reward_model.quality.ranks=[1]", "reward_model.quality.ranks=[0]");
    for (size, set, run, absent) in [
        (3, &on(second, "log.name=dealt")[..], "runs/dealt", 1),
        (3, &[&on(second, "log.name=load")[..], &["--set", "ranks.share=\"load\""]].concat(), "runs/load", 1),
        (2, &on(first, "log.name=first"), "runs/first", 0),
    ] {
        let said = succeed(&project, size, &args(set));
        assert!(said[0].contains(&format!("{size} ranks, of which {} draw groups", size - 1)), "{}", said[0]);
        assert_close(&one, &metrics(&project, run), run);
        for (sample, score) in scores(&project, run) {
            assert!((score - found[&sample]).abs() < 2e-4, "{run}, {sample}: {score} {}", found[&sample]);
        }
        assert_eq!(samples(&project, run), samples(&project, "runs/one"));
        let file = match absent {
            0 => "trajectories/step-000001.jsonl".to_owned(),
            rank => format!("trajectories/step-000001.rank-{rank}.jsonl"),
        };
        assert!(lines(&project.path(run).join(file)).is_empty(), "rank {absent} has drawn");
        let steps = lines(&project.path(run).join("metrics.jsonl"));
        // Equal conversations are computed once, and the first step includes what was asked before it.
        let asked =
            ["scored", "reused"].map(|what| steps[1][&format!("perf/reward_model/quality/{what}")].as_u64().unwrap());
        assert!(asked[0] > 0 && asked[0] + asked[1] >= 16, "{asked:?}");
        let replayed = project.succeed(&["replay", run, "--json"]);
        let replayed: Value = serde_json::from_slice(&replayed.stdout).unwrap();
        assert_eq!((replayed["samples"].as_u64(), replayed["different"].as_u64()), (Some(96), Some(0)));
    }
    // Any number of ranks resumes, also without a rank for the model.
    succeed(&project, 3, &args(&[&on(second, "log.name=parts")[..], &["--set", "train.steps=4"]].concat()));
    project.succeed(&args(&["--set", "log.name=parts", "--resume"]));
    assert_close(&one, &metrics(&project, "runs/parts"), "runs/parts");

    let alone = stderr(&project.run(&args(&["--set", second])));
    assert!(alone.contains("reward_model.quality.ranks: the run is one process"), "{alone}");
    project.succeed(&args(&["--set", second, "--dry-run"]));
    for (ranks, says) in [
        ("reward_model.quality.ranks=[2]", "there is no rank 2: the run has the ranks 0 to 1"),
        ("reward_model.quality.ranks=[0, 1]", "all 2 ranks have a reward model"),
    ] {
        for (status, said) in ends(start(&project, 2, &args(&["--set", ranks]))) {
            assert!(status.code() == Some(2) && said.contains(says), "{said}");
        }
    }
}

#[test]
fn layers_in_parts_are_the_same_run_and_any_number_of_ranks_resumes() {
    let project = Project::new();
    let args = |name: &'static str, steps: &'static str| {
        ["train", "-c", "train.toml", "--set", "model.dtype=\"bfloat16\"", "--set", name, "--set", steps]
    };
    let by_layer = ["--set", "ranks.parameters=\"by_layer\""];
    let few = "train.steps=2";
    succeed(&project, 2, &args("log.name=whole", few));
    succeed(&project, 2, &[&args("log.name=parts", few)[..], &by_layer].concat());
    assert_close(&metrics(&project, "runs/whole"), &metrics(&project, "runs/parts"), "by layer");
    succeed(&project, 3, &[&args("log.name=parts", "train.steps=3")[..], &by_layer, &["--resume"]].concat());
    assert_eq!(metrics(&project, "runs/parts").len(), 4);
    let needs = |more: &[&str]| {
        let output = project.succeed(&[&args("log.name=none", few)[..], &by_layer, &["--dry-run"], more].concat());
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        text.lines().find(|line| line.starts_with("# memory, always: optimiser")).unwrap_or(&text).to_owned()
    };
    assert_ne!(needs(&[]), needs(&["--ranks", "3"]));
}

#[test]
fn ranks_share_an_asynchronous_schedule_by_load() {
    let project = Project::new();
    let args = [
        "train",
        "-c",
        "train.toml",
        "--set",
        "ranks.share=\"load\"",
        "--set",
        "ranks.groups_at_once=1",
        "--set",
        "schedule.max_staleness=2",
        "--set",
        "schedule.stream=true",
        "--set",
        "schedule.partial_rollout=true",
    ];
    succeed(&project, 3, &args);
    let steps = metrics(&project, "runs/run");
    assert_eq!(steps.len(), 7);
    // Each group is trained on once, and nothing that was drawn is lost.
    let samples = samples(&project, "runs/run");
    assert!(samples.len() == 96 && samples.values().all(|times| *times == 1), "{samples:?}");
}

#[test]
fn every_rank_helps_with_a_critic_a_reference_and_supervised_steps() {
    let project = Project::new();
    let critic = ["--set", "train.algorithm=\"gae\"", "--set", "train.kl_reward={}", "--set", "train.critic={}"];
    let train = |name: &'static str| [&["train", "-c", "train.toml", "--set", name][..], &critic].concat();
    let sft = |name: &'static str| vec!["sft", "-c", "sft.toml", "--set", name];
    for (one, two, runs) in [
        (train("log.name=critic"), train("log.name=critics"), ["runs/critic", "runs/critics"]),
        (sft("log.name=sft"), sft("log.name=sfts"), ["runs/sft", "runs/sfts"]),
    ] {
        succeed(&project, 1, &one);
        succeed(&project, 2, &two);
        assert_close(&metrics(&project, runs[0]), &metrics(&project, runs[1]), runs[1]);
    }
}

#[test]
fn one_rank_asks_the_plugin_for_advantages_and_all_learn_from_its_answer() {
    let project = Project::new();
    let guest = project::built("guests/estimators.wasm");
    let text = project.read("train.toml");
    let limits = "limits = { cpu = \"60s\", timeout = \"120s\" }";
    let own = |estimator: &str| {
        let plugin = format!("[plugin.own]\npath = {guest:?}\nparams = {{ estimator = {estimator:?} }}\n{limits}\n");
        project.write(&format!("{estimator}.toml"), &format!("{text}\n{plugin}"));
    };
    ["gdpo", "fails"].into_iter().for_each(own);
    let plugin = ["--set", "train.advantage=plugin:own", "--set", "train.min_scored=2"];
    let built_in = ["train", "-c", "train.toml", "--set", "train.algorithm=gdpo", "--set", "log.name=built-in"];
    succeed(&project, 2, &built_in);
    succeed(&project, 2, &[&["train", "-c", "gdpo.toml", "--set", "log.name=own"][..], &plugin].concat());
    assert!(weights(&project, "runs/own") == weights(&project, "runs/built-in"), "the weights differ");
    let failing = [&["train", "-c", "fails.toml", "--set", "log.name=fails"][..], &plugin].concat();
    for (number, (status, said)) in ends(start(&project, 2, &failing)).into_iter().enumerate() {
        assert_eq!(status.code(), Some(2), "rank {number}: {said}");
        assert!(said.contains("step 2: the advantage plugin `own` returned no advantages: group 0"), "{said}");
    }
    assert!(project.path("runs/fails/checkpoints/step-000001").is_dir());
}

/// Writes a configuration for each way in which the guest `draws` draws tasks.
fn write_samplers(project: &Project, ways: &[&str]) {
    let guest = project::built("guests/draws.wasm");
    let text = project.read("train.toml");
    for how in ways {
        let limits = "limits = { cpu = \"60s\", timeout = \"120s\" }";
        let plugin = format!("[plugin.own]\npath = {guest:?}\nparams = {{ how = {how:?} }}\n{limits}\n");
        project.write(&format!("{how}.toml"), &format!("{text}\n{plugin}"));
    }
}

/// The tasks of a run's samples, by their ids.
fn tasks(project: &Project, run: &str) -> BTreeMap<String, Value> {
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir(project.path(run).join("trajectories")).unwrap() {
        for line in lines(&entry.unwrap().path()) {
            found.insert(line["id"].as_str().unwrap().to_owned(), line["task_id"].clone());
        }
    }
    found
}

/// The groups that the sampler of a run refused.
fn refused(project: &Project, run: &str) -> u64 {
    project.metrics(run).iter().filter_map(|step| step.get("groups/refused")?.as_u64()).sum()
}

#[test]
fn one_rank_asks_the_sampler_and_two_draw_what_one_would() {
    let project = Project::new();
    write_samplers(&project, &["refuses", "beyond"]);
    // Draws that follow from all outcomes before them; a step ahead, they end in any order.
    let set = ["--set", "data.sampler=plugin:own", "--set", "schedule.max_staleness=1"];
    for (size, name) in [(1, "log.name=one"), (2, "log.name=two")] {
        succeed(&project, size, &[&["train", "-c", "refuses.toml", "--set", name][..], &set].concat());
    }
    assert_eq!(tasks(&project, "runs/one"), tasks(&project, "runs/two"));
    let [one, two] = ["runs/one", "runs/two"].map(|run| refused(&project, run));
    assert!(one > 0 && one == two, "{one} {two}");
    let failing = [&["train", "-c", "beyond.toml", "--set", "log.name=beyond"][..], &set[..2]].concat();
    for (number, (status, said)) in ends(start(&project, 2, &failing)).into_iter().enumerate() {
        assert_eq!(status.code(), Some(2), "rank {number}: {said}");
        assert!(said.contains("step 2: the sampler `own` returned no answer: task 0 is of dataset 1"), "{said}");
    }
    assert!(project.path("runs/beyond/checkpoints/step-000001").is_dir());
}

#[test]
fn ranks_that_share_groups_by_load_draw_what_the_sampler_answers() {
    let project = Project::new();
    write_samplers(&project, &["in-order", "refuses"]);
    let load = [
        "--set",
        "ranks.share=\"load\"",
        "--set",
        "ranks.groups_at_once=1",
        "--set",
        "schedule.max_staleness=2",
        "--set",
        "schedule.stream=true",
        "--set",
        "schedule.partial_rollout=true",
    ];
    let args = |file: &'static str, name: &'static str| {
        vec!["train", "-c", file, "--set", "data.sampler=plugin:own", "--set", name]
    };
    // Draws that follow from their numbers alone, on whichever rank they are drawn.
    succeed(&project, 1, &args("in-order.toml", "log.name=one"));
    succeed(&project, 3, &[&args("in-order.toml", "log.name=in-order")[..], &load].concat());
    let one = tasks(&project, "runs/one");
    assert_eq!((one.len(), tasks(&project, "runs/in-order")), (96, one));
    // Of 24 groups, each third is refused, in whichever step it ends.
    succeed(&project, 3, &[&args("refuses.toml", "log.name=refuses")[..], &load].concat());
    assert_eq!(refused(&project, "runs/refuses"), 8);
    let samples = samples(&project, "runs/refuses");
    assert!(samples.len() == 96 && samples.values().all(|times| *times == 1), "{samples:?}");
}

#[test]
fn a_rank_that_is_killed_ends_the_others_and_any_number_of_ranks_resumes() {
    let project = Project::new();
    let args = ["train", "-c", "train.toml", "--set", "train.steps=400", "--set", "schedule.max_staleness=1"];
    let mut ranks = start(&project, 3, &args);
    while lines(&project.path("runs/run/metrics.jsonl")).len() < 6 {
        assert!(ranks.iter_mut().all(|rank| rank.try_wait().unwrap().is_none()), "{:?}", ends(ranks));
        std::thread::sleep(Duration::from_millis(5));
    }
    let killed = ranks[1].id();
    ranks[1].kill().unwrap();
    let start = Instant::now();
    let ends = ends(ranks);
    assert!(start.elapsed() < Duration::from_secs(60), "{:?}", start.elapsed());
    for (status, said) in [&ends[0], &ends[2]] {
        assert_eq!(status.code(), Some(2), "{said}");
        assert!(said.contains(&format!("rank 1 (process {killed} on ")), "{said}");
    }
    let steps = lines(&project.path("runs/run/metrics.jsonl")).len() + 3;
    let (port, steps) = (free_port(), format!("train.steps={steps}"));
    let args = [&args[..3], &["--set", &steps, "--set", "schedule.max_staleness=1"]].concat();
    // As torchrun starts them again.
    let again = |number| rank(&project, number, 2, port, &args).env("TORCHELASTIC_RESTART_COUNT", "1").spawn().unwrap();
    for (status, said) in self::ends(vec![again(0), again(1)]) {
        assert!(status.success(), "{said}");
    }
    let steps = steps.split('=').next_back().unwrap().parse::<u64>().unwrap();
    let found: Vec<u64> = project.metrics("runs/run").iter().map(|step| step["step"].as_u64().unwrap()).collect();
    assert_eq!(found, (0..=steps).collect::<Vec<_>>());
    let twice: Vec<_> = samples(&project, "runs/run").into_iter().filter(|(_, times)| *times > 1).collect();
    assert!(twice.is_empty(), "samples that are there twice: {twice:?}");
    project.succeed(&["replay", "runs/run"]);
}

#[test]
fn a_rank_with_another_configuration_is_refused_by_name() {
    let project = Project::new();
    let port = free_port();
    let args = ["train", "-c", "train.toml"];
    let other = [&args[..], &["--set", "train.learning_rate=0.5"]].concat();
    let ranks =
        vec![rank(&project, 0, 2, port, &args).spawn().unwrap(), rank(&project, 1, 2, port, &other).spawn().unwrap()];
    for (status, said) in ends(ranks) {
        assert_eq!(status.code(), Some(2), "{said}");
        assert!(said.contains("rank 1 (process ") && said.contains("train.learning_rate"), "{said}");
    }
    assert!(!project.path("runs").exists(), "a run began");
}

/// A configuration for pairs of different lengths, and `held_out` held-out pairs.
fn write_pairs(project: &Project, held_out: usize) {
    let pair = |index: usize| {
        let better = format!("{index} {}", "a".repeat(1 + index % 7));
        json!({"prompt": format!("Say {index}"), "chosen": better, "rejected": format!("{index} b")}).to_string() + "\n"
    };
    project.write("pairs.jsonl", &(0..40).map(pair).collect::<String>());
    project.write("held-out.jsonl", &(100..100 + held_out).map(pair).collect::<String>());
    let text = project.read("sft.toml");
    let model = &text[..text.find("[data]").unwrap()];
    let more = "[data]\ntrain = \"pairs.jsonl\"\nvalidation = \"held-out.jsonl\"\n[checkpoint]\nevery = 3\n[train]\nsteps = 6\nbatch_size = 8\nlearning_rate = 1e-2\nvalidate_every = 3\n";
    project.write("pairs.toml", &format!("{model}{more}"));
}

#[test]
fn every_rank_has_a_share_of_the_pairs() {
    let project = Project::new();
    // Fewer held-out pairs than ranks too.
    for (command, held_out, name) in [("reward-model", 10, "reward"), ("dpo", 2, "dpo")] {
        write_pairs(&project, held_out);
        let run = |size: usize, which: &str, more: &[&str]| {
            let name = format!("log.name={name}-{which}");
            succeed(&project, size, &[&[command, "-c", "pairs.toml", "--set", &name][..], more].concat());
        };
        let folder = |which: &str| format!("runs/{name}-{which}");
        run(1, "one", &[]);
        let one = metrics(&project, &folder("one"));
        assert!(one[6]["loss"].as_f64() < one[1]["loss"].as_f64() && one[6].contains_key("val/accuracy"), "{one:?}");
        for (size, which) in [(2, "two"), (3, "three")] {
            run(size, which, &[]);
            assert_close(&one, &metrics(&project, &folder(which)), &folder(which));
        }
        let needs = |more: &[&str]| project.succeed(&[&[command, "-c", "pairs.toml", "--dry-run"][..], more].concat());
        assert_ne!(needs(&[]).stdout, needs(&["--ranks", "3"]).stdout);
        if command == "dpo" {
            // Any number of ranks resumes; the same number has the same bits.
            run(2, "parts", &["--set", "train.steps=3"]);
            run(2, "parts", &["--resume"]);
            assert!(weights(&project, &folder("parts")) == weights(&project, &folder("two")), "the weights differ");
            run(3, "parts", &["--resume-from", "3"]);
            assert_close(&one, &metrics(&project, &folder("parts")), &folder("parts"));
        } else {
            run(2, "again", &[]);
            assert_eq!(metrics(&project, &folder("again")), metrics(&project, &folder("two")));
            assert!(weights(&project, &folder("again")) == weights(&project, &folder("two")), "the weights differ");
        }
    }
}

#[test]
fn a_rank_that_fails_on_pairs_ends_the_others_and_all_start_again() {
    let project = Project::new();
    write_pairs(&project, 4);
    let args = ["reward-model", "-c", "pairs.toml", "--set", "train.steps=4000"];
    let mut ranks = start(&project, 2, &args);
    while lines(&project.path("runs/run/metrics.jsonl")).len() < 6 {
        assert!(ranks.iter_mut().all(|rank| rank.try_wait().unwrap().is_none()), "{:?}", ends(ranks));
        std::thread::sleep(Duration::from_millis(5));
    }
    ranks[1].kill().unwrap();
    let ends = ends(ranks);
    assert!(ends[0].0.code() == Some(2) && ends[0].1.contains("rank 1 (process "), "{ends:?}");
    let steps = lines(&project.path("runs/run/metrics.jsonl")).len() + 3;
    let (port, setting) = (free_port(), format!("train.steps={steps}"));
    let args = [&args[..4], &[&setting]].concat();
    let again = |number| rank(&project, number, 2, port, &args).env("TORCHELASTIC_RESTART_COUNT", "1").spawn().unwrap();
    for (status, said) in self::ends(vec![again(0), again(1)]) {
        assert!(status.success(), "{said}");
    }
    let found: Vec<u64> = project.metrics("runs/run").iter().map(|step| step["step"].as_u64().unwrap()).collect();
    assert_eq!(found, (0..=steps as u64).collect::<Vec<_>>());
}

#[test]
fn the_table_of_ranks_is_for_train_alone() {
    let project = Project::new();
    let output = project.run(&["sft", "-c", "sft.toml", "--set", "ranks.share=\"load\""]);
    assert!(
        stderr(&output).contains("ranks.share and ranks.groups_at_once are for `gavel train`"),
        "{}",
        stderr(&output)
    );
}

#[test]
fn a_signal_to_one_rank_ends_all_after_the_step() {
    let project = Project::new();
    let mut ranks = start(&project, 2, &["train", "-c", "train.toml", "--set", "train.steps=4000"]);
    while lines(&project.path("runs/run/metrics.jsonl")).len() < 3 {
        assert!(ranks.iter_mut().all(|rank| rank.try_wait().unwrap().is_none()), "{:?}", ends(ranks));
        std::thread::sleep(Duration::from_millis(5));
    }
    Command::new("kill").args(["-INT", &ranks[1].id().to_string()]).status().unwrap();
    let ends = ends(ranks);
    assert!(ends.iter().all(|(status, _)| status.code() == Some(130)), "{ends:?}");
    assert!(ends[0].1.contains("stopped after step ") && !ends[1].1.contains("stopped after"), "{ends:?}");
}

#[test]
fn a_rank_that_pauses_for_a_while_changes_nothing() {
    let project = Project::new();
    let args = |name: &'static str| ["train", "-c", "train.toml", "--set", "train.steps=60", "--set", name];
    succeed(&project, 2, &args("log.name=steady"));
    let mut ranks = start(&project, 2, &args("log.name=paused"));
    for steps in [3, 6] {
        while lines(&project.path("runs/paused/metrics.jsonl")).len() < steps {
            assert!(ranks.iter_mut().all(|rank| rank.try_wait().unwrap().is_none()), "{:?}", ends(ranks));
            std::thread::sleep(Duration::from_millis(1));
        }
        let signal = |name: &str| Command::new("kill").args([name, &ranks[1].id().to_string()]).status().unwrap();
        signal("-STOP");
        std::thread::sleep(Duration::from_secs(2));
        signal("-CONT");
    }
    let ends = ends(ranks);
    assert!(ends.iter().all(|(status, _)| status.success()), "{ends:?}");
    assert_eq!(metrics(&project, "runs/paused"), metrics(&project, "runs/steady"));
}

/// Two network namespaces, as two machines with a cable.
struct Machines([String; 2]);

impl Machines {
    /// Nothing where a process may not make them.
    fn new() -> Option<Self> {
        // No other test and no other run of the tests has these names.
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let machines = Self(["a", "b"].map(|side| format!("gavel-{}-{number}-{side}", std::process::id())));
        let [a, b] = machines.0.each_ref().map(String::as_str);
        machines.ip(&["netns", "add", a])?;
        machines.ip(&["netns", "add", b])?;
        machines.ip(&["-n", a, "link", "add", "cable", "type", "veth", "peer", "name", "cable", "netns", b])?;
        for (machine, address) in [(a, "10.77.0.1/24"), (b, "10.77.0.2/24")] {
            machines.ip(&["-n", machine, "addr", "add", address, "dev", "cable"])?;
            machines.ip(&["-n", machine, "link", "set", "cable", "up"])?;
            machines.ip(&["-n", machine, "link", "set", "lo", "up"])?;
        }
        Some(machines)
    }

    fn ip(&self, args: &[&str]) -> Option<()> {
        Command::new("ip").args(args).output().ok()?.status.success().then_some(())
    }

    fn start(&self, project: &Project, number: usize, args: &[&str]) -> Child {
        let inner = rank(project, number, 2, 29500, args);
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.0[number]]).arg(inner.get_program()).args(inner.get_args());
        command.envs(inner.get_envs().filter_map(|(name, value)| Some((name, value?))));
        command.env("MASTER_ADDR", "10.77.0.1").env("GLOO_SOCKET_IFNAME", "cable").env("LOCAL_RANK", "0");
        command.current_dir(project.path("")).stdout(Stdio::null()).stderr(Stdio::piped());
        command.spawn().unwrap()
    }
}

impl Machines {
    /// Slows the cable down, in both directions. Nothing where the system cannot.
    fn slow_down(&self, rate: &str) -> Option<()> {
        let slow = |machine: &String| {
            let limit = ["tbf", "rate", rate, "burst", "16kb", "latency", "400ms"];
            let mut tc = Command::new("tc");
            tc.args(["-n", machine, "qdisc", "add", "dev", "cable", "root"]).args(limit);
            tc.output().ok()?.status.success().then_some(())
        };
        self.0.iter().map(slow).collect()
    }
}

impl Drop for Machines {
    fn drop(&mut self) {
        for machine in &self.0 {
            let _ = self.ip(&["netns", "del", machine]);
        }
    }
}

#[test]
fn a_reward_model_on_another_machine_is_asked_over_the_network_of_the_ranks() {
    let Some(machines) = Machines::new() else {
        eprintln!("skipped: network namespaces need root and iproute2");
        return;
    };
    let project = Project::new();
    write_liked(&project);
    for ranks in ["reward_model.quality.ranks=[0]", "reward_model.quality.ranks=[1]"] {
        let args = ["train", "-c", "train.toml", "--set", "train.steps=2", "--set", ranks];
        let ranks = (0..2).map(|number| machines.start(&project, number, &args)).collect();
        for (status, said) in ends(ranks) {
            assert!(status.success(), "{said}");
        }
    }
    for run in ["runs/run", "runs/run-2"] {
        assert_eq!(project.metrics(run)[2]["outcome/liked/scored"], 16);
    }
}

#[test]
fn a_slow_network_changes_nothing_but_the_time() {
    let Some(machines) = Machines::new() else {
        eprintln!("skipped: network namespaces need root and iproute2");
        return;
    };
    let project = Project::new();
    let train = |name: &'static str| {
        let args = ["train", "-c", "train.toml", "--set", "train.steps=4", "--set", name];
        for (status, said) in ends((0..2).map(|number| machines.start(&project, number, &args)).collect()) {
            assert!(status.success(), "{said}");
        }
    };
    train("log.name=fast");
    if machines.slow_down("4mbit").is_none() {
        eprintln!("skipped: this system has no `tc` with a token bucket filter");
        return;
    }
    train("log.name=slow");
    assert_eq!(metrics(&project, "runs/slow"), metrics(&project, "runs/fast"));
    let sum =
        |run: &str, name: &str| project.metrics(run)[1..].iter().map(|step| step[name].as_f64().unwrap()).sum::<f64>();
    let sent = sum("runs/slow", "ranks/bytes_sent");
    // Each rank sends half of the bytes, at half a megabyte a second. Half of them are new weights, for which all wait.
    let waited = sum("runs/slow", "ranks/waited_mean");
    assert!(waited > sent / 2.0 / 500e3 / 4.0, "{waited} s for {sent} bytes");
}

#[test]
fn a_cut_between_two_machines_ends_both_sides() {
    let Some(machines) = Machines::new() else {
        eprintln!("skipped: network namespaces need root and iproute2");
        return;
    };
    let project = Project::new();
    let args = ["train", "-c", "train.toml", "--set", "train.steps=100000"];
    let mut ranks: Vec<Child> = (0..2).map(|number| machines.start(&project, number, &args)).collect();
    while lines(&project.path("runs/run/metrics.jsonl")).len() < 5 {
        assert!(ranks.iter_mut().all(|rank| rank.try_wait().unwrap().is_none()), "{:?}", ends(ranks));
        std::thread::sleep(Duration::from_millis(5));
    }
    machines.ip(&["-n", &machines.0[1], "link", "set", "cable", "down"]).unwrap();
    let start = Instant::now();
    let ends = ends(ranks);
    assert!(start.elapsed() < Duration::from_secs(60), "{:?}", start.elapsed());
    for ((status, said), other) in ends.iter().zip([1, 0]) {
        assert_eq!(status.code(), Some(2), "{said}");
        assert!(said.contains(&format!("rank {other} (process ")) && said.contains(" is gone: "), "{said}");
    }
}
