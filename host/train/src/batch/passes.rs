//! The order in which mini-batches are learned from.

use crate::experience::Experience;

/// The mini-batches of a step in the order in which they are learned from, as in verl: each of the `epochs` takes all of
/// them, in their order.
pub fn passes(mini_batches: &[Vec<Experience>], epochs: usize) -> impl Iterator<Item = &Vec<Experience>> {
    std::iter::repeat_n(mini_batches, epochs).flatten()
}
