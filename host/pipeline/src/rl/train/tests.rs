//! Every algorithm takes two steps, and so does every recipe of `docs/algorithms.md`.

use super::*;
use gavel_config::load;
use gavel_data::seed::{Purpose, derive};
use gavel_policy::{Device, Kind, Model, ModelConfig};
use gavel_rollout::CacheDuring;
use gavel_runs::SampleReader;
use gavel_scoring::recording::KeptComponents;
use gavel_text::TextModel;
use gavel_torch::peers::Peers;
use gavel_train::{Estimator, PolicyLoss};
use std::path::{Path, PathBuf};
use toml::{Table, Value};

pub(super) fn repository() -> PathBuf {
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
pub(super) fn config(folder: &Path, name: &str, added: &str) -> Config<RlTable> {
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
pub(super) fn take(config: &Config<RlTable>) -> Vec<serde_json::Map<String, serde_json::Value>> {
    let control = Control::default();
    let summary = train(config, Start::New, &Peers::alone(), &control)
        .unwrap_or_else(|error| panic!("{}: {error}", config.log.name));
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

/// Saves a random model of the run's sizes into the folder `path`, and gives the key that makes it the reference.
pub(super) fn teacher(path: &Path) -> String {
    let init = base(path.parent().unwrap())["model"]["init"].clone();
    let config: ModelConfig = init.try_into().unwrap();
    TextModel::byte_level().save(path).unwrap();
    Model::random(config, 7, Device::Cpu).unwrap().save(path).unwrap();
    format!("reference.path = {path:?}")
}

/// The name of an estimator as it is written.
fn written(estimator: Estimator) -> String {
    serde_json::to_value(estimator).unwrap().as_str().unwrap().to_owned()
}

#[test]
fn keys_and_values_that_are_let_go_before_updates_change_nothing() {
    let folder = tempfile::tempdir().unwrap();
    // Responses end by themselves, long before either number of tokens. Keys and values of the larger one fit nowhere.
    let take = |name: &str, max_tokens: u64, cache: CacheDuring| {
        let text = format!(
            "[model.init]\nmax_position_embeddings = 2000000000\n[rollout]\nmax_tokens = {max_tokens}\n[train]\nloss.kl = {{}}"
        );
        let config = config(folder.path(), name, &text);
        let setup = Setup::new(&config, &KeptComponents::default(), &Ranks::alone()).unwrap();
        let prompts = setup.train_prompts(&config).unwrap();
        assert_eq!(predict_train(&config, &setup, &prompts, 1).unwrap().announce(), cache, "{name}");
        let mut steps = take(&config);
        assert_learned(name, &steps);
        // The limit is `max_tokens`; times are never the same.
        let others = ["time/", "perf/", "device_wait/", "/latency_", "response_length/limit"];
        let is_the_same = |metric: &str| !others.iter().any(|other| metric.contains(other));
        steps.iter_mut().for_each(|step| step.retain(|metric, _| is_the_same(metric)));
        steps
    };
    let kept = take("kept", 2000, CacheDuring::Kept);
    assert_eq!(take("released", 1_000_000_000, CacheDuring::Released), kept);
}

#[test]
fn every_algorithm_and_every_loss_takes_two_steps() {
    let folder = tempfile::tempdir().unwrap();
    let (estimators, losses) = (Estimator::ALL, PolicyLoss::all());
    for run in 0..losses.len().max(estimators.len()) {
        let (estimator, loss) = (written(estimators[run % estimators.len()]), &losses[run % losses.len()].0);
        let of_estimator = match estimators[run % estimators.len()] {
            Estimator::Distillation => teacher(&folder.path().join("teacher")),
            _ => String::new(),
        };
        // Each second run has penalties.
        let penalties = if run % 2 == 0 {
            "kl_reward = { target = 0.1 }\nloss.kl = { estimator = 'k3+', target = 0.1 }"
        } else {
            ""
        };
        let text = format!(
            "[train]\nalgorithm = '{estimator}'\nloss.policy = '{loss}'\nloss.entropy_coefficient = 0.01\n{penalties}\n{of_estimator}"
        );
        let name = format!("{estimator}-{loss}");
        let steps = take(&config(folder.path(), &name, &text));
        assert_learned(&name, &steps);
        for metric in ["kl_reward", "kl_reward/coefficient", "kl/coefficient"] {
            let is_distance = metric != "kl/coefficient" && !of_estimator.is_empty();
            assert_eq!(steps[1].contains_key(metric), run % 2 == 0 || is_distance, "{name}, {metric}");
        }
    }
}

#[test]
fn before_a_step_changes_weights_it_has_the_log_probabilities_of_what_was_drawn() {
    let folder = tempfile::tempdir().unwrap();
    let run = |name: &str, rollout: &str, added: &str| {
        let text = format!(
            "[model.init]\ninitializer_range = 0.3\n[rollout]\n{rollout}\n[train]\nmini_batch_prompts = 4\n{added}"
        );
        let steps = take(&config(folder.path(), name, &text));
        assert_learned(name, &steps);
        steps
    };
    let number = |step: &serde_json::Map<String, serde_json::Value>, name: &str| step[name].as_f64().unwrap();
    // The base has a bias.
    let all = "temperature = 0.8\ntop_p = 0.9\nrepetition_penalty = 1.5";
    let bound = "top_p = 0.95\ngrammar = { regex = '[A-Ma-e ]{1,4}' }";
    let bound_alone = "grammar = { json_schema = { type = 'string', maxLength = 4 } }";
    for (name, rollout) in [
        ("all", all),
        ("top-p", "top_p = 0.9"),
        ("top-k", "top_k = 20"),
        ("min-p", "min_p = 0.2"),
        ("bound", bound),
        ("bound-alone", bound_alone),
    ] {
        for step in run(name, rollout, "loss.kl = {}\noff_policy.rollout_is = 'token'") {
            // Each step has one update. Rollout and training each round to 32 bits.
            assert!(number(&step, "logprob_mismatch_max") < 1e-5, "{name}: {step:?}");
            assert!(number(&step, "off_policy/k3_kl") < 1e-9, "{name}: {step:?}");
            assert!((1.0..250.0).contains(&number(&step, "rollout/allowed_tokens")), "{name}: {step:?}");
        }
    }
    for step in run("whole", all, "off_policy.sampling_mask = false") {
        assert!(number(&step, "logprob_mismatch_max") > 0.1, "{step:?}");
        assert!(!step.contains_key("rollout/allowed_tokens"));
    }
    // The distance from the first policy, before any update, is over the tokens that could be drawn.
    let first = run("distance", all, "kl_reward = { coefficient = 0.1 }").remove(0);
    assert!(number(&first, "kl_reward").abs() < 1e-9, "{first:?}");
}

#[test]
fn what_was_drawn_in_8_bits_is_corrected_and_its_difference_shows() {
    let folder = tempfile::tempdir().unwrap();
    let number = |step: &serde_json::Map<String, serde_json::Value>, name: &str| step[name].as_f64().unwrap();
    let run = |name: &str, quantization: &str| {
        let text = format!(
            "[model.init]\ninitializer_range = 0.3\n[rollout]\n{quantization}\n[train]\nmini_batch_prompts = 4\noff_policy.rollout_is = 'token'"
        );
        let steps = take(&config(folder.path(), name, &text));
        assert_learned(name, &steps);
        steps
    };
    for step in run("whole", "") {
        assert!(number(&step, "logprob_mismatch_max") < 1e-5, "{step:?}");
    }
    // Each step draws with the weights of then: their difference does not grow.
    for step in run("int8", "quantization = 'int8'") {
        assert!((1e-4..0.2).contains(&number(&step, "logprob_mismatch")), "{step:?}");
        assert!((1e-8..0.1).contains(&number(&step, "off_policy/k3_kl")), "{step:?}");
        assert!(number(&step, "off_policy/effective_sample_size") < 1.0, "{step:?}");
    }
}

#[test]
fn two_epochs_learn_from_each_mini_batch_twice() {
    let folder = tempfile::tempdir().unwrap();
    let first_step = |epochs: usize| {
        let text = format!("[train]\nppo_epochs = {epochs}");
        take(&config(folder.path(), &format!("epochs-{epochs}"), &text)).remove(0)
    };
    let (once, twice) = (first_step(1), first_step(2));
    let number = |step: &serde_json::Map<String, serde_json::Value>, name: &str| step[name].as_f64().unwrap();
    assert_eq!([&once, &twice].map(|step| number(step, "updates")), [2.0, 4.0]);
    assert_eq!(number(&twice, "tokens/trained"), 2.0 * number(&once, "tokens/trained"));
    // The second epoch is compared with the policy that drew the responses, which the first one moved away from.
    assert!(number(&twice, "kl") > number(&once, "kl"), "{twice:?}");
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
    config.train.steps = Some(4);
    config.log.name = "whole".into();
    let control = Control::default();
    let whole = train(&config, Start::New, &Peers::alone(), &control).unwrap();
    config.log.name = "resumed".into();
    let resumed =
        train(&config, Start::Resume { from: None, allow_changed_plugins: false }, &Peers::alone(), &control).unwrap();
    let file = |summary: &Summary, name: &str| std::fs::read(summary.checkpoint.as_ref().unwrap().join(name)).unwrap();
    for name in ["critic.safetensors", "critic-optimizer.safetensors", "model.safetensors"] {
        assert!(file(&whole, name) == file(&resumed, name), "{name}");
    }
}

#[test]
fn a_critic_is_clipped_as_the_policy_unless_it_has_a_norm_of_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let critic = |name: &str, own: &str| {
        let text = format!(
            "[rollout]\ngroup_size = 1\n[train]\nalgorithm = 'gae'\n\
             optimizer = {{ max_grad_norm = 1e-3, eps = 1e-2 }}\ncritic = {{ learning_rate = 1e-2{own} }}"
        );
        let config = config(folder.path(), name, &text);
        let summary = train(&config, Start::New, &Peers::alone(), &Control::default()).unwrap();
        std::fs::read(summary.checkpoint.unwrap().join("critic.safetensors")).unwrap()
    };
    let inherited = critic("inherited", "");
    assert!(inherited == critic("alike", ", optimizer = { max_grad_norm = 1e-3 }"));
    assert!(inherited != critic("own", ", optimizer = { max_grad_norm = 1.0 }"));
}

#[test]
fn each_token_has_the_version_of_the_weights_that_drew_it() {
    let folder = tempfile::tempdir().unwrap();
    let stop = TextModel::byte_level().tokenizer.stop_ids()[0];
    let text = format!(
        "[schedule]\nmax_staleness = 2\npartial_rollout = true\nrecompute_cache = true\n\
         [rollout]\nmax_tokens = 16\nmax_batch = 6\nlogit_bias = {{ \"{stop}\" = 0.0 }}\n\
         [train]\nsteps = 6\nlearning_rate = 2e-2\nmini_batch_prompts = 4\nmax_steps_without_update = 50\n\
         [checkpoint]\nevery = 1\nkeep_last = 10\nkeep_best = false\n\
         [log]\ntrajectories = true\ntoken_ids = true"
    );
    let config = config(folder.path(), "partial", &text);
    let summary = train(&config, Start::New, &Peers::alone(), &Control::default()).unwrap();
    let model = |version: u64| match version {
        0 => {
            Model::random(config.model.init.clone().unwrap(), derive(config.seed, 0, 0, Purpose::Weights), Device::Cpu)
        }
        _ => {
            let path = summary.folder.join(format!("checkpoints/step-{version:06}"));
            Model::load(&path, Kind::Float, Device::Cpu)
        }
    };
    let models: Vec<Model> = (0..=6).map(|version| model(version).unwrap()).collect();
    let samples = SampleReader::open(&summary.folder).unwrap();
    let (mut tokens, mut worst_of_others) = (0, 0.0_f32);
    for sample in (1..=6).flat_map(|step| samples.samples(step).unwrap()) {
        let sample = sample.unwrap().sample;
        let drawn = sample.trajectories[0].tokens().unwrap();
        let all = [&drawn.prompt[..], &drawn.response].concat();
        let under: Vec<Vec<f32>> = models.iter().map(|model| model.token_logprobs(&all).unwrap()).collect();
        for (at, (version, logprob)) in drawn.versions.iter().zip(&drawn.logprobs).enumerate() {
            let difference = |model: usize| (under[model][drawn.prompt.len() - 1 + at] - logprob).abs();
            let version = *version as usize;
            assert!(difference(version) < 1e-3, "{}: token {at} is not of version {version}", sample.task.id);
            worst_of_others = worst_of_others.max(difference((version + 1).min(6)));
            tokens += 1;
        }
    }
    assert!(tokens > 500 && worst_of_others > 1e-2, "{tokens} tokens, {worst_of_others}");
}

#[test]
fn a_teacher_is_learned_from_whatever_the_rewards() {
    let folder = tempfile::tempdir().unwrap();
    let teacher = teacher(&folder.path().join("teacher"));
    // No response has a digit, so that all rewards are 0.
    let text = format!(
        "[[reward]]\nname = 'digit'\npath = 'target/plugins/format.wasm'\n\
         params = {{ pattern = '[0-9]{{20}}' }}\n[train]\nalgorithm = 'distillation'\n{teacher}\nsteps = 60\n\
         learning_rate = 1e-2\nprompts_per_step = 8\nmini_batch_prompts = 8"
    );
    let config = config(folder.path(), "taught", &text);
    let summary = train(&config, Start::New, &Peers::alone(), &Control::default()).unwrap();
    let text = std::fs::read_to_string(summary.folder.join("metrics.jsonl")).unwrap();
    let distances: Vec<f64> = text
        .lines()
        .filter_map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap()["kl_reward"].as_f64())
        .collect();
    let mean = |steps: &[f64]| steps.iter().sum::<f64>() / steps.len() as f64;
    let (first, last) = (mean(&distances[..5]), mean(&distances[55..]));
    assert!(first > 0.01 && last < 0.5 * first, "from {first} to {last}: {distances:?}");
}

#[test]
fn a_reference_must_have_the_tokens_of_the_policy() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("teacher");
    let teacher = teacher(&path);
    let tokenizer = std::fs::read_to_string(path.join("tokenizer.json")).unwrap();
    std::fs::write(path.join("tokenizer.json"), tokenizer.replace("<|im_end|>", "<|end|>")).unwrap();
    for file in ["tokenizer_config.json", "special_tokens_map.json"] {
        if let Ok(text) = std::fs::read_to_string(path.join(file)) {
            std::fs::write(path.join(file), text.replace("<|im_end|>", "<|end|>")).unwrap();
        }
    }
    let text = format!("[train]\nalgorithm = 'distillation'\n{teacher}");
    let error = train(&config(folder.path(), "other", &text), Start::New, &Peers::alone(), &Control::default())
        .unwrap_err()
        .to_string();
    assert!(error.starts_with("train.reference.path: token 2 is \"<|end|>\" in "), "{error}");
}

#[test]
fn only_good_samples_are_imitated() {
    let folder = tempfile::tempdir().unwrap();
    let run = |name: &str, more: &str| {
        let text = format!("[train]\nalgorithm = 'raft'\nloss.policy = 'gpg'\n{more}");
        take(&config(folder.path(), name, &text))
    };
    let (all, best) = (run("all", "advantage.threshold = 0.0"), run("best", ""));
    let number = |step: &serde_json::Map<String, serde_json::Value>, name: &str| step[name].as_f64().unwrap();
    let whole = number(&all[0], "tokens/response");
    assert_eq!(number(&all[0], "tokens/trained"), whole);
    let trained = number(&best[0], "tokens/trained");
    assert!(trained > 0.0 && trained < whole, "{trained} of {whole}");
    // Where none is good enough, nothing is learned, and the run says so.
    let text = "[train]\nalgorithm = 'raft'\nadvantage.threshold = 2.0\nmax_steps_without_update = 1";
    let error = train(&config(folder.path(), "none", text), Start::New, &Peers::alone(), &Control::default())
        .unwrap_err()
        .to_string();
    assert!(error.contains("no sample was good enough to imitate"), "{error}");
}

#[test]
fn a_critic_may_be_of_adapters() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("start");
    teacher(&path);
    let text = format!(
        "[rollout]\ngroup_size = 1\n[train]\nalgorithm = 'gae'\n\
         critic = {{ path = {path:?}, learning_rate = 1e-2, lora = {{ rank = 2 }} }}"
    );
    let mut config = config(folder.path(), "adapted", &text);
    let steps = take(&config);
    assert!(steps.iter().all(|step| step["critic/grad_norm"].as_f64() > Some(0.0)), "{steps:?}");
    config.train.steps = Some(4);
    let start = Start::Resume { from: None, allow_changed_plugins: false };
    let resumed = train(&config, start, &Peers::alone(), &Control::default()).unwrap();
    config.log.name = "whole".into();
    let whole = train(&config, Start::New, &Peers::alone(), &Control::default()).unwrap();
    let file =
        |summary: &Summary| std::fs::read(summary.checkpoint.as_ref().unwrap().join("critic.safetensors")).unwrap();
    assert!(file(&whole) == file(&resumed));
    // The adapters and the head, without the layers.
    assert!(file(&whole).len() < std::fs::read(path.join("model.safetensors")).unwrap().len());
    config.train.critic.as_mut().unwrap().path = None;
    let error = config.validate().unwrap_err().to_string();
    assert!(error.starts_with("[train.critic.lora] needs `train.critic.path` or `model.path`"), "{error}");
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
    config.train.steps = Some(4);
    config.log.name = "whole".into();
    let control = Control::default();
    let whole = train(&config, Start::New, &Peers::alone(), &control).unwrap();
    config.log.name = "mixed".into();
    let resumed =
        train(&config, Start::Resume { from: None, allow_changed_plugins: false }, &Peers::alone(), &control).unwrap();
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
        "gkd",
        "on-policy-distillation",
        "on-policy-distillation-from-whole-distributions",
        "self-distillation",
    ];
    assert_eq!(methods, expected);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("teacher");
    teacher(&path);
    for (method, text) in &recipes {
        let text = text.replace("runs/learning-grpo-1/checkpoints/step-000060", path.to_str().unwrap());
        assert_learned(method, &take(&config(folder.path(), method, &text)));
    }
}

#[test]
fn the_page_has_every_name() {
    let page = std::fs::read_to_string(repository().join("docs/algorithms.md")).unwrap();
    let names = Estimator::ALL.iter().copied().map(written).chain(PolicyLoss::all().into_iter().map(|(name, _)| name));
    for name in names {
        assert!(page.contains(&format!("\n| `{name}` |")), "{name}");
    }
}
