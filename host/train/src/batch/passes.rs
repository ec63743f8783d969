//! The order in which mini-batches are learned from.

/// The mini-batches of a step in the order in which they are learned from, as in verl: each of the `epochs` takes all of
/// them, in their order.
pub fn passes<M>(mini_batches: &[M], epochs: usize) -> impl Iterator<Item = &M> {
    std::iter::repeat_n(mini_batches, epochs).flatten()
}
