//! Losses on pairs, and their gradients, against TRL's: the fixture is `tests/parity/preference.json`, which
//! `tests/parity/preference.py` wrote.

use gavel_policy::{Device, Kind, Model, Tensor};
use gavel_train::{
    BradleyTerryConfig, ConversationPair, DpoConfig, OptimizerConfig, OptimizerKind, PairStats, ResponsePair, SftRow,
    Trainer,
};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::Path;

#[derive(Deserialize)]
struct Fixture {
    reward_model: Vec<RewardModelCase>,
    dpo: Vec<DpoCase>,
}

/// Prompt, chosen and rejected.
type Pair = [Vec<u32>; 3];

#[derive(Deserialize)]
struct RewardModelCase {
    model: String,
    pairs: Vec<Pair>,
    margins: Vec<f64>,
    center_rewards_coefficient: f64,
    loss: f64,
    accuracy: f64,
    margin: f64,
    gradients: BTreeMap<String, f64>,
}

#[derive(Deserialize)]
struct DpoCase {
    model: String,
    reference: String,
    pairs: Vec<Pair>,
    beta: f64,
    loss: f64,
    metrics: BTreeMap<String, f64>,
    gradients: BTreeMap<String, f64>,
}

/// The first mean of this optimiser is the gradient itself, and a step with the rate 0 changes nothing.
const BARE: OptimizerConfig = OptimizerConfig {
    kind: OptimizerKind::Adamw,
    betas: [0.0, 0.999],
    eps: 1e-8,
    weight_decay: 0.0,
    max_grad_norm: f64::INFINITY,
    muon: None,
};

fn parity(name: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/parity").join(name)
}

fn fixture() -> Fixture {
    serde_json::from_str(&std::fs::read_to_string(parity("preference.json")).unwrap()).unwrap()
}

fn load(name: &str) -> Model {
    let path = parity("models").join(name);
    Model::load(&path, Kind::Float, Device::Cpu).unwrap().to_kind(Kind::Double).unwrap()
}

fn close(what: &str, found: f64, expected: f64) {
    assert!((found - expected).abs() < 1e-6 * expected.abs().max(1e-2), "{what}: {found} is not {expected}");
}

/// Compares the gradient of each weight, by its norm, with TRL's gradient.
fn compare(model: &Model, trainer: &Trainer, expected: &BTreeMap<String, f64>) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state.safetensors");
    trainer.save(&path).unwrap();
    let state: BTreeMap<String, Tensor> = Tensor::read_safetensors(&path).unwrap().into_iter().collect();
    let mut compared = 0;
    for (name, _) in model.parameters() {
        for (name, gradient) in model.parts(&name, &state[&format!("exp_avg.{name}")]).unwrap() {
            close(&name, gradient.norm().double_value(&[]), expected[&name]);
            compared += 1;
        }
    }
    assert_eq!(compared, expected.len());
}

fn number(stats: &PairStats, name: &str) -> f64 {
    stats.statistics.get(name).unwrap()
}

#[test]
fn the_loss_of_a_reward_model_is_that_of_trl() {
    for case in fixture().reward_model {
        let model = load(&case.model);
        let pairs: Vec<_> = case
            .pairs
            .iter()
            .zip(&case.margins)
            .map(|([prompt, chosen, rejected], &margin)| {
                let [chosen, rejected] = [chosen, rejected].map(|response| [&prompt[..], response].concat());
                ConversationPair { chosen, rejected, margin }
            })
            .collect();
        let config = BradleyTerryConfig { center_rewards_coefficient: case.center_rewards_coefficient };
        for max_tokens in [1000, 20] {
            let mut trainer = Trainer::new(&model, BARE, max_tokens).unwrap();
            let stats = trainer.reward_model_step(&model, &pairs, &config, 0.0).unwrap();
            close("loss", number(&stats, "loss"), case.loss);
            close("accuracy", number(&stats, "accuracy"), case.accuracy);
            close("margin", number(&stats, "margin"), case.margin);
            compare(&model, &trainer, &case.gradients);
        }
    }
}

#[test]
fn the_loss_of_dpo_is_that_of_trl() {
    for case in fixture().dpo {
        let (model, reference) = (load(&case.model), load(&case.reference));
        let row = |prompt: &[u32], response: &[u32]| SftRow { prompt: prompt.to_vec(), response: response.to_vec() };
        let pairs: Vec<_> = case
            .pairs
            .iter()
            .map(|[prompt, chosen, rejected]| ResponsePair {
                chosen: row(prompt, chosen),
                rejected: row(prompt, rejected),
            })
            .collect();
        let config = DpoConfig { beta: case.beta, label_smoothing: 0.0 };
        for max_tokens in [1000, 20] {
            let mut trainer = Trainer::new(&model, BARE, max_tokens).unwrap();
            let stats = trainer.dpo_step(&model, &reference, &pairs, &config, 0.0).unwrap();
            close("loss", number(&stats, "loss"), case.loss);
            for (name, trl) in [
                ("accuracy", "rewards/accuracies"),
                ("margin", "rewards/margins"),
                ("rewards/chosen", "rewards/chosen"),
                ("rewards/rejected", "rewards/rejected"),
                ("logps/chosen", "logps/chosen"),
                ("logps/rejected", "logps/rejected"),
            ] {
                close(name, number(&stats, name), case.metrics[trl]);
            }
            compare(&model, &trainer, &case.gradients);
        }
    }
}
