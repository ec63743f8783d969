//! Steps without prompts as CUDA graphs. A step is some hundreds of small operations, and a GPU computes most of them
//! faster than a host launches them. A graph launches all at once.
//!
//! A graph reads and writes the memory that it was recorded with. So its inputs are copied to a place of their own, it
//! decodes a fixed number of rows, of which some may be padding, and it is dropped when the cache or the weights move.

use super::decoding::Decoding;
use super::draw_kernels;
use super::drawn::Drawn;
use super::inputs::{HostInputs, StepInputs};
use super::pass;
use super::prefill::Prefill;
use super::sampler::{Form, draw_plain};
use super::slots::Slots;
use crate::device::{give_back, make_current};
use crate::error::{PolicyError, Result};
use crate::fast_paths::{are_allowed, beyond_rounding};
use crate::model::Model;
use gavel_torch::cuda::graph::{Graph, Recorded, Recorder};
use std::collections::HashMap;
use tch::{Device, Kind, Tensor};

/// The graphs of an engine.
pub(super) struct Graphs {
    steps: Box<dyn Steps>,
    /// The inputs that each of them reads.
    inputs: HashMap<Key, StepInputs>,
    /// The memory that they use.
    memory: Option<Memory>,
}

/// Repeats steps.
pub(super) trait Steps: Send {
    /// Whether steps can be repeated.
    fn is_usable(&self) -> bool;

    /// The results of `step`, which always computes the same for a key, from the same memory.
    fn run(&mut self, key: Key, step: &mut dyn FnMut() -> Result<Computed>) -> Result<Computed>;

    /// Forgets all steps, as their memory is gone.
    fn forget(&mut self);
}

/// Steps with the same key are the same operations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Key {
    /// Rows, padding included.
    pub(super) rows: usize,
    /// How tokens are drawn; `None` if the step ends with logits.
    pub(super) draws: Option<Form>,
}

/// The result of a step.
pub(super) enum Computed {
    /// `[rows, vocab]`
    Logits(Tensor),
    Tokens(Drawn),
}

/// Where the cache and the weights are.
#[derive(Debug, PartialEq, Eq)]
struct Memory {
    weights: u64,
    /// How often the cache has moved.
    cache: u64,
    /// The most keys of a row that a graph is recorded for.
    longest: usize,
}

impl Graphs {
    /// Graphs for an engine of models of `kind` on `device`; `None` where there are none.
    pub(super) fn on(device: Device, kind: Kind) -> Option<Self> {
        let Device::Cuda(index) = device else { return None };
        if !are_allowed() {
            return None;
        }
        let recorder = make_current(device).and_then(|()| Ok(Recorder::new(index)?));
        match recorder {
            Ok(recorder) => {
                let steps = CudaSteps { recorder: Some(recorder), device, kind, graphs: HashMap::new() };
                Some(Self::of(Box::new(steps)))
            }
            Err(error) => {
                tracing::warn!("a CUDA graph of decoding is not used: {error}");
                None
            }
        }
    }

    /// Graphs that `steps` repeats.
    pub(super) fn of(steps: Box<dyn Steps>) -> Self {
        Self { steps, inputs: HashMap::new(), memory: None }
    }

    pub(super) fn is_usable(&self) -> bool {
        self.steps.is_usable()
    }

    /// Forgets all steps, before the memory that they use is freed.
    pub(super) fn forget(&mut self) {
        self.steps.forget();
        self.inputs.clear();
        self.memory = None;
    }

    /// Decodes rows of `slots`, and gives the inputs of the step too. The results have a row for each of them, then
    /// padding. The weights are at `addresses`. With `before`, `[rows, 1]`, the last tokens of the rows are among these.
    pub(super) fn step(
        &mut self,
        model: &Model,
        addresses: u64,
        slots: &mut Slots,
        rows: &[Decoding],
        form: Form,
        before: Option<&Tensor>,
    ) -> Result<(StepInputs, Computed)> {
        let longest = slots.cache.longest_row;
        let memory = Memory { weights: addresses, cache: slots.cache.rebuilt, longest };
        if self.memory.as_ref() != Some(&memory) {
            self.forget();
            self.memory = Some(memory);
        }
        let key = Key { rows: padded(rows.len()), draws: form.is_plain().then_some(form) };
        let vocab = model.config().vocab_size;
        let sent = HostInputs::new(slots, rows, &Prefill::default(), key.rows, vocab).send(model.device())?;
        let inputs = match self.inputs.get(&key) {
            Some(inputs) => inputs,
            None => self.inputs.entry(key).or_insert(sent.place_of_its_own(longest as i64)?),
        };
        inputs.copy_from(&sent)?;
        if let Some(before) = before {
            inputs.take_tokens(&sent.ids()?, before)?;
        }
        // Asked here, as its check cannot be recorded.
        let by_kernels = key.draws.is_some() && draw_kernels::are_usable(vocab, model.device());
        let cache = &mut slots.cache;
        let computed = self.steps.run(key, &mut || {
            let logits = pass::decode(model, cache, inputs)?;
            let logits = logits.ok_or_else(|| PolicyError::Input("a step decodes no rows".into()))?;
            Ok(match key.draws {
                Some(form) => Computed::Tokens(draw_plain(&logits, inputs, form, by_kernels)?),
                None => Computed::Logits(logits),
            })
        })?;
        Ok((sent, computed))
    }
}

/// The rows of a graph for `rows` rows: 1, 2, 4, 8, and from there in steps of 8.
fn padded(rows: usize) -> usize {
    if rows <= 8 { rows.next_power_of_two() } else { rows.next_multiple_of(8) }
}

impl Computed {
    /// The logits, or the log-probabilities.
    fn numbers(&self) -> Result<Tensor> {
        Ok(match self {
            Self::Logits(logits) => logits.shallow_clone(),
            Self::Tokens(drawn) => drawn.pairs.f_select(-1, 1)?,
        })
    }

    fn shallow_clone(&self) -> Self {
        match self {
            Self::Logits(logits) => Self::Logits(logits.shallow_clone()),
            Self::Tokens(Drawn { tokens, pairs }) => {
                Self::Tokens(Drawn { tokens: tokens.shallow_clone(), pairs: pairs.shallow_clone() })
            }
        }
    }
}

/// Steps that CUDA graphs repeat.
struct CudaSteps {
    /// `None` once a graph has failed.
    recorder: Option<Recorder>,
    device: Device,
    /// The kind of the weights.
    kind: Kind,
    graphs: HashMap<Key, (Graph, Computed)>,
}

impl CudaSteps {
    /// A graph whose first launch gives what the run of the same step gave; `None` if that is not finite, so that there
    /// is nothing to compare with.
    fn checked(&self, (graph, result): (Graph, Computed), run: &Computed) -> Result<Option<(Graph, Computed)>> {
        if run.numbers()?.f_isfinite()?.f_all()?.f_double_value(&[])? == 0.0 {
            return Ok(None);
        }
        graph.launch()?;
        match beyond_rounding(&result.numbers()?, &run.numbers()?, self.kind)? {
            None => Ok(Some((graph, result))),
            Some(found) => {
                Err(PolicyError::Input(format!("its result differs from that of its operations by {found:.1e} of it")))
            }
        }
    }
}

impl Steps for CudaSteps {
    fn is_usable(&self) -> bool {
        self.recorder.is_some()
    }

    fn run(&mut self, key: Key, step: &mut dyn FnMut() -> Result<Computed>) -> Result<Computed> {
        if let Some((graph, result)) = self.graphs.get(&key) {
            graph.launch()?;
            return Ok(result.shallow_clone());
        }
        let Some(mut recorder) = self.recorder.take() else { return step() };
        let Recorded { run, graph } = recorder.record(step)?;
        match graph.and_then(|recorded| self.checked(recorded, &run)) {
            Ok(recorded) => {
                self.graphs.extend(recorded.map(|recorded| (key, recorded)));
                self.recorder = Some(recorder);
            }
            // While it records, libtorch cannot take memory from what it keeps for other tensors.
            Err(PolicyError::OutOfMemory { .. }) => {
                give_back(self.device)?;
                self.recorder = Some(recorder);
            }
            Err(error) => {
                tracing::warn!("a CUDA graph of decoding is not used: {error}");
                self.graphs.clear();
            }
        }
        Ok(run)
    }

    fn forget(&mut self) {
        self.graphs.clear();
        if let Some(Err(error)) = self.recorder.as_mut().map(Recorder::renew) {
            let error = PolicyError::from(error);
            tracing::warn!("a CUDA graph of decoding is not used: {error}");
            self.recorder = None;
        }
    }
}

#[cfg(test)]
mod tests;
