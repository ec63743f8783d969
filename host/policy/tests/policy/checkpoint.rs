use crate::{config, device, model, row, tokens};
use gavel_policy::{Kind, Model, ModelConfig, Tensor};
use safetensors::tensor::{Dtype, TensorView};
use std::collections::HashMap;
use std::path::Path;

fn logits(model: &Model) -> Tensor {
    model.logits(&model.hidden(&row(&tokens(1, 6))).unwrap()).unwrap()
}

type Entry = (String, Vec<usize>, Vec<u8>);

/// The weights as they stand in a checkpoint of 16- or 32-bit numbers.
fn entries(model: &Model, kind: Kind) -> Vec<Entry> {
    let width = if kind == Kind::Float { 4 } else { 2 };
    let entry = |(name, weight): (String, Tensor)| {
        let weight = weight.to_kind(kind).contiguous();
        let mut bytes = vec![0; weight.numel() * width];
        weight.copy_data_u8(&mut bytes, weight.numel());
        (name, weight.size().iter().map(|&size| size as usize).collect(), bytes)
    };
    model.named_weights().unwrap().into_iter().map(entry).collect()
}

fn write(path: &Path, dtype: Dtype, entries: &[Entry]) {
    let views =
        entries.iter().map(|(name, shape, bytes)| (name, TensorView::new(dtype, shape.clone(), bytes).unwrap()));
    safetensors::serialize_to_file(views, None, path).unwrap();
}

#[test]
fn a_saved_model_loads_bit_for_bit() {
    for config in [config(), ModelConfig { tie_word_embeddings: false, ..config() }] {
        let folder = tempfile::tempdir().unwrap();
        let dir = folder.path().join("step-1");
        let model = model(config);
        model.save(&dir).unwrap();
        let loaded = Model::load(&dir, Kind::Float, device()).unwrap();
        assert_eq!(loaded.config(), model.config());
        assert_eq!(logits(&loaded), logits(&model));
        assert!(loaded.parameters().iter().all(|(_, parameter)| parameter.requires_grad()));
    }
}

#[cfg(unix)]
#[test]
fn who_may_read_the_configuration_may_read_the_weights() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    model(config()).save(folder.path()).unwrap();
    let mode = |name: &str| std::fs::metadata(folder.path().join(name)).unwrap().permissions().mode();
    assert_eq!(mode("model.safetensors"), mode("config.json"));
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 2, "nothing else is left there");
}

#[test]
fn the_file_has_the_names_and_shapes_of_transformers() {
    let folder = tempfile::tempdir().unwrap();
    model(ModelConfig { num_hidden_layers: 1, ..config() }).save(folder.path()).unwrap();
    let bytes = std::fs::read(folder.path().join("model.safetensors")).unwrap();
    let (_, header) = safetensors::SafeTensors::read_metadata(&bytes).unwrap();
    assert_eq!(header.metadata(), &Some(HashMap::from([("format".to_owned(), "pt".to_owned())])));
    let mut shapes: Vec<String> =
        header.tensors().iter().map(|(name, info)| format!("{name} {:?}", info.shape)).collect();
    shapes.sort();
    let layer = [
        "input_layernorm.weight [16]",
        "mlp.down_proj.weight [16, 24]",
        "mlp.gate_proj.weight [24, 16]",
        "mlp.up_proj.weight [24, 16]",
        "post_attention_layernorm.weight [16]",
        "self_attn.k_proj.bias [8]",
        "self_attn.k_proj.weight [8, 16]",
        "self_attn.o_proj.weight [16, 16]",
        "self_attn.q_proj.bias [16]",
        "self_attn.q_proj.weight [16, 16]",
        "self_attn.v_proj.bias [8]",
        "self_attn.v_proj.weight [8, 16]",
    ];
    let mut expected = vec!["model.embed_tokens.weight [31, 16]".to_owned()];
    expected.extend(layer.map(|name| format!("model.layers.0.{name}")));
    expected.push("model.norm.weight [16]".into());
    assert_eq!(shapes, expected);
}

#[test]
fn shards_and_half_precision_are_read() {
    let folder = tempfile::tempdir().unwrap();
    let model = model(config());
    model.save(folder.path()).unwrap();
    std::fs::remove_file(folder.path().join("model.safetensors")).unwrap();
    let halves = entries(&model, Kind::BFloat16);
    let (first, second) = halves.split_at(9);
    let shard = |number: usize| format!("model-0000{number}-of-00002.safetensors");
    write(&folder.path().join(shard(1)), Dtype::BF16, first);
    write(&folder.path().join(shard(2)), Dtype::BF16, second);
    let place = |(index, entry): (usize, &Entry)| (entry.0.clone(), shard(if index < 9 { 1 } else { 2 }));
    let map: HashMap<String, String> = halves.iter().enumerate().map(place).collect();
    let index = serde_json::json!({"metadata": {}, "weight_map": map});
    std::fs::write(folder.path().join("model.safetensors.index.json"), index.to_string()).unwrap();
    let loaded = Model::load(folder.path(), Kind::Float, device()).unwrap();
    let rounded = model.to_kind(Kind::BFloat16).unwrap().to_kind(Kind::Float).unwrap();
    assert_eq!(logits(&loaded), logits(&rounded));
}

#[test]
fn a_broken_checkpoint_is_named() {
    let model = model(config());
    let whole = entries(&model, Kind::Float);
    let attempt = |change: &dyn Fn(&Path)| {
        let folder = tempfile::tempdir().unwrap();
        model.save(folder.path()).unwrap();
        change(folder.path());
        let error = Model::load(folder.path(), Kind::Float, device()).err().expect("the checkpoint is broken");
        error.to_string().replace(&folder.path().display().to_string(), "DIR")
    };
    let with =
        |dtype: Dtype, entries: Vec<Entry>| attempt(&|dir| write(&dir.join("model.safetensors"), dtype, &entries));

    assert!(
        attempt(&|dir| std::fs::remove_file(dir.join("model.safetensors")).unwrap())
            .starts_with("cannot read DIR/model.safetensors: ")
    );
    assert!(
        attempt(&|dir| std::fs::remove_file(dir.join("config.json")).unwrap())
            .starts_with("cannot read DIR/config.json: ")
    );
    assert!(
        attempt(&|dir| std::fs::write(dir.join("config.json"), r#"{"vocab_size": 31}"#).unwrap())
            .starts_with("DIR/config.json: model configuration: missing field `hidden_size`")
    );
    // Zeros of these sizes would take 200 GB.
    let error = attempt(&|dir| {
        let path = dir.join("config.json");
        let text =
            std::fs::read_to_string(&path).unwrap().replace("\"num_hidden_layers\": 2", "\"num_hidden_layers\": 999");
        std::fs::write(path, text.replace("\"intermediate_size\": 24", "\"intermediate_size\": 2000000")).unwrap();
    });
    assert!(
        error.starts_with("DIR/config.json: a model of these sizes has 19")
            && error.contains(" bytes or more, and the files of its weights have "),
        "{error}"
    );
    assert!(
        attempt(&|dir| std::fs::write(dir.join("model.safetensors"), b"nonsense").unwrap())
            .starts_with("DIR/model.safetensors: not a safetensors file: ")
    );
    assert_eq!(
        with(Dtype::F32, whole[1..].to_vec()),
        "DIR/model.safetensors: tensor `model.embed_tokens.weight` of shape [31, 16] is missing (1 tensors are missing in all)"
    );
    // With shards, the error is about the shard that the index names, or else
    // about the index.
    let shards = |map: serde_json::Value| {
        attempt(&|dir| {
            std::fs::remove_file(dir.join("model.safetensors")).unwrap();
            write(&dir.join("shard.safetensors"), Dtype::F32, &whole[1..]);
            let index = serde_json::json!({"weight_map": map}).to_string();
            std::fs::write(dir.join("model.safetensors.index.json"), index).unwrap();
        })
    };
    let named = serde_json::json!({"model.embed_tokens.weight": "shard.safetensors"});
    assert!(shards(named).starts_with("DIR/shard.safetensors: tensor `model.embed_tokens.weight` of shape "));
    let silent = serde_json::json!({"model.norm.weight": "shard.safetensors"});
    assert!(
        shards(silent).starts_with("DIR/model.safetensors.index.json: tensor `model.embed_tokens.weight` of shape ")
    );
    let mut reshaped = whole.clone();
    reshaped[0].1 = vec![16, 31];
    assert_eq!(
        with(Dtype::F32, reshaped),
        "DIR/model.safetensors: tensor `model.embed_tokens.weight` has shape [16, 31], expected [31, 16]"
    );
    let mut extra = whole.clone();
    extra.push(("model.layers.0.self_attn.q_norm.weight".into(), vec![1], vec![0; 4]));
    assert_eq!(
        with(Dtype::F32, extra),
        "DIR/model.safetensors: tensor `model.layers.0.self_attn.q_norm.weight` has no place in this model: is `config.json` that of these weights?"
    );
    assert!(with(Dtype::I32, whole.clone()).ends_with("has type I32; expected F32, BF16, F16 or F64"));
}

#[test]
fn a_tied_head_in_the_file_is_the_embedding_or_refused() {
    let model = model(config());
    let embedding = entries(&model, Kind::Float).remove(0);
    let (_, shape, bytes) = embedding.clone();
    let load = |change: &dyn Fn(&mut Vec<Entry>)| {
        let folder = tempfile::tempdir().unwrap();
        model.save(folder.path()).unwrap();
        let mut all = entries(&model, Kind::Float);
        change(&mut all);
        write(&folder.path().join("model.safetensors"), Dtype::F32, &all);
        let load = |load: fn(&Path) -> Result<Model, gavel_policy::PolicyError>| {
            load(folder.path()).map_err(|error| error.to_string().replace(folder.path().to_str().unwrap(), "DIR"))
        };
        (
            load(|dir| Model::load(dir, Kind::Float, device())),
            load(|dir| Model::load_reward_model(dir, Kind::Float, device(), 1, None)),
        )
    };
    let head = |bytes: &[u8]| ("lm_head.weight".to_owned(), shape.clone(), bytes.to_vec());
    let twice = load(&|all| all.push(head(&bytes)));
    assert_eq!(logits(&twice.0.unwrap()), logits(&model));
    // safetensors keeps the first of the names that share memory.
    let only_head = load(&|all| all[0].0 = "lm_head.weight".into());
    assert_eq!(logits(&only_head.0.unwrap()), logits(&model));
    assert!(only_head.1.unwrap().parameters()[0].1.equal(&model.parameters()[0].1));
    let mut other = bytes.clone();
    other[3] ^= 0x80;
    let (language_model, reward_model) = load(&|all| all.push(head(&other)));
    assert_eq!(
        language_model.err().unwrap(),
        "DIR/model.safetensors: tensor `lm_head.weight` is not `model.embed_tokens.weight`, to which `tie_word_embeddings` in config.json ties it\nhint: set that to false to use this head; to use the embedding, remove the tensor"
    );
    assert!(reward_model.is_ok(), "a reward model has a head of its own");
    let error = load(&|all| all.push(("lm_head.weight".into(), vec![1], vec![0; 4]))).0.err().unwrap();
    assert_eq!(error, "DIR/model.safetensors: tensor `lm_head.weight` has shape [1], expected [31, 16]");
}
