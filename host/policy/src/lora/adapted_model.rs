//! A model with adapters: adding them, leaving them out, and merging them into
//! its weights.

use super::config::LoraConfig;
use super::module::Module;
use super::sizes::{Adapted, Size};
use crate::error::{PolicyError, Result};
use crate::init;
use crate::model::Model;
use std::path::Path;
use tch::Tensor;

impl Model {
    /// The model with fresh adapters; only these are trained from now on. Its
    /// weights are those in the folder `base`. A is uniform within `±1 /
    /// sqrt(in)`, as in PEFT, and depends on `seed`. B is 0, so that the model
    /// computes the same at first.
    pub fn adapt(mut self, config: &LoraConfig, base: &Path, seed: u64) -> Result<Self> {
        config.validate()?;
        if self.is_adapted() {
            return Err(PolicyError::Input(
                "the model already has adapters\nhint: merge them before you add others".into(),
            ));
        }
        self.train_all(false)?;
        let size = Size { rank: config.rank, alpha: config.alpha };
        let layers = 0..self.layers.len();
        let sizes = layers.flat_map(|layer| config.target_modules.iter().map(move |module| ((layer, *module), size)));
        self.put_adapters(&sizes.collect(), Adapted { base: base.to_owned(), rslora: config.rslora })?;
        for (index, layer) in self.layers.iter().enumerate() {
            for linear in layer.linears() {
                let Some(adapter) = &linear.adapter else { continue };
                for (module, mut a) in adapter.each_a()? {
                    let bound = (a.size()[1] as f64).sqrt().recip();
                    let _guard = tch::no_grad_guard();
                    a.f_copy_(&init::uniform(seed, index * Module::ALL.len() + module as usize, &a.size(), bound)?)?;
                }
            }
        }
        self.train_all(true)?;
        Ok(self)
    }

    /// The model without its adapters and without gradients, in the same
    /// memory. It is the reference of a KL penalty and takes no memory of its
    /// own.
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
            quantized_head: None,
            rotary: self.rotary.shallow_clone(),
            adapted: None,
        })
    }

    /// The plain model with the adapters added to its weights: W + scale · B·A.
    /// In 16 bits the sum is rounded, so that the results differ slightly.
    pub fn merge(mut self) -> Result<Self> {
        {
            let _guard = tch::no_grad_guard();
            self.layers.iter_mut().flat_map(|layer| layer.linears_mut()).try_for_each(|linear| linear.merge())?;
        }
        self.adapted = None;
        self.train_all(true)?;
        Ok(self)
    }
}
