//! What goes into the loss of a token, and what comes out.

use tch::Tensor;

/// The tokens of a chunk, all `[tokens]`; gradients flow through `logprobs`
/// alone.
pub(crate) struct Tokens<'a> {
    /// Log-probabilities under the policy.
    pub logprobs: &'a Tensor,
    /// Those that the policy is compared with.
    pub old: &'a Tensor,
    pub advantages: &'a Tensor,
}

/// What each token contributes, all `[tokens]`.
pub(crate) struct TokenLoss {
    pub loss: Tensor,
    /// What else is worth knowing, by name: the mean over all tokens is reported.
    pub statistics: Vec<(&'static str, Tensor)>,
}
