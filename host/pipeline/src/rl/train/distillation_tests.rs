//! Runs that compare whole distributions with those of teachers and of earlier versions of the policy.

use super::tests::{config, take, teacher};
use super::*;
use gavel_policy::{Device, Kind, Model};
use gavel_runs::SampleReader;
use gavel_train::{Asked, DistillationConfig, Experience, LossConfig, OptimizerConfig, PolicyUpdate, Trainer};
use std::path::Path;

/// The metric of each step of a run.
fn metric(summary: &Summary, name: &str) -> Vec<f64> {
    let text = std::fs::read_to_string(summary.folder.join("metrics.jsonl")).unwrap();
    let lines = text.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
    lines.filter_map(|line| line[name].as_f64()).collect()
}

fn run(config: &Config<RlTable>) -> Result<Summary> {
    train(config, Start::New, &Peers::alone(), &Control::default())
}

fn error(config: &Config<RlTable>) -> String {
    run(config).unwrap_err().to_string()
}

#[test]
fn a_policy_comes_nearer_to_its_teacher_by_each_divergence() {
    let folder = tempfile::tempdir().unwrap();
    let teacher = teacher(&folder.path().join("teacher"));
    for (beta, top_k) in [(0.0, 16), (0.5, 1000), (1.0, 16)] {
        let text = format!(
            "[train]\nalgorithm = 'distillation'\n{teacher}\nsteps = 40\nlearning_rate = 1e-2\n\
             prompts_per_step = 8\nmini_batch_prompts = 8\n\
             loss.distillation = {{ beta = {beta:?}, top_k = {top_k} }}"
        );
        let summary = run(&config(folder.path(), &format!("beta-{beta}"), &text)).unwrap();
        let distances = metric(&summary, "distillation");
        let mean = |steps: &[f64]| steps.iter().sum::<f64>() / steps.len() as f64;
        let (first, last) = (mean(&distances[..3]), mean(&distances[37..]));
        assert!(first > 1e-4 && last < 0.5 * first, "{beta}: from {first} to {last}");
        assert!(metric(&summary, "kl_reward").is_empty());
    }
}

#[test]
fn the_rows_of_a_data_source_have_its_teacher() {
    let folder = tempfile::tempdir().unwrap();
    let other = folder.path().join("other");
    teacher(&other);
    let own = run(&config(folder.path(), "own-teacher", "")).unwrap().checkpoint.unwrap();
    let rows = |sources: [&str; 2]| -> String {
        (0..8).map(|row| format!("{{\"prompt\": \"Say {row}\", \"data_source\": {:?}}}\n", sources[row % 2])).collect()
    };
    let taught = |name: &str, rows: &str, maths: &Path, code: &Path, more: &str| {
        // The policy begins as one of the teachers.
        let text = format!(
            "[train]\nalgorithm = 'distillation'\nmini_batch_prompts = 4\nloss.distillation = {{ beta = 1.0 }}\n\
             reference.by_source = {{ maths = {maths:?}, code = {code:?} }}\n{more}"
        );
        let mut config = config(folder.path(), name, &text);
        config.model.init = None;
        config.model.path = Some(own.clone());
        std::fs::write(folder.path().join("rows.jsonl"), rows).unwrap();
        config
    };
    let both = rows(["maths", "code"]);
    let first = |config: &Config<RlTable>| take(config)[0]["distillation"].as_f64().unwrap();
    assert!(first(&taught("own", &both, &own, &own, "")).abs() < 1e-6);
    let (maths, code) =
        (first(&taught("maths", &both, &other, &own, "")), first(&taught("code", &both, &own, &other, "")));
    let all = first(&taught("all", &both, &other, &other, ""));
    // The same tokens are drawn: each of them counts once.
    assert!(maths > 1e-4 && code > 1e-4 && (maths + code - all).abs() < 1e-5 * all, "{maths} + {code} is not {all}");

    let unknown = error(&taught("unknown", &rows(["maths"; 2]), &own, &own, ""));
    assert!(unknown.contains("train.reference.by_source: no row of ") && unknown.contains("data source \"code\""));
    let lacking = both.clone() + "{\"prompt\": \"Say 9\", \"data_source\": \"prose\"}\n";
    let found = error(&taught("lacking", &lacking, &own, &own, ""));
    assert!(found.contains("with the data source \"prose\" have no reference\nhint: name one, or set"), "{found}");
    let more = format!("reference.path = {own:?}");
    assert!(first(&taught("others", &lacking, &own, &own, &more)).abs() < 1e-6);
    let tokenizer = std::fs::read_to_string(other.join("tokenizer.json")).unwrap();
    std::fs::write(other.join("tokenizer.json"), tokenizer.replace("<|im_end|>", "<|end|>")).unwrap();
    for file in ["tokenizer_config.json", "special_tokens_map.json"] {
        if let Ok(text) = std::fs::read_to_string(other.join(file)) {
            std::fs::write(other.join(file), text.replace("<|im_end|>", "<|end|>")).unwrap();
        }
    }
    let found = error(&taught("tokens", &both, &own, &other, ""));
    assert!(found.starts_with("train.reference.by_source: token 2 is \"<|end|>\" in "), "{found}");
}

#[test]
fn an_earlier_version_of_the_policy_is_the_teacher() {
    let folder = tempfile::tempdir().unwrap();
    let text = "[train]\nsteps = 4\nlearning_rate = 1e-2\nmini_batch_prompts = 4\nreference.every = 2\n\
                loss.distillation = { beta = 0.0, top_k = 20 }\nmax_steps_without_update = 50\n\
                [checkpoint]\nevery = 1\nkeep_last = 10\nkeep_best = false\n\
                [log]\ntrajectories = true\ntoken_ids = true";
    let summary = run(&config(folder.path(), "followed", text)).unwrap();
    let distances = metric(&summary, "distillation");
    assert!(distances[0].abs() < 1e-6 && distances[2].abs() < 1e-6, "{distances:?}");
    assert!(distances[1] > 1e-6 && distances[3] > 1e-6, "{distances:?}");
    // The fourth step compares the policy after the third with the policy after the second.
    let model = |version: u64| {
        let path = summary.folder.join(format!("checkpoints/step-{version:06}"));
        Model::load(&path, Kind::Float, Device::Cpu).unwrap()
    };
    let reader = SampleReader::open(&summary.folder).unwrap();
    let samples = reader.samples(4).unwrap();
    let row = |sample: std::sync::Arc<gavel_data::Sample>| {
        let tokens = sample.trajectories[0].tokens().unwrap();
        Experience {
            prompt: tokens.prompt.clone(),
            response: tokens.response.clone(),
            loss_mask: tokens.loss_mask.clone(),
            logprobs: tokens.logprobs.clone(),
            advantages: vec![0.0; tokens.response.len()],
            ..Experience::default()
        }
    };
    let mut rows: Vec<Experience> = samples.map(|sample| row(sample.unwrap().sample)).collect();
    let policy = model(3);
    let distance = |rows: &mut [Experience], version| {
        let mut trainer = Trainer::new(&policy, OptimizerConfig::default(), 1000).unwrap();
        let asked = Asked { top_k: 20, vocabulary: 259, temperature: 1.0 };
        let taught = trainer.taught(&model(version), rows, asked).unwrap();
        rows.iter_mut().zip(taught).for_each(|(row, taught)| row.taught = Some(taught));
        let distillation = Some(DistillationConfig { beta: 0.0, top_k: 20, coefficient: 0.0 });
        let loss = LossConfig { distillation, ..LossConfig::default() };
        let (model, mini_batch) = (&policy, &*rows);
        let update =
            PolicyUpdate { model, reference: None, mini_batch, loss: &loss, temperature: 1.0, learning_rate: 0.0 };
        trainer.update(update).unwrap().statistics.get("distillation").unwrap()
    };
    let (second, first) = (distance(&mut rows, 2), distance(&mut rows, 1));
    assert!((second - distances[3]).abs() < 1e-3 * second, "{second} is not {}", distances[3]);
    assert!((first - distances[3]).abs() > 1e-2 * second, "{first} is {}", distances[3]);
}
