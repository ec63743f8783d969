//! Adapters in the layout of PEFT: `adapter_config.json` with
//! `adapter_model.safetensors`.

use super::adapter::Adapter;
use super::adapter_config::AdapterConfigFile;
use super::module::Module;
use super::sizes::{Adapted, Size, Sizes};
use crate::config::Head;
use crate::error::{PolicyError, Result};
use crate::model::Model;
use crate::tensor_file::{self, TensorFile};
use safetensors::SafeTensors;
use std::collections::BTreeMap;
use std::path::Path;
use tch::Tensor;

const FILE: &str = "adapter_model.safetensors";
/// The highest rank.
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
        self.check_halves(&file, &tensors, &sizes)?;
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
            // The head of a classifier or critic.
            Some((name, tensor)) => Err(file.wrong(format!("tensor `{name}` of shape {:?} is missing", tensor.size()))),
            None => Ok(self),
        }
    }

    /// Checks that the file has both halves of adapters of these sizes, whose memory is taken before they are read.
    fn check_halves(&self, file: &TensorFile, tensors: &SafeTensors<'_>, sizes: &Sizes) -> Result<()> {
        for (index, layer) in self.layers.iter().enumerate() {
            for linear in layer.linears() {
                let columns = linear.weight.size()[1];
                for &(module, rows) in &linear.modules {
                    let Some(Size { rank, .. }) = sizes.get(&(index, module)) else { continue };
                    for (half, shape) in [(Adapter::A, [*rank, columns]), (Adapter::B, [rows, *rank])] {
                        let name = format!("{PREFIX}model.layers.{index}.{}.{half}", module.path());
                        let Ok(view) = tensors.tensor(&name) else {
                            return Err(file.wrong(format!("tensor `{name}` of shape {shape:?} is missing")));
                        };
                        file.shape(&name, &view, &shape)?;
                    }
                }
            }
        }
        Ok(())
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::ModelConfig;
    use safetensors::{Dtype, tensor::TensorView};
    use tch::{Device, Kind};

    /// Memory for a rank is taken only if the file has it: a tensor without columns has any rank, and no bytes.
    #[test]
    fn both_halves_are_checked_before_they_have_memory() {
        let json = r#"{"model_type":"qwen2","vocab_size":50,"hidden_size":32,"intermediate_size":24,"num_hidden_layers":1,"num_attention_heads":4,"num_key_value_heads":2,"head_dim":8}"#;
        let config: ModelConfig = serde_json::from_str(json).unwrap();
        let model = Model::zeros(config, Kind::Float, Device::Cpu).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(FILE);
        let bytes = [0; 2 * 32 * 4];
        let checked = |rank: i64, halves: &[(&str, Vec<usize>)]| {
            let view = |shape: &[usize]| {
                TensorView::new(Dtype::F32, shape.to_vec(), &bytes[..4 * shape.iter().product::<usize>()]).unwrap()
            };
            let name = |half: &str| format!("{PREFIX}model.layers.0.self_attn.k_proj.lora_{half}.weight");
            let tensors = halves.iter().map(|(half, shape)| (name(half), view(shape)));
            safetensors::serialize_to_file(tensors, None, &path).unwrap();
            let file = TensorFile::open(&path).unwrap();
            let sizes = Sizes::from([((0, Module::Key), Size { rank, alpha: 1.0 })]);
            let checked = model.check_halves(&file, &file.tensors().unwrap(), &sizes);
            checked.map_err(|error| error.to_string().rsplit("k_proj.").next().unwrap_or_default().to_owned())
        };
        assert_eq!(checked(2, &[("A", vec![2, 32]), ("B", vec![16, 2])]), Ok(()));
        let wide = "lora_A.weight` has shape [65536, 0], expected [65536, 32]";
        assert_eq!(checked(1 << 16, &[("A", vec![1 << 16, 0])]), Err(wide.into()));
        let missing = "lora_B.weight` of shape [16, 2] is missing";
        assert_eq!(checked(2, &[("A", vec![2, 32])]), Err(missing.into()));
        let narrow = "lora_B.weight` has shape [2, 2], expected [16, 2]";
        assert_eq!(checked(2, &[("A", vec![2, 32]), ("B", vec![2, 2])]), Err(narrow.into()));
    }
}
