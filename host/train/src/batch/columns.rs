//! Numbers that are given for each token, such as advantages.

use super::micro_batch::{Chunk, MicroBatch};
use crate::error::Result;
use tch::{Kind, Tensor};

/// Gives a number of the token with this row in the mini-batch and this position in the response.
type Column<'a> = Box<dyn Fn(usize, usize) -> f64 + 'a>;

/// Kinds of numbers that tokens have.
#[derive(Default)]
pub(crate) struct Columns<'a>(Vec<Column<'a>>);

/// Which of the [`Columns`].
#[derive(Debug, Clone, Copy)]
pub(crate) struct At(usize);

/// The numbers of the tokens of a micro-batch, `[columns, tokens]`, on its device.
pub(crate) struct Values(Tensor);

impl<'a> Columns<'a> {
    /// Adds a kind of numbers.
    pub fn add(&mut self, column: impl Fn(usize, usize) -> f64 + 'a) -> At {
        self.0.push(Box::new(column));
        At(self.0.len() - 1)
    }
}

impl MicroBatch {
    /// The numbers of all tokens that are learned from, in one upload to the device of `like`, and in its kind but at
    /// least 32 bits.
    pub fn values(&self, columns: &Columns, like: &Tensor) -> Result<Values> {
        let of_column = |column: &Column| self.tokens.iter().map(|&(row, at)| column(row, at)).collect::<Vec<_>>();
        let all: Vec<f64> = columns.0.iter().flat_map(of_column).collect();
        let all = Tensor::f_from_slice(&all)?.f_view([columns.0.len() as i64, self.tokens.len() as i64])?;
        let kind = if like.f_kind()? == Kind::Double { Kind::Double } else { Kind::Float };
        Ok(Values(all.f_to_kind(kind)?.f_to_device(like.device())?))
    }
}

impl Values {
    /// The numbers of this kind of a chunk's tokens, `[tokens]`.
    pub fn of(&self, column: At, chunk: &Chunk) -> Result<Tensor> {
        let place = &chunk.place;
        Ok(self.0.f_select(0, column.0 as i64)?.f_narrow(0, place.start, place.end - place.start)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::Sequence;
    use tch::Device;

    #[test]
    fn each_chunk_has_the_numbers_of_its_tokens() {
        let sequences = [[11, 12, 13], [21, 22, 23]].map(|response| (vec![1], response.to_vec()));
        let sequences = sequences.each_ref().map(|(prompt, response)| Sequence { prompt, response, loss_mask: None });
        let batch = MicroBatch::new(&[1, 0], &sequences, Device::Cpu).unwrap();
        let mut columns = Columns::default();
        let [rows, tokens] = [columns.add(|row, _| row as f64), columns.add(|row, at| (10 * row + at) as f64 + 11.0)];
        for (hidden, kind) in [(Kind::Double, Kind::Double), (Kind::Float, Kind::Float), (Kind::BFloat16, Kind::Float)]
        {
            let values = batch.values(&columns, &Tensor::zeros([1], (hidden, Device::Cpu))).unwrap();
            for size in [1, 4, 6] {
                let chunks = batch.chunks_of(size).unwrap();
                assert_eq!(chunks.len(), 6usize.div_ceil(size));
                for chunk in &chunks {
                    let found = values.of(tokens, chunk).unwrap();
                    assert!(found.kind() == kind && found == chunk.targets.to_kind(kind));
                    let found = Vec::<f64>::try_from(values.of(rows, chunk).unwrap()).unwrap();
                    assert!(found.iter().zip(chunk.tokens).all(|(found, (row, _))| *found == *row as f64));
                }
            }
        }
    }
}
