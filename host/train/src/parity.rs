//! Losses, KL estimators and advantages against verl's, on the fixtures of `tests/parity/algorithms.py`, and the updates
//! of a step, on the fixture of `tests/parity/epochs.py`.

mod optimizers;

use crate::loss::{LearnedToken, Tokens};
use crate::testing::policy_update;
use crate::{
    AdvantageConfig, Aggregation, Estimator, Experience, KlEstimator, LossConfig, OptimizerConfig, PolicyLoss, PpoClip,
    RewardPart, RewardStatistics, SampleId, ScoredGroup, ScoredSample, ScoredTrajectory, Trainer, ValueLossConfig,
    passes,
};
use gavel_policy::{Device, Model};
use safetensors::SafeTensors;
use serde::Deserialize;
use std::collections::HashMap;
use std::path::Path;
use tch::{Kind, Tensor};

/// How far a number may be from verl's, relative to the largest of its case.
const TOLERANCE: f64 = 1e-6;

/// A file of fixtures: tensors by name, as numbers, and its metadata.
struct Fixtures {
    tensors: HashMap<String, (Vec<usize>, Vec<f64>)>,
    metadata: HashMap<String, String>,
}

impl Fixtures {
    fn load(name: &str) -> Self {
        let path = format!("{}/../../tests/parity/algorithms/{name}.safetensors", env!("CARGO_MANIFEST_DIR"));
        let bytes = std::fs::read(path).unwrap();
        let (_, metadata) = SafeTensors::read_metadata(&bytes).unwrap();
        let tensors = SafeTensors::deserialize(&bytes).unwrap();
        let numbers = |view: &safetensors::tensor::TensorView| -> Vec<f64> {
            let data = view.data();
            match view.dtype() {
                safetensors::Dtype::U8 => data.iter().map(|&byte| f64::from(byte)).collect(),
                safetensors::Dtype::F32 => {
                    data.chunks(4).map(|word| f64::from(f32::from_le_bytes(word.try_into().unwrap()))).collect()
                }
                safetensors::Dtype::F64 => {
                    data.chunks(8).map(|word| f64::from_le_bytes(word.try_into().unwrap())).collect()
                }
                other => panic!("{other:?}"),
            }
        };
        let tensors =
            tensors.tensors().into_iter().map(|(name, view)| (name, (view.shape().to_vec(), numbers(&view)))).collect();
        Self { tensors, metadata: metadata.metadata().clone().unwrap_or_default() }
    }

    /// The numbers of a case, of a tensor whose first dimension is the cases.
    fn case(&self, name: &str, case: usize) -> &[f64] {
        let (shape, values) = &self.tensors[name];
        let size = shape[1..].iter().product::<usize>();
        &values[case * size..][..size]
    }

    fn cases(&self) -> usize {
        self.tensors["mask"].0[0]
    }
}

fn assert_close(what: &str, found: &[f64], expected: &[f64]) {
    assert_eq!(found.len(), expected.len(), "{what}");
    let scale = expected.iter().fold(1.0, |most: f64, value| most.max(value.abs()));
    for (at, (a, b)) in found.iter().zip(expected).enumerate() {
        assert!((a - b).abs() <= TOLERANCE * scale, "{what}, {at}: {a} is not {b}");
    }
}

/// The tokens of a case that are learned from, row by row.
fn rows(fixtures: &Fixtures, case: usize, advantages: &str) -> Vec<Vec<LearnedToken>> {
    let width = fixtures.tensors["mask"].0[2];
    let of = |name: &str| fixtures.case(name, case);
    let (mask, old, now, advantages) = (of("mask"), of("old"), of("now"), of(advantages));
    let drawn = |at: usize| {
        (mask[at] > 0.0).then(|| LearnedToken {
            logprob: now[at],
            old: old[at],
            advantage: advantages[at],
            random: at as u64,
        })
    };
    (0..mask.len()).step_by(width).map(|start| (start..start + width).filter_map(drawn).collect()).collect()
}

/// The value of a loss of a case and its gradient by each log-probability that is learned from, or 0.
fn value_and_gradient(
    fixtures: &Fixtures,
    case: usize,
    rows: &[Vec<LearnedToken>],
    aggregation: Aggregation,
    norm_tokens: usize,
    loss: impl Fn(&Tensor, &Tensor, &Tensor) -> Tensor,
) -> (f64, Vec<f64>) {
    let tensor =
        |value: fn(&LearnedToken) -> f64| Tensor::from_slice(&rows.iter().flatten().map(value).collect::<Vec<_>>());
    let counts: Vec<(SampleId, usize)> =
        rows.iter().enumerate().map(|(index, row)| (SampleId { group: 0, index, trajectory: 0 }, row.len())).collect();
    let weights = aggregation.token_weights(&counts, norm_tokens);
    let weights: Vec<f64> = rows.iter().zip(weights).flat_map(|(row, weight)| vec![weight; row.len()]).collect();
    let logprobs = tensor(|token| token.logprob).set_requires_grad(true);
    let each = loss(&logprobs, &tensor(|token| token.old), &tensor(|token| token.advantage));
    let value = each.dot(&Tensor::from_slice(&weights));
    value.backward();
    let mut learned = Vec::<f64>::try_from(logprobs.grad()).unwrap().into_iter();
    let gradient =
        fixtures.case("mask", case).iter().map(|&mask| if mask > 0.0 { learned.next().unwrap() } else { 0.0 });
    (value.double_value(&[]), gradient.collect())
}

#[test]
fn losses_and_their_gradients_are_verls() {
    let fixtures = Fixtures::load("losses");
    assert!(fixtures.cases() >= 200);
    for (name, _) in PolicyLoss::all() {
        let settings: Vec<serde_json::Value> = serde_json::from_str(&fixtures.metadata[&name]).unwrap();
        let is_by_row = fixtures.tensors[&format!("{name}.advantages")].1[0] > 0.0;
        let advantages = if is_by_row { "by_row" } else { "by_token" };
        for case in 0..fixtures.cases() {
            let number = fixtures.case(&format!("{name}.setting"), case)[0] as usize;
            let mut table = settings[number].clone();
            table["policy"] = name.clone().into();
            table["norm_tokens"] = 9.into();
            let config = LossConfig::deserialize(table).unwrap();
            config.validate().unwrap();
            let rows = rows(&fixtures, case, advantages);
            let context = config.policy.context(&rows).map(|numbers| {
                [0, 1].map(|which| {
                    Tensor::from_slice(&numbers.iter().flatten().map(|pair| pair[which]).collect::<Vec<f64>>())
                })
            });
            let loss = |logprobs: &Tensor, old: &Tensor, advantages: &Tensor| {
                let tokens = Tokens { logprobs, old, advantages, context: context.as_ref() };
                config.policy.token_loss(&tokens).unwrap().loss
            };
            let (value, gradient) = value_and_gradient(&fixtures, case, &rows, config.aggregation, 9, loss);
            let what = format!("{name}, case {case}, {}", settings[number]);
            assert_close(&what, &[value], fixtures.case(&format!("{name}.value"), case));
            assert_close(&what, &gradient, fixtures.case(&format!("{name}.gradient"), case));
        }
    }
}

#[test]
fn estimators_of_the_divergence_are_verls() {
    let fixtures = Fixtures::load("losses");
    for name in ["k1", "k2", "k3", "abs", "k1+", "k3+", "abs+"] {
        let estimator: KlEstimator = Deserialize::deserialize(toml::Value::from(name)).unwrap();
        for case in 0..fixtures.cases() {
            let loss = |policy: &Tensor, reference: &Tensor, _: &Tensor| estimator.estimate(policy, reference).unwrap();
            let rows = rows(&fixtures, case, "by_token");
            let (value, gradient) = value_and_gradient(&fixtures, case, &rows, Aggregation::TokenMean, 1, loss);
            let what = format!("{name}, case {case}");
            assert_close(&what, &[value], fixtures.case(&format!("kl.{name}.value"), case));
            assert_close(&what, &gradient, fixtures.case(&format!("kl.{name}.gradient"), case));
        }
    }
}

/// The groups of a case, each sample with one trajectory, and the numbers of the rows in each.
fn groups(fixtures: &Fixtures, case: usize, weights: &[f64]) -> (Vec<ScoredGroup>, Vec<Vec<usize>>) {
    let of = |name: &str| fixtures.case(name, case);
    let (numbers, width) = (of("group"), fixtures.tensors["mask"].0[2]);
    let sample = |row: usize| {
        let tokens = |name: &str| of(name)[row * width..][..width].to_vec();
        let scores = &of("parts")[row * weights.len()..][..weights.len()];
        let trajectory = ScoredTrajectory {
            loss_mask: tokens("mask").iter().map(|&mask| mask > 0.0).collect(),
            penalties: tokens("penalty"),
            gradient_norms: tokens("norms"),
            values: tokens("values"),
            ..ScoredTrajectory::default()
        };
        ScoredSample {
            reward: of("reward")[row],
            parts: weights.iter().zip(scores).map(|(&weight, &score)| RewardPart { weight, score }).collect(),
            trajectories: vec![trajectory],
        }
    };
    let rows = |group: usize| (0..numbers.len()).filter(|&row| numbers[row] == group as f64).collect::<Vec<_>>();
    let places: Vec<Vec<usize>> = (0..5).map(rows).collect();
    let group = |(number, rows): (usize, &Vec<usize>)| ScoredGroup {
        samples: rows.iter().map(|&row| sample(row)).collect(),
        greedy_reward: Some(of("greedy")[number]),
    };
    (places.iter().enumerate().map(group).collect(), places)
}

#[test]
fn advantages_are_verls() {
    let fixtures = Fixtures::load("advantages");
    let list = |name: &str| -> Vec<f64> { serde_json::from_str(&fixtures.metadata[name]).unwrap() };
    let (weights, gammas, lams) = (list("weights"), list("gammas"), list("lams"));
    let width = fixtures.tensors["mask"].0[2];
    // verl has no estimator that imitates, and distils in its loss.
    let is_verls = |estimator: &Estimator| !matches!(estimator, Estimator::Raft | Estimator::Distillation);
    for estimator in Estimator::ALL.iter().copied().filter(is_verls) {
        let serde_json::Value::String(name) = serde_json::to_value(estimator).unwrap() else { panic!("{estimator:?}") };
        for case in 0..fixtures.cases() {
            let (mut groups, places) = groups(&fixtures, case, &weights);
            if matches!(estimator, Estimator::ReinforcePlusPlusBaseline | Estimator::Gdpo) {
                // verl's baseline of a group of one is 0; see the script.
                for sample in
                    groups.iter_mut().filter(|group| group.samples.len() == 1).flat_map(|group| &mut group.samples)
                {
                    sample.reward = 0.0;
                    sample.parts.iter_mut().for_each(|part| part.score = 0.0);
                    sample.trajectories[0].penalties.fill(0.0);
                }
            }
            let is_discounted = matches!(estimator, Estimator::ReinforcePlusPlus | Estimator::Gae);
            let gamma = is_discounted.then(|| gammas[case % 2]);
            let lam = (estimator == Estimator::Gae).then(|| lams[case % 3]);
            let config = AdvantageConfig { estimator, gamma, lam, ..AdvantageConfig::default() };
            let mut found = vec![0.0; fixtures.case("mask", case).len()];
            for ((group, rows), advantages) in
                groups.iter().zip(&places).zip(config.estimate(&groups, &RewardStatistics::default()))
            {
                for ((sample, row), advantage) in group.samples.iter().zip(rows).zip(advantages) {
                    let own = match advantage {
                        crate::Advantage::Sample(value) => vec![value; width],
                        crate::Advantage::Trajectories(values) => values.repeat(width),
                        crate::Advantage::Tokens(tokens) => tokens.concat(),
                    };
                    for (at, _) in sample.trajectories[0].loss_mask.iter().enumerate().filter(|(_, learned)| **learned)
                    {
                        found[row * width + at] = own[at];
                    }
                }
            }
            assert_close(&format!("{name}, case {case}"), &found, fixtures.case(&name, case));
            if estimator.needs_critic() {
                let mut returns = vec![0.0; found.len()];
                for (sample, row) in groups.iter().zip(&places).flat_map(|(group, rows)| group.samples.iter().zip(rows))
                {
                    let own = config.returns(&sample.trajectories[0], sample.reward);
                    returns[row * width..][..width].copy_from_slice(&own);
                }
                assert_close(&format!("returns, case {case}"), &returns, fixtures.case("gae.returns", case));
            }
        }
    }
}

#[test]
fn the_loss_of_a_critic_is_verls() {
    let fixtures = Fixtures::load("values");
    let clips: Vec<f64> = serde_json::from_str(&fixtures.metadata["clips"]).unwrap();
    for case in 0..fixtures.cases() {
        let tensor = |name: &str| Tensor::from_slice(fixtures.case(name, case));
        let mask = tensor("mask");
        let now = tensor("now").set_requires_grad(true);
        let config = ValueLossConfig { cliprange_value: clips[case % 3] };
        let [losses, clipped] = config.loss(&now, &tensor("old"), &tensor("returns")).unwrap();
        let mean = |values: &Tensor| (values * &mask).sum(Kind::Double) / mask.sum(Kind::Double);
        let loss = mean(&losses);
        loss.backward();
        let gradient: Vec<f64> = now.grad().try_into().unwrap();
        for (name, found) in [
            ("value", vec![loss.double_value(&[])]),
            ("gradient", gradient),
            ("clip_fraction", vec![mean(&clipped).double_value(&[])]),
        ] {
            assert_close(&format!("{name}, case {case}"), &found, fixtures.case(name, case));
        }
    }
}

/// A row of `epochs.json`.
#[derive(Deserialize)]
struct StepRow {
    prompt: Vec<u32>,
    response: Vec<u32>,
    logprobs: Vec<f32>,
    advantage: f64,
}

/// `epochs.json`.
#[derive(Deserialize)]
struct StepOfEpochs {
    epochs: usize,
    mini_batch: usize,
    lr: f64,
    betas: [f64; 2],
    eps: f64,
    weight_decay: f64,
    max_grad_norm: f64,
    rows: Vec<StepRow>,
    /// The numbers of each update by name.
    updates: Vec<HashMap<String, f64>>,
    /// The 2-norm of each parameter after the last update.
    norms: HashMap<String, f64>,
}

#[test]
fn the_updates_of_a_step_of_several_epochs_are_verls() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/parity");
    let step: StepOfEpochs = serde_json::from_slice(&std::fs::read(folder.join("epochs.json")).unwrap()).unwrap();
    let model = Model::load(&folder.join("models/qwen2"), Kind::Double, Device::Cpu).unwrap();
    let experience = |(index, row): (usize, &StepRow)| Experience {
        sample: SampleId { group: 0, index, trajectory: 0 },
        prompt: row.prompt.clone(),
        response: row.response.clone(),
        loss_mask: vec![true; row.response.len()],
        logprobs: row.logprobs.clone(),
        advantages: vec![row.advantage as f32; row.response.len()],
        ..Default::default()
    };
    let rows: Vec<Experience> = step.rows.iter().enumerate().map(experience).collect();
    let mini_batches: Vec<Vec<Experience>> = rows.chunks(step.mini_batch).map(<[_]>::to_vec).collect();
    let StepOfEpochs { betas, eps, weight_decay, max_grad_norm, .. } = step;
    let optimizer = OptimizerConfig { betas, eps, weight_decay, max_grad_norm, ..OptimizerConfig::default() };
    let mut trainer = Trainer::new(&model, optimizer, 1000).unwrap();
    let loss = LossConfig { policy: PolicyLoss::PpoClip(PpoClip::new(0.2, 0.2)), ..LossConfig::default() };
    let mut updates = step.updates.iter().enumerate();
    for mini_batch in passes(&mini_batches, step.epochs) {
        let stats = trainer.update(policy_update(&model, None, mini_batch, &loss, 1.0, step.lr)).unwrap();
        let (number, expected) = updates.next().unwrap();
        for (name, expected) in expected {
            let found = stats.statistics.get(name).unwrap();
            assert_close(&format!("update {number}, {name}"), &[found], &[*expected]);
        }
    }
    assert!(updates.next().is_none());
    for (name, parameter) in model.parameters() {
        assert_close(&name, &[parameter.norm().double_value(&[])], &[step.norms[&name]]);
    }
}
