//! Random initial weights.

use crate::config::ModelConfig;
use crate::error::Result;
use crate::model::Model;
use crate::norm::Norm;
use gavel_data::seed::{self, Purpose};
use gavel_torch::scalar::ScalarOperations;
use tch::{Device, Kind, Tensor};

impl Model {
    /// A model with random weights, a function of `config` and `seed`: normal
    /// with the configuration's `initializer_range`, biases 0, norms of no effect.
    pub fn random(config: ModelConfig, seed: u64, device: Device) -> Result<Self> {
        config.validate()?;
        let model = Self::zeros(config, Kind::Float, device)?;
        for (index, (name, mut weight)) in model.named_weights()?.into_iter().enumerate() {
            let _guard = tch::no_grad_guard();
            if name.ends_with("norm.weight") {
                weight.try_fill_(Norm::initial(model.config.architecture))?;
            } else if !name.ends_with(".bias") {
                weight.f_copy_(&normal(seed, index, &weight.size(), model.config.initializer_range)?)?;
            }
        }
        model.train_all(true)?;
        Ok(model)
    }

    /// A model whose weights are noise from the device's own generator, for
    /// measurements. They are made on the device, in seconds for billions of
    /// them. [`random`](Self::random) gives the same weights each time.
    pub fn noise(config: ModelConfig, kind: Kind, device: Device) -> Result<Self> {
        config.validate()?;
        let model = Self::zeros(config, kind, device)?;
        for (name, mut weight) in model.parameters() {
            if name.ends_with("norm.weight") {
                weight.try_fill_(Norm::initial(model.config().architecture))?;
            } else if !name.ends_with(".bias") {
                let _ = weight.f_normal_(0.0, model.config().initializer_range)?;
            }
        }
        model.train_all(true)?;
        Ok(model)
    }
}

/// Normal values of mean 0 for the tensor number `index` of a model, by the
/// method of Box and Muller (1958). They depend only on `seed` and `index`.
pub(crate) fn normal(seed: u64, index: usize, shape: &[i64], std: f64) -> Result<Tensor> {
    let stream = seed::derive(seed, 0, index as u64, Purpose::Weights);
    let count = shape.iter().product::<i64>() as usize;
    let mut values = Vec::with_capacity(count + 1);
    while values.len() < count {
        let position = values.len() as u64;
        // 1 − u is in (0, 1], where the logarithm is finite.
        let radius = std * (-2.0 * (1.0 - seed::uniform(stream, position)).ln()).sqrt();
        let (sin, cos) = (std::f64::consts::TAU * seed::uniform(stream, position + 1)).sin_cos();
        values.extend([(radius * cos) as f32, (radius * sin) as f32]);
    }
    values.truncate(count);
    Ok(Tensor::f_from_slice(&values)?.f_view(shape)?)
}

/// Values uniform in `[-bound, bound)` for the tensor number `index`. They
/// depend only on `seed` and `index`.
pub(crate) fn uniform(seed: u64, index: usize, shape: &[i64], bound: f64) -> Result<Tensor> {
    let stream = seed::derive(seed, 0, index as u64, Purpose::Weights);
    let value = |position: i64| (bound * (2.0 * seed::uniform(stream, position as u64) - 1.0)) as f32;
    let values: Vec<f32> = (0..shape.iter().product()).map(value).collect();
    Ok(Tensor::f_from_slice(&values)?.f_view(shape)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tch::Kind;

    #[test]
    fn weights_are_normal_and_repeatable() {
        let x = normal(3, 1, &[101, 201], 0.02).unwrap();
        assert_eq!(x, normal(3, 1, &[101, 201], 0.02).unwrap());
        assert_ne!(x, normal(3, 2, &[101, 201], 0.02).unwrap());
        assert!(x.mean(Kind::Double).double_value(&[]).abs() < 5e-4);
        assert!((x.std(false).double_value(&[]) - 0.02).abs() < 4e-4);
        let beyond_two_sigma = x.abs().gt(0.04).to_kind(Kind::Double).mean(None).double_value(&[]);
        assert!((beyond_two_sigma - 0.0455).abs() < 0.006, "{beyond_two_sigma}");
    }

    #[test]
    fn adapters_begin_uniform_and_repeatable() {
        let x = uniform(3, 1, &[101, 201], 0.5).unwrap();
        assert_eq!(x, uniform(3, 1, &[101, 201], 0.5).unwrap());
        assert_ne!(x, uniform(3, 2, &[101, 201], 0.5).unwrap());
        assert!(x.mean(Kind::Double).double_value(&[]).abs() < 5e-3);
        assert!((x.std(false).double_value(&[]) - 0.5 / 3f64.sqrt()).abs() < 4e-3);
        assert!(x.abs().max().double_value(&[]) <= 0.5);
    }
}
