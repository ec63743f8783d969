//! Indices of rows on the device.

use crate::error::Result;
use tch::{Device, Tensor};

/// Rows `index`, `[n]`, of `x`, `[tokens, width]`. It uses an embedding, as its
/// gradient is computed in parallel; the gradient of an `index_select` is added
/// row by row.
pub fn take_rows(x: &Tensor, index: &Tensor) -> Result<Tensor> {
    Ok(Tensor::f_embedding(x, index, -1, false, false)?)
}

/// `values` as a tensor on `device`.
pub(super) fn on_device(values: &[i64], device: Device) -> Result<Tensor> {
    Ok(Tensor::f_from_slice(values)?.f_to_device(device)?)
}
