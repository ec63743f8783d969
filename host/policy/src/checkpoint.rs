//! Checkpoints in the layout of Hugging Face: `config.json` with
//! `model.safetensors`, or shards named by `model.safetensors.index.json`.

use crate::config::{self, ModelConfig};
use crate::error::{PolicyError, Result};
use crate::model::Model;
use memmap2::Mmap;
use safetensors::tensor::{Dtype, SafeTensors, TensorView, View};
use serde::Deserialize;
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs::File;
use std::path::{Path, PathBuf};
use tch::{Device, Kind, Tensor};

const WEIGHTS: &str = "model.safetensors";
const INDEX: &str = "model.safetensors.index.json";

impl Model {
    /// Reads the checkpoint in the folder `dir`; its weights become numbers of
    /// `kind`: `Float`, `BFloat16` or `Half`.
    pub fn load(dir: &Path, kind: Kind, device: Device) -> Result<Self> {
        let model = Self::zeros(ModelConfig::load(dir)?, kind, device)?;
        let mut missing: BTreeMap<String, Tensor> = model.named_weights()?.into_iter().collect();
        for path in weight_files(dir)? {
            load_file(&path, &mut missing, model.config())?;
        }
        if let Some((name, tensor)) = missing.first_key_value() {
            return Err(PolicyError::Checkpoint {
                path: dir.to_owned(),
                what: format!(
                    "tensor `{name}` of shape {:?} is missing ({} tensors are missing in all)",
                    tensor.size(),
                    missing.len()
                ),
            });
        }
        model.train_all(true)?;
        Ok(model)
    }

    /// Writes `config.json` and `model.safetensors` into the folder `dir`,
    /// which is made where it is missing, in the model's kind of numbers. Files
    /// are not replaced atomically: save to a new folder and rename it.
    pub fn save(&self, dir: &Path) -> Result<()> {
        std::fs::create_dir_all(dir).map_err(io("create", dir))?;
        let path = dir.join(config::FILE);
        let failed = |error: serde_json::Error| PolicyError::Checkpoint { path: path.clone(), what: error.to_string() };
        let mut config = serde_json::to_value(self.config()).map_err(failed)?;
        config["torch_dtype"] = stored_type(self.kind()).1.into();
        std::fs::write(&path, format!("{config:#}\n")).map_err(io("write", &path))?;

        let path = dir.join(WEIGHTS);
        let stored = |(name, tensor): (String, Tensor)| Ok((name, Stored::new(&tensor)?));
        let tensors = self.named_weights()?.into_iter().map(stored).collect::<Result<Vec<_>>>()?;
        // transformers refuses a file that does not say for which framework it is.
        let metadata = HashMap::from([("format".to_owned(), "pt".to_owned())]);
        safetensors::serialize_to_file(tensors, Some(metadata), &path)
            .map_err(|error| PolicyError::Checkpoint { path, what: format!("cannot be written: {error}") })
    }
}

/// The kind of numbers that `config.json` in the folder `dir` says its weights
/// are; `Float` where it says nothing.
pub fn stored_kind(dir: &Path) -> Result<Kind> {
    #[derive(Deserialize)]
    struct Types {
        /// As transformers 5 calls it.
        dtype: Option<String>,
        torch_dtype: Option<String>,
    }
    let path = dir.join(config::FILE);
    let text = std::fs::read_to_string(&path).map_err(io("read", &path))?;
    let wrong = |what: String| PolicyError::Checkpoint { path: path.clone(), what };
    let types: Types = serde_json::from_str(&text).map_err(|error| wrong(error.to_string()))?;
    match types.dtype.or(types.torch_dtype).as_deref() {
        None | Some("float32" | "float64") => Ok(Kind::Float),
        Some("bfloat16") => Ok(Kind::BFloat16),
        Some("float16") => Ok(Kind::Half),
        Some(other) => Err(wrong(format!("`dtype` {other:?} is not supported; float32, bfloat16 and float16 are"))),
    }
}

fn io(action: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> PolicyError {
    let path = path.to_owned();
    move |source| PolicyError::Io { action, path, source }
}

/// The files that hold the weights.
fn weight_files(dir: &Path) -> Result<Vec<PathBuf>> {
    #[derive(Deserialize)]
    struct Index {
        weight_map: BTreeMap<String, String>,
    }
    let (single, index) = (dir.join(WEIGHTS), dir.join(INDEX));
    if single.exists() || !index.exists() {
        return Ok(vec![single]);
    }
    let text = std::fs::read_to_string(&index).map_err(io("read", &index))?;
    let wrong = |what: String| PolicyError::Checkpoint { path: index.clone(), what };
    let parsed: Index = serde_json::from_str(&text).map_err(|error| wrong(error.to_string()))?;
    let shards: BTreeSet<String> = parsed.weight_map.into_values().collect();
    let shard = |name: String| match Path::new(&name).file_name() {
        Some(file) if file == name.as_str() => Ok(dir.join(name)),
        _ => Err(wrong(format!("shard {name:?} is not the name of a file beside it"))),
    };
    shards.into_iter().map(shard).collect()
}

/// Fills the tensors of `missing` that the file has, and takes them out.
fn load_file(path: &Path, missing: &mut BTreeMap<String, Tensor>, config: &ModelConfig) -> Result<()> {
    let file = File::open(path).map_err(io("read", path))?;
    // SAFETY: the map is private and only lives in this function; a checkpoint that another process
    // truncates meanwhile would raise SIGBUS, as with every reader of safetensors.
    let map = unsafe { Mmap::map(&file) }.map_err(io("read", path))?;
    let wrong = |what: String| PolicyError::Checkpoint { path: path.to_owned(), what };
    let tensors = SafeTensors::deserialize(&map).map_err(|error| wrong(format!("not a safetensors file: {error}")))?;
    let _guard = tch::no_grad_guard();
    for (name, view) in tensors.iter() {
        let Some(mut target) = missing.remove(name) else {
            if is_derived(name, config) {
                continue;
            }
            return Err(wrong(format!(
                "tensor `{name}` has no place in this model: is `config.json` that of these weights?"
            )));
        };
        let shape: Vec<i64> = view.shape().iter().map(|&size| size as i64).collect();
        if shape != target.size() {
            return Err(wrong(format!("tensor `{name}` has shape {shape:?}, expected {:?}", target.size())));
        }
        target.f_copy_(&read(name, &view, &shape).map_err(wrong)?)?;
    }
    Ok(())
}

/// Tensors that some checkpoints hold although they follow from the rest.
fn is_derived(name: &str, config: &ModelConfig) -> bool {
    name.ends_with("rotary_emb.inv_freq") || (name == "lm_head.weight" && config.tie_word_embeddings)
}

fn read(name: &str, view: &TensorView, shape: &[i64]) -> std::result::Result<Tensor, String> {
    let kind = match view.dtype() {
        Dtype::F32 => Kind::Float,
        Dtype::F16 => Kind::Half,
        Dtype::BF16 => Kind::BFloat16,
        Dtype::F64 => Kind::Double,
        other => return Err(format!("tensor `{name}` has type {other:?}; expected F32, BF16, F16 or F64")),
    };
    Tensor::f_from_data_size(view.data(), shape, kind)
        .map_err(|error| format!("tensor `{name}`: {}", PolicyError::from(error)))
}

/// How numbers of a kind are stored, and the name that `config.json` gives
/// them. Doubles become floats.
fn stored_type(kind: Kind) -> (Kind, &'static str) {
    match kind {
        Kind::BFloat16 => (Kind::BFloat16, "bfloat16"),
        Kind::Half => (Kind::Half, "float16"),
        _ => (Kind::Float, "float32"),
    }
}

/// A tensor on its way into a file.
struct Stored {
    tensor: Tensor,
    shape: Vec<usize>,
}

impl Stored {
    fn new(tensor: &Tensor) -> Result<Self> {
        let (kind, _) = stored_type(tensor.kind());
        let tensor = tensor.f_to_device(Device::Cpu)?.f_to_kind(kind)?.f_contiguous()?;
        let shape = tensor.size().into_iter().map(|size| size as usize).collect();
        Ok(Self { tensor, shape })
    }
}

impl View for Stored {
    fn dtype(&self) -> Dtype {
        match self.tensor.kind() {
            Kind::BFloat16 => Dtype::BF16,
            Kind::Half => Dtype::F16,
            _ => Dtype::F32,
        }
    }

    fn shape(&self) -> &[usize] {
        &self.shape
    }

    fn data(&self) -> Cow<'_, [u8]> {
        // SAFETY: the tensor is contiguous, on the CPU and of the kind of `dtype`, so that `data_len` bytes
        // are initialised from `data_ptr` on; `self` keeps them alive and nothing writes to them.
        Cow::Borrowed(unsafe { std::slice::from_raw_parts(self.tensor.data_ptr().cast(), self.data_len()) })
    }

    fn data_len(&self) -> usize {
        self.shape.iter().product::<usize>() * self.tensor.kind().elt_size_in_bytes()
    }
}
