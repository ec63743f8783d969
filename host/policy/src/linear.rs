//! The linear maps of a layer.

use crate::error::Result;
use crate::lora::adapter::Adapter;
use crate::lora::module::Module;
use crate::quantization::{Quantization, Quantized};
use tch::{Device, Kind, Tensor};

/// A linear map, with adapters or without. Modules that read the same input are
/// one map, so that each is one multiplication.
pub(crate) struct Linear {
    /// Its name in the layer.
    pub(crate) name: &'static str,
    /// Its modules, with the rows that each has of it, in this order.
    pub(crate) modules: Vec<(Module, i64)>,
    /// `[out, in]`
    pub(crate) weight: Tensor,
    /// `[out]`
    pub(crate) bias: Option<Tensor>,
    pub(crate) adapter: Option<Adapter>,
    /// The weight in fewer bits, which products take in place of `weight` where the model only draws.
    pub(crate) quantized: Option<Quantized>,
}

impl Linear {
    /// A map of `input` numbers whose weights are 0.
    pub(crate) fn zeros(
        name: &'static str,
        modules: &[(Module, i64)],
        input: i64,
        bias: bool,
        options: (Kind, Device),
    ) -> Result<Self> {
        let rows: i64 = modules.iter().map(|(_, rows)| rows).sum();
        Ok(Self {
            name,
            modules: modules.to_vec(),
            weight: Tensor::f_zeros([rows, input], options)?,
            bias: if bias { Some(Tensor::f_zeros([rows], options)?) } else { None },
            adapter: None,
            quantized: None,
        })
    }

    /// `[tokens, in]` to `[tokens, out]`
    pub(crate) fn apply(&self, x: &Tensor) -> Result<Tensor> {
        let y = match &self.quantized {
            None => x.f_linear(&self.weight, self.bias.as_ref())?,
            Some(quantized) => quantized.product(x, self.bias.as_ref())?,
        };
        self.adapted(x, y)
    }

    /// The residual stream, `[tokens, out]`, plus the output for `x`, `[tokens,
    /// in]`, of a map without a bias.
    pub(crate) fn apply_onto(&self, residual: &Tensor, x: &Tensor) -> Result<Tensor> {
        let y = match &self.quantized {
            None => residual.f_addmm(x, &self.weight.f_tr()?)?,
            Some(quantized) => quantized.product(x, Some(residual))?,
        };
        self.adapted(x, y)
    }

    /// The same in the memory of `residual`, without gradients.
    pub(crate) fn apply_over(&self, mut residual: Tensor, x: &Tensor) -> Result<Tensor> {
        if self.quantized.is_some() {
            return self.apply_onto(&residual, x);
        }
        let y = residual.f_addmm_(x, &self.weight.f_tr()?)?;
        self.adapted(x, y)
    }

    fn adapted(&self, x: &Tensor, y: Tensor) -> Result<Tensor> {
        match &self.adapter {
            None => Ok(y),
            Some(adapter) => adapter.apply_onto(&y, x),
        }
    }

    /// The same map without adapters and gradients, in the same memory.
    pub(crate) fn base(&self) -> Result<Self> {
        Ok(Self {
            name: self.name,
            modules: self.modules.clone(),
            weight: self.weight.f_detach()?,
            bias: self.bias.as_ref().map(Tensor::f_detach).transpose()?,
            adapter: None,
            quantized: None,
        })
    }

    /// The same map with its weight in fewer bits, to draw with. Adapters stay as they are, in the same memory.
    pub(crate) fn quantized(&self, quantization: Quantization) -> Result<Self> {
        let quantized = Some(Quantized::of(&self.weight, quantization)?);
        Ok(Self { adapter: self.adapter.as_ref().map(Adapter::shallow_clone), quantized, ..self.base()? })
    }

    /// Adds the adapters to the weight, in new memory, and removes them.
    pub(crate) fn merge(&mut self) -> Result<()> {
        if let Some(adapter) = self.adapter.take() {
            self.weight = adapter.merged_with(&self.weight)?;
        }
        Ok(())
    }

    /// The parts of the tensor `what` of this map (`weight`, `bias`,
    /// `lora_A.weight`): modules, with their rows of it.
    pub(crate) fn parts(&self, what: &str) -> Vec<(Module, i64)> {
        match &self.adapter {
            Some(adapter) if what == Adapter::A => {
                self.modules.iter().zip(adapter.ranks()).map(|(&(module, _), rank)| (module, rank)).collect()
            }
            _ => self.modules.clone(),
        }
    }
}
