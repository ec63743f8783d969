//! Parameters in 16 bits and the masters that they are rounded from. A step is
//! often smaller than the distance to the next 16-bit number, and would be lost
//! without a master (Micikevicius et al., "Mixed precision training",
//! arXiv:1710.03740, 3.1).

use super::layers::without_numbers;
use crate::error::{Result, TrainError};
use gavel_torch::optimizer as torch;
use tch::{Kind, Tensor};

/// The name of a master in a file, before its parameter's.
pub(super) const MASTER: &str = "master";

/// The parameters of kind `BFloat16`, each with its master of kind `Float`. Of a master that another rank has, only the
/// gradient is here.
pub(super) struct Masters {
    all: Vec<Master>,
}

pub(super) struct Master {
    /// Its place among the parameters of the optimiser.
    pub at: usize,
    pub rounded: Tensor,
    pub master: Tensor,
    /// Whether its numbers are here.
    pub is_here: bool,
}

impl Masters {
    /// Replaces each of the `parameters` that needs a master by the master, and
    /// directs its gradients there. `is_own` says whether this rank owns a parameter.
    pub(super) fn replace(names: &[String], parameters: &mut [Tensor], is_own: impl Fn(usize) -> bool) -> Result<Self> {
        let _guard = tch::no_grad_guard();
        let mut all = Vec::new();
        for (at, (name, parameter)) in names.iter().zip(parameters).enumerate() {
            match parameter.f_kind()? {
                Kind::BFloat16 => {}
                Kind::Half => return Err(TrainError::Half { name: name.clone() }),
                _ => continue,
            }
            let is_here = is_own(at);
            let master = match is_here {
                true => parameter.f_detach()?.f_to_kind(Kind::Float)?,
                false => without_numbers(&parameter.size(), Kind::Float, parameter.device())?,
            };
            let rounded = std::mem::replace(parameter, master.shallow_clone());
            all.push(Master { at, rounded, master, is_here });
        }
        let pairs = all.iter().map(|master| (master.rounded.shallow_clone(), master.master.shallow_clone()));
        let (rounded, masters): (Vec<_>, Vec<_>) = pairs.unzip();
        torch::hand_over_gradients(&rounded, &masters)?;
        Ok(Self { all })
    }

    /// Sets each parameter whose master is here to it, rounded.
    pub(super) fn round(&self) -> Result<()> {
        let (rounded, masters) = self.pairs();
        Ok(torch::round(&rounded, &masters)?)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Master> {
        self.all.iter()
    }

    /// The parameters whose masters are here, and these.
    fn pairs(&self) -> (Vec<Tensor>, Vec<Tensor>) {
        let here = self.all.iter().filter(|master| master.is_here);
        here.map(|master| (master.rounded.shallow_clone(), master.master.shallow_clone())).unzip()
    }
}

#[cfg(test)]
mod tests {
    use crate::optimizer::tests::{exp_avg, halves, share, values};
    use crate::optimizer::{Optimizer, OptimizerConfig};
    use crate::testing::{experiences, policy_update, tiny};
    use crate::{LossConfig, OldLogProbs, Trainer, UpdateStats};
    use gavel_policy::Model;
    use tch::{Kind, Tensor};

    #[test]
    fn steps_too_small_for_16_bits_add_up_in_the_masters() {
        let config = OptimizerConfig { weight_decay: 0.0, ..Default::default() };
        let half =
            vec![("x".to_owned(), Tensor::from_slice(&[1.0f32]).to_kind(Kind::BFloat16).set_requires_grad(true))];
        let full = vec![("x".to_owned(), Tensor::from_slice(&[1.0f32]).set_requires_grad(true))];
        let [mut rounded, mut plain] = [&half, &full].map(|x| Optimizer::new(share(x), config).unwrap());
        let mut seen = std::collections::BTreeSet::new();
        for _ in 0..100 {
            // The next number of 16 bits below 1 is 1 - 1/256, which is 40 steps away.
            for (all, optimizer) in [(&half, &mut rounded), (&full, &mut plain)] {
                all[0].1.sum(Kind::Float).backward();
                optimizer.step(1e-4).unwrap();
                optimizer.zero_grad().unwrap();
            }
            seen.insert((values(&half[0].1)[0] * 256.0) as i64);
        }
        assert!((values(&full[0].1)[0] - 0.99).abs() < 1e-4);
        assert_eq!(values(&rounded.parameters[0]), values(&full[0].1));
        assert_eq!(values(&half[0].1), values(&full[0].1.to_kind(Kind::BFloat16)));
        assert_eq!(seen.into_iter().collect::<Vec<_>>(), [253, 254, 255, 256]);
    }

    #[test]
    fn gradients_of_16_bits_are_added_up_in_32() {
        let all = halves();
        let mut optimizer =
            Optimizer::new(share(&all), OptimizerConfig { max_grad_norm: f64::INFINITY, ..Default::default() });
        let optimizer = optimizer.as_mut().unwrap();
        // 1 + 1/512 is 1 in 16 bits.
        for factor in [1.0].into_iter().chain([1.0 / 512.0; 256]) {
            let loss: Tensor = all.iter().map(|(_, x)| x.sum(Kind::Float) * factor).sum();
            loss.backward();
            assert!(all.iter().all(|(_, x)| !x.grad().defined()), "a gradient was left with its parameter");
        }
        assert!((optimizer.step(0.0).unwrap() - 1.5 * 6f64.sqrt()).abs() < 1e-6);
    }

    #[test]
    fn parameters_keep_their_gradients_once_the_optimiser_is_gone() {
        let all = halves();
        drop(Optimizer::new(share(&all), OptimizerConfig::default()).unwrap());
        all[0].1.sum(Kind::Float).backward();
        assert_eq!(values(&all[0].1.grad()), [1.0, 1.0]);
    }

    #[test]
    fn float16_is_refused_by_name() {
        let all = vec![("x".to_owned(), Tensor::from_slice(&[1.0f32]).to_kind(Kind::Half))];
        let error = Optimizer::new(all, OptimizerConfig::default()).err().unwrap().to_string();
        assert!(error.starts_with("parameter `x` is in float16"), "{error}");
    }

    /// One update that changes nothing, and the gradient that it found.
    fn gradient(model: &Model, max_tokens: usize) -> (UpdateStats, Vec<f64>) {
        let bare = OptimizerConfig { betas: [0.0, 0.999], max_grad_norm: f64::INFINITY, ..Default::default() };
        let rows = experiences(&tiny(1), 0.7);
        let mut trainer = Trainer::new(model, bare, max_tokens).unwrap();
        // Ratios of 1: rounding must not decide what is clipped.
        let loss = LossConfig { old_logprobs: Some(OldLogProbs::Current), ..Default::default() };
        let stats = trainer.update(policy_update(model, None, &rows, &loss, 0.7, 0.0)).unwrap();
        let names = model.parameters().into_iter().map(|(name, _)| name);
        (stats, names.flat_map(|name| exp_avg(&trainer.optimizer, &name)).collect())
    }

    /// A number of an update.
    fn number(stats: &UpdateStats, name: &str) -> f64 {
        stats.statistics.get(name).unwrap()
    }

    /// The 2-norm of the difference, as a share of the second's.
    fn distance(a: &[f64], b: &[f64]) -> f64 {
        let norm = |x: &mut dyn Iterator<Item = f64>| x.map(|x| x * x).sum::<f64>().sqrt();
        norm(&mut a.iter().zip(b).map(|(a, b)| a - b)) / norm(&mut b.iter().copied())
    }

    #[test]
    fn an_update_in_16_bits_is_close_to_one_in_32() {
        // With weights as large as these a few models are 10 % and more away, in transformers too.
        let mut distances: Vec<f64> = (1..8)
            .map(|seed| {
                let half = tiny(seed).to_kind(Kind::BFloat16).unwrap();
                let (full_stats, full) = gradient(&half.to_kind(Kind::Float).unwrap(), 1000);
                let (half_stats, found) = gradient(&half, 1000);
                let ratio = number(&half_stats, "entropy") / number(&full_stats, "entropy");
                assert!((ratio - 1.0).abs() < 0.05, "{half_stats:?}, {full_stats:?}");
                assert!(half_stats.tokens == full_stats.tokens && number(&half_stats, "loss").is_finite());
                distance(&found, &full)
            })
            .collect();
        distances.sort_by(f64::total_cmp);
        assert!(distances[3] < 0.06 && distances[6] < 0.5, "{distances:?}");
    }

    #[test]
    fn in_16_bits_the_split_into_micro_batches_changes_only_rounding() {
        let half = tiny(1).to_kind(Kind::BFloat16).unwrap();
        let (whole, split) = (gradient(&half, 1000), gradient(&half, 1));
        assert!(distance(&split.1, &whole.1) < 0.02, "{}", distance(&split.1, &whole.1));
        assert!((number(&split.0, "loss") - number(&whole.0, "loss")).abs() < 0.01, "{whole:?}, {split:?}");
    }
}
