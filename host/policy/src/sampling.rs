//! How responses are drawn.

use crate::error::{PolicyError, Result};
use gavel_data::SharedConstraint;

/// How the tokens of a response are drawn and when it ends. The names are
/// vLLM's, and so is the order: constraint, bias, penalties, temperature, min-p,
/// top-k, top-p.
#[derive(Debug, Clone, PartialEq)]
pub struct Sampling {
    /// Logits are divided by it; 0 takes the most probable token.
    pub temperature: f32,
    /// Only the `top_k` most probable tokens (Fan et al., arXiv:1805.04833), and
    /// those that are as probable as the last of them.
    pub top_k: Option<usize>,
    /// Only the most probable tokens that together reach this share of what
    /// min-p and top-k left; 1 is no limit (Holtzman et al., arXiv:1904.09751).
    pub top_p: f32,
    /// Only tokens with at least this share of the most probable one's
    /// probability; 0 means no limit (arXiv:2407.01082).
    pub min_p: f32,
    /// Positive logits of tokens in the prompt or the response are divided by
    /// it, negative ones multiplied (arXiv:1909.05858); 1 means no penalty.
    pub repetition_penalty: f32,
    /// Taken from the logits of tokens in the response, after the penalty above;
    /// 0 means none.
    pub presence_penalty: f32,
    /// The same for each time that a token is in the response.
    pub frequency_penalty: f32,
    /// Added to the logits of these tokens, before the penalties.
    pub logit_bias: Vec<(u32, f32)>,
    /// The most tokens that a response may have, the stop token included.
    pub max_tokens: usize,
    /// Tokens that end a response; they belong to it.
    pub stop_ids: Vec<u32>,
    /// Whether the tokens that could be drawn are kept for each token, and its
    /// log-probability is among them, not before tokens are cut off. A token
    /// takes at most an eighth of a byte for each token of the vocabulary, and
    /// as a rule one or two bytes for each that could be drawn.
    pub masked: bool,
    /// Restricts the tokens of the response, such as a grammar. Log-probabilities
    /// are among the tokens that it allows.
    pub constraint: Option<SharedConstraint>,
}

impl Sampling {
    /// Plain sampling at temperature 1 until one of `stop_ids`.
    pub fn new(max_tokens: usize, stop_ids: Vec<u32>) -> Self {
        Self {
            temperature: 1.0,
            top_k: None,
            top_p: 1.0,
            min_p: 0.0,
            repetition_penalty: 1.0,
            presence_penalty: 0.0,
            frequency_penalty: 0.0,
            logit_bias: Vec::new(),
            max_tokens,
            stop_ids,
            masked: false,
            constraint: None,
        }
    }

    /// The most probable token each time.
    pub fn greedy(max_tokens: usize, stop_ids: Vec<u32>) -> Self {
        Self { temperature: 0.0, ..Self::new(max_tokens, stop_ids) }
    }

    /// Checks that each number is in its range.
    pub fn validate(&self) -> Result<()> {
        let wrong = |what: String| Err(PolicyError::Input(what));
        if !(self.temperature == 0.0 || (1e-3..=1e3).contains(&self.temperature)) {
            return wrong(format!("`temperature` must be 0 (greedy) or from 0.001 to 1000, not {}", self.temperature));
        }
        if self.top_k == Some(0) {
            return wrong("`top_k` must be at least 1; leave it out for no limit".into());
        }
        if !(self.top_p > 0.0 && self.top_p <= 1.0) {
            return wrong(format!("`top_p` must be above 0 and at most 1, not {}", self.top_p));
        }
        if !(0.0..=1.0).contains(&self.min_p) {
            return wrong(format!("`min_p` must be from 0 to 1, not {}", self.min_p));
        }
        if !(0.01..=100.0).contains(&self.repetition_penalty) {
            return wrong(format!("`repetition_penalty` must be from 0.01 to 100, not {}", self.repetition_penalty));
        }
        let added = [("presence_penalty", self.presence_penalty), ("frequency_penalty", self.frequency_penalty)];
        if let Some((name, penalty)) = added.into_iter().find(|(_, penalty)| !(-2.0..=2.0).contains(penalty)) {
            return wrong(format!("`{name}` must be from -2 to 2, not {penalty}"));
        }
        if let Some((token, bias)) = self.logit_bias.iter().find(|(_, bias)| !(-100.0..=100.0).contains(bias)) {
            return wrong(format!("`logit_bias` of token {token} must be from -100 to 100, not {bias}"));
        }
        if self.max_tokens == 0 {
            return wrong("`max_tokens` must be at least 1".into());
        }
        Ok(())
    }

    /// Whether each token is the most probable one.
    pub fn is_greedy(&self) -> bool {
        self.temperature == 0.0
    }

    /// Whether some tokens cannot be drawn.
    pub fn is_truncated(&self) -> bool {
        self.top_k.is_some() || self.top_p < 1.0 || self.min_p > 0.0
    }

    /// Whether something is taken from the logits of tokens in the response.
    pub(crate) fn has_added_penalties(&self) -> bool {
        self.presence_penalty != 0.0 || self.frequency_penalty != 0.0
    }

    /// Whether it keeps which tokens could be drawn, and some could not. The
    /// most probable token is not drawn: there is nothing to keep.
    pub(crate) fn keeps_cuts(&self) -> bool {
        self.masked && (self.is_truncated() || self.constraint.is_some()) && !self.is_greedy()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_out_of_range_are_named() {
        let fine = Sampling::new(8, vec![2]);
        assert!(fine.validate().is_ok() && Sampling::greedy(1, vec![]).validate().is_ok());
        for (wrong, name) in [
            (Sampling { temperature: -1.0, ..fine.clone() }, "`temperature`"),
            (Sampling { temperature: f32::NAN, ..fine.clone() }, "`temperature`"),
            (Sampling { top_k: Some(0), ..fine.clone() }, "`top_k`"),
            (Sampling { top_p: 0.0, ..fine.clone() }, "`top_p`"),
            (Sampling { min_p: 1.5, ..fine.clone() }, "`min_p`"),
            (Sampling { repetition_penalty: 0.0, ..fine.clone() }, "`repetition_penalty`"),
            (Sampling { presence_penalty: 2.5, ..fine.clone() }, "`presence_penalty`"),
            (Sampling { frequency_penalty: f32::NAN, ..fine.clone() }, "`frequency_penalty`"),
            (Sampling { logit_bias: vec![(1, f32::NAN)], ..fine.clone() }, "`logit_bias` of token 1"),
            (Sampling { max_tokens: 0, ..fine }, "`max_tokens`"),
        ] {
            assert!(wrong.validate().unwrap_err().to_string().starts_with(name));
        }
    }
}
