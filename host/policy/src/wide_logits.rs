//! Logits in 32 bits from weights of 16, on GPUs. Decoding and training have the same.

use crate::error::{PolicyError, Result};
use crate::fast_paths::{FastPath, Results, is_usable, random_like};
use crate::model::Model;
use tch::{Kind, Tensor};

/// The numbers of tokens that the product is checked with, as in decoding and as in training, and the most of the
/// vocabulary.
const CHECKED: ([i64; 2], i64) = ([8, 512], 16_384);

impl Model {
    /// The logits to draw from, `[rows, vocab]`, of `hidden`, `[rows, hidden]`. With weights of 16 bits on a GPU they
    /// have 32, as they are added up: two tokens whose logits round to the same number of 16 bits are not equally
    /// probable, and no pass over the vocabulary is needed to widen them. Without gradients.
    ///
    /// # Errors
    /// As [`logits`](Self::logits).
    pub(crate) fn logits_to_draw_from(&self, hidden: &Tensor) -> Result<Tensor> {
        let head = self.language_head()?;
        if can_be_wide(hidden, head) { wide(hidden, head) } else { self.logits(hidden) }
    }
}

/// Whether the logits of hidden states, with this head, can have 32 bits where both have 16.
pub(crate) fn can_be_wide(hidden: &Tensor, head: &Tensor) -> bool {
    let kind = hidden.kind();
    let is_half = matches!(kind, Kind::BFloat16 | Kind::Half) && head.kind() == kind;
    let [vocab, width] = <[i64; 2]>::try_from(head.size()).unwrap_or_default();
    is_half
        && is_usable(FastPath::WideLogits, hidden.device(), kind, &[width, vocab], || {
            let (rows, head) = (CHECKED.0, head.f_detach()?.f_narrow(0, 0, vocab.min(CHECKED.1))?);
            let both = |rows| {
                let hidden = random_like(&[rows, width], 1, kind, hidden.device())?;
                let (fast, plain) = (wide(&hidden, &head)?, hidden.f_linear(&head, None::<&Tensor>)?);
                Ok(Results { fast, plain, rows: vec![rows] })
            };
            rows.into_iter().map(both).collect()
        })
}

/// The product of numbers of 16 bits in 32.
fn wide(hidden: &Tensor, head: &Tensor) -> Result<Tensor> {
    let product = hidden.f_mm_dtype(&head.f_transpose(0, 1)?, Kind::Float)?;
    match product.kind() {
        Kind::Float => Ok(product),
        other => Err(PolicyError::Torch(format!("a product in 32 bits has {other:?}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::ModelConfig;
    use crate::fast_paths::beyond_rounding;
    use tch::Device;

    #[test]
    fn the_cpu_draws_from_the_logits_that_training_computes() {
        let json = r#"{"model_type":"qwen2","vocab_size":50,"hidden_size":16,"intermediate_size":24,"num_hidden_layers":1,"num_attention_heads":2}"#;
        let config: ModelConfig = serde_json::from_str(json).unwrap();
        for kind in [Kind::Float, Kind::BFloat16] {
            let model = Model::noise(config.clone(), kind, Device::Cpu).unwrap();
            let hidden = random_like(&[3, 16], 1, kind, Device::Cpu).unwrap();
            let (drawn, trained) = (model.logits_to_draw_from(&hidden).unwrap(), model.logits(&hidden).unwrap());
            assert!(drawn.kind() == kind && drawn.equal(&trained));
        }
    }

    #[test]
    fn a_product_in_32_bits_is_that_of_16_bits_or_an_error() {
        let random = |rows, seed| random_like(&[rows, 64], seed, Kind::BFloat16, Device::Cpu).unwrap();
        let (hidden, head) = (random(3, 1), random(50, 2));
        match wide(&hidden, &head) {
            Ok(found) => {
                let plain = hidden.linear(&head, None::<&Tensor>);
                assert_eq!(beyond_rounding(&found, &plain, Kind::BFloat16).unwrap(), None);
            }
            // libtorch 2.11 has it for GPUs alone.
            Err(error) => assert!(error.to_string().contains("aten::mm.dtype"), "{error}"),
        }
    }
}
