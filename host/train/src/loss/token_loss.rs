//! The inputs and outputs of the loss of a token.

use tch::Tensor;

/// The tokens of a chunk, all `[tokens]`; gradients flow through `logprobs`
/// alone.
pub(crate) struct Tokens<'a> {
    /// Log-probabilities under the policy.
    pub logprobs: &'a Tensor,
    /// The log-probabilities that the policy is compared with.
    pub old: &'a Tensor,
    pub advantages: &'a Tensor,
}

/// The contribution of each token, all `[tokens]`.
pub(crate) struct TokenLoss {
    pub loss: Tensor,
    /// Other statistics, by name: the mean over all tokens is reported.
    pub statistics: Vec<(&'static str, Tensor)>,
}
