//! How logits are changed before tokens are drawn.

use std::collections::BTreeMap;

/// How logits were changed before the tokens of a response were drawn, beside the temperature and
/// [the masks of its tokens](crate::Experience::masks).
#[derive(Debug, Clone, PartialEq)]
pub struct Drawing {
    /// What is added to the logits of tokens.
    pub(crate) logit_bias: BTreeMap<u32, f32>,
    /// The number by which positive logits of tokens that came before are divided, and others multiplied.
    pub(crate) repetition_penalty: f32,
}

impl Drawing {
    /// The biases of a token that is named several times add up; 1 is no penalty.
    pub fn new(logit_bias: &[(u32, f32)], repetition_penalty: f32) -> Self {
        let mut biases = BTreeMap::new();
        for (token, bias) in logit_bias {
            *biases.entry(*token).or_insert(0.0) += bias;
        }
        Self { logit_bias: biases, repetition_penalty }
    }
}
