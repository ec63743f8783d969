//! The CUDA part of libtorch, loaded if it is installed.

use crate::error::{PolicyError, Result};

/// Loads libtorch's CUDA part. The binary does not link it, so that the same binary runs without CUDA. libtorch must
/// not have been asked about CUDA before: call this (or [`select`](super::select)) first in `main`. Later calls repeat
/// the answer of the first.
pub fn load_cuda() -> Result<()> {
    gavel_torch::cuda::load().map_err(|what| PolicyError::Device { name: "cuda".into(), what })
}
