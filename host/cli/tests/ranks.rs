//! `gavel train` and `gavel sft` as several processes that the variables of torchrun start.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
#![cfg(feature = "train")]

mod project;

use project::{Project, lines, stderr};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::net::TcpListener;
use std::process::{Child, Command, ExitStatus, Stdio};
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
    assert!(start.elapsed() < Duration::from_secs(20), "{:?}", start.elapsed());
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

#[test]
fn a_command_of_one_process_refuses_several_ranks() {
    let project = Project::new();
    project.write("pairs.jsonl", "{\"prompt\": \"q\", \"chosen\": \"a\", \"rejected\": \"b\"}\n");
    let text = project.read("sft.toml");
    let model = &text[..text.find("[data]").unwrap()];
    let more = "[data]\ntrain = \"pairs.jsonl\"\n[train]\nsteps = 1\nbatch_size = 1\nlearning_rate = 1e-3\n";
    project.write("pairs.toml", &format!("{model}{more}"));
    for (status, said) in ends(start(&project, 2, &["reward-model", "-c", "pairs.toml"])) {
        assert_eq!(status.code(), Some(2), "{said}");
        assert!(said.contains("this command runs in one process, not in 2 ranks"), "{said}");
    }
    project.succeed(&["reward-model", "-c", "pairs.toml"]);
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
struct Machines([&'static str; 2]);

impl Machines {
    /// Nothing where a process may not make them.
    fn new() -> Option<Self> {
        let machines = Self(["gavel-test-a", "gavel-test-b"]);
        let [a, b] = machines.0;
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
        command.args(["netns", "exec", self.0[number]]).arg(inner.get_program()).args(inner.get_args());
        command.envs(inner.get_envs().filter_map(|(name, value)| Some((name, value?))));
        command.env("MASTER_ADDR", "10.77.0.1").env("GLOO_SOCKET_IFNAME", "cable").env("LOCAL_RANK", "0");
        command.current_dir(project.path("")).stdout(Stdio::null()).stderr(Stdio::piped());
        command.spawn().unwrap()
    }
}

impl Drop for Machines {
    fn drop(&mut self) {
        for machine in self.0 {
            let _ = self.ip(&["netns", "del", machine]);
        }
    }
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
    machines.ip(&["-n", machines.0[1], "link", "set", "cable", "down"]).unwrap();
    let start = Instant::now();
    let ends = ends(ranks);
    assert!(start.elapsed() < Duration::from_secs(25), "{:?}", start.elapsed());
    for ((status, said), other) in ends.iter().zip([1, 0]) {
        assert_eq!(status.code(), Some(2), "{said}");
        assert!(said.contains(&format!("rank {other} (process ")) && said.contains(" is gone: "), "{said}");
    }
}
