//! A model with weights in fewer bits, which only draws.

use crate::device::name;
use crate::error::{PolicyError, Result};
use crate::fast_paths::random_like;
use crate::fp8::Fp8Matrix;
use crate::layer::Layer;
use crate::model::Model;
use crate::quantization::{Quantization, Quantized};
use tch::{Device, Kind, Tensor};

impl Model {
    /// Refuses a device that has no products of such weights.
    pub(crate) fn check_quantization(&self, quantization: Quantization) -> Result<()> {
        let device = self.device();
        let hint = if device == Device::Cpu { ", or use \"int8\"" } else { "" };
        let refused = |why: &str| {
            Err(PolicyError::Input(format!(
                "quantization: weights in {quantization} cannot be used on {}: {why}\nhint: leave quantization out{hint}",
                name(device)
            )))
        };
        match (quantization, device) {
            (Quantization::Int8, Device::Cpu) => Ok(()),
            (Quantization::Int8, _) => refused("they are for the CPU"),
            (Quantization::Fp8, Device::Cuda(_)) => match differs(self) {
                Ok(None) => Ok(()),
                Ok(Some(found)) => refused(&format!("products differ by {:.0} % of the largest", found * 100.0)),
                Err(error) => refused(&error.to_string()),
            },
            (Quantization::Fp8, _) => refused("they are for GPUs"),
        }
    }

    /// The model to draw with in place of this one: the matrices of its layers are rounded now and, in int8, its head.
    /// Embeddings, norms, biases and adapters are in the same memory as those of this model.
    ///
    /// # Errors
    /// The device has no products of such weights, or the model is a classifier or a critic.
    pub fn quantized(&self, quantization: Quantization) -> Result<Self> {
        let _guard = tch::no_grad_guard();
        let head = quantization.includes_head().then(|| Quantized::of(self.language_head()?, quantization));
        Ok(Self {
            layers: self.layers.iter().map(|layer| layer.quantized(quantization)).collect::<Result<_>>()?,
            quantized_head: head.transpose()?,
            adapted: self.adapted.clone(),
            ..self.base()?
        })
    }
}

/// How far products of fp8 are from the products of the weights of the model's first layer, relative to the largest
/// number, if it is more than rounding explains.
fn differs(model: &Model) -> Result<Option<f64>> {
    let _guard = tch::no_grad_guard();
    for linear in model.layers.first().map(Layer::linears).into_iter().flatten() {
        for rows in [1, 40] {
            let x = random_like(&[rows, linear.weight.size()[1]], rows, model.kind(), model.device())?;
            let fast = Fp8Matrix::of(&linear.weight)?.product(&x)?.f_to_kind(Kind::Double)?;
            let plain = x.f_linear(&linear.weight, None::<&Tensor>)?.f_to_kind(Kind::Double)?;
            let largest = |x: &Tensor| x.f_abs()?.f_max()?.f_double_value(&[]);
            let found = largest(&fast.f_sub(&plain)?)? / largest(&plain)?.max(f64::MIN_POSITIVE);
            // Each factor is rounded by up to a sixteenth, and the errors of a sum hardly ever add up.
            if found.is_nan() || found > 0.125 {
                return Ok(Some(found));
            }
        }
    }
    Ok(None)
}
