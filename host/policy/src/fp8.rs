//! Products with matrices of 8-bit floating-point numbers (e4m3), on GPUs and without gradients. Each row of both factors
//! has a scale.

use crate::error::Result;
use gavel_torch::scalar::ScalarOperations;
use tch::{Kind, Tensor};

/// The largest number of e4m3.
const LARGEST: f64 = 448.0;

/// A matrix of such numbers.
pub(crate) struct Fp8Matrix {
    /// `[outs, width]`
    numbers: Tensor,
    /// `[outs, 1]`, of 32 bits
    scales: Tensor,
}

impl Fp8Matrix {
    /// Rounds each row of `x` to numbers of which the largest is 448.
    pub(crate) fn of(x: &Tensor) -> Result<Self> {
        let x = x.f_detach()?.f_to_kind(Kind::Float)?;
        // A row of zeros stays one.
        let scales =
            x.f_abs()?.f_amax([1i64].as_slice(), true)?.try_div(LARGEST)?.try_clamp(1e-30, f64::from(f32::MAX))?;
        let numbers = x.f_div(&scales)?.try_clamp(-LARGEST, LARGEST)?.f_to_kind(Kind::Float8e4m3fn)?;
        Ok(Self { numbers, scales })
    }

    /// `x · Mᵀ` in bfloat16, `[tokens, outs]`, of `x`, `[tokens, width]`, each row of which is rounded too.
    pub(crate) fn product(&self, x: &Tensor) -> Result<Tensor> {
        let Self { numbers, scales } = Self::of(x)?;
        let (matrix, none) = (self.numbers.f_tr()?, None::<&Tensor>);
        Ok(numbers.f_internal_scaled_mm(&matrix, &scales, &self.scales.f_tr()?, none, none, Kind::BFloat16, false)?)
    }

    /// The tensors that a product reads.
    pub(crate) fn tensors(&self) -> [&Tensor; 2] {
        [&self.numbers, &self.scales]
    }

    /// The bytes of such a matrix.
    pub(crate) fn bytes(outs: u64, width: u64) -> u64 {
        outs * (width + 4)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fast_paths::random_like;
    use tch::Device;

    #[test]
    fn a_number_keeps_four_digits_in_its_row() {
        let x = random_like(&[5, 64], 1, Kind::Float, Device::Cpu).unwrap();
        let _ = x.get(2).zero_();
        let rounded = Fp8Matrix::of(&x).unwrap();
        assert_eq!(rounded.tensors().map(Tensor::kind), [Kind::Float8e4m3fn, Kind::Float]);
        let [numbers, scales] = rounded.tensors();
        let difference = (numbers.to_kind(Kind::Float) * scales - &x).abs();
        // Three bits after the first: half of an eighth of it, or of the smallest step.
        let bound = x.abs() / 16.0 + scales * 2f64.powi(-10) + 1e-7;
        assert!(difference.le_tensor(&bound).all().int64_value(&[]) == 1);
        assert!(difference.max().double_value(&[]) > 1e-3);
        assert_eq!(numbers.to_kind(Kind::Float).abs().max().double_value(&[]), LARGEST);
    }
}
