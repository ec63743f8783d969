//! Parts of a transformer layer (`shim/layer.cpp`), with gradients. In 32 bits
//! on the CPU each is one pass over memory; otherwise it uses libtorch's
//! operations. [kernels](crate::cuda::kernels) has the same for GPUs.

use crate::{Result, made};
use std::ffi::c_char;
use tch::{Device, Kind, Tensor};
use torch_sys::C_tensor;

unsafe extern "C" {
    fn gavel_rms_norm(x: *const C_tensor, weight: *const C_tensor, eps: f64, out: *mut *mut C_tensor) -> *mut c_char;
    fn gavel_silu_product(x: *const C_tensor, out: *mut *mut C_tensor) -> *mut c_char;
    fn gavel_rotate(
        x: *const C_tensor,
        cos: *const C_tensor,
        sin: *const C_tensor,
        queries: i64,
        out: *mut *mut C_tensor,
    ) -> *mut c_char;
}

/// The last dimension of `x` over its root mean square, times `weight`, which
/// has its width (Zhang and Sennrich, arXiv:1910.07467).
pub fn rms_norm(x: &Tensor, weight: &Tensor, eps: f64) -> Result<Tensor> {
    let width = weight.size();
    let fit = width.len() == 1 && x.size().last() == width.last();
    if !fit || !is_one_pass(&[x, weight]) {
        return x.f_rms_norm(width, Some(weight), eps);
    }
    let (rows, weight) = (x.f_reshape([-1, width[0]])?.f_contiguous()?, weight.f_contiguous()?);
    // SAFETY: both tensors are contiguous, in 32 bits on the CPU, and of one width; they outlive the call.
    let [out] = made(|out| unsafe { gavel_rms_norm(rows.as_ptr(), weight.as_ptr(), eps, out) })?;
    out.f_view_as(x)
}

/// `silu(gate) · up`, `[rows, width]`, of `gate_up`, `[rows, 2 * width]`: a
/// row's gates and the values that they multiply (SwiGLU; Shazeer,
/// arXiv:2002.05202).
pub fn silu_product(gate_up: &Tensor) -> Result<Tensor> {
    let (_, columns) = gate_up.size2()?;
    if !is_one_pass(&[gate_up]) || columns % 2 != 0 {
        let pieces = gate_up.f_split_with_sizes([columns / 2; 2], 1)?;
        return pieces[0].f_silu()?.f_mul(&pieces[1]);
    }
    let gate_up = gate_up.f_contiguous()?;
    // SAFETY: the tensor is contiguous, `[rows, 2 * width]`, in 32 bits on the CPU; it outlives the call.
    let [out] = made(|out| unsafe { gavel_silu_product(gate_up.as_ptr(), out) })?;
    Ok(out)
}

/// Rotates `x`, `[tokens, heads, 2 * half]`, and gives the first `queries` heads and the others, which are keys. The
/// first half of a head becomes `first · cos + second · sin[0]`, the second `second · cos + first · sin[1]`. `cos` is
/// `[tokens, 1, 1, half]`, `sin` `[tokens, 1, 2, half]`. Computed in the kind of `cos` and `sin`; gradients flow to `x`
/// alone.
pub fn rotate(x: &Tensor, queries: i64, cos: &Tensor, sin: &Tensor) -> Result<[Tensor; 2]> {
    let (tokens, heads, width) = x.size3()?;
    let half = width / 2;
    let fit = cos.size() == [tokens, 1, 1, half] && sin.size() == [tokens, 1, 2, half] && width % 2 == 0;
    if !fit || !is_one_pass(&[x, cos, sin]) {
        let pairs = x.f_unflatten(2, [2, -1])?;
        let rotated = pairs.f_mul(cos)?.f_addcmul(&pairs.f_flip([2])?, sin)?;
        let rotated = rotated.f_flatten(2, 3)?.f_to_kind(x.kind())?;
        let mut pieces = rotated.f_split_with_sizes([queries, heads - queries], 1)?;
        let keys = pieces.remove(1);
        return Ok([pieces.remove(0), keys]);
    }
    let x = if x.stride()[2] == 1 { x.shallow_clone() } else { x.f_contiguous()? };
    let (cos, sin) = (cos.f_contiguous()?, sin.f_contiguous()?);
    // SAFETY: all are in 32 bits on the CPU; the numbers of a head are neighbours; the angles are contiguous, one for
    // each token and pair of `x`; the tensors outlive the call.
    made(|out| unsafe { gavel_rotate(x.as_ptr(), cos.as_ptr(), sin.as_ptr(), queries, out) })
}

fn is_one_pass(tensors: &[&Tensor]) -> bool {
    tensors.iter().all(|tensor| tensor.device() == Device::Cpu && tensor.kind() == Kind::Float)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers in `[rows, columns]` that look random.
    fn numbers(seed: i64, shape: &[i64]) -> Tensor {
        let count: i64 = shape.iter().product();
        let numbers: Vec<f32> = (0..count).map(|i| ((i * 37 + seed * 101) as f32 * 0.7391).sin() * 3.0).collect();
        Tensor::from_slice(&numbers).view(shape)
    }

    /// Asserts that the result of `function` in 32 bits, and the gradients of its weighted sum, agree with libtorch's
    /// operations in 64 bits.
    fn assert_like_libtorch(inputs: &[Tensor], function: impl Fn(&[Tensor]) -> Result<Tensor>) {
        let all = |kind: Kind| {
            let leaves: Vec<Tensor> = inputs.iter().map(|x| x.detach().to_kind(kind).set_requires_grad(true)).collect();
            let out = function(&leaves).unwrap();
            let weights = numbers(9, &out.size()).to_kind(kind);
            (&out * weights).sum(kind).backward();
            let gradients = leaves.iter().map(Tensor::grad).filter(Tensor::defined);
            let without = tch::no_grad(|| function(&leaves).unwrap());
            [without, out.detach()].into_iter().chain(gradients).collect::<Vec<_>>()
        };
        let (found, expected) = (all(Kind::Float), all(Kind::Double));
        assert_eq!(found.len(), expected.len());
        for (index, (found, expected)) in found.iter().zip(&expected).enumerate() {
            assert_eq!((found.kind(), found.size()), (Kind::Float, expected.size()));
            let difference = (found.to_kind(Kind::Double) - expected).abs().max().double_value(&[]);
            let largest = expected.abs().max().double_value(&[]);
            assert!(difference <= 5e-6 * largest, "tensor {index}: {difference} of {largest}");
        }
    }

    #[test]
    fn norms() {
        // Too few rows to be worth a thread, and more; also widths that are not whole vectors.
        for shape in [&[3, 5][..], &[700, 130], &[2, 300, 64], &[0, 4]] {
            let weight = numbers(2, &shape[shape.len() - 1..]);
            if shape[0] > 0 {
                assert_like_libtorch(&[numbers(1, shape), weight], |x| rms_norm(&x[0], &x[1], 1e-6));
            } else {
                assert_eq!(rms_norm(&numbers(1, shape), &weight, 1e-6).unwrap().size(), shape);
            }
        }
        // Heads that are a part of a wider row.
        let wide = numbers(1, &[40, 6, 8]);
        assert_like_libtorch(&[wide, numbers(2, &[8])], |x| rms_norm(&x[0].narrow(1, 1, 3), &x[1], 1e-5));
    }

    #[test]
    fn only_the_gradients_that_are_wanted() {
        let (x, weight) = (numbers(1, &[4, 8]).set_requires_grad(true), numbers(2, &[8]));
        rms_norm(&x, &weight, 1e-6).unwrap().sum(Kind::Float).backward();
        assert!(x.grad().defined() && !weight.grad().defined());
        let (x, weight) = (x.detach(), weight.set_requires_grad(true));
        rms_norm(&x, &weight, 1e-6).unwrap().sum(Kind::Float).backward();
        assert!(weight.grad().defined() && !x.grad().defined());
    }

    #[test]
    fn silu_products() {
        for shape in [[3, 10], [500, 260], [1, 2]] {
            assert_like_libtorch(&[numbers(1, &shape)], |x| silu_product(&x[0]));
        }
        // Where the exponential is clamped.
        let far = Tensor::from_slice(&[-1e4f32, -100.0, -80.0, -20.0, 20.0, 80.0, 100.0, 1e4]);
        let gate_up = Tensor::stack(&[far.shallow_clone(), far.ones_like()], 1);
        assert_like_libtorch(&[gate_up], |x| silu_product(&x[0]));
    }

    #[test]
    fn rotations() {
        for [tokens, heads, half] in [[5, 3, 4], [300, 4, 32], [2, 1, 5]] {
            let [cos, sin] = [numbers(3, &[tokens, 1, 1, half]), numbers(4, &[tokens, 1, 2, half])];
            for part in 0..2 {
                assert_like_libtorch(&[numbers(1, &[tokens, heads + 3, 2 * half])], |x| {
                    let x = x[0].narrow(1, 1, heads + 2);
                    let (cos, sin) = (cos.to_kind(x.kind()), sin.to_kind(x.kind()));
                    Ok(rotate(&x, heads, &cos, &sin)?[part].shallow_clone())
                });
            }
        }
    }

    #[test]
    fn what_is_no_number_stays_so() {
        let broken = numbers(1, &[2, 32]);
        let _ = broken.get(1).get(3).fill_(f64::NAN);
        let rows_of = |out: Tensor| [0, 1].map(|row| bool::try_from(out.get(row).isfinite().all()).unwrap());
        assert_eq!(rows_of(rms_norm(&broken, &numbers(2, &[32]), 1e-6).unwrap()), [true, false]);
        assert_eq!(rows_of(silu_product(&broken).unwrap()), [true, false]);
        let angles = numbers(3, &[2, 1, 3, 16]);
        let (cos, sin) = (angles.narrow(2, 0, 1), angles.narrow(2, 1, 2));
        let x = Tensor::stack(&[&broken, &broken], 1);
        assert_eq!(rotate(&x, 1, &cos, &sin).unwrap().map(rows_of), [[true, false]; 2]);
    }
}
