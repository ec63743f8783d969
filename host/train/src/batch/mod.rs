//! Rows of different lengths → packed micro-batches.

mod columns;
mod micro_batch;
mod padding;
mod pair_plan;
mod passes;
mod plan;
mod sequence;
mod shares;

pub(crate) use columns::Columns;
pub(crate) use micro_batch::tokens_per_chunk;
pub(crate) use micro_batch::{Chunk, MicroBatch};
pub use padding::PaddedBatch;
pub use passes::passes;
pub use plan::LongestRows;
pub(crate) use sequence::Sequence;
pub use shares::shares;

use crate::error::Result;
use gavel_policy::Model;

/// Packs the rows with something to learn from into micro-batches of at most `max_tokens` tokens; a longer row gets a
/// micro-batch by itself. Rows with the same prompt stay together if they fit, and rows of similar length come
/// together. Rows that share a computed prompt still have separate keys and values of it. The keys and values of all
/// rows are at most four times `max_tokens`. The order depends only on prompts and lengths.
pub(crate) fn micro_batches(sequences: &[Sequence], max_tokens: usize, model: &Model) -> Result<Vec<MicroBatch>> {
    for (index, sequence) in sequences.iter().enumerate() {
        sequence.check(index, model.config().vocab_size)?;
    }
    plan::plan(sequences, max_tokens).iter().map(|rows| MicroBatch::new(rows, sequences, model.device())).collect()
}

/// Packs rows that come in pairs, the rows 2·n and 2·n + 1, so that the rows of a pair are in one micro-batch. A pair of
/// more than `max_tokens` tokens gets a micro-batch by itself. Each row has something to learn from.
pub(crate) fn pair_micro_batches(sequences: &[Sequence], max_tokens: usize, model: &Model) -> Result<Vec<MicroBatch>> {
    for (index, sequence) in sequences.iter().enumerate() {
        sequence.check(index / 2, model.config().vocab_size)?;
    }
    let plan = pair_plan::pair_plan(sequences, max_tokens);
    plan.iter().map(|rows| MicroBatch::new(rows, sequences, model.device())).collect()
}
