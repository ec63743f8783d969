//! Excludes the tokens that the constraints of rows do not allow.
//!
//! The host finds the allowed tokens, in several threads where there are many rows, while the device computes the
//! logits. They reach the device in one transfer, a bit for each token of each constrained row.

use super::row::Row;
use crate::error::{PolicyError, Result};
use gavel_torch::scalar::ScalarOperations;
use gavel_torch::transfer::send;
use std::panic::resume_unwind;
use std::thread;
use tch::{Kind, Tensor};

/// Bits of a word.
const BITS: i64 = 32;
/// The fewest rows that are worth a thread: starting one takes about as long as the tokens of a row.
const ROWS_OF_A_THREAD: usize = 4;

/// The tokens that each of some rows may draw.
struct Allowed {
    /// The numbers of the rows.
    rows: Vec<i64>,
    /// One row after another, in words of [`BITS`] bits, as many as the vocabulary needs.
    words: Vec<i32>,
}

/// `logits`, `[rows, vocab]`, of which the last may be padding, with −∞ for the tokens that the constraints of `rows` do
/// not allow. Rows without a constraint stay as they are.
pub(super) fn constrain(rows: &mut [Row], logits: Tensor) -> Result<Tensor> {
    let vocab = logits.size()[1];
    let Some(Allowed { rows, words }) = allowed(rows, vocab)? else { return Ok(logits) };
    let count = rows.len() as i64;
    let device = logits.device();
    let words = send(&Tensor::f_from_slice(&words)?.f_view([count, -1, 1])?, device)?;
    let bit: Vec<i32> = (0..BITS as u32).map(|bit| (1u32 << bit) as i32).collect();
    let bits = words.f_bitwise_and_tensor(&send(&Tensor::f_from_slice(&bit)?, device)?)?;
    let is_excluded = bits.f_to_kind(Kind::Bool)?.f_logical_not()?.f_flatten(1, -1)?.f_narrow(1, 0, vocab)?;
    if count == logits.size()[0] {
        return Ok(logits.try_masked_fill(&is_excluded, f64::NEG_INFINITY)?);
    }
    let rows = send(&Tensor::f_from_slice(&rows)?, device)?;
    let own = logits.f_index_select(0, &rows)?.try_masked_fill(&is_excluded, f64::NEG_INFINITY)?;
    Ok(logits.f_index_copy(0, &rows, &own)?)
}

/// The tokens that the constrained rows may draw; `None` without such rows.
fn allowed(rows: &mut [Row], vocab: i64) -> Result<Option<Allowed>> {
    let constrained = |(_, row): &(i64, &mut Row)| row.request.sampling.constraint.is_some();
    let mut constrained: Vec<(i64, &mut Row)> = (0i64..).zip(rows).filter(constrained).collect();
    if constrained.is_empty() {
        return Ok(None);
    }
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let threads = (constrained.len() / ROWS_OF_A_THREAD).clamp(1, cores);
    let of_thread = constrained.len().div_ceil(threads);
    let found: Vec<Result<Vec<i32>>> = match threads {
        1 => vec![words(&mut constrained, vocab)],
        _ => thread::scope(|scope| {
            let started: Vec<_> =
                constrained.chunks_mut(of_thread).map(|part| scope.spawn(move || words(part, vocab))).collect();
            started.into_iter().map(|thread| thread.join().unwrap_or_else(|panic| resume_unwind(panic))).collect()
        }),
    };
    let words = found.into_iter().collect::<Result<Vec<_>>>()?.concat();
    Ok(Some(Allowed { rows: constrained.iter().map(|(number, _)| *number).collect(), words }))
}

/// The words of these rows.
fn words(rows: &mut [(i64, &mut Row)], vocab: i64) -> Result<Vec<i32>> {
    let of_row = ((vocab + BITS - 1) / BITS) as usize;
    let mut words = Vec::with_capacity(rows.len() * of_row);
    for (_, row) in rows {
        let own = match row.allowed() {
            Some(Ok(own)) => own,
            Some(Err(what)) => return Err(failure(row, what)),
            None => continue,
        };
        let start = words.len();
        words.extend(own.iter().take(of_row).map(|word| *word as i32));
        words.resize(start + of_row, 0);
        // The last word may go beyond the vocabulary.
        let beyond = of_row as i64 * BITS - vocab;
        let last = words[start..].last().map_or(0, |last| (*last as u32) << beyond);
        if last == 0 && words[start..start + of_row - 1].iter().all(|word| *word == 0) {
            return Err(failure(row, "no token of the model's vocabulary may follow".into()));
        }
    }
    Ok(words)
}

fn failure(row: &Row, what: String) -> PolicyError {
    PolicyError::Constraint { request: row.request.id, position: row.response.len(), what }
}
