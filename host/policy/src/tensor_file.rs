//! safetensors files, read without a copy and written.

use crate::error::{PolicyError, Result};
use gavel_data::files::{WholeFile, open_regular};
use memmap2::Mmap;
use safetensors::tensor::{Dtype, Metadata, SafeTensors, TensorInfo, TensorView};
use std::collections::HashMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use tch::{Device, Kind, Tensor};

/// A file that is being read.
pub(crate) struct TensorFile {
    path: PathBuf,
    map: Mmap,
}

impl TensorFile {
    pub(crate) fn open(path: &Path) -> Result<Self> {
        let file = open_regular(path).map_err(io("read", path))?;
        // SAFETY: the map is private and lives as long as this value only; a checkpoint that another process
        // truncates meanwhile would raise SIGBUS, as with every reader of safetensors.
        let map = unsafe { Mmap::map(&file) }.map_err(io("read", path))?;
        Ok(Self { path: path.to_owned(), map })
    }

    /// The tensors in the file.
    pub(crate) fn tensors(&self) -> Result<SafeTensors<'_>> {
        SafeTensors::deserialize(&self.map).map_err(|error| self.wrong(format!("not a safetensors file: {error}")))
    }

    /// An error about this file.
    pub(crate) fn wrong(&self, what: String) -> PolicyError {
        PolicyError::Checkpoint { path: self.path.clone(), what }
    }

    /// The shape of the tensor `name`, which must be this one.
    pub(crate) fn shape(&self, name: &str, view: &TensorView<'_>, expected: &[i64]) -> Result<Vec<i64>> {
        let shape = sizes(view);
        match shape == expected {
            true => Ok(shape),
            false => Err(self.wrong(format!("tensor `{name}` has shape {}, expected {expected:?}", shown(&shape)))),
        }
    }

    /// Copies the tensor `name` into `target`, which must have its shape.
    pub(crate) fn copy(&self, name: &str, view: &TensorView<'_>, target: &mut Tensor) -> Result<()> {
        let shape = self.shape(name, view, &target.size())?;
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

/// A shape in a message, without its middle: a file may have a shape of any length.
fn shown(shape: &[i64]) -> String {
    /// The sizes that are shown of each end.
    const ENDS: usize = 4;
    let listed = |sizes: &[i64]| sizes.iter().map(i64::to_string).collect::<Vec<_>>().join(", ");
    match shape.len() > 2 * ENDS {
        false => format!("{shape:?}"),
        true => {
            let (first, last) = (listed(&shape[..ENDS]), listed(&shape[shape.len() - ENDS..]));
            format!("[{first}, …, {last}] of {} dimensions", shape.len())
        }
    }
}

/// Writes weights with their names to `path`.
pub(crate) fn write(path: &Path, tensors: Vec<(String, Tensor)>) -> Result<()> {
    let stored = |(name, tensor): (String, Tensor)| -> Result<(String, Tensor)> {
        let (kind, _) = stored_type(tensor.kind());
        Ok((name, tensor.f_to_kind(kind)?))
    };
    let tensors = tensors.into_iter().map(stored).collect::<Result<Vec<_>>>()?;
    // transformers refuses a file that does not say for which framework it is.
    let metadata = HashMap::from([("format".to_owned(), "pt".to_owned())]);
    write_tensors(path, tensors, Some(metadata))
}

/// Writes tensors with their names to the safetensors file `path`, bit for bit. The file appears whole or not at all,
/// even after a power failure. Only one tensor at a time is copied from the device. Unlike with
/// `safetensors::serialize_to_file`, the file has the permissions of any new file.
///
/// # Errors
/// A tensor is of a kind that the format does not have, or the file cannot be
/// written.
pub fn write_tensors(
    path: &Path,
    tensors: Vec<(String, Tensor)>,
    metadata: Option<HashMap<String, String>>,
) -> Result<()> {
    let wrong = |what: String| PolicyError::Checkpoint { path: path.to_owned(), what };
    let typed = |(name, tensor): (String, Tensor)| match file_dtype(tensor.kind()) {
        Some(dtype) => Ok((dtype, name, tensor)),
        None => Err(wrong(format!("tensor `{name}` is of the kind {:?}, which cannot be saved", tensor.kind()))),
    };
    let mut tensors = tensors.into_iter().map(typed).collect::<Result<Vec<_>>>()?;
    // The widest dtypes first, as the format asks, so that all tensors are
    // aligned.
    tensors.sort_by(|(left, left_name, _), (right, right_name, _)| right.cmp(left).then(left_name.cmp(right_name)));
    let (mut infos, mut end) = (Vec::with_capacity(tensors.len()), 0);
    for (dtype, name, tensor) in &tensors {
        let shape: Vec<usize> = tensor.size().into_iter().map(|size| size as usize).collect();
        let start = end;
        end += tensor.numel() * tensor.kind().elt_size_in_bytes();
        infos.push((name.clone(), TensorInfo { dtype: *dtype, shape, data_offsets: (start, end) }));
    }
    let metadata = Metadata::new(metadata, infos).map_err(|error| wrong(error.to_string()))?;
    let mut header = serde_json::to_vec(&metadata).map_err(|error| wrong(error.to_string()))?;
    header.resize(header.len().next_multiple_of(8), b' ');

    let mut file = WholeFile::create(path).map_err(io("write", path))?;
    file.write_all(&(header.len() as u64).to_le_bytes()).map_err(io("write", path))?;
    file.write_all(&header).map_err(io("write", path))?;
    for (_, _, tensor) in tensors {
        read_bytes(&tensor, |bytes| file.write_all(bytes))?.map_err(io("write", path))?;
    }
    file.finish().map_err(io("write", path))
}

/// What `read` makes of the values of a tensor, as a file has them.
pub(crate) fn read_bytes<R>(tensor: &Tensor, read: impl FnOnce(&[u8]) -> R) -> Result<R> {
    // The same tensor where it is on the CPU and contiguous.
    let tensor = tensor.f_to_device(Device::Cpu)?.f_contiguous()?;
    let bytes = tensor.numel() * tensor.kind().elt_size_in_bytes();
    if bytes == 0 {
        return Ok(read(&[]));
    }
    // SAFETY: the tensor is contiguous and on the CPU, so that this many bytes are initialised from `data_ptr`, which
    // is not null, on; `tensor` keeps them alive and nothing writes to them.
    let bytes = unsafe { std::slice::from_raw_parts(tensor.data_ptr().cast::<u8>(), bytes) };
    Ok(read(bytes))
}

/// The dtype of a kind in a safetensors file; `None` for kinds that
/// [`write_tensors`] does not write.
pub fn file_dtype(kind: Kind) -> Option<Dtype> {
    match kind {
        Kind::Double => Some(Dtype::F64),
        Kind::Float => Some(Dtype::F32),
        Kind::BFloat16 => Some(Dtype::BF16),
        Kind::Half => Some(Dtype::F16),
        Kind::Int64 => Some(Dtype::I64),
        Kind::Uint8 => Some(Dtype::U8),
        _ => None,
    }
}

/// For `map_err`: what was being done with which file.
pub(crate) fn io(action: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> PolicyError {
    let path = path.to_owned();
    move |source| PolicyError::Io { action, path, source }
}

/// The kind in which a kind is stored, and its name in `config.json`. Doubles
/// become floats.
pub(crate) fn stored_type(kind: Kind) -> (Kind, &'static str) {
    match kind {
        Kind::BFloat16 => (Kind::BFloat16, "bfloat16"),
        Kind::Half => (Kind::Half, "float16"),
        _ => (Kind::Float, "float32"),
    }
}

#[cfg(test)]
mod tests {
    use super::shown;

    #[test]
    fn a_long_shape_is_shown_without_its_middle() {
        assert_eq!(shown(&[]), "[]");
        assert_eq!(shown(&[1, 2, 3, 4, 5, 6, 7, 8]), "[1, 2, 3, 4, 5, 6, 7, 8]");
        let long: Vec<i64> = (0..100_000).collect();
        assert_eq!(shown(&long), "[0, 1, 2, 3, …, 99996, 99997, 99998, 99999] of 100000 dimensions");
    }
}
