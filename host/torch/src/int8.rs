//! Products with matrices of 8 bits (`shim/int8.cpp`), on the CPU and without gradients. Each row of a matrix has its own
//! scale, and nothing but the matrix is rounded. So a row of the result does not depend on the rows beside it.

use crate::{Result, TchError, made};
use std::ffi::c_char;
use tch::{Device, Kind, Tensor};
use torch_sys::C_tensor;

unsafe extern "C" {
    fn gavel_int8_pack(weight: *const C_tensor, out: *mut *mut C_tensor) -> *mut c_char;
    fn gavel_int8_product(
        x: *const C_tensor,
        packed: *const C_tensor,
        scales: *const C_tensor,
        outs: i64,
        added: *const C_tensor,
        out: *mut *mut C_tensor,
    ) -> *mut c_char;
}

/// The rows of a matrix that lie beside each other: `PANEL` of the shim.
const PANEL: i64 = 32;

/// A matrix of integers from −127 to 127, with a scale for each row.
#[derive(Debug)]
pub struct Int8Matrix {
    /// `[panels, columns, PANEL]`
    packed: Tensor,
    /// `[panels * PANEL]`
    scales: Tensor,
    rows: i64,
}

impl Int8Matrix {
    /// Rounds `weight`, `[rows, columns]`. The largest number of a row becomes ±127. A row with a number that is not
    /// finite gives products that are not finite.
    ///
    /// # Errors
    /// It is not a matrix of floating-point numbers on the CPU, or it is empty.
    pub fn pack(weight: &Tensor) -> Result<Self> {
        let (rows, columns) = weight.size2()?;
        let is_float = matches!(weight.kind(), Kind::Float | Kind::BFloat16 | Kind::Half | Kind::Double);
        if weight.device() != Device::Cpu || !is_float || rows == 0 || columns == 0 {
            return Err(TchError::Shape(format!(
                "a matrix of 8 bits is made of floating-point numbers on the CPU, not of {:?} {:?} on {:?}",
                weight.kind(),
                weight.size(),
                weight.device()
            )));
        }
        // SAFETY: the tensor is a matrix of floating-point numbers on the CPU, with a row and a column; it outlives the
        // call.
        let [packed, scales] = made(|out| unsafe { gavel_int8_pack(weight.as_ptr(), out) })?;
        Ok(Self { packed, scales, rows })
    }

    /// `x · Mᵀ` in 32 bits, `[tokens, rows]`, of `x`, `[tokens, columns]`; plus `added`, `[rows]` or `[tokens, rows]`.
    ///
    /// # Errors
    /// The sizes do not fit, or a tensor is not on the CPU.
    pub fn product(&self, x: &Tensor, added: Option<&Tensor>) -> Result<Tensor> {
        let (tokens, columns) = x.size2()?;
        let fits = |added: &&Tensor| added.size() == [self.rows] || added.size() == [tokens, self.rows];
        let all_on_cpu = x.device() == Device::Cpu && added.is_none_or(|added| added.device() == Device::Cpu);
        if columns != self.packed.size()[1] || !added.as_ref().is_none_or(fits) || !all_on_cpu {
            return Err(TchError::Shape(format!(
                "a product with a matrix of 8 bits, {} × {}, cannot have {:?} and {:?}",
                self.rows,
                self.packed.size()[1],
                x.size(),
                added.map(Tensor::size)
            )));
        }
        let wide = |x: &Tensor| x.f_to_kind(Kind::Float)?.f_contiguous();
        let (x, added) = (wide(x)?, added.map(wide).transpose()?);
        let other = added.as_ref().map_or(std::ptr::null(), |added| added.as_ptr());
        // SAFETY: `x` and `added` are contiguous, in 32 bits on the CPU, and of the matrix's sizes, which `pack` made; all
        // tensors outlive the call, and null stands for no `added`.
        let [out] = made(|out| unsafe {
            gavel_int8_product(x.as_ptr(), self.packed.as_ptr(), self.scales.as_ptr(), self.rows, other, out)
        })?;
        Ok(out)
    }

    /// The matrix that products are made with, in 32 bits.
    ///
    /// # Errors
    /// Memory ran out.
    pub fn rounded(&self) -> Result<Tensor> {
        let numbers = self.packed.f_transpose(1, 2)?.f_flatten(0, 1)?.f_to_kind(Kind::Float)?;
        numbers.f_mul(&self.scales.f_unsqueeze(1)?)?.f_narrow(0, 0, self.rows)
    }

    /// The bytes of such a matrix.
    pub fn bytes(rows: u64, columns: u64) -> u64 {
        rows.next_multiple_of(PANEL as u64) * (columns + 4)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(shape: [i64; 2], seed: f64) -> Tensor {
        let count = shape[0] * shape[1];
        let angles = Tensor::arange(count, (Kind::Double, Device::Cpu)) * 12.9898 + seed;
        ((angles.sin() * 43_758.545_3).frac()).view(shape).to_kind(Kind::Float)
    }

    fn largest(x: &Tensor) -> f64 {
        x.abs().max().double_value(&[])
    }

    #[test]
    fn a_product_is_that_of_the_rounded_matrix() {
        for (rows, columns) in [(1, 1), (31, 7), (32, 64), (100, 33), (96, 576)] {
            let weight = numbers([rows, columns], 1.0);
            let matrix = Int8Matrix::pack(&weight).unwrap();
            let rounded = matrix.rounded().unwrap();
            // Half of a unit, which is the largest of 127 parts of the row's largest number.
            let unit = weight.abs().amax([1i64].as_slice(), true) / 127.0;
            assert!(largest(&((&rounded - &weight) / unit)) < 0.5001, "{rows} × {columns}");
            for tokens in [1, 2, 3, 11, 12, 29] {
                let (x, onto) = (numbers([tokens, columns], 2.0), numbers([tokens, rows], 3.0));
                let plain = x.linear(&rounded, None::<&Tensor>);
                let bias = onto.get(0);
                for (added, expected) in
                    [(None, plain.shallow_clone()), (Some(&onto), &plain + &onto), (Some(&bias), &plain + &bias)]
                {
                    let found = matrix.product(&x, added).unwrap();
                    assert_eq!(found.size(), [tokens, rows]);
                    let bound = 1e-6 * columns as f64;
                    assert!(largest(&(found - expected)) < bound, "{rows} × {columns}, {tokens} tokens");
                }
            }
        }
    }

    #[test]
    fn a_row_does_not_depend_on_the_rows_beside_it() {
        let matrix = Int8Matrix::pack(&numbers([70, 40], 1.0)).unwrap();
        let x = numbers([25, 40], 2.0);
        let together = matrix.product(&x, None).unwrap();
        for row in 0..25 {
            let alone = matrix.product(&x.narrow(0, row, 1), None).unwrap();
            assert!(alone.equal(&together.narrow(0, row, 1)), "row {row}");
        }
    }

    #[test]
    fn sixteen_bits_are_widened_before_they_are_rounded() {
        let weight = numbers([40, 24], 1.0).to_kind(Kind::BFloat16);
        let (half, wide) =
            (Int8Matrix::pack(&weight).unwrap(), Int8Matrix::pack(&weight.to_kind(Kind::Float)).unwrap());
        assert!(half.rounded().unwrap().equal(&wide.rounded().unwrap()));
        let x = numbers([3, 24], 2.0).to_kind(Kind::BFloat16);
        let found = half.product(&x, None).unwrap();
        assert!(found.kind() == Kind::Float && found.equal(&wide.product(&x.to_kind(Kind::Float), None).unwrap()));
    }

    #[test]
    fn zeros_stay_and_what_is_not_finite_shows() {
        let weight = numbers([3, 5], 1.0);
        let _ = weight.get(0).zero_();
        let _ = weight.get(1).get(2).fill_(f64::NAN);
        let _ = weight.get(2).get(4).fill_(f64::NEG_INFINITY);
        let product =
            Int8Matrix::pack(&weight).unwrap().product(&Tensor::ones([1, 5], (Kind::Float, Device::Cpu)), None);
        let product: Vec<f32> = Vec::try_from(product.unwrap().get(0)).unwrap();
        assert!(product[0] == 0.0 && !product[1].is_finite() && !product[2].is_finite(), "{product:?}");
    }

    #[test]
    fn sizes_that_do_not_fit_are_refused() {
        let matrix = Int8Matrix::pack(&numbers([3, 5], 1.0)).unwrap();
        assert!(matrix.product(&numbers([2, 4], 1.0), None).is_err());
        assert!(matrix.product(&numbers([2, 5], 1.0), Some(&numbers([3, 2], 1.0))).is_err());
        assert!(Int8Matrix::pack(&Tensor::ones([3, 5], (Kind::Int64, Device::Cpu))).is_err());
        assert!(Int8Matrix::pack(&Tensor::zeros([0, 5], (Kind::Float, Device::Cpu))).is_err());
    }

    #[test]
    fn its_bytes_are_those_of_its_tensors() {
        let matrix = Int8Matrix::pack(&numbers([70, 40], 1.0)).unwrap();
        let there = matrix.packed.numel() + 4 * matrix.scales.numel();
        assert_eq!(Int8Matrix::bytes(70, 40), there as u64);
    }
}
