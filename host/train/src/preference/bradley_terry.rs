//! The loss of a reward model on pairs (Bradley and Terry, 1952; Ouyang et al., "Training language models to follow
//! instructions with human feedback", 2022).

use crate::config::{ConfigError, check};
use crate::error::Result;
use gavel_torch::scalar::ScalarOperations;
use tch::Tensor;

/// The settings of the loss of a reward model.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct BradleyTerryConfig {
    /// The weight of `(chosen + rejected)²`, which keeps scores near 0 (Eisenstein et al., "Helping or herding?",
    /// 2023); 0 by default.
    pub center_rewards_coefficient: f64,
}

impl BradleyTerryConfig {
    /// Refuses values that are not valid, naming the key.
    pub fn validate(&self) -> std::result::Result<(), ConfigError> {
        check("center_rewards_coefficient", self.center_rewards_coefficient, "a number of at least 0", |value| {
            value >= 0.0
        })
    }

    /// The loss of each pair, `[pairs]`: `−log σ(chosen − rejected − margin) + coefficient · (chosen + rejected)²`.
    pub(super) fn loss(&self, chosen: &Tensor, rejected: &Tensor, margins: &Tensor) -> Result<Tensor> {
        let ranking = chosen.f_sub(rejected)?.f_sub(margins)?.f_log_sigmoid()?.f_neg()?;
        if self.center_rewards_coefficient == 0.0 {
            return Ok(ranking);
        }
        let centre = chosen.f_add(rejected)?.f_square()?.try_mul(self.center_rewards_coefficient)?;
        Ok(ranking.f_add(&centre)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loss_is_its_formula() {
        let of = |center_rewards_coefficient: f64| {
            let [chosen, rejected, margins] = [[1.0, -0.5, 2.0], [0.0, 0.5, 2.0], [0.0, 0.0, 1.5]]
                .map(|values: [f64; 3]| Tensor::from_slice(&values));
            let config = BradleyTerryConfig { center_rewards_coefficient };
            Vec::<f64>::try_from(config.loss(&chosen, &rejected, &margins).unwrap()).unwrap()
        };
        // −log σ(x) = log(1 + e⁻ˣ) for x = 1, −1 and −1.5.
        let plain = [0.313_261_687_518, 1.313_261_687_518, 1.701_413_277_983];
        assert!(of(0.0).iter().zip(plain).all(|(a, b)| (a - b).abs() < 1e-10), "{:?}", of(0.0));
        // With 0.1 · (1², 0², 4²).
        let centred = [plain[0] + 0.1, plain[1], plain[2] + 1.6];
        assert!(of(0.1).iter().zip(centred).all(|(a, b)| (a - b).abs() < 1e-10), "{:?}", of(0.1));
    }

    #[test]
    fn what_is_out_of_range_is_named() {
        let config = BradleyTerryConfig { center_rewards_coefficient: -0.1 };
        let error = config.validate().unwrap_err().to_string();
        assert_eq!(error, "center_rewards_coefficient must be a number of at least 0, not -0.1");
    }
}
