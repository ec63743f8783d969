//! Adapters in the layout of PEFT: `adapter_config.json` with
//! `adapter_model.safetensors`.

use super::adapter_config::AdapterConfigFile;
use super::module::Module;
use super::sizes::{Adapted, Size, Sizes};
use crate::config::Head;
use crate::error::{PolicyError, Result};
use crate::model::Model;
use crate::tensor_file::{self, TensorFile};
use std::collections::BTreeMap;
use std::path::Path;
use tch::Tensor;

const FILE: &str = "adapter_model.safetensors";
/// The highest rank, whose memory is taken before the file's other tensors are read: a tensor without columns has none.
const MOST_ROWS: i64 = 1 << 16;
/// What PEFT's classes put before the names of a model's tensors.
const PREFIX: &str = "base_model.model.";

/// The head of the model with the adapter in the folder `dir`, whose base has `base`.
pub(crate) fn head(dir: &Path, base: Head) -> Result<Head> {
    let config = AdapterConfigFile::load(dir)?;
    let file = TensorFile::open(&dir.join(FILE))?;
    let own = file.tensors()?.iter().find(|(name, _)| *name == format!("{PREFIX}score.weight")).map(|(_, view)| view);
    Ok(config.head(base, own.and_then(|view| tensor_file::sizes(&view).first().copied())))
}

/// The number of parameters of the adapter in the folder `dir`.
pub fn adapter_parameters(dir: &Path) -> Result<u64> {
    let file = TensorFile::open(&dir.join(FILE))?;
    let tensors = file.tensors()?;
    Ok(tensors.iter().map(|(_, view)| view.shape().iter().product::<usize>() as u64).sum())
}

impl Model {
    /// The model with the adapter in the folder `dir`, whichever base the
    /// adapter names. Nothing needs a gradient.
    pub fn with_adapter(mut self, dir: &Path) -> Result<Self> {
        self.train_all(false)?;
        let config = AdapterConfigFile::load(dir)?;
        let file = TensorFile::open(&dir.join(FILE))?;
        let tensors = file.tensors()?;
        let mut sizes = Sizes::new();
        let own_head: Vec<String> = self.own_head().into_iter().map(|(name, _)| format!("{PREFIX}{name}")).collect();
        for (name, view) in tensors.iter().filter(|(name, _)| !own_head.iter().any(|head| head == name)) {
            let Some((layer, module, half)) = parse(name).filter(|(layer, ..)| *layer < self.layers.len()) else {
                let known = Module::ALL.map(Module::name).join(", ");
                return Err(file.wrong(format!(
                    "tensor `{name}` has no place in this model; only LoRA of its layers' linear maps ({known}) is supported"
                )));
            };
            if half == Half::A {
                let rank = tensor_file::sizes(&view).first().copied().unwrap_or(0);
                let alpha = config.alpha(&format!("model.layers.{layer}.{}", module.path()));
                if rank == 0 {
                    return Err(file.wrong(format!("tensor `{name}` has no rows")));
                }
                if rank > MOST_ROWS {
                    return Err(
                        file.wrong(format!("tensor `{name}` has {rank} rows; at most {MOST_ROWS} are supported"))
                    );
                }
                sizes.insert((layer, module), Size { rank, alpha });
            }
        }
        if sizes.is_empty() {
            return Err(file.wrong("there is no adapter in it".into()));
        }
        let base = config.base_model_name_or_path.clone().unwrap_or_default();
        self.put_adapters(&sizes, Adapted { base, rslora: config.rslora() })?;

        let mut missing: BTreeMap<String, Tensor> = self.named_adapters()?.into_iter().collect();
        for (name, view) in tensors.iter() {
            match missing.remove(name) {
                Some(mut target) => file.copy(name, &view, &mut target)?,
                None => return Err(file.wrong(format!("tensor `{name}` has no lora_A beside it"))),
            }
        }
        match missing.first_key_value() {
            Some((name, tensor)) => Err(file.wrong(format!("tensor `{name}` of shape {:?} is missing", tensor.size()))),
            None => Ok(self),
        }
    }

    pub(crate) fn save_adapter(&self, dir: &Path) -> Result<()> {
        let Some(Adapted { base, rslora }) = &self.adapted else {
            return Err(PolicyError::Input("the model has no adapter to save".into()));
        };
        let (head, layers) = (self.config.head, self.layers.len());
        AdapterConfigFile::save(dir, base, *rslora, head, layers, &self.adapter_sizes())?;
        tensor_file::write(&dir.join(FILE), self.named_adapters()?)
    }

    /// Every tensor that belongs to the adapters, with its name and shape in PEFT's file: the adapters, and the head of
    /// a classifier or critic. It is empty for a model without adapters.
    /// They share their memory with the model and carry no gradient.
    pub fn named_adapters(&self) -> Result<Vec<(String, Tensor)>> {
        let mut all = Vec::new();
        let trained = if self.is_adapted() { self.parameters() } else { Vec::new() };
        for (name, tensor) in trained {
            let parts = self.parts(&name, &tensor.f_detach()?)?;
            all.extend(parts.into_iter().map(|(name, part)| (format!("{PREFIX}{name}"), part)));
        }
        Ok(all)
    }
}

#[derive(PartialEq)]
enum Half {
    A,
    B,
}

/// The layer, module and half that a tensor's name in PEFT's file gives.
fn parse(name: &str) -> Option<(usize, Module, Half)> {
    let (layer, rest) = name.strip_prefix(PREFIX)?.strip_prefix("model.layers.")?.split_once('.')?;
    Module::ALL.into_iter().find_map(|module| {
        let half = match rest.strip_prefix(module.path())? {
            ".lora_A.weight" => Half::A,
            ".lora_B.weight" => Half::B,
            _ => return None,
        };
        Some((layer.parse().ok()?, module, half))
    })
}
