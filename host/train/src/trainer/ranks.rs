//! What the ranks of a run agree on before an update.

use super::Trainer;
use crate::batch::MicroBatch;
use crate::error::Result;
use crate::experience::SampleId;
use crate::loss::Aggregation;
use crate::ranks::{Message, gather_results, joined};
use crate::statistics::{ChunkSums, Statistics, Sums};

impl Trainer {
    /// The own value, and a value for each item of this rank. `items` gives the items of this rank. `of_all` gets the
    /// items of all ranks as one list; it gives a value for each, and something else about all of them.
    pub(crate) fn over_all<T, I: Message, V, S>(
        &self,
        own: Result<T>,
        items: impl FnOnce(&T) -> Vec<I>,
        of_all: impl FnOnce(&[I]) -> (Vec<V>, S),
    ) -> Result<(T, Vec<V>, S)> {
        let (own, parts) = gather_results(&self.peers, own, items)?;
        let (all, mine) = joined(&self.peers, parts);
        let (mut values, rest) = of_all(&all);
        values.truncate(mine.end);
        values.drain(..mine.start);
        Ok((own, values, rest))
    }

    /// The own value, and the weight of a token in each row of this rank ([`Aggregation`]), from the counts of all
    /// ranks.
    pub(crate) fn weighted<T>(
        &self,
        own: Result<T>,
        rows: impl Iterator<Item = (SampleId, usize)>,
        aggregation: Aggregation,
        norm_tokens: usize,
    ) -> Result<(T, Vec<f64>)> {
        let weights = |rows: &[(SampleId, usize)]| (aggregation.token_weights(rows, norm_tokens), ());
        let (own, weights, ()) = self.over_all(own, |_| rows.collect(), weights)?;
        Ok((own, weights))
    }

    /// The own value, and the sums over all ranks of what it counts.
    pub(crate) fn counted<T, const N: usize>(
        &self,
        own: Result<T>,
        count: impl FnOnce(&T) -> [usize; N],
    ) -> Result<(T, [usize; N])> {
        let (own, parts) = gather_results(&self.peers, own, count)?;
        Ok((own, std::array::from_fn(|at| parts.iter().map(|counts| counts[at]).sum())))
    }

    /// The numbers of the micro-batches of all ranks, from the sums that `measure` gives of each of this rank.
    pub(crate) fn measured(
        &self,
        batches: &[MicroBatch],
        measure: impl FnMut(&MicroBatch) -> Result<ChunkSums>,
    ) -> Result<Statistics> {
        let own = || {
            let sums = batches.iter().map(measure).collect::<Result<Vec<_>>>()?;
            Sums::of_chunks(&sums, batches.iter().map(|batch| batch.tokens.len()).sum())
        };
        let (_, parts) = gather_results(&self.peers, own(), Sums::clone)?;
        Ok(Statistics::of_sums(&parts))
    }
}
