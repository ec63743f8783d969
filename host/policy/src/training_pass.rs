//! A forward pass whose backward pass begins at the hidden states, so that the
//! work after them can be done in parts. The pass need not keep the activations
//! inside the layers.

use crate::error::{PolicyError, Result};
use crate::forward::PackedPass;
use crate::model::Model;
use crate::packed::Packed;
use gavel_torch::autograd::backward;
use std::cmp::Reverse;
use tch::Tensor;

/// The parts of a model in the order in which a backward pass completes the gradients of their parameters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    /// What follows the layers: the final norm and the head.
    Head,
    /// A layer, the last one first.
    Layer(Reverse<usize>),
    /// The embedding, which may be the head too.
    Embedding,
}

impl Stage {
    /// The part that a parameter with this name belongs to.
    pub fn of(name: &str) -> Self {
        let layer = name.strip_prefix("model.layers.").and_then(|rest| rest.split('.').next()?.parse().ok());
        match layer {
            Some(layer) => Self::Layer(Reverse(layer)),
            None if name.starts_with("model.embed_tokens.") => Self::Embedding,
            None => Self::Head,
        }
    }
}

/// A moment of a forward or backward pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Moment {
    /// A part is about to compute.
    Before(Stage),
    /// A part has computed. In a backward pass the gradients of its parameters are complete.
    After(Stage),
}

/// The forward pass over some rows. [`backward`](Self::backward) follows it.
pub struct TrainingPass<'a> {
    /// `[tokens, hidden]`, a leaf that collects its gradient.
    hidden: Tensor,
    pass: PackedPass<'a>,
    memory: Memory,
}

/// The values that the backward pass needs, from the first layer to the final norm.
enum Memory {
    /// The embedded tokens, and everything that was computed for each of the steps after them.
    Everything(Tensor, Vec<Step>),
    /// The input of each step. The rest is computed
    /// again, layer by layer (Chen et al., "Training deep nets with sublinear
    /// memory cost", arXiv:1604.06174).
    Inputs(Vec<Tensor>),
}

/// A layer, or the final norm, apart from the others.
struct Step {
    /// A leaf that collects its gradient, if something before it needs one.
    input: Tensor,
    output: Tensor,
}

impl<'a> TrainingPass<'a> {
    /// The pass of `model` over `packed`. With `checkpointing`, its backward
    /// pass computes each layer again instead of keeping everything inside the
    /// layers, for about a third more work.
    pub fn new(model: &'a Model, packed: &'a Packed, checkpointing: bool) -> Result<Self> {
        Self::in_stages(model, packed, checkpointing, |_| Ok(()))
    }

    /// The same. `visit` is called before and after each part of the model.
    ///
    /// # Errors
    /// libtorch fails, or `visit` does.
    pub fn in_stages<E: From<PolicyError>>(
        model: &'a Model,
        packed: &'a Packed,
        checkpointing: bool,
        mut visit: impl FnMut(Moment) -> std::result::Result<(), E>,
    ) -> std::result::Result<Self, E> {
        let pass = PackedPass::new(model, packed)?;
        let _guard = if checkpointing { Some(tch::no_grad_guard()) } else { None };
        visit(Moment::Before(Stage::Embedding))?;
        let embedded = model.embed(&packed.ids)?;
        visit(Moment::After(Stage::Embedding))?;
        let mut x = embedded.shallow_clone();
        let (mut inputs, mut steps) = (Vec::new(), Vec::new());
        for step in 0..=model.layers.len() {
            let input = leaf(&x, x.requires_grad())?;
            visit(Moment::Before(pass.stage(step)))?;
            x = pass.step(step, &input)?;
            visit(Moment::After(pass.stage(step)))?;
            match checkpointing {
                true => inputs.push(input),
                false => steps.push(Step { input, output: x.shallow_clone() }),
            }
        }
        let memory = if checkpointing { Memory::Inputs(inputs) } else { Memory::Everything(embedded, steps) };
        Ok(Self { hidden: leaf(&x, true)?, pass, memory })
    }

    /// The hidden states after the final norm, `[tokens, hidden]`. Call
    /// `backward` on losses over them, as often as needed, before the pass's
    /// own [`backward`](Self::backward).
    pub fn hidden(&self) -> &Tensor {
        &self.hidden
    }

    /// Adds the gradients of all that was computed from [`hidden`](Self::hidden) to the gradients of the parameters.
    ///
    /// # Errors
    /// No loss over the hidden states went backward, or libtorch fails.
    pub fn backward(self) -> Result<()> {
        self.backward_in_stages(|_| Ok(()))
    }

    /// Like [`backward`](Self::backward), with `visit` called before and after each part of the model.
    ///
    /// # Errors
    /// As [`backward`](Self::backward), and the errors of `visit`.
    pub fn backward_in_stages<E: From<PolicyError>>(
        self,
        mut visit: impl FnMut(Moment) -> std::result::Result<(), E>,
    ) -> std::result::Result<(), E> {
        let mut gradient = self.hidden.f_grad().map_err(PolicyError::from)?;
        if !gradient.defined() {
            return Err(PolicyError::Input("no loss over the hidden states went backward".into()).into());
        }
        let pass = self.pass;
        let embedded = match self.memory {
            Memory::Everything(embedded, mut steps) => {
                while let Some(Step { input, output }) = steps.pop() {
                    let stage = pass.stage(steps.len());
                    visit(Moment::Before(stage))?;
                    gradient = through(&input, &output, &gradient)?;
                    drop(output);
                    visit(Moment::After(stage))?;
                }
                visit(Moment::Before(Stage::Embedding))?;
                embedded
            }
            Memory::Inputs(mut inputs) => {
                while let Some(input) = inputs.pop() {
                    let step = inputs.len();
                    visit(Moment::Before(pass.stage(step)))?;
                    let input = leaf(&input, true)?;
                    gradient = through(&input, &pass.step(step, &input)?, &gradient)?;
                    visit(Moment::After(pass.stage(step)))?;
                }
                visit(Moment::Before(Stage::Embedding))?;
                pass.model.embed(&pass.packed.ids)?
            }
        };
        // The embedding may be frozen.
        if embedded.requires_grad() {
            backward(&embedded, &gradient).map_err(PolicyError::from)?;
        }
        visit(Moment::After(Stage::Embedding))
    }
}

impl PackedPass<'_> {
    fn stage(&self, step: usize) -> Stage {
        if step == self.model.layers.len() { Stage::Head } else { layer(step) }
    }
}

fn layer(index: usize) -> Stage {
    Stage::Layer(Reverse(index))
}

/// The tensor without what it was computed from.
fn leaf(x: &Tensor, requires_grad: bool) -> Result<Tensor> {
    Ok(x.f_detach()?.f_set_requires_grad(requires_grad)?)
}

/// Goes backward from `output`, whose gradient is known, to `input`. Gives the gradient of `input`, undefined if nothing
/// before it needs one.
fn through(input: &Tensor, output: &Tensor, gradient: &Tensor) -> Result<Tensor> {
    if output.requires_grad() {
        backward(output, gradient)?;
    }
    Ok(input.f_grad()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_parameter_belongs_to_the_part_that_its_name_says() {
        assert_eq!(Stage::of("model.embed_tokens.weight"), Stage::Embedding);
        assert_eq!(Stage::of("model.layers.12.mlp.down_proj.lora_A"), layer(12));
        for name in ["model.norm.weight", "lm_head.weight", "score.bias"] {
            assert_eq!(Stage::of(name), Stage::Head, "{name}");
        }
        let mut order = [Stage::Embedding, layer(0), layer(10), layer(2), Stage::Head];
        order.sort();
        assert_eq!(order, [Stage::Head, layer(10), layer(2), layer(0), Stage::Embedding]);
    }
}
