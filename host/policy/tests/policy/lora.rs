//! Adapters against PEFT, over the fixtures that `tests/parity/lora.py` wrote,
//! and the guarantees about the weights beside them.

use crate::parity::{on_device, relative, tensors};
use crate::{config, device, model, row, stored, tokens};
use gavel_policy::{
    Engine, EngineConfig, Head, Kind, LoraConfig, Model, ModelConfig, ModelFolder, Module, Request, Sampling, Tensor,
    stored_kind,
};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The fixtures in 32 bits.
const ADAPTERS: [&str; 5] =
    ["qwen2-all-linear", "qwen3-query-value", "llama-rslora", "mistral-patterns", "gemma-one-layer"];

fn folder(name: &str) -> PathBuf {
    stored("lora").join(name)
}

fn load(name: &str) -> (Model, BTreeMap<String, Tensor>) {
    let kind = stored_kind(&folder(name)).unwrap();
    let model = Model::load(&folder(name), kind, device()).unwrap();
    (model, on_device(&folder(name).join("expected.safetensors")))
}

fn logits(model: &Model, ids: &Tensor) -> Tensor {
    model.logits(&model.hidden(ids).unwrap()).unwrap()
}

/// The greatest difference where there is a token.
fn difference(model: &Model, expected: &BTreeMap<String, Tensor>) -> f64 {
    let ids = &expected["ids"];
    let real = ids.ne(0).to_kind(Kind::Float).unsqueeze(2);
    let found = logits(model, ids).to_kind(Kind::Float);
    relative(&(found * &real), &(expected["logits"].to_kind(Kind::Float) * &real))
}

/// The mean cross-entropy of the next token.
fn loss(model: &Model, ids: &Tensor) -> Tensor {
    let time = ids.size()[1];
    let said = logits(model, ids).narrow(1, 0, time - 1).to_kind(Kind::Float).log_softmax(-1, None);
    let targets = ids.narrow(1, 1, time - 1);
    let real = targets.ne(0).to_kind(Kind::Float);
    -(said.gather(2, &targets.unsqueeze(2), false).squeeze_dim(2) * &real).sum(None) / real.sum(None)
}

/// The greatest relative difference of the adapters' gradients from PEFT's.
fn gradient_difference(model: &Model, expected: &BTreeMap<String, Tensor>) -> f64 {
    loss(model, &expected["ids"]).backward();
    compare_gradients(model, expected)
}

fn compare_gradients(model: &Model, expected: &BTreeMap<String, Tensor>) -> f64 {
    let (mut greatest, mut compared) = (0.0f64, 0);
    for (parameter, tensor) in model.parameters() {
        for (part, gradient) in model.parts(&parameter, &tensor.grad()).unwrap() {
            let expected = &expected[&format!("grad.base_model.model.{part}")];
            greatest = greatest.max(relative(&gradient, expected));
            compared += 1;
        }
    }
    assert_eq!(compared, expected.keys().filter(|key| key.starts_with("grad.")).count());
    greatest
}

#[test]
fn logits_gradients_and_merged_weights_equal_those_of_peft() {
    for name in ADAPTERS {
        let (model, expected) = load(name);
        let found = difference(&model, &expected);
        let gradients = gradient_difference(&model, &expected);
        assert!(difference(&model.base().unwrap(), &expected) > 0.1, "{name}: the adapter matters");
        let merged = model.merge().unwrap();
        assert!(!merged.is_adapted() && merged.parameters().iter().all(|(_, tensor)| tensor.requires_grad()));
        let after = difference(&merged, &expected);
        println!("{name}: logits {found:.1e}, gradients {gradients:.1e}, merged {after:.1e}");
        assert!(found < 2e-4, "{name}: logits differ by {found}");
        assert!(gradients < 1e-3, "{name}: gradients differ by {gradients}");
        assert!(after < 2e-4, "{name}: logits of the merged model differ by {after}");
    }
}

/// The scores of each row, or the values of each token; 0 for padding.
fn outputs(model: &Model, expected: &BTreeMap<String, Tensor>) -> Tensor {
    let (ids, lengths) = (&expected["ids"], Vec::<i64>::try_from(&expected["lengths"]).unwrap());
    let hidden = model.hidden(ids).unwrap();
    match model.config().head {
        Head::Scores { .. } => {
            let last = lengths.iter().enumerate().map(|(row, length)| hidden.get(row as i64).get(length - 1));
            model.scores_of_last(&Tensor::stack(&last.collect::<Vec<_>>(), 0)).unwrap()
        }
        _ => model.values(&hidden).unwrap() * ids.ne(0).to_kind(Kind::Float).unsqueeze(2),
    }
}

#[test]
fn a_classifier_or_critic_with_an_adapter_equals_that_of_peft() {
    for (name, head) in [("qwen3-scores", Head::Scores { labels: 1 }), ("llama-values", Head::Values { labels: 2 })] {
        let (model, expected) = load(name);
        assert_eq!(model.config().head, head, "{name}");
        let found = outputs(&model, &expected);
        let real = match head {
            Head::Scores { .. } => expected["outputs"].shallow_clone(),
            _ => &expected["outputs"] * expected["ids"].ne(0).to_kind(Kind::Float).unsqueeze(2),
        };
        let difference = relative(&found.detach(), &real);
        found.square().sum(None).backward();
        let gradients = compare_gradients(&model, &expected);
        println!("{name}: outputs {difference:.1e}, gradients {gradients:.1e}");
        assert!(difference < 2e-4 && gradients < 1e-3, "{name}: {difference}, {gradients}");

        let dir = tempfile::tempdir().unwrap();
        model.save(dir.path()).unwrap();
        let of = |dir: &Path| tensors(&dir.join("adapter_model.safetensors"));
        assert_eq!(of(dir.path()), of(&folder(name)), "{name}");
        let merged = tempfile::tempdir().unwrap();
        Model::load(dir.path(), Kind::Float, device()).unwrap().merge().unwrap().save(merged.path()).unwrap();
        let merged = Model::load(merged.path(), Kind::Float, device()).unwrap();
        assert!(relative(&outputs(&merged, &expected), &real) < 2e-4, "{name}");
    }
}

#[test]
fn the_head_of_a_classifier_is_trained_beside_its_adapters() {
    let base = stored("models/qwen2");
    let model = Model::load_reward_model(&base, Kind::Float, device(), 1, None).unwrap();
    let model = model.adapt(&LoraConfig { rank: 2, ..LoraConfig::default() }, &base, 1).unwrap();
    let names: Vec<String> = model.parameters().into_iter().map(|(name, _)| name).collect();
    assert_eq!((names.len(), names.last().map(String::as_str)), (2 * (4 + 7) + 1, Some("score.weight")));
    assert!(model.parameters().iter().all(|(_, tensor)| tensor.requires_grad()));
    let dir = tempfile::tempdir().unwrap();
    model.save(dir.path()).unwrap();
    let again = Model::load_reward_model(dir.path(), Kind::Float, device(), 2, None).unwrap();
    let pairs = again.parameters().into_iter().zip(model.parameters());
    pairs.for_each(|((name, again), (_, model))| assert_eq!(again, model, "{name}"));

    // The adapter of a language model has no head of a classifier.
    let policy = folder("qwen2-all-linear");
    let error = Model::load_reward_model(&policy, Kind::Float, device(), 1, None).err().unwrap().to_string();
    assert!(error.contains("is the adapter of a language model") && error.contains("gavel merge"), "{error}");
}

/// Rounding to 16 bits differs with the order of sums: both are about equally
/// near to the result of 32 bits.
#[test]
fn beside_weights_of_16_bits_adapters_have_32() {
    let (model, mut expected) = load("llama-bf16");
    assert_eq!(model.kind(), Kind::BFloat16);
    assert!(model.parameters().iter().all(|(_, tensor)| tensor.kind() == Kind::Float));
    let exact = Model::load(&folder("llama-bf16"), Kind::Float, device()).unwrap();
    let theirs = (difference(&exact, &expected), gradient_difference(&exact, &expected));
    expected.insert("logits".into(), logits(&exact, &expected["ids"]).detach());
    for (parameter, tensor) in exact.parameters() {
        for (part, gradient) in exact.parts(&parameter, &tensor.grad()).unwrap() {
            expected.insert(format!("grad.base_model.model.{part}"), gradient);
        }
    }
    let ours = (difference(&model, &expected), gradient_difference(&model, &expected));
    println!("from 32 bits: {ours:?}, PEFT {theirs:?}");
    assert!(ours.0 < 1.2 * theirs.0 && ours.1 < 1.2 * theirs.1, "{ours:?}, PEFT {theirs:?}");
}

#[test]
fn greedy_continuations_equal_those_of_peft() {
    for name in ADAPTERS {
        let (model, expected) = load(name);
        let ids = |tensor: &Tensor| -> Vec<u32> {
            Vec::<i64>::try_from(tensor).unwrap().into_iter().map(|id| id as u32).collect()
        };
        let greedy = ids(&expected["greedy"]);
        let finished = run(&model, ids(&expected["ids"].get(0)), Sampling::greedy(greedy.len(), Vec::new()));
        assert_eq!(finished.0, greedy, "{name}");
    }
}

/// The response of the engine and its log-probs.
fn run(model: &Model, prompt: Vec<u32>, sampling: Sampling) -> (Vec<u32>, Vec<f32>) {
    let mut engine = Engine::new(model, EngineConfig::default()).unwrap();
    engine.submit(Request::new(0, prompt, sampling, 3)).unwrap();
    let mut finished = Vec::new();
    while !engine.is_idle() {
        finished.extend(engine.step(model).unwrap().finished);
    }
    let finished = finished.remove(0);
    (finished.response, finished.logprobs)
}

#[test]
fn rollout_and_training_are_the_same_policy() {
    let (model, expected) = load("qwen2-all-linear");
    let prompt: Vec<u32> =
        Vec::<i64>::try_from(&expected["ids"].get(0)).unwrap().into_iter().map(|id| id as u32).collect();
    let (response, logprobs) = run(&model, prompt.clone(), Sampling::new(40, Vec::new()));
    let whole: Vec<u32> = prompt.iter().chain(&response).copied().collect();
    let said = logits(&model, &row(&whole)).squeeze_dim(0).log_softmax(-1, None);
    for (at, (token, logprob)) in response.iter().zip(logprobs).enumerate() {
        let trained = said.double_value(&[(prompt.len() + at - 1) as i64, i64::from(*token)]);
        assert!((trained - f64::from(logprob)).abs() < 1e-4, "token {at}: {trained} and {logprob}");
    }
}

#[test]
fn a_saved_adapter_is_that_of_peft() {
    for name in ADAPTERS.into_iter().chain(["llama-bf16"]) {
        let ((model, expected), dir) = (load(name), tempfile::tempdir().unwrap());
        model.save(dir.path()).unwrap();
        let mut files: Vec<_> =
            std::fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        files.sort();
        assert_eq!(files, ["adapter_config.json", "adapter_model.safetensors"], "{name}");
        let of = |dir: &Path| tensors(&dir.join("adapter_model.safetensors"));
        assert_eq!(of(dir.path()), of(&folder(name)), "{name}");
        let again = Model::load(dir.path(), model.kind(), device()).unwrap();
        let ids = &expected["ids"];
        assert_eq!(logits(&again, ids), logits(&model, ids), "{name}");
        assert!(again.parameters().iter().all(|(_, tensor)| tensor.requires_grad()));

        let config = |dir: &Path| -> Value {
            serde_json::from_str(&std::fs::read_to_string(dir.join("adapter_config.json")).unwrap()).unwrap()
        };
        let (saved, original) = (config(dir.path()), config(&folder(name)));
        for key in ["peft_type", "task_type", "bias", "use_rslora", "base_model_name_or_path", "modules_to_save"] {
            assert_eq!(saved[key], original[key], "{name}: `{key}`");
        }
        if name == "mistral-patterns" {
            assert_eq!((&saved["r"], &saved["lora_alpha"]), (&json!(2), &json!(8)));
            assert_eq!(saved["alpha_pattern"], json!({"o_proj": 3, "model.layers.0.mlp.up_proj": 5}));
        }
        if name == "gemma-one-layer" {
            let modules = ["self_attn.q_proj", "self_attn.k_proj", "mlp.gate_proj"];
            assert_eq!(saved["target_modules"], json!(modules.map(|module| format!("model.layers.1.{module}"))));
        }
    }
}

fn adapted(config: &LoraConfig, seed: u64) -> Model {
    model(crate::config()).adapt(config, Path::new("somewhere"), seed).unwrap()
}

#[test]
fn a_fresh_adapter_changes_nothing_and_is_all_that_is_trained() {
    let plain = model(config());
    let model = adapted(&LoraConfig::default(), 1);
    let ids = row(&tokens(1, 9));
    assert_eq!(logits(&model, &ids), logits(&plain, &ids));
    let names: Vec<String> = model.parameters().into_iter().map(|(name, _)| name).collect();
    assert_eq!(names.len(), 2 * (4 + 7));
    assert_eq!(names[0], "model.layers.0.self_attn.qkv_proj.lora_A.weight");
    assert!(model.parameters().iter().all(|(_, tensor)| tensor.requires_grad() && tensor.dim() == 2));
    loss(&model, &ids).backward();
    assert!(model.base().unwrap().parameters().iter().all(|(_, tensor)| !tensor.requires_grad()));
    for (name, tensor) in model.named_adapters().unwrap() {
        let greatest = tensor.abs().max().double_value(&[]);
        match name.contains("lora_A") {
            true => {
                let bound = (tensor.size()[1] as f64).sqrt().recip();
                assert!(greatest > 0.9 * bound && greatest <= bound, "{name}: {greatest} of {bound}");
            }
            false => assert_eq!(greatest, 0.0, "{name}"),
        }
    }
    // The initial values follow from the seed. The values of a module do not depend on which other modules there are.
    let a = |model: &Model, name: &str| {
        let wanted = format!("base_model.model.model.layers.1.{name}.lora_A.weight");
        model.named_adapters().unwrap().into_iter().find(|(name, _)| *name == wanted).unwrap().1
    };
    let few = LoraConfig { target_modules: vec![Module::Value, Module::Down], ..LoraConfig::default() };
    assert_eq!(a(&model, "self_attn.v_proj"), a(&adapted(&few, 1), "self_attn.v_proj"));
    assert_ne!(a(&model, "self_attn.v_proj"), a(&adapted(&few, 2), "self_attn.v_proj"));
    assert_ne!(a(&model, "self_attn.v_proj"), a(&model, "self_attn.q_proj"));
}

#[test]
fn the_base_is_the_same_memory() {
    let model = adapted(&LoraConfig::default(), 1);
    let base = model.base().unwrap();
    let (own, shared) = (model.named_weights().unwrap(), base.named_weights().unwrap());
    assert_eq!(own.len(), shared.len());
    assert!(own.iter().zip(&shared).all(|((_, a), (_, b))| a.data_ptr() == b.data_ptr()));
    // A merge does not reach it.
    let before: Vec<Tensor> = shared.iter().map(|(_, tensor)| tensor.copy()).collect();
    tch::no_grad(|| model.parameters().into_iter().for_each(|(_, mut tensor)| drop(tensor.fill_(0.5))));
    let merged = model.merge().unwrap();
    assert!(shared.iter().zip(&before).all(|((_, a), b)| a == b));
    let changed = merged.named_weights().unwrap().iter().zip(&before).filter(|((_, a), b)| a != *b).count();
    assert_eq!(changed, 2 * 7);
}

#[test]
fn copies_have_the_adapters() {
    let (model, expected) = load("llama-rslora");
    let ids = &expected["ids"];
    let frozen = model.try_clone().unwrap();
    assert_eq!(logits(&frozen, ids), logits(&model, ids));
    assert!(frozen.parameters().iter().all(|(_, tensor)| !tensor.requires_grad()));
    let double = model.to_kind(Kind::Double).unwrap();
    assert!(double.parameters().iter().all(|(_, tensor)| tensor.kind() == Kind::Double && tensor.requires_grad()));
    assert!(relative(&logits(&double, ids), &logits(&model, ids)) < 1e-5);
    let mut plain = model.base().unwrap();
    assert!(model.copy_to(&mut plain).unwrap_err().to_string().contains("same configuration"));
    let error = model.adapt(&LoraConfig::default(), Path::new("x"), 0).err().unwrap().to_string();
    assert!(error.contains("merge them"), "{error}");
}

#[test]
fn what_is_no_plain_lora_is_refused_by_name() {
    let attempt = |change: &dyn Fn(&mut Value)| {
        let dir = tempfile::tempdir().unwrap();
        for file in ["adapter_config.json", "adapter_model.safetensors"] {
            std::fs::copy(folder("qwen2-all-linear").join(file), dir.path().join(file)).unwrap();
        }
        let path = dir.path().join("adapter_config.json");
        let mut config: Value = serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
        change(&mut config);
        std::fs::write(&path, config.to_string()).unwrap();
        let error = Model::load(dir.path(), Kind::Float, device()).err().expect("it is refused").to_string();
        error.replace(&dir.path().display().to_string(), "DIR")
    };
    for (key, value, says) in [
        ("peft_type", json!("IA3"), "DIR/adapter_config.json: `peft_type` \"IA3\" is not supported; only \"LORA\" is"),
        ("use_dora", json!(true), "`use_dora` true is not supported; only plain LoRA"),
        ("bias", json!("all"), "`bias` \"all\""),
        ("modules_to_save", json!(["lm_head"]), "`modules_to_save` [\"lm_head\"]"),
        ("fan_in_fan_out", json!(true), "`fan_in_fan_out`"),
        ("init_lora_weights", json!("pissa"), "`init_lora_weights` \"pissa\" is not supported; it changes the weights"),
        ("alpha_pattern", json!({"[qk]_proj": 3}), "`alpha_pattern` \"[qk]_proj\""),
        ("a_key_of_next_year", json!(0.5), "`a_key_of_next_year` 0.5"),
        (
            "base_model_name_or_path",
            json!("Qwen/Qwen2.5-0.5B"),
            "\"Qwen/Qwen2.5-0.5B\" is not a folder here\nhint: download",
        ),
        ("base_model_name_or_path", Value::Null, "`base_model_name_or_path` is missing"),
        ("base_model_name_or_path", json!(folder("llama-rslora")), "is itself an adapter\nhint: merge"),
        ("base_model_name_or_path", json!("../../tests/parity/models/qwen3"), "has shape ["),
        ("base_model_name_or_path", json!("../../tests/parity/models/nothing"), "is not a folder here"),
    ] {
        let error = attempt(&|config| config[key] = value.clone());
        assert!(error.contains(says), "{key}: {error}");
    }
    let folder = tempfile::tempdir().unwrap();
    std::fs::copy(
        self::folder("qwen2-all-linear").join("adapter_config.json"),
        folder.path().join("adapter_config.json"),
    )
    .unwrap();
    let weights = |names: &[&str]| {
        let bytes = [0u8; 16];
        let view = || safetensors::tensor::TensorView::new(safetensors::Dtype::F32, vec![2, 2], &bytes).unwrap();
        let path = folder.path().join("adapter_model.safetensors");
        safetensors::serialize_to_file(names.iter().map(|name| (*name, view())), None, &path).unwrap();
        Model::load(folder.path(), Kind::Float, device()).err().unwrap().to_string()
    };
    let q = "base_model.model.model.layers.0.self_attn.q_proj";
    for (names, says) in [
        (&[][..], "there is no adapter in it"),
        (&["base_model.model.lm_head.lora_A.weight"], "`base_model.model.lm_head.lora_A.weight` has no place"),
        (&["base_model.model.model.layers.9.self_attn.q_proj.lora_A.weight"], "has no place"),
        (&[&format!("{q}.lora_B.weight")], "there is no adapter in it"),
        (&[&format!("{q}.lora_A.weight")], "shape [2, 2], expected [2, 32]"),
    ] {
        let error = weights(names);
        assert!(error.contains(says), "{names:?}: {error}");
    }
    // Without columns, a tensor of any rank has no bytes, and the adapter would take a terabyte.
    let wide = safetensors::tensor::TensorView::new(safetensors::Dtype::F32, vec![1 << 34, 0], &[]).unwrap();
    let path = folder.path().join("adapter_model.safetensors");
    safetensors::serialize_to_file([(format!("{q}.lora_A.weight"), wide)], None, &path).unwrap();
    let error = Model::load(folder.path(), Kind::Float, device()).err().unwrap().to_string();
    let expected = format!("tensor `{q}.lora_A.weight` has 17179869184 rows; at most 65536 are supported");
    assert!(error.contains(&expected), "{error}");
}

#[test]
fn settings_out_of_range_are_named() {
    let parse = |text: &str| serde_json::from_str::<LoraConfig>(text).map_err(|error| error.to_string());
    assert_eq!(parse("{}").unwrap(), LoraConfig::default());
    assert_eq!(parse(r#"{"target_modules": "all-linear"}"#).unwrap(), LoraConfig::default());
    let some = parse(r#"{"rank": 8, "target_modules": ["v_proj", "q_proj"]}"#).unwrap();
    assert_eq!((some.rank, some.target_modules), (8, vec![Module::Value, Module::Query]));
    for (text, says) in [
        (r#"{"rank": 0}"#, "`rank` must be from 1 to 65536, not 0"),
        (r#"{"alpha": 0}"#, "`alpha` must be a number above 0"),
        (r#"{"target_modules": []}"#, "`target_modules` must name a module"),
        (r#"{"target_modules": ["q_proj", "q_proj"]}"#, "names q_proj twice"),
        (r#"{"target_modules": ["qproj"]}"#, "a list of some of q_proj, k_proj"),
        (r#"{"target_modules": "all"}"#, "must be \"all-linear\" or"),
        (r#"{"dropout": 0.1}"#, "unknown field `dropout`"),
    ] {
        let error = parse(text).and_then(|config| config.validate().map_err(|error| error.to_string())).unwrap_err();
        assert!(error.contains(says), "{text}: {error}");
    }
}

#[test]
fn the_folders_of_an_adapter_are_found() {
    let base = Path::new("../../tests/parity/models/qwen2");
    let found = ModelFolder::open(&folder("qwen2-all-linear")).unwrap();
    assert_eq!((found.base.as_path(), found.text.as_path()), (base, base));
    assert_eq!(found.adapter, Some(folder("qwen2-all-linear")));
    assert_eq!(ModelConfig::load(&folder("qwen2-all-linear")).unwrap(), ModelConfig::load(base).unwrap());
    let plain = ModelFolder::open(base).unwrap();
    assert_eq!((plain.base.as_path(), plain.adapter, plain.text.as_path()), (base, None, base));
    let dir = tempfile::tempdir().unwrap();
    std::fs::copy(folder("qwen2-all-linear").join("adapter_config.json"), dir.path().join("adapter_config.json"))
        .unwrap();
    std::fs::write(dir.path().join("tokenizer.json"), "{}").unwrap();
    assert_eq!(ModelFolder::open(dir.path()).unwrap().text, dir.path());
}
