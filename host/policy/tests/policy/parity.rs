//! The model against `transformers`, over checkpoints of every family that
//! `tests/parity/models.py` wrote, with its results.

use crate::{device, stored};
use gavel_policy::{Device, Engine, EngineConfig, Kind, Model, Packed, PackedRow, Request, Sampling, Tensor};
use safetensors::SafeTensors;
use safetensors::tensor::Dtype;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

fn folder() -> PathBuf {
    stored("models")
}

pub fn checkpoints() -> Vec<String> {
    let mut names: Vec<String> =
        std::fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    assert!(names.len() >= 18, "{names:?}");
    names
}

pub fn load(name: &str, kind: Kind) -> Model {
    Model::load(&folder().join(name), kind, device()).unwrap()
}

pub(crate) fn tensors(path: &Path) -> BTreeMap<String, Tensor> {
    let bytes = std::fs::read(path).unwrap();
    let file = SafeTensors::deserialize(&bytes).unwrap();
    file.iter()
        .map(|(name, view)| {
            let shape: Vec<i64> = view.shape().iter().map(|&size| size as i64).collect();
            let kind = match view.dtype() {
                Dtype::F32 => Kind::Float,
                Dtype::BF16 => Kind::BFloat16,
                Dtype::I64 => Kind::Int64,
                other => panic!("{name} is of {other:?}"),
            };
            (name.to_owned(), Tensor::from_data_size(view.data(), &shape, kind))
        })
        .collect()
}

/// The tensors of a file, where the models live.
pub(crate) fn on_device(path: &Path) -> BTreeMap<String, Tensor> {
    let device = device();
    tensors(path).into_iter().map(|(name, tensor)| (name, tensor.to_device(device))).collect()
}

/// The results of transformers with a checkpoint.
struct Expected {
    tensors: BTreeMap<String, Tensor>,
}

impl Expected {
    fn of(name: &str) -> Self {
        Self { tensors: on_device(&folder().join(name).join("expected.safetensors")) }
    }

    fn ids(&self) -> &Tensor {
        &self.tensors["ids"]
    }

    fn lengths(&self) -> Vec<usize> {
        Vec::<i64>::try_from(&self.tensors["lengths"]).unwrap().into_iter().map(|length| length as usize).collect()
    }

    /// `[batch, time]`, 1 where there is a token.
    fn real(&self) -> Tensor {
        self.ids().ne(0).to_kind(Kind::Float)
    }
}

/// The greatest difference, relative to the greatest expected value.
pub(crate) fn relative(found: &Tensor, expected: &Tensor) -> f64 {
    let [found, expected] = [found, expected].map(|tensor| tensor.to_device(Device::Cpu).to_kind(Kind::Double));
    let scale = expected.abs().max().double_value(&[]);
    (found - expected).abs().max().double_value(&[]) / scale.max(1e-12)
}

fn language_models() -> impl Iterator<Item = (String, Expected)> {
    let all =
        checkpoints().into_iter().map(|name| (Expected::of(&name), name)).map(|(expected, name)| (name, expected));
    all.filter(|(_, expected)| expected.tensors.contains_key("logits"))
}

#[test]
fn logits_and_log_probs_equal_those_of_transformers() {
    for (name, expected) in language_models() {
        let model = load(&name, Kind::Float);
        let found = model.logits(&model.hidden(expected.ids()).unwrap()).unwrap();
        let real = expected.real().unsqueeze(2);
        let logits = &expected.tensors["logits"];
        let difference = relative(&(found.shallow_clone() * &real), &(logits * &real));
        assert!(difference < 2e-4, "{name}: logits differ by {difference}");
        let difference = (found.log_softmax(-1, None) - logits.log_softmax(-1, None)) * &real;
        let difference = difference.abs().max().double_value(&[]);
        assert!(difference < 2e-3, "{name}: log-probs differ by {difference}");
    }
}

#[test]
fn greedy_continuations_equal_those_of_transformers() {
    for (name, expected) in language_models() {
        let model = load(&name, Kind::Float);
        let prompt: Vec<u32> =
            Vec::<i64>::try_from(&expected.ids().get(0)).unwrap().into_iter().map(|id| id as u32).collect();
        let greedy: Vec<u32> =
            Vec::<i64>::try_from(&expected.tensors["greedy"]).unwrap().into_iter().map(|id| id as u32).collect();
        let mut engine = Engine::new(&model, EngineConfig::default()).unwrap();
        engine.submit(Request::new(0, prompt, Sampling::greedy(greedy.len(), Vec::new()), 0)).unwrap();
        let mut finished = Vec::new();
        while !engine.is_idle() {
            finished.extend(engine.step(&model).unwrap().finished);
        }
        assert_eq!(finished[0].response, greedy, "{name}");
    }
}

#[test]
fn scores_of_classifiers_equal_those_of_transformers() {
    let mut seen = 0;
    for name in checkpoints() {
        let expected = Expected::of(&name);
        let Some(scores) = expected.tensors.get("scores") else { continue };
        let found = load(&name, Kind::Float).scores(expected.ids(), &expected.lengths()).unwrap();
        assert_eq!(found.size(), scores.size(), "{name}");
        let difference = relative(&found, scores);
        assert!(difference < 2e-4, "{name}: {difference}");
        let lengths = expected.lengths();
        let ids: Vec<Vec<i64>> = Vec::try_from(expected.ids()).unwrap();
        let row = |(ids, &length): (&Vec<i64>, &usize)| PackedRow {
            after: None,
            tokens: ids[..length].iter().map(|&id| id as u32).collect(),
        };
        let rows: Vec<PackedRow> = ids.iter().zip(&lengths).map(row).collect();
        let packed = Packed::new(&rows, device()).unwrap();
        let last: Vec<Vec<usize>> = lengths.iter().map(|length| vec![length - 1]).collect();
        let model = load(&name, Kind::Float);
        let difference = relative(&model.scores_of_last(&model.hidden_at(&packed, &last).unwrap()).unwrap(), scores);
        assert!(difference < 2e-4, "{name}, packed: {difference}");
        seen += 1;
    }
    assert_eq!(seen, 2);
}

/// The values of the real tokens, `[batch, time, labels]`.
fn values(model: &Model, expected: &Expected) -> Tensor {
    let hidden = model.hidden(expected.ids()).unwrap();
    model.values(&hidden).unwrap() * expected.real().unsqueeze(2)
}

#[test]
fn values_of_a_critic_equal_those_of_transformers() {
    let (model, expected) = (load("qwen3-critic", Kind::Float), Expected::of("qwen3-critic"));
    let difference = relative(&values(&model, &expected), &expected.tensors["values"]);
    assert!(difference < 2e-4, "{difference}");
    let error = model.scores(expected.ids(), &expected.lengths()).unwrap_err().to_string();
    assert!(error.contains("only a sequence classifier gives scores"), "{error}");
    let error = load("qwen3", Kind::Float).values(&Tensor::zeros([1, 32], (Kind::Float, device()))).unwrap_err();
    assert!(error.to_string().starts_with("only a critic gives values"), "{error}");
}

#[test]
fn a_critic_is_made_of_a_language_model_or_of_a_classifier() {
    let critic = |name: &str| Model::load_critic(&folder().join(name), Kind::Float, device());
    // Every layer is the language model's, and all values are still 0.
    for name in ["qwen3", "llama-bf16-shards", "qwen2-untied-mha"] {
        let (model, expected) = (critic(name).unwrap(), Expected::of(name));
        let plain = load(name, Kind::Float);
        let hidden = |model: &Model| model.hidden(expected.ids()).unwrap();
        assert_eq!(hidden(&model), hidden(&plain), "{name}");
        assert_eq!(values(&model, &expected).abs().max().double_value(&[]), 0.0, "{name}");
        values(&model, &expected).sum(None).backward();
        assert!(model.parameters().iter().any(|(name, tensor)| name == "score.bias" && tensor.grad().defined()));
        let folder = tempfile::tempdir().unwrap();
        model.save(folder.path()).unwrap();
        let again = Model::load(folder.path(), Kind::Float, device()).unwrap();
        assert_eq!((again.config(), hidden(&again)), (model.config(), hidden(&plain)), "{name}");
    }
    // The values of the last tokens are the classifier's scores.
    let (model, expected) = (critic("qwen2-classifier").unwrap(), Expected::of("qwen2-classifier"));
    let last: Vec<i64> = expected.lengths().into_iter().map(|length| length as i64 - 1).collect();
    let index = Tensor::from_slice(&last).view([-1, 1, 1]).to_device(device());
    let found = values(&model, &expected).gather(1, &index, false).squeeze_dim(2);
    assert!(relative(&found, &expected.tensors["scores"]) < 2e-4);
    assert!(critic("qwen3-critic").is_ok());
    let error = critic("llama-classifier").err().unwrap().to_string();
    assert!(error.contains("config.json: a critic has one label, and this head has 3"), "{error}");
}

#[test]
fn a_reward_model_is_made_of_a_language_model_or_continued() {
    let reward_model =
        |name: &str, seed: u64| Model::load_reward_model(&folder().join(name), Kind::Float, device(), seed, None);
    for name in ["qwen3", "llama-bf16-shards", "qwen2-untied-mha"] {
        let expected = Expected::of(name);
        let scores = |model: &Model| model.scores(expected.ids(), &expected.lengths()).unwrap();
        let (model, plain) = (reward_model(name, 1).unwrap(), load(name, Kind::Float));
        assert_eq!(model.hidden(expected.ids()).unwrap(), plain.hidden(expected.ids()).unwrap(), "{name}");
        assert_eq!(scores(&model).size(), [expected.lengths().len() as i64, 1]);
        assert!(scores(&model).abs().min().double_value(&[]) > 0.0, "{name}");
        assert_eq!(scores(&model), scores(&reward_model(name, 1).unwrap()), "{name}");
        assert_ne!(scores(&model), scores(&reward_model(name, 2).unwrap()), "{name}");
        let folder = tempfile::tempdir().unwrap();
        model.save(folder.path()).unwrap();
        let again = Model::load_reward_model(folder.path(), Kind::Float, device(), 2, None).unwrap();
        assert_eq!(scores(&again), scores(&model), "{name}");
    }
    let (model, expected) = (reward_model("qwen2-classifier", 1).unwrap(), Expected::of("qwen2-classifier"));
    let found = model.scores(expected.ids(), &expected.lengths()).unwrap();
    assert!(relative(&found, &expected.tensors["scores"]) < 2e-4);
    for (name, says) in [
        ("llama-classifier", "a reward model has one label, and this classifier has 3"),
        ("qwen3-critic", "a critic cannot become a reward model"),
    ] {
        let error = reward_model(name, 1).err().unwrap().to_string();
        assert!(error.contains(says), "{error}");
    }
}

#[test]
fn gradients_equal_those_of_transformers() {
    for name in checkpoints() {
        let (model, expected) = (load(&name, Kind::Float), Expected::of(&name));
        let ids = expected.ids();
        let loss = if expected.tensors.contains_key("scores") {
            model.scores(ids, &expected.lengths()).unwrap().square().sum(None) / 2.0
        } else if expected.tensors.contains_key("values") {
            values(&model, &expected).square().sum(None) / 2.0
        } else {
            let time = ids.size()[1];
            let logits = model.logits(&model.hidden(ids).unwrap()).unwrap().narrow(1, 0, time - 1);
            let targets = ids.narrow(1, 1, time - 1);
            let said = logits.log_softmax(-1, None).gather(2, &targets.unsqueeze(2), false).squeeze_dim(2);
            let real = expected.real().narrow(1, 1, time - 1);
            -(said * &real).sum(None) / real.sum(None)
        };
        loss.backward();
        let mut compared = 0;
        for (parameter, tensor) in model.parameters() {
            for (part, gradient) in model.parts(&parameter, &tensor.grad()).unwrap() {
                let difference = relative(&gradient, &expected.tensors[&format!("grad.{part}")]);
                assert!(difference < 1e-3, "{name}: the gradient of {part} differs by {difference}");
                compared += 1;
            }
        }
        let expected = expected.tensors.keys().filter(|key| key.starts_with("grad.")).count();
        assert_eq!(compared, expected, "{name}");
    }
}

#[test]
fn half_precision_computes_nearly_the_same() {
    for (name, expected) in language_models() {
        for (kind, limit) in [(Kind::BFloat16, 0.1), (Kind::Half, 0.02)] {
            let model = load(&name, kind);
            let found = model.logits(&model.hidden(expected.ids()).unwrap()).unwrap();
            assert_eq!(found.kind(), kind, "{name}");
            let real = expected.real().unsqueeze(2);
            let difference = relative(&(found.to_kind(Kind::Float) * &real), &(&expected.tensors["logits"] * &real));
            assert!(difference < limit, "{name}, {kind:?}: {difference}");
        }
    }
}

/// A saved model has the tensors of the checkpoint and the same `config.json`;
/// `tests/parity/models.py --check` compares the logits.
#[test]
fn a_saved_checkpoint_is_that_of_transformers() {
    for name in checkpoints() {
        let kind = if name.contains("bf16") { Kind::BFloat16 } else { Kind::Float };
        let (model, dir) = (load(&name, kind), tempfile::tempdir().unwrap());
        model.save(dir.path()).unwrap();
        let mut original = BTreeMap::new();
        for entry in std::fs::read_dir(folder().join(&name)).unwrap() {
            let path = entry.unwrap().path();
            let file = path.file_name().unwrap().to_str().unwrap();
            if file.starts_with("model") && file.ends_with(".safetensors") {
                original.extend(tensors(&path));
            }
        }
        assert_eq!(tensors(&dir.path().join("model.safetensors")), original, "{name}");
        let again = Model::load(dir.path(), kind, device()).unwrap();
        assert_eq!(again.config(), model.config(), "{name}");
        let config = |dir: &Path| -> serde_json::Map<String, serde_json::Value> {
            serde_json::from_str(&std::fs::read_to_string(dir.join("config.json")).unwrap()).unwrap()
        };
        let (saved, original) = (config(dir.path()), config(&folder().join(&name)));
        for (key, value) in &saved {
            if let Some(before) = original.get(key).filter(|_| key != "rope_parameters") {
                assert_eq!(value, before, "{name}: `{key}`");
            }
        }
    }
}
