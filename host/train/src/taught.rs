//! What a teacher says of the tokens of a row.

/// What a teacher says of the tokens of a row: which tokens it finds most probable at each place.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Taught {
    /// How many tokens of the vocabulary the probabilities are of: those that all models have.
    pub vocabulary: i64,
    /// For each response token, the most probable tokens in its place; empty for tokens that are not learned from.
    pub tokens: Vec<TopLogprobs>,
}

/// The most probable tokens of a distribution.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TopLogprobs {
    /// The tokens, the most probable one first.
    pub ids: Vec<u32>,
    /// The log-probability of each, and then of all other tokens together, if there are others.
    pub logprobs: Vec<f32>,
}

impl Taught {
    /// The bytes of host memory that one token takes of the `top_k` most probable ones.
    pub fn bytes_of_token(top_k: u64) -> u64 {
        size_of::<TopLogprobs>() as u64 + 8 * top_k + 4
    }
}
