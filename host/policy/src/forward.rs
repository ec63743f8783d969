//! The forward pass over whole sequences, with gradients.

use crate::attention::attend;
use crate::error::{PolicyError, Result};
use crate::layer_parts::LayerParts;
use crate::mask::Masks;
use crate::model::Model;
use crate::packed::{Packed, PackedAttention};
use crate::rotary::Rotation;
use gavel_torch::scalar::{ScalarOperations, arange};
use tch::Tensor;

impl Model {
    /// The hidden states after the final norm, `[batch, time, hidden]`, of
    /// `ids`, `[batch, time]` of kind `Int64`. Gradients flow to
    /// [`parameters`](Model::parameters) unless they are off. Rows may be
    /// padded on the right: causality keeps the padding out, and the hidden
    /// states of the padding itself are meaningless.
    pub fn hidden(&self, ids: &Tensor) -> Result<Tensor> {
        let (batch, time) = ids.size2().map_err(|_| {
            PolicyError::Input(format!("token ids must have the shape [batch, time], not {:?}", ids.size()))
        })?;
        let config = self.config();
        let masks = Masks::new(config, time, self.device())?;
        let rotation = self.rotary.at(&arange(0, time, 1, self.device())?)?.repeat(batch)?;
        let mut x = self.embed(&ids.f_flatten(0, 1)?)?;
        let parts = self.layer_parts();
        for (index, layer) in self.layers.iter().enumerate() {
            let projected = layer.project(parts, &x, &rotation)?;
            x = layer.finish(parts, &x, &attend(&projected, batch, masks.of(config, index))?)?;
        }
        Ok(self.normalise(&x)?.f_view([batch, time, config.hidden_size])?)
    }

    /// The hidden states after the final norm, `[tokens, hidden]`, of packed
    /// rows. Gradients flow as from [`hidden`](Self::hidden).
    pub fn hidden_packed(&self, packed: &Packed) -> Result<Tensor> {
        let pass = PackedPass::new(self, packed)?;
        let mut x = self.embed(&packed.ids)?;
        for layer in 0..self.layers.len() {
            x = pass.layer(layer, &x)?;
        }
        self.normalise(&x)
    }

    /// The scores, `[batch, labels]`, that a classifier gives to the rows of
    /// `ids`, `[batch, time]`, which have these numbers of tokens and are padded
    /// on the right.
    pub fn scores(&self, ids: &Tensor, lengths: &[usize]) -> Result<Tensor> {
        let hidden = self.hidden(ids)?;
        let [batch, time] = [hidden.size()[0], hidden.size()[1]];
        if lengths.len() as i64 != batch || lengths.iter().any(|&length| length == 0 || length as i64 > time) {
            return Err(PolicyError::Input(format!(
                "the rows of [{batch}, {time}] cannot have the lengths {lengths:?}"
            )));
        }
        let last: Vec<i64> = lengths.iter().zip(0..).map(|(&length, row)| row * time + length as i64 - 1).collect();
        let last = Tensor::f_from_slice(&last)?.f_to_device(self.device())?;
        self.scores_of_last(&hidden.f_flatten(0, 1)?.f_index_select(0, &last)?)
    }

    /// The hidden states after the final norm, `[places, hidden]`, of some tokens of packed rows: of each row those at
    /// these places, from 0. They are in the order of `places`.
    ///
    /// # Errors
    /// There are not as many lists of places as rows, or a place is not in its row.
    pub fn hidden_at(&self, packed: &Packed, places: &[Vec<usize>]) -> Result<Tensor> {
        let places = packed.places(places)?;
        let places = Tensor::f_from_slice(&places)?.f_to_device(self.device())?;
        Ok(self.hidden_packed(packed)?.f_index_select(0, &places)?)
    }

    /// The embeddings, `[tokens, hidden]`, of `ids`, `[tokens]`.
    pub(crate) fn embed(&self, ids: &Tensor) -> Result<Tensor> {
        let x = Tensor::f_embedding(&self.embedding, ids, -1, false, false)?;
        if !self.config().architecture.scales_embedding() {
            return Ok(x);
        }
        // Rounded to the weights' dtype, as in the model's training.
        let scale = Tensor::from((self.config().hidden_size as f64).sqrt());
        Ok(x.try_mul(scale.f_to_kind(self.kind())?.f_double_value(&[])?)?)
    }

    /// The norm after the last layer.
    pub(crate) fn normalise(&self, x: &Tensor) -> Result<Tensor> {
        self.layer_parts().norm(x, &self.norm)
    }

    /// How a pass computes the parts of its layers.
    pub(crate) fn layer_parts(&self) -> LayerParts<'_> {
        LayerParts::of(self.config(), self.kind(), self.device(), &self.rotary)
    }
}

/// The inputs about packed rows that all layers share.
pub(crate) struct PackedPass<'a> {
    pub(crate) model: &'a Model,
    pub(crate) packed: &'a Packed,
    parts: LayerParts<'a>,
    rotation: Rotation,
    attention: PackedAttention,
}

impl<'a> PackedPass<'a> {
    pub(crate) fn new(model: &'a Model, packed: &'a Packed) -> Result<Self> {
        let rotation = model.rotary.at(&packed.positions)?;
        let attention = PackedAttention::new(packed, model.config(), model.kind())?;
        Ok(Self { model, packed, parts: model.layer_parts(), rotation, attention })
    }

    /// The output of a layer for `x`, `[tokens, hidden]`, or of the final norm, which comes after the last layer.
    pub(crate) fn step(&self, index: usize, x: &Tensor) -> Result<Tensor> {
        if index < self.model.layers.len() { self.layer(index, x) } else { self.model.normalise(x) }
    }

    /// The output of a layer for `x`, `[tokens, hidden]`.
    pub(crate) fn layer(&self, index: usize, x: &Tensor) -> Result<Tensor> {
        let (config, layer) = (self.model.config(), &self.model.layers[index]);
        let projected = layer.project(self.parts, x, &self.rotation)?;
        layer.finish(self.parts, x, &self.attention.attend(self.packed, config, index, &projected)?)
    }
}
