//! Operations with a number. The operations of tch free the number before they read libtorch's exception. If the operation
//! fails, for example for lack of memory, they panic instead of returning the error.

use crate::{Result, checked};
use tch::{Device, Tensor};
use torch_sys::c_generated::{
    atg_add_scalar, atg_arange_start_step, atg_clamp, atg_clamp_max, atg_div_scalar, atg_fill_, atg_ge, atg_gt, atg_le,
    atg_lt, atg_masked_fill, atg_masked_fill_, atg_mul_scalar, atg_mul_scalar_, atg_sub_scalar,
};
use torch_sys::{C_scalar, C_tensor, ats_float, ats_free, ats_int, get_and_reset_last_err};

/// A number beside tensors.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Number {
    /// A whole number.
    Int(i64),
    /// Any other.
    Float(f64),
}

impl From<i64> for Number {
    fn from(value: i64) -> Self {
        Self::Int(value)
    }
}

impl From<i32> for Number {
    fn from(value: i32) -> Self {
        Self::Int(value.into())
    }
}

impl From<f64> for Number {
    fn from(value: f64) -> Self {
        Self::Float(value)
    }
}

/// Declares operations of a tensor with one number.
macro_rules! operations {
    ($($(#[$about:meta])* $name:ident: $function:ident;)*) => {
        /// Operations of a tensor with a number, as libtorch has them by the same names.
        pub trait ScalarOperations {
            $($(#[$about])* fn $name(&self, number: impl Into<Number>) -> Result<Tensor>;)*

            /// Each element, at least `least` and at most `most`.
            fn try_clamp(&self, least: impl Into<Number>, most: impl Into<Number>) -> Result<Tensor>;

            /// The tensor with `number` where `mask` is true.
            fn try_masked_fill(&self, mask: &Tensor, number: impl Into<Number>) -> Result<Tensor>;

            /// Writes `number` where `mask` is true.
            fn try_masked_fill_(&mut self, mask: &Tensor, number: impl Into<Number>) -> Result<()>;

            /// Writes `number` everywhere.
            fn try_fill_(&mut self, number: impl Into<Number>) -> Result<()>;

            /// Multiplies every element in place.
            fn try_mul_(&mut self, number: impl Into<Number>) -> Result<()>;
        }

        impl ScalarOperations for Tensor {
            $(fn $name(&self, number: impl Into<Number>) -> Result<Tensor> {
                // SAFETY: the tensor outlives the call, and the numbers are alive in it.
                with_numbers([number.into()], |out, [number]| unsafe { $function(out, pointer(self), number) })
            })*

            fn try_clamp(&self, least: impl Into<Number>, most: impl Into<Number>) -> Result<Tensor> {
                // SAFETY: as above.
                with_numbers([least.into(), most.into()], |out, [least, most]| unsafe {
                    atg_clamp(out, pointer(self), least, most)
                })
            }

            fn try_masked_fill(&self, mask: &Tensor, number: impl Into<Number>) -> Result<Tensor> {
                // SAFETY: as above, of both tensors.
                with_numbers([number.into()], |out, [number]| unsafe {
                    atg_masked_fill(out, pointer(self), pointer(mask), number)
                })
            }

            fn try_masked_fill_(&mut self, mask: &Tensor, number: impl Into<Number>) -> Result<()> {
                // SAFETY: as above, of both tensors; this one is borrowed alone.
                with_numbers([number.into()], |out, [number]| unsafe {
                    atg_masked_fill_(out, pointer(self), pointer(mask), number)
                })
                .map(drop)
            }

            fn try_fill_(&mut self, number: impl Into<Number>) -> Result<()> {
                // SAFETY: as above; this tensor is borrowed alone.
                with_numbers([number.into()], |out, [number]| unsafe { atg_fill_(out, pointer(self), number) }).map(drop)
            }

            fn try_mul_(&mut self, number: impl Into<Number>) -> Result<()> {
                // SAFETY: as above; this tensor is borrowed alone.
                with_numbers([number.into()], |out, [number]| unsafe { atg_mul_scalar_(out, pointer(self), number) })
                    .map(drop)
            }
        }
    };
}

operations! {
    /// Adds the number to each element.
    try_add: atg_add_scalar;
    /// Subtracts the number from each element.
    try_sub: atg_sub_scalar;
    /// Multiplies each element by the number.
    try_mul: atg_mul_scalar;
    /// Divides each element by the number.
    try_div: atg_div_scalar;
    /// Each element, at most the number.
    try_clamp_max: atg_clamp_max;
    /// Whether each element is below the number.
    try_lt: atg_lt;
    /// Whether each element is at most the number.
    try_le: atg_le;
    /// Whether each element is above the number.
    try_gt: atg_gt;
    /// Whether each element is at least the number.
    try_ge: atg_ge;
}

/// `start`, `start + step` and so on, below `end`, in 64-bit integers.
pub fn arange(start: i64, end: i64, step: i64, device: Device) -> Result<Tensor> {
    // The numbers of torch-sys.
    let (int64, device) = (
        4,
        match device {
            Device::Cpu => -1,
            Device::Cuda(index) => index as i32,
            Device::Mps => -2,
            Device::Vulkan => -3,
        },
    );
    // SAFETY: the numbers are alive in the call.
    with_numbers([start.into(), end.into(), step.into()], |out, [start, end, step]| unsafe {
        atg_arange_start_step(out, start, end, step, int64, device);
    })
}

fn pointer(tensor: &Tensor) -> *mut C_tensor {
    tensor.as_ptr().cast_mut()
}

/// The result of `operation` with these numbers, which it borrows.
fn with_numbers<const N: usize>(
    numbers: [Number; N],
    operation: impl FnOnce(*mut *mut C_tensor, [*mut C_scalar; N]),
) -> Result<Tensor> {
    let numbers = numbers.map(|number| match number {
        // SAFETY: it takes any number.
        Number::Int(value) => unsafe { ats_int(value) },
        // SAFETY: as above.
        Number::Float(value) => unsafe { ats_float(value) },
    });
    let mut out = std::ptr::null_mut();
    // A number that could not be created has left its error.
    if numbers.iter().all(|number| !number.is_null()) {
        operation(&mut out, numbers);
    }
    // SAFETY: null, or a string that is ours, which the shim's `free` takes as its own.
    let thrown = checked(unsafe { get_and_reset_last_err() });
    for number in numbers {
        // SAFETY: each was created above, or is null, and nothing uses it any
        // more.
        unsafe { ats_free(number) };
    }
    thrown?;
    // SAFETY: nothing was thrown, so that the tensor exists, and nothing else owns it.
    Ok(unsafe { Tensor::from_ptr(out) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_results_are_those_of_tch() {
        let x = Tensor::from_slice(&[-1.5f32, 0.0, 2.0, 3.5]);
        let same = |found: Result<Tensor>, expected: Tensor| assert_eq!(found.unwrap(), expected);
        same(x.try_add(0.1), &x + 0.1);
        same(x.try_sub(0.1), &x - 0.1);
        same(x.try_mul(0.3), &x * 0.3);
        same(x.try_div(0.3), &x / 0.3);
        same(x.try_clamp(0.5, 3.0), x.clamp(0.5, 3.0));
        same(x.try_clamp_max(1.0), x.clamp_max(1.0));
        same(x.try_lt(2.0), x.lt(2.0));
        same(x.try_le(2.0), x.le(2.0));
        same(x.try_gt(2.0), x.gt(2.0));
        same(x.try_ge(2), x.ge(2));
        let mask = x.gt(0.0);
        same(x.try_masked_fill(&mask, f64::NEG_INFINITY), x.masked_fill(&mask, f64::NEG_INFINITY));
        let mut filled = x.copy();
        filled.try_masked_fill_(&mask, 7.0).unwrap();
        assert_eq!(filled, x.masked_fill(&mask, 7.0));
        filled.try_mul_(2.0).unwrap();
        assert_eq!(filled, x.masked_fill(&mask, 7.0) * 2.0);
        filled.try_fill_(4).unwrap();
        assert_eq!(filled, x.full_like(4.0));
        same(arange(2, 9, 3, Device::Cpu), Tensor::from_slice(&[2i64, 5, 8]));
    }

    #[test]
    fn a_failed_operation_is_an_error_and_no_panic() {
        let x = Tensor::from_slice(&[1.0f32, 2.0]);
        let error = x.try_masked_fill(&x, 0.0).unwrap_err().to_string();
        assert!(error.contains("mask"), "{error}");
        assert!(arange(0, -1, 1, Device::Cpu).is_err());
        // The next operation does not find the old error.
        assert_eq!(x.try_add(1).unwrap(), Tensor::from_slice(&[2.0f32, 3.0]));
    }
}
