//! Checkpoints in the layout of Hugging Face: `config.json` with
//! `model.safetensors`, or shards named by `model.safetensors.index.json`.

use crate::config::{self, Head, ModelConfig};
use crate::error::{PolicyError, Result};
use crate::init;
use crate::json_file;
use crate::memory::Footprint;
use crate::model::Model;
use crate::model_folder::ModelFolder;
use crate::tensor_file::{self, TensorFile, io, stored_type};
use gavel_data::{WEIGHTS, WeightFiles};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::Path;
use tch::{Device, Kind, Tensor};

const EMBEDDING: &str = "model.embed_tokens.weight";
const HEAD: &str = "lm_head.weight";
/// How many bytes the files may have less than the weights, so that memory is taken before the missing tensors are
/// named.
const MISSING_BYTES: u64 = 1 << 30;

impl Model {
    /// Reads the checkpoint in the folder `dir`, or the adapter in it with its
    /// base ([`ModelFolder`]). The weights are converted to `kind`: `Float`,
    /// `BFloat16` or `Half`.
    pub fn load(dir: &Path, kind: Kind, device: Device) -> Result<Self> {
        let folder = ModelFolder::open(dir)?;
        let model = Self::load_weights(&folder.base, ModelConfig::load(dir)?, kind, device)?;
        let model = match &folder.adapter {
            Some(adapter) => model.with_adapter(adapter)?,
            None => model,
        };
        model.train_all(true)?;
        Ok(model)
    }

    /// Reads a critic from the folder `dir`, or makes one from a language model
    /// or from a classifier with one label. The layers are kept; the head gives
    /// the classifier's scores, or 0 everywhere for a language model.
    pub fn load_critic(dir: &Path, kind: Kind, device: Device) -> Result<Self> {
        if ModelFolder::open(dir)?.adapter.is_some() {
            return Err(PolicyError::Input(format!(
                "a critic is made from a plain checkpoint, and {} is an adapter\nhint: merge it first with `gavel merge`",
                dir.display()
            )));
        }
        let mut config = ModelConfig::load(dir)?;
        let labels = config.head.labels().unwrap_or(1);
        if labels != 1 {
            return Err(PolicyError::Checkpoint {
                path: dir.join(config::FILE),
                what: format!("a critic has one label, and this head has {labels}"),
            });
        }
        config.head = Head::Values { labels };
        let model = Self::load_weights(dir, config, kind, device)?;
        model.train_all(true)?;
        Ok(model)
    }

    /// Reads a reward model, a classifier with one label, from the folder `dir`,
    /// or makes one from a language model: its layers are kept, and the head is
    /// random, as in `transformers`, and depends on `seed`. `pad` is the token
    /// that fills up batches where `config.json` has none: `transformers` looks
    /// for the last other token, and reads the score there. The folder may also
    /// be a reward model's adapter.
    pub fn load_reward_model(dir: &Path, kind: Kind, device: Device, seed: u64, pad: Option<u32>) -> Result<Self> {
        let stored = ModelConfig::load(dir)?;
        if ModelFolder::open(dir)?.adapter.is_some() {
            if stored.head == Head::LanguageModel {
                return Err(PolicyError::Input(format!(
                    "a reward model is made from a plain checkpoint, and {} is the adapter of a language model\nhint: merge it first with `gavel merge`",
                    dir.display()
                )));
            }
            stored.for_reward_model()?;
            return Self::load(dir, kind, device);
        }
        let mut config = stored.clone().for_reward_model()?;
        config.pad_token_id = config.pad_token_id.or(pad);
        let model = Self::load_weights(dir, config, kind, device)?;
        if stored.head == Head::LanguageModel
            && let Some(head) = &model.head
        {
            let _guard = tch::no_grad_guard();
            let drawn = init::normal(seed, 0, &head.size(), model.config.initializer_range)?;
            head.shallow_clone().f_copy_(&drawn)?;
        }
        model.train_all(true)?;
        Ok(model)
    }

    /// Loads the weights in `dir` into a model of this configuration, whose
    /// head may differ from that in `config.json`.
    fn load_weights(dir: &Path, config: ModelConfig, kind: Kind, device: Device) -> Result<Self> {
        let stored = ModelConfig::load(dir)?;
        let files = WeightFiles::find(dir)?;
        could_have(&files, &stored, dir)?;
        let model = Self::zeros(config, kind, device)?;
        let mut missing: BTreeMap<String, Tensor> = model.named_weights()?.into_iter().collect();
        for path in &files.all {
            load_file(path, &mut missing, |name| is_passed_over(name, &stored, model.config()))?;
        }
        if stored.head == Head::LanguageModel && stored.tie_word_embeddings {
            tie_head(&files, &model, &mut missing)?;
        }
        // A critic or reward model that is made from another model starts with that model's head, if it has one.
        let begins = match stored.head {
            head if head == model.config().head => None,
            Head::LanguageModel => Some("score."),
            _ => Some("score.bias"),
        };
        missing.retain(|name, _| begins.is_none_or(|new| !name.starts_with(new)));
        if let Some((name, tensor)) = missing.first_key_value() {
            return Err(PolicyError::Checkpoint {
                path: files.of(name).to_owned(),
                what: format!(
                    "tensor `{name}` of shape {:?} is missing ({} tensors are missing in all)",
                    tensor.size(),
                    missing.len()
                ),
            });
        }
        Ok(model)
    }

    /// Writes the model into the folder `dir`, which is created if it is
    /// missing: `config.json` and `model.safetensors` in the dtype of the
    /// model. A model with adapters writes only the adapters, as PEFT does.
    /// Files are not replaced atomically: save to a new folder and rename it.
    pub fn save(&self, dir: &Path) -> Result<()> {
        std::fs::create_dir_all(dir).map_err(io("create", dir))?;
        if self.is_adapted() {
            return self.save_adapter(dir);
        }
        let path = dir.join(config::FILE);
        let failed = |error: serde_json::Error| PolicyError::Checkpoint { path: path.clone(), what: error.to_string() };
        let mut config = serde_json::to_value(self.config()).map_err(failed)?;
        config["torch_dtype"] = stored_type(self.kind()).1.into();
        std::fs::write(&path, format!("{config:#}\n")).map_err(io("write", &path))?;
        tensor_file::write(&dir.join(WEIGHTS), self.named_weights()?)
    }
}

/// The dtype of the weights according to `config.json` of the model in the
/// folder `dir`; `Float` if the key is absent.
pub fn stored_kind(dir: &Path) -> Result<Kind> {
    #[derive(Deserialize)]
    struct Types {
        /// As transformers 5 calls it.
        dtype: Option<String>,
        torch_dtype: Option<String>,
    }
    let path = ModelFolder::open(dir)?.base.join(config::FILE);
    let text = json_file::read(&path)?;
    let wrong = |what: String| PolicyError::Checkpoint { path: path.clone(), what };
    let types: Types = serde_json::from_str(&text).map_err(|error| wrong(error.to_string()))?;
    match types.dtype.or(types.torch_dtype).as_deref() {
        None | Some("float32" | "float64") => Ok(Kind::Float),
        Some("bfloat16") => Ok(Kind::BFloat16),
        Some("float16") => Ok(Kind::Half),
        Some(other) => Err(wrong(format!("`dtype` {other:?} is not supported; float32, bfloat16 and float16 are"))),
    }
}

/// Checks that the files in `dir` are not far too small for the weights of `config`, whose memory is taken before
/// they are read. Single tensors that are missing are found by name afterwards.
fn could_have(files: &WeightFiles, config: &ModelConfig, dir: &Path) -> Result<()> {
    let sizes = files.all.iter().filter_map(|file| Some(file.metadata().ok()?.len()));
    let found = sizes.fold(0, u64::saturating_add);
    let needed = Footprint::new(config, Kind::Half, Device::Cpu).weights();
    match needed > found.saturating_add(MISSING_BYTES) {
        false => Ok(()),
        true => Err(PolicyError::Checkpoint {
            path: dir.join(config::FILE),
            what: format!(
                "a model of these sizes has {needed} bytes or more, and the files of its weights have {found}"
            ),
        }),
    }
}

/// Fills the tensors of `missing` that the file has, and takes them out.
fn load_file(path: &Path, missing: &mut BTreeMap<String, Tensor>, passed_over: impl Fn(&str) -> bool) -> Result<()> {
    let file = TensorFile::open(path)?;
    for (name, view) in file.tensors()?.iter() {
        match missing.remove(name) {
            Some(mut target) => file.copy(name, &view, &mut target)?,
            None if passed_over(name) => {}
            None => {
                return Err(file.wrong(format!(
                    "tensor `{name}` has no place in this model: is `config.json` that of these weights?"
                )));
            }
        }
    }
    Ok(())
}

/// Ties a head that a file has in spite of `tie_word_embeddings`: it must be the embedding, or takes its place.
fn tie_head(files: &WeightFiles, model: &Model, missing: &mut BTreeMap<String, Tensor>) -> Result<()> {
    for path in &files.all {
        let file = TensorFile::open(path)?;
        let Ok(view) = file.tensors()?.tensor(HEAD) else { continue };
        // safetensors itself keeps one name of tensors that share memory, and not always the embedding's.
        if let Some(mut embedding) = missing.remove(EMBEDDING) {
            file.copy(HEAD, &view, &mut embedding)?;
        } else if model.config().head == Head::LanguageModel {
            let mut head = model.embedding.f_zeros_like()?;
            file.copy(HEAD, &view, &mut head)?;
            if !head.f_equal(&model.embedding)? {
                return Err(file.wrong(format!(
                    "tensor `{HEAD}` is not `{EMBEDDING}`, to which `tie_word_embeddings` in config.json ties it\nhint: set that to false to use this head; to use the embedding, remove the tensor"
                )));
            }
        }
    }
    Ok(())
}

/// Tensors that some checkpoints hold although they follow from the rest, and
/// the head of a language model that becomes a critic or a reward model.
fn is_passed_over(name: &str, stored: &ModelConfig, model: &ModelConfig) -> bool {
    let replaced = model.head != stored.head && stored.head == Head::LanguageModel;
    name.ends_with("rotary_emb.inv_freq") || (name == HEAD && (stored.tie_word_embeddings || replaced))
}
