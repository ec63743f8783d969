//! A forward pass whose backward pass begins at the hidden states, so that the
//! work after them can be done in parts. The pass need not keep the activations
//! inside the layers.

use crate::error::{PolicyError, Result};
use crate::forward::PackedPass;
use crate::model::Model;
use crate::packed::Packed;
use tch::Tensor;

/// The forward pass over some rows. [`backward`](Self::backward) follows it.
pub struct TrainingPass<'a> {
    /// `[tokens, hidden]`, a leaf that collects its gradient.
    hidden: Tensor,
    memory: Memory<'a>,
}

/// The values that the backward pass needs.
enum Memory<'a> {
    /// Everything that was computed for these hidden states.
    Everything(Tensor),
    /// The input of each layer and of the final norm. The rest is computed
    /// again, layer by layer (Chen et al., "Training deep nets with sublinear
    /// memory cost", arXiv:1604.06174).
    Inputs(PackedPass<'a>, Vec<Tensor>),
}

impl<'a> TrainingPass<'a> {
    /// The pass of `model` over `packed`. With `checkpointing`, its backward
    /// pass computes each layer again instead of keeping everything inside the
    /// layers, for about a third more work.
    pub fn new(model: &'a Model, packed: &'a Packed, checkpointing: bool) -> Result<Self> {
        let (hidden, memory) = if checkpointing {
            let _guard = tch::no_grad_guard();
            let pass = PackedPass::new(model, packed)?;
            let mut inputs = vec![model.embed(&packed.ids)?];
            for layer in 0..model.layers.len() {
                inputs.push(pass.layer(layer, &inputs[layer])?);
            }
            (model.normalise(&inputs[model.layers.len()])?, Memory::Inputs(pass, inputs))
        } else {
            let hidden = model.hidden_packed(packed)?;
            (hidden.f_detach()?, Memory::Everything(hidden))
        };
        Ok(Self { hidden: hidden.f_set_requires_grad(true)?, memory })
    }

    /// The hidden states after the final norm, `[tokens, hidden]`. Call
    /// `backward` on losses over them, as often as needed, before the pass's
    /// own [`backward`](Self::backward).
    pub fn hidden(&self) -> &Tensor {
        &self.hidden
    }

    /// Adds the gradients of all that was computed from [`hidden`](Self::hidden)
    /// to those of the parameters.
    ///
    /// # Errors
    /// No loss over the hidden states went backward, or libtorch fails.
    pub fn backward(self) -> Result<()> {
        let gradient = self.hidden.f_grad()?;
        if !gradient.defined() {
            return Err(PolicyError::Input("no loss over the hidden states went backward".into()));
        }
        let (pass, mut inputs) = match self.memory {
            Memory::Everything(hidden) => return from(&hidden, &gradient),
            Memory::Inputs(pass, inputs) => (pass, inputs),
        };
        let mut gradient = match inputs.pop() {
            Some(last) => again(&last, &gradient, |x| pass.model.normalise(x))?,
            None => gradient,
        };
        while let Some(input) = inputs.pop() {
            gradient = again(&input, &gradient, |x| pass.layer(inputs.len(), x))?;
        }
        let embedded = pass.model.embed(&pass.packed.ids)?;
        // The embedding may be frozen.
        if embedded.requires_grad() { from(&embedded, &gradient) } else { Ok(()) }
    }
}

/// Runs the backward pass from `output`, whose gradient is known.
fn from(output: &Tensor, gradient: &Tensor) -> Result<()> {
    Ok(output.f_mul(gradient)?.f_sum(None)?.f_backward()?)
}

/// Runs `body` on `input` again and goes backward through it; gives the
/// gradient of `input`.
fn again(input: &Tensor, gradient: &Tensor, body: impl FnOnce(&Tensor) -> Result<Tensor>) -> Result<Tensor> {
    let input = input.f_detach()?.f_set_requires_grad(true)?;
    from(&body(&input)?, gradient)?;
    Ok(input.f_grad()?)
}
