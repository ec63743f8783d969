//! The optimiser's state in a safetensors file, bit for bit: `step`, and for
//! every parameter the state of [its rule](super::rule), such as
//! `exp_avg.<name>`, and, if it has a master, `master.<name>`. The metadata have
//! the kind of the optimiser.

use super::masters::{MASTER, Master};
use super::rule::StateTensor;
use super::{Optimizer, OptimizerKind};
use crate::error::{StateError, TrainError};
use crate::ranks::gather_results;
use gavel_data::files::open_regular;
use gavel_policy::{PolicyError, file_dtype, write_tensors};
use memmap2::Mmap;
use safetensors::tensor::{Dtype, SafeTensors, TensorView};
use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use tch::Tensor;

const STEP: &str = "step";
/// The key of the optimiser's kind. A file without it has the state of AdamW.
const KIND: &str = "optimizer";

impl Optimizer {
    /// Writes the state of all ranks to `path`, which they have to call all; rank 0 writes. The file appears whole or
    /// not at all, even after a power failure.
    pub fn save(&self, path: &Path) -> Result<(), TrainError> {
        let (states, masters) = (self.all_states()?, self.all_masters()?);
        let saved = if self.peers.rank() == 0 { self.write(path, states, masters) } else { Ok(()) };
        let ((), _) = gather_results(&self.peers, saved.map_err(TrainError::from), |_| 0usize)?;
        Ok(())
    }

    fn write(
        &self,
        path: &Path,
        states: Vec<(String, Tensor)>,
        masters: Vec<(String, Tensor)>,
    ) -> Result<(), StateError> {
        let step = i64::try_from(self.steps).unwrap_or(i64::MAX);
        let step = (STEP.to_owned(), Tensor::from(step));
        let tensors = [step].into_iter().chain(states).chain(masters).collect();
        let metadata = HashMap::from([(KIND.to_owned(), self.config.kind.name().to_owned())]);
        write_tensors(path, tensors, Some(metadata)).map_err(|error| match error {
            PolicyError::Io { source, .. } => io("write", path)(source),
            other => StateError::Format { path: path.to_owned(), what: format!("cannot be written: {other}") },
        })
    }

    /// Restores the state from `path`, which [`save`](Self::save) wrote for the same model, with any number of ranks. The
    /// following steps are then the same, bit for bit if the ranks are as many. On an error nothing is changed.
    pub fn load(&mut self, path: &Path) -> Result<(), StateError> {
        let file = open_regular(path).map_err(io("read", path))?;
        // SAFETY: the map is private and lives only in this function; a file that another process truncates
        // meanwhile would raise SIGBUS, as with every reader of safetensors.
        let map = unsafe { Mmap::map(&file) }.map_err(io("read", path))?;
        let format = |what: String| StateError::Format { path: path.to_owned(), what };
        let tensors =
            SafeTensors::deserialize(&map).map_err(|error| format(format!("not a safetensors file: {error}")))?;
        self.check_kind(path, &map)?;
        let mut found: BTreeMap<&str, TensorView> = tensors.iter().collect();
        let mut take = |name: &str| {
            found.remove(name).ok_or_else(|| StateError::Missing { path: path.to_owned(), name: name.to_owned() })
        };

        let step = take(STEP)?;
        let steps = match <[u8; 8]>::try_from(step.data()) {
            Ok(bytes) if step.dtype() == Dtype::I64 => u64::try_from(i64::from_le_bytes(bytes)).ok(),
            _ => None,
        };
        let steps = steps.ok_or_else(|| format("tensor `step` is not one whole number of at least 0".into()))?;

        let mut restored = Vec::new();
        for (name, like, target) in self.state() {
            let view = take(&name)?;
            let (expected, there) =
                (describe(file_dtype(like.kind), &sizes(&like.size)), describe(Some(view.dtype()), view.shape()));
            if expected != there {
                return Err(StateError::Mismatch { path: path.to_owned(), name, expected, found: there });
            }
            restored.extend(target.map(|target| (target.shallow_clone(), view, like.kind)));
        }
        if let Some((name, _)) = found.first_key_value() {
            return Err(StateError::Unknown { path: path.to_owned(), name: (*name).to_owned() });
        }

        let _guard = tch::no_grad_guard();
        for (mut target, view, kind) in restored {
            let copied =
                Tensor::f_from_data_size(view.data(), &target.size(), kind).and_then(|values| target.f_copy_(&values));
            copied.map_err(|source| StateError::Torch { path: path.to_owned(), source })?;
        }
        self.masters.round().map_err(|error| format(error.to_string()))?;
        self.steps = steps;
        Ok(())
    }

    /// Refuses the file of another kind of optimiser.
    fn check_kind(&self, path: &Path, file: &[u8]) -> Result<(), StateError> {
        let metadata = SafeTensors::read_metadata(file).ok().and_then(|(_, header)| header.metadata().clone());
        let found = metadata.and_then(|mut metadata| metadata.remove(KIND));
        let known = OptimizerKind::ALL.into_iter().find(|kind| found.as_deref() == Some(kind.name()));
        let path = || path.to_owned();
        match known.or(found.is_none().then_some(OptimizerKind::Adamw)) {
            Some(kind) if kind == self.config.kind => Ok(()),
            Some(kind) => Err(StateError::Kind { path: path(), expected: self.config.kind.name(), found: kind.name() }),
            None => Err(StateError::Format { path: path(), what: "its kind of optimiser is not known".into() }),
        }
    }

    /// The tensors of the state by their names in the file, each with the tensor itself unless another rank has it. In
    /// place of a master that another rank has, its rounded parameter.
    fn state(&self) -> impl Iterator<Item = (String, StateTensor, Option<&Tensor>)> {
        let states = (0..self.names.len()).flat_map(move |at| {
            let tensors = self.rules[at].state(&self.parameters[at]).into_iter().enumerate();
            tensors.map(move |(which, like)| {
                let own = self.states[at].as_ref().map(|state| &state[which]);
                (format!("{}.{}", like.what, self.names[at]), like, own)
            })
        });
        let masters = self.masters.iter().map(|Master { at, rounded, master, is_here }| {
            let like = StateTensor { what: MASTER, kind: master.kind(), size: master.size() };
            (format!("{MASTER}.{}", self.names[*at]), like, Some(if *is_here { master } else { rounded }))
        });
        states.chain(masters)
    }
}

fn io(action: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> StateError {
    let path = path.to_owned();
    move |source| StateError::Io { action, path, source }
}

fn sizes(size: &[i64]) -> Vec<usize> {
    size.iter().map(|&size| size as usize).collect()
}

fn describe(dtype: Option<Dtype>, shape: &[usize]) -> String {
    match dtype {
        Some(dtype) => format!("{dtype:?}{shape:?}"),
        None => format!("of an unknown kind{shape:?}"),
    }
}
