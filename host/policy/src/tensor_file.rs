//! safetensors files, read without a copy and written.

use crate::error::{PolicyError, Result};
use memmap2::Mmap;
use safetensors::tensor::{Dtype, SafeTensors, TensorView, View};
use std::borrow::Cow;
use std::collections::HashMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use tch::{Device, Kind, Tensor};

/// A file that is being read.
pub(crate) struct TensorFile {
    path: PathBuf,
    map: Mmap,
}

impl TensorFile {
    pub(crate) fn open(path: &Path) -> Result<Self> {
        let file = File::open(path).map_err(io("read", path))?;
        // SAFETY: the map is private and lives as long as this value only; a checkpoint that another process
        // truncates meanwhile would raise SIGBUS, as with every reader of safetensors.
        let map = unsafe { Mmap::map(&file) }.map_err(io("read", path))?;
        Ok(Self { path: path.to_owned(), map })
    }

    /// What is in it.
    pub(crate) fn tensors(&self) -> Result<SafeTensors<'_>> {
        SafeTensors::deserialize(&self.map).map_err(|error| self.wrong(format!("not a safetensors file: {error}")))
    }

    /// An error about this file.
    pub(crate) fn wrong(&self, what: String) -> PolicyError {
        PolicyError::Checkpoint { path: self.path.clone(), what }
    }

    /// Copies the tensor `name` into `target`, which must have its shape.
    pub(crate) fn copy(&self, name: &str, view: &TensorView<'_>, target: &mut Tensor) -> Result<()> {
        let shape = sizes(view);
        if shape != target.size() {
            return Err(self.wrong(format!("tensor `{name}` has shape {shape:?}, expected {:?}", target.size())));
        }
        let kind = match view.dtype() {
            Dtype::F32 => Kind::Float,
            Dtype::F16 => Kind::Half,
            Dtype::BF16 => Kind::BFloat16,
            Dtype::F64 => Kind::Double,
            other => {
                return Err(self.wrong(format!("tensor `{name}` has type {other:?}; expected F32, BF16, F16 or F64")));
            }
        };
        let values = Tensor::f_from_data_size(view.data(), &shape, kind)
            .map_err(|error| self.wrong(format!("tensor `{name}`: {}", PolicyError::from(error))))?;
        let _guard = tch::no_grad_guard();
        Ok(target.f_copy_(&values)?)
    }
}

/// The shape of a tensor in a file.
pub(crate) fn sizes(view: &TensorView<'_>) -> Vec<i64> {
    view.shape().iter().map(|&size| size as i64).collect()
}

/// Writes tensors with their names to `path`.
pub(crate) fn write(path: &Path, tensors: Vec<(String, Tensor)>) -> Result<()> {
    let stored = |(name, tensor): (String, Tensor)| Ok((name, Stored::new(&tensor)?));
    let tensors = tensors.into_iter().map(stored).collect::<Result<Vec<_>>>()?;
    // transformers refuses a file that does not say for which framework it is.
    let metadata = HashMap::from([("format".to_owned(), "pt".to_owned())]);
    safetensors::serialize_to_file(tensors, Some(metadata), path)
        .map_err(|error| PolicyError::Checkpoint { path: path.to_owned(), what: format!("cannot be written: {error}") })
}

/// For `map_err`: what was being done with which file.
pub(crate) fn io(action: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> PolicyError {
    let path = path.to_owned();
    move |source| PolicyError::Io { action, path, source }
}

/// How numbers of a kind are stored, and the name that `config.json` gives
/// them. Doubles become floats.
pub(crate) fn stored_type(kind: Kind) -> (Kind, &'static str) {
    match kind {
        Kind::BFloat16 => (Kind::BFloat16, "bfloat16"),
        Kind::Half => (Kind::Half, "float16"),
        _ => (Kind::Float, "float32"),
    }
}

/// A tensor on its way into a file.
struct Stored {
    tensor: Tensor,
    shape: Vec<usize>,
}

impl Stored {
    fn new(tensor: &Tensor) -> Result<Self> {
        let (kind, _) = stored_type(tensor.kind());
        let tensor = tensor.f_to_device(Device::Cpu)?.f_to_kind(kind)?.f_contiguous()?;
        let shape = tensor.size().into_iter().map(|size| size as usize).collect();
        Ok(Self { tensor, shape })
    }
}

impl View for Stored {
    fn dtype(&self) -> Dtype {
        match self.tensor.kind() {
            Kind::BFloat16 => Dtype::BF16,
            Kind::Half => Dtype::F16,
            _ => Dtype::F32,
        }
    }

    fn shape(&self) -> &[usize] {
        &self.shape
    }

    fn data(&self) -> Cow<'_, [u8]> {
        // SAFETY: the tensor is contiguous, on the CPU and of the kind of `dtype`, so that `data_len` bytes
        // are initialised from `data_ptr` on; `self` keeps them alive and nothing writes to them.
        Cow::Borrowed(unsafe { std::slice::from_raw_parts(self.tensor.data_ptr().cast(), self.data_len()) })
    }

    fn data_len(&self) -> usize {
        self.shape.iter().product::<usize>() * self.tensor.kind().elt_size_in_bytes()
    }
}
