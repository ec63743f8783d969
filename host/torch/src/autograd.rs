//! The backward pass from a tensor whose gradient is known (`shim/autograd.cpp`).

use crate::{Result, checked};
use std::ffi::c_char;
use tch::Tensor;
use torch_sys::C_tensor;

unsafe extern "C" {
    fn gavel_backward(output: *const C_tensor, gradient: *const C_tensor) -> *mut c_char;
}

/// Goes backward from `output`, and adds the gradient of each leaf that it was computed from to the gradient that the
/// leaf has. `gradient` is the gradient of `output`, and has its shape.
pub fn backward(output: &Tensor, gradient: &Tensor) -> Result<()> {
    // SAFETY: both tensors outlive the call.
    checked(unsafe { gavel_backward(output.as_ptr(), gradient.as_ptr()) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gradient_goes_backward_as_the_sum_of_its_products_does() {
        let x = Tensor::from_slice(&[1.0, -2.0, 3.0]).set_requires_grad(true);
        backward(&x.square(), &Tensor::from_slice(&[1.0, 0.5, -1.0])).unwrap();
        assert_eq!(Vec::<f64>::try_from(x.grad()).unwrap(), [2.0, -2.0, -6.0]);
        assert!(backward(&x.square(), &Tensor::from_slice(&[1.0])).is_err(), "another shape");
    }
}
