//! Training of adapters: nothing else changes, and the reference shares the
//! memory.

use gavel_policy::{Device, Kind, LoraConfig, Model, ModelConfig, Tensor};
use gavel_train::{
    Experience, KlConfig, LossConfig, OptimizerConfig, PolicyUpdate, SampleId, SftRow, Trainer, log_probs,
};
use std::path::Path;

fn adapted(kind: Kind) -> Model {
    let sizes = serde_json::json!({
        "vocab_size": 31, "hidden_size": 16, "intermediate_size": 24, "num_hidden_layers": 2, "num_attention_heads": 4,
        "num_key_value_heads": 2, "initializer_range": 0.3,
    });
    let config: ModelConfig = serde_json::from_value(sizes).unwrap();
    let model = Model::random(config, 5, Device::Cpu).unwrap().to_kind(kind).unwrap();
    model.adapt(&LoraConfig { rank: 4, ..LoraConfig::default() }, Path::new("base"), 1).unwrap()
}

/// Rows with the log-probs of `model`.
fn experiences(model: &Model) -> Vec<Experience> {
    let mut rows: Vec<Experience> = [1.0f32, -0.5, -0.5, 0.25]
        .into_iter()
        .zip(0u32..)
        .map(|(advantage, row)| Experience {
            sample: SampleId { group: 0, index: row as usize, trajectory: 0 },
            prompt: vec![3 + row, 7, 11],
            response: (0..5 + row).map(|at| (5 * at + 3 * row) % 31).collect(),
            loss_mask: vec![true; 5 + row as usize],
            logprobs: vec![0.0; 5 + row as usize],
            advantages: vec![advantage; 5 + row as usize],
            ..Default::default()
        })
        .collect();
    let said = log_probs(model, &rows, 1.0, 1000).unwrap();
    rows.iter_mut().zip(said).for_each(|(row, logprobs)| row.logprobs = logprobs);
    rows
}

fn copies(tensors: Vec<(String, Tensor)>) -> Vec<Tensor> {
    tensors.into_iter().map(|(_, tensor)| tensor.detach().copy()).collect()
}

fn update<'a>(
    model: &'a Model,
    reference: Option<&'a Model>,
    mini_batch: &'a [Experience],
    loss: &'a LossConfig,
) -> PolicyUpdate<'a> {
    PolicyUpdate { model, reference, mini_batch, loss, temperature: 1.0, learning_rate: 1e-2 }
}

#[test]
fn only_adapters_change() {
    for kind in [Kind::Float, Kind::BFloat16] {
        let model = adapted(kind);
        let (weights, adapters) = (copies(model.named_weights().unwrap()), copies(model.parameters()));
        let mut trainer = Trainer::new(&model, OptimizerConfig::default(), 1000).unwrap();
        let rows = experiences(&model);
        for _ in 0..3 {
            trainer.update(update(&model, None, &rows, &LossConfig::default())).unwrap();
        }
        assert_eq!(copies(model.named_weights().unwrap()), weights, "{kind:?}");
        for ((name, now), before) in model.parameters().iter().zip(&adapters) {
            assert_ne!(now, before, "{kind:?}: {name}");
            assert_eq!(now.kind(), Kind::Float, "{kind:?}: {name}");
        }
    }
}

#[test]
fn the_policy_begins_at_its_reference_and_leaves_it() {
    let model = adapted(Kind::Float);
    let reference = model.base().unwrap();
    let config = LossConfig { kl: Some(KlConfig::default()), ..LossConfig::default() };
    let mut trainer = Trainer::new(&model, OptimizerConfig::default(), 1000).unwrap();
    let rows = experiences(&model);
    let kl: Vec<f64> = (0..4)
        .map(|_| trainer.update(update(&model, Some(&reference), &rows, &config)).unwrap())
        .map(|stats| stats.statistics.get("kl").unwrap())
        .collect();
    assert_eq!(kl[0], 0.0, "{kl:?}");
    assert!(kl[3] > 1e-4, "{kl:?}");
    let (own, shared) = (model.named_weights().unwrap(), reference.named_weights().unwrap());
    assert!(own.iter().zip(&shared).all(|((_, a), (_, b))| a.data_ptr() == b.data_ptr()));
}

#[test]
fn adapters_learn_what_they_are_shown() {
    let model = adapted(Kind::Float);
    let rows =
        [SftRow { prompt: vec![3, 4], response: vec![9, 8, 7, 0] }, SftRow { prompt: vec![5], response: vec![6, 0] }];
    let mut trainer = Trainer::new(&model, OptimizerConfig::default(), 1000).unwrap();
    let losses: Vec<f64> = (0..60).map(|_| trainer.sft_step(&model, &rows, 2e-2).unwrap().loss).collect();
    assert!(losses[59] < 0.2 * losses[0], "{} {}", losses[0], losses[59]);
}

#[test]
fn an_interrupted_training_goes_on_bit_for_bit() {
    let step = |model: &Model, trainer: &mut Trainer, rows: &[Experience]| {
        trainer.update(update(model, None, rows, &LossConfig::default())).unwrap();
    };
    let dir = tempfile::tempdir().unwrap();
    let (base, adapter, state) = (dir.path().join("base"), dir.path().join("adapter"), dir.path().join("optimizer"));
    let start = || {
        let plain = Model::load(&base, Kind::Float, Device::Cpu).unwrap();
        plain.adapt(&LoraConfig { rank: 4, ..LoraConfig::default() }, &base, 1).unwrap()
    };
    adapted(Kind::Float).merge().unwrap().save(&base).unwrap();
    let model = start();
    let rows = experiences(&model);
    let mut trainer = Trainer::new(&model, OptimizerConfig::default(), 1000).unwrap();
    step(&model, &mut trainer, &rows);
    model.save(&adapter).unwrap();
    trainer.save(&state).unwrap();
    step(&model, &mut trainer, &rows);

    let again = Model::load(&adapter, Kind::Float, Device::Cpu).unwrap();
    let mut trainer = Trainer::new(&again, OptimizerConfig::default(), 1000).unwrap();
    trainer.load(&state).unwrap();
    step(&again, &mut trainer, &rows);
    assert_eq!(copies(again.parameters()), copies(model.parameters()));
}
