//! Every algorithm takes two steps, and so does every recipe of `docs/algorithms.md`.

use super::*;
use crate::config::load;
use gavel_text::TextModel;
use gavel_train::{Estimator, PolicyLoss};
use std::path::{Path, PathBuf};
use toml::{Table, Value};

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// A tiny random model, whose responses are rewarded if they have a lower-case letter and often end by themselves.
fn base(folder: &Path) -> Table {
    let rows = (0..8).map(|row| format!("{{\"prompt\": \"Say {row}\"}}\n")).collect::<String>();
    std::fs::write(folder.join("rows.jsonl"), rows).unwrap();
    let stop = TextModel::byte_level().tokenizer.stop_ids()[0];
    let text = format!(
        r#"
[model]
device = "cpu"
[model.init]
vocab_size = 259
hidden_size = 16
intermediate_size = 16
num_hidden_layers = 1
num_attention_heads = 2
[data]
train = {:?}
[rollout]
group_size = 4
max_tokens = 8
logit_bias = {{ "{stop}" = 3.0 }}
[[reward]]
name = "letter"
path = "target/plugins/format.wasm"
params = {{ pattern = '(?s).*[a-z].*' }}
[train]
steps = 2
prompts_per_step = 4
mini_batch_prompts = 2
learning_rate = 1e-3
[log]
dir = {:?}
trajectories = false
tensorboard = false
[resources]
torch_threads = 1
"#,
        folder.join("rows.jsonl"),
        folder.join("runs"),
    );
    text.parse().unwrap()
}

/// Adds the keys of `other` to a table; arrays follow each other.
fn merge(table: &mut Table, other: Table) {
    for (key, value) in other {
        match (table.get_mut(&key), value) {
            (Some(Value::Table(own)), Value::Table(other)) => merge(own, other),
            (Some(Value::Array(own)), Value::Array(other)) => own.extend(other),
            (_, value) => {
                table.insert(key, value);
            }
        }
    }
}

/// The configuration of a run with what an algorithm adds.
fn config(folder: &Path, name: &str, added: &str) -> Config<RlTable> {
    let mut table = base(folder);
    merge(&mut table, added.parse().unwrap());
    for reward in table["reward"].as_array_mut().unwrap() {
        let path = repository().join(reward["path"].as_str().unwrap());
        reward.as_table_mut().unwrap().insert("path".into(), path.to_str().unwrap().into());
    }
    table["log"].as_table_mut().unwrap().insert("name".into(), name.into());
    let path = folder.join(format!("{name}.toml"));
    std::fs::write(&path, table.to_string()).unwrap();
    load(&path, &[]).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// Takes the two steps of a run, and gives the metrics of both.
fn take(config: &Config<RlTable>) -> Vec<serde_json::Map<String, serde_json::Value>> {
    let control = Control::default();
    let summary = train(config, Start::New, &control).unwrap_or_else(|error| panic!("{}: {error}", config.log.name));
    assert_eq!(summary.step, 2);
    let text = std::fs::read_to_string(summary.folder.join("metrics.jsonl")).unwrap();
    let steps: Vec<serde_json::Map<_, _>> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    steps.into_iter().filter(|step| step["step"].as_u64() > Some(0)).collect()
}

fn assert_learned(name: &str, steps: &[serde_json::Map<String, serde_json::Value>]) {
    assert_eq!(steps.len(), 2, "{name}");
    let norms = steps.iter().filter_map(|step| step.get("grad_norm")?.as_f64());
    assert!(norms.clone().any(|norm| norm > 0.0) && norms.clone().all(f64::is_finite), "{name}: {steps:?}");
}

/// The name of an estimator as it is written.
fn written(estimator: Estimator) -> String {
    serde_json::to_value(estimator).unwrap().as_str().unwrap().to_owned()
}

#[test]
fn every_algorithm_and_every_loss_takes_two_steps() {
    let folder = tempfile::tempdir().unwrap();
    let (estimators, losses) = (Estimator::ALL, PolicyLoss::all());
    for run in 0..losses.len().max(estimators.len()) {
        let (estimator, loss) = (written(estimators[run % estimators.len()]), &losses[run % losses.len()].0);
        // Each second run has penalties.
        let penalties = if run % 2 == 0 {
            "kl_reward = { target = 0.1 }\nloss.kl = { estimator = 'k3+', target = 0.1 }"
        } else {
            ""
        };
        let text = format!(
            "[train]\nalgorithm = '{estimator}'\nloss.policy = '{loss}'\nloss.entropy_coefficient = 0.01\n{penalties}"
        );
        let name = format!("{estimator}-{loss}");
        let steps = take(&config(folder.path(), &name, &text));
        assert_learned(&name, &steps);
        for metric in ["kl_reward", "kl_reward/coefficient", "kl/coefficient"] {
            assert_eq!(steps[1].contains_key(metric), run % 2 == 0, "{name}, {metric}");
        }
    }
}

#[test]
fn a_critic_learns_before_the_policy_and_is_a_part_of_the_checkpoint() {
    let folder = tempfile::tempdir().unwrap();
    let text =
        "[rollout]\ngroup_size = 1\n[train]\nalgorithm = 'gae'\ncritic = { learning_rate = 1e-2, steps_alone = 1 }";
    let mut config = config(folder.path(), "resumed", text);
    let steps = take(&config);
    let number = |step: usize, name: &str| steps[step].get(name).and_then(serde_json::Value::as_f64);
    assert_eq!((number(0, "updates"), number(0, "grad_norm")), (Some(0.0), None));
    assert!(number(1, "updates") == Some(2.0) && number(1, "grad_norm").unwrap() > 0.0, "{steps:?}");
    for step in 0..2 {
        assert!(number(step, "critic/grad_norm").unwrap() > 0.0, "{steps:?}");
        assert!(number(step, "critic/explained_variance").unwrap() < 1.0, "{steps:?}");
    }
    // Its head is random, as the policy is.
    assert!(number(0, "critic/value").is_some_and(|value| value != 0.0), "{steps:?}");
    config.train.steps = 4;
    config.log.name = "whole".into();
    let control = Control::default();
    let whole = train(&config, Start::New, &control).unwrap();
    config.log.name = "resumed".into();
    let resumed = train(&config, Start::Resume { from: None, allow_changed_plugins: false }, &control).unwrap();
    let file = |summary: &Summary, name: &str| std::fs::read(summary.checkpoint.as_ref().unwrap().join(name)).unwrap();
    for name in ["critic.safetensors", "critic-optimizer.safetensors", "model.safetensors"] {
        assert!(file(&whole, name) == file(&resumed, name), "{name}");
    }
}

#[test]
fn a_reference_that_follows_the_policy_is_a_part_of_the_checkpoint() {
    let folder = tempfile::tempdir().unwrap();
    let kl = |name: &str, more: &str| {
        let text = format!("[train]\nmini_batch_prompts = 4\nloss.kl = {{}}\n{more}");
        let config = config(folder.path(), name, &text);
        let distance = |step: &serde_json::Map<String, serde_json::Value>| step["kl"].as_f64().unwrap();
        let steps = take(&config);
        (distance(&steps[0]), distance(&steps[1]), config)
    };
    let (_, fixed, _) = kl("fixed", "");
    let (first, followed, _) = kl("followed", "reference.every = 1");
    assert!(first.abs() < 1e-6 && followed.abs() < 1e-6 && fixed > 1e-6, "{first}, {followed}, {fixed}");
    let (_, mixed, mut config) = kl("mixed", "reference = { every = 1, mixup = 0.5 }");
    assert!(mixed > 1e-7 && mixed < fixed, "{mixed} is not below {fixed}");
    // Two steps, and then two more, are the same as four.
    config.train.steps = 4;
    config.log.name = "whole".into();
    let control = Control::default();
    let whole = train(&config, Start::New, &control).unwrap();
    config.log.name = "mixed".into();
    let resumed = train(&config, Start::Resume { from: None, allow_changed_plugins: false }, &control).unwrap();
    let file = |summary: &Summary, name: &str| std::fs::read(summary.checkpoint.as_ref().unwrap().join(name)).unwrap();
    for name in ["reference.safetensors", "model.safetensors"] {
        assert!(file(&whole, name) == file(&resumed, name), "{name}");
    }
}

/// The recipes of the page, by the method.
fn recipes() -> Vec<(String, String)> {
    let page = std::fs::read_to_string(repository().join("docs/algorithms.md")).unwrap();
    let mut method = String::new();
    let (mut recipes, mut block) = (Vec::new(), None);
    for line in page.lines() {
        match (&mut block, line) {
            (None, "```toml") => block = Some(String::new()),
            (Some(_), "```") => recipes.push((method.clone(), block.take().unwrap_or_default())),
            (Some(text), line) => *text += &format!("{line}\n"),
            (None, line) => {
                if let Some((name, _)) = line.strip_prefix("**").and_then(|rest| rest.split_once("**")) {
                    method = name.to_lowercase().replace([' ', '.'], "-");
                }
            }
        }
    }
    recipes
}

#[test]
fn every_recipe_of_the_page_is_a_configuration_and_takes_two_steps() {
    let recipes = recipes();
    let methods: Vec<&str> = recipes.iter().map(|(method, _)| method.as_str()).collect();
    let expected = [
        "grpo",
        "dr--grpo",
        "dapo",
        "gspo",
        "cispo",
        "rloo",
        "reinforce++",
        "reinforce++-with-a-baseline",
        "remax",
        "ppo",
        "opo",
        "gdpo",
    ];
    assert_eq!(methods, expected);
    let folder = tempfile::tempdir().unwrap();
    for (method, text) in &recipes {
        assert_learned(method, &take(&config(folder.path(), method, text)));
    }
}

#[test]
fn the_page_has_every_name() {
    let page = std::fs::read_to_string(repository().join("docs/algorithms.md")).unwrap();
    let names = Estimator::ALL.into_iter().map(written).chain(PolicyLoss::all().into_iter().map(|(name, _)| name));
    for name in names {
        assert!(page.contains(&format!("\n| `{name}` |")), "{name}");
    }
}
