//! A project that is small enough to be trained in a test.
#![allow(dead_code, reason = "not every test uses all of it")]

use serde_json::{Map, Value, json};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

pub fn built(path: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target").join(path);
    assert!(path.exists(), "{} is missing: run `cargo xtask plugins`", path.display());
    path.canonicalize().unwrap()
}

/// A folder with a dataset and a configuration whose reward is given for
/// responses with a lower-case letter: random weights do that sometimes.
pub struct Project(tempfile::TempDir);

impl Project {
    pub fn empty() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub fn new() -> Self {
        let project = Self::empty();
        let rows = |count: u32| {
            let row = |index: u32| {
                json!({
                    "data_source": "letters", "prompt": [{"role": "user", "content": format!("Say {index}")}],
                    "reward_model": {"ground_truth": index.to_string()}, "extra_info": {"index": index, "deep": [null]},
                    "response": format!("{index} a")
                })
            };
            (0..count).map(|index| row(index).to_string() + "\n").collect::<String>()
        };
        project.write("train.jsonl", &rows(40));
        project.write("validation.jsonl", &rows(6));
        let common = format!(
            r#"
[model.init]
vocab_size = 259
hidden_size = 32
intermediate_size = 64
num_hidden_layers = 1
num_attention_heads = 2
num_key_value_heads = 1
max_position_embeddings = 64
tie_word_embeddings = true
[data]
train = "train.jsonl"
validation = "validation.jsonl"
[rollout]
group_size = 4
max_tokens = 8
[[reward]]
name = "letter"
path = {:?}
params = {{ pattern = '(?s).*[a-z].*' }}
[checkpoint]
every = 3
"#,
            built("plugins/format.wasm")
        );
        project.write(
            "train.toml",
            &format!("{common}[train]\nsteps = 6\nprompts_per_step = 4\nmini_batch_prompts = 2\nlearning_rate = 1e-3\nvalidate_every = 2\n"),
        );
        project.write("sft.toml", &format!("{common}[train]\nsteps = 6\nbatch_size = 8\nlearning_rate = 1e-3\n"));
        project
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub fn write(&self, name: &str, text: &str) {
        std::fs::write(self.path(name), text).unwrap();
    }

    pub fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap()
    }

    pub fn add_reward(&self, name: &str, guest: &str, more: &str) {
        let text = std::fs::read_to_string(self.path("train.toml")).unwrap();
        let reward = format!("[[reward]]\nname = {name:?}\npath = {:?}\n{more}\n", built(guest));
        self.write("train.toml", &text.replace("[checkpoint]", &format!("{reward}[checkpoint]")));
    }

    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_gavel"));
        command.current_dir(self.0.path()).args(args).env("NO_COLOR", "1");
        // Requests to this machine must not go through a proxy.
        command.env("NO_PROXY", "127.0.0.1");
        command
    }

    pub fn run(&self, args: &[&str]) -> Output {
        self.command(args).output().unwrap()
    }

    pub fn succeed(&self, args: &[&str]) -> Output {
        let output = self.run(args);
        assert!(output.status.success(), "{args:?}: {}", stderr(&output));
        output
    }

    /// Starts a run of `steps` steps and kills it somewhere on the way, after
    /// its first checkpoint.
    pub fn kill_after_some_steps(&self, args: &[&str], run: &str, steps: usize) {
        // Any step will do, so how many more the run writes until it is killed does not matter.
        let enough = 5 + steps / 4;
        let file = self.path(run).join("metrics.jsonl");
        for _ in 0..10 {
            let mut child = self.command(args).stderr(Stdio::null()).spawn().unwrap();
            while lines(&file).len() < enough && child.try_wait().unwrap().is_none() {
                std::thread::sleep(Duration::from_millis(1));
            }
            child.kill().unwrap();
            child.wait().unwrap();
            if lines(&file).len() < steps + 1 {
                return;
            }
            // On a busy machine, the run may end before it is killed.
            std::fs::remove_dir_all(self.path(run)).unwrap();
        }
        panic!("the run was always over before it could be killed");
    }

    /// The lines of a run's metrics without what depends on the clock.
    pub fn metrics(&self, run: &str) -> Vec<Map<String, Value>> {
        lines(&self.path(run).join("metrics.jsonl"))
            .into_iter()
            .map(|mut line| {
                let is_clock = |name: &str| {
                    ["time/", "perf/", "device_wait/", "chat/", "limiter/"]
                        .iter()
                        .any(|prefix| name.starts_with(prefix))
                        || name.contains("/latency_p")
                };
                line.retain(|name, _| !is_clock(name));
                line
            })
            .collect()
    }
}

pub fn lines(path: &Path) -> Vec<Map<String, Value>> {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

pub fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}
