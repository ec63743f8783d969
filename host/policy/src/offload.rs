//! Weights that wait in host memory while something else needs the device.

use crate::error::Result;
use crate::model::Model;
use tch::{Device, Tensor};

/// A copy of a model's weights in host memory; for a model on the CPU, the weights themselves. The weights must not
/// change after it was made.
pub struct HostWeights(Vec<Tensor>);

impl HostWeights {
    /// Copies the weights of `model`.
    ///
    /// # Errors
    /// There is not enough host memory.
    pub fn of(model: &Model) -> Result<Self> {
        let _guard = tch::no_grad_guard();
        let copy = |(_, weight): (String, Tensor)| Ok(weight.f_detach()?.f_to_device(Device::Cpu)?);
        Ok(Self(model.weights().into_iter().map(copy).collect::<Result<_>>()?))
    }

    /// Frees the memory that the weights of `model` take on its device. Until [`restore`](Self::restore), the model
    /// cannot compute.
    ///
    /// # Errors
    /// libtorch failed.
    pub fn release(&self, model: &Model) -> Result<()> {
        self.set(model, |host| Ok(host.shallow_clone()))
    }

    /// Copies the weights to the device of `model` again.
    ///
    /// # Errors
    /// The device has no memory for them. The memory of those already copied is freed.
    pub fn restore(&self, model: &Model) -> Result<()> {
        let restored = self.set(model, |host| Ok(host.f_to_device(model.device())?));
        if restored.is_err() {
            self.release(model)?;
        }
        restored
    }

    fn set(&self, model: &Model, data: impl Fn(&Tensor) -> Result<Tensor>) -> Result<()> {
        let _guard = tch::no_grad_guard();
        for ((_, mut weight), host) in model.weights().into_iter().zip(&self.0) {
            weight.f_set_data(&data(host)?)?;
        }
        Ok(())
    }
}
