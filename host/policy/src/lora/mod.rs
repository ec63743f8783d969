//! Low-rank adapters (Hu et al., "LoRA", arXiv:2106.09685): beside a frozen
//! matrix W stands a product B·A of low rank, which is what is trained. They
//! are computed apart from W, in rollout as in training, so that both have the
//! same rounding and W is there once.

mod adapter;
mod adapter_config;
mod files;
mod settings;

pub(crate) use adapter::{Adapter, Size};
pub(crate) use adapter_config::AdapterConfig;
pub use files::adapter_parameters;
pub use settings::{LoraConfig, Module};

use crate::error::{PolicyError, Result};
use crate::init;
use crate::model::Model;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use tch::Tensor;

/// The sizes of a model's adapters, by layer and module.
pub(crate) type Sizes = BTreeMap<(usize, Module), Size>;

/// What all adapters of a model have in common.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Adapted {
    /// The folder of the weights that they stand beside.
    pub(crate) base: PathBuf,
    /// Whether they are scaled by `alpha / sqrt(rank)` (Kalajdzievski,
    /// arXiv:2312.03732) and not by `alpha / rank`.
    pub(crate) rslora: bool,
}

impl Model {
    /// The model with fresh adapters, which alone are trained from here on;
    /// its weights are those in the folder `base`. A is uniform within
    /// `±1 / sqrt(in)`, as in PEFT, a function of `seed`; B is 0, so that
    /// nothing is changed yet.
    pub fn adapt(mut self, config: &LoraConfig, base: &Path, seed: u64) -> Result<Self> {
        config.validate()?;
        if self.is_adapted() {
            return Err(PolicyError::Input("the model has adapters: merge them before it gets others".into()));
        }
        self.train_all(false)?;
        let size = Size { rank: config.rank, alpha: config.alpha };
        let layers = 0..self.layers.len();
        let sizes = layers.flat_map(|layer| config.target_modules.iter().map(move |module| ((layer, *module), size)));
        self.put_adapters(&sizes.collect(), Adapted { base: base.to_owned(), rslora: config.rslora })?;
        for (index, layer) in self.layers.iter().enumerate() {
            for linear in layer.linears() {
                let Some(adapter) = &linear.adapter else { continue };
                for (module, mut a) in adapter.each_a(linear)? {
                    let bound = (a.size()[1] as f64).sqrt().recip();
                    let _guard = tch::no_grad_guard();
                    a.f_copy_(&init::uniform(seed, index * Module::ALL.len() + module as usize, &a.size(), bound)?)?;
                }
            }
        }
        self.train_all(true)?;
        Ok(self)
    }

    /// Whether the model has adapters, which alone are then trained.
    pub fn is_adapted(&self) -> bool {
        self.adapted.is_some()
    }

    /// The model without its adapters and without gradients, in the same
    /// memory: the reference of a KL penalty that costs none.
    pub fn base(&self) -> Result<Self> {
        Ok(Self {
            config: self.config.clone(),
            kind: self.kind,
            device: self.device,
            embedding: self.embedding.f_detach()?,
            layers: self.layers.iter().map(|layer| layer.base()).collect::<Result<_>>()?,
            norm: self.norm.f_detach()?,
            head: self.head.as_ref().map(Tensor::f_detach).transpose()?,
            head_bias: self.head_bias.as_ref().map(Tensor::f_detach).transpose()?,
            rotary: self.rotary.shallow_clone(),
            adapted: None,
        })
    }

    /// The model with its adapters added to its weights, W + scale · B·A, a
    /// plain one. In 16 bits the sum is rounded, so that it does not compute
    /// quite the same.
    pub fn merge(mut self) -> Result<Self> {
        {
            let _guard = tch::no_grad_guard();
            self.layers.iter_mut().flat_map(|layer| layer.linears_mut()).try_for_each(|linear| linear.merge())?;
        }
        self.adapted = None;
        self.train_all(true)?;
        Ok(self)
    }

    /// The tensors of the adapters, with their names. `lora_A` of modules that
    /// read the same input is one tensor, as their weights are.
    pub(crate) fn adapters(&self) -> Vec<(String, Tensor)> {
        let mut all = Vec::new();
        for (index, layer) in self.layers.iter().enumerate() {
            for linear in layer.linears() {
                let tensors = linear.adapter.iter().flat_map(|adapter| adapter.tensors(linear));
                all.extend(tensors.map(|(name, tensor)| (format!("model.layers.{index}.{name}"), tensor)));
            }
        }
        all
    }

    pub(crate) fn adapter_sizes(&self) -> Sizes {
        let layers = self.layers.iter().enumerate();
        let linears = layers.flat_map(|(index, layer)| layer.linears().map(|linear| (index, linear)));
        let sizes = linears.flat_map(|(index, linear)| {
            let of = |adapter: &Adapter| adapter.sizes(linear).collect::<Vec<_>>();
            let sizes = linear.adapter.as_ref().map(of).unwrap_or_default();
            sizes.into_iter().map(move |(module, size)| ((index, module), size))
        });
        sizes.collect()
    }

    /// Puts adapters of these sizes on the model, all 0.
    pub(crate) fn put_adapters(&mut self, sizes: &Sizes, adapted: Adapted) -> Result<()> {
        for (index, layer) in self.layers.iter_mut().enumerate() {
            for linear in layer.linears_mut() {
                let size = |module| sizes.get(&(index, module)).copied();
                linear.adapter = Adapter::zeros(linear, size, adapted.rslora)?;
            }
        }
        self.adapted = Some(adapted);
        Ok(())
    }
}
