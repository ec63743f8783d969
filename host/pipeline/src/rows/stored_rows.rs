//! Rows that a run draws by their numbers: in memory while they are few, and otherwise in a file, from which a row is
//! read when it is drawn.

use crate::error::{PipelineError, Result};
use gavel_data::{Spool, ValueSpool};
use gavel_train::{ConversationPair, ResponsePair, SftRow};
use std::borrow::Cow;

/// The most bytes of rows in memory; made into tasks and tokens, they take several times as many.
pub(super) const MOST_IN_MEMORY: usize = 64 << 20;

/// A row that can be kept as bytes.
pub(crate) trait StoredRow: Clone {
    /// What reading it again needs.
    type Context;

    /// Adds its bytes to `into`, without its long values.
    ///
    /// # Errors
    /// There is no room for them.
    fn write(&self, into: &mut Vec<u8>, values: &mut LongValues) -> Result<()>;

    /// The row with these bytes; nothing if they are not of a row.
    fn read(bytes: &[u8], values: &LongValues, context: &Self::Context) -> Option<Self>;
}

/// Values from this length on are kept once: a Parquet file of some kilobytes may have a megabyte in each of its rows.
const LONG: usize = 1024;

/// The long values of rows.
pub(crate) struct LongValues {
    spool: ValueSpool,
    /// The bytes of those that were put, each as often as it was.
    bytes: usize,
}

impl LongValues {
    fn within(most_in_memory: usize) -> Self {
        Self { spool: ValueSpool::new(most_in_memory), bytes: 0 }
    }

    /// Adds a value to `into`, or its number if it is long.
    pub(super) fn put(&mut self, into: &mut Vec<u8>, value: &[u8]) -> Result<()> {
        into.push(u8::from(value.len() >= LONG));
        if value.len() < LONG {
            put_bytes(into, value);
        } else {
            self.bytes += value.len();
            into.extend_from_slice(&(self.spool.push(value)? as u64).to_le_bytes());
        }
        Ok(())
    }

    /// Takes such a value from the beginning of `from`.
    pub(super) fn take<'b>(&self, from: &mut &'b [u8]) -> Option<Cow<'b, [u8]>> {
        let (is_long, rest) = from.split_first()?;
        *from = rest;
        if *is_long == 0 {
            return take_bytes(from).map(Cow::Borrowed);
        }
        let (number, rest) = from.split_first_chunk::<8>()?;
        *from = rest;
        let mut value = Vec::new();
        self.spool.read(usize::try_from(u64::from_le_bytes(*number)).ok()?, &mut value).ok()?;
        Some(Cow::Owned(value))
    }
}

/// Rows by their numbers.
pub(crate) struct StoredRows<R: StoredRow> {
    /// All rows, if they are in memory.
    kept: Vec<R>,
    /// Their bytes; absent once it is known that all rows are in memory.
    spool: Option<Spool>,
    values: LongValues,
    context: R::Context,
    most_in_memory: usize,
    /// The bytes of the rows in the spool, without their long values.
    bytes: usize,
    /// The bytes of the row that was added last.
    buffer: Vec<u8>,
}

impl<R: StoredRow> StoredRows<R> {
    /// No rows yet, which are in memory up to this many bytes.
    pub(super) fn within(most_in_memory: usize, context: R::Context) -> Self {
        let (spool, values) = (Some(Spool::new(most_in_memory)), LongValues::within(most_in_memory));
        Self { kept: Vec::new(), spool, values, context, most_in_memory, bytes: 0, buffer: Vec::new() }
    }

    /// Adds a row.
    ///
    /// # Errors
    /// There is no room for it.
    pub(super) fn push(&mut self, row: R) -> Result<()> {
        if let Some(spool) = &mut self.spool {
            self.buffer.clear();
            row.write(&mut self.buffer, &mut self.values)?;
            spool.push(&self.buffer)?;
            self.bytes += self.buffer.len();
            // Rows in memory may have their values each for itself.
            if spool.is_in_memory() && self.bytes + self.values.bytes > self.most_in_memory {
                spool.flush()?;
                self.values.spool.flush()?;
            }
            if !spool.is_in_memory() {
                self.kept = Vec::new();
                return Ok(());
            }
        }
        self.kept.push(row);
        Ok(())
    }

    /// The same rows, to which no more are added.
    pub(super) fn finish(self) -> Self {
        let spool = self.spool.filter(|spool| !spool.is_in_memory());
        Self { spool, buffer: Vec::new(), ..self }
    }

    /// The number of rows.
    pub(crate) fn len(&self) -> usize {
        self.spool.as_ref().map_or(self.kept.len(), Spool::len)
    }

    /// The row `number`, which is below their number.
    ///
    /// # Errors
    /// It cannot be read.
    pub(crate) fn get(&self, number: usize) -> Result<Cow<'_, R>> {
        let Some(spool) = self.spool.as_ref().filter(|spool| !spool.is_in_memory()) else {
            return Ok(Cow::Borrowed(&self.kept[number]));
        };
        let mut bytes = Vec::new();
        spool.read(number, &mut bytes)?;
        let damaged = || PipelineError::Stopped(format!("row {number} is damaged in the file that rows are kept in"));
        R::read(&bytes, &self.values, &self.context).map(Cow::Owned).ok_or_else(damaged)
    }

    /// All of them.
    ///
    /// # Errors
    /// One of them cannot be read.
    pub(crate) fn into_vec(self) -> Result<Vec<R>> {
        match self.spool.as_ref().is_some_and(|spool| !spool.is_in_memory()) {
            true => (0..self.len()).map(|number| Ok(self.get(number)?.into_owned())).collect(),
            false => Ok(self.kept),
        }
    }
}

/// Adds bytes with their number before them.
pub(super) fn put_bytes(into: &mut Vec<u8>, bytes: &[u8]) {
    into.extend_from_slice(&(bytes.len() as u64).to_le_bytes());
    into.extend_from_slice(bytes);
}

/// Takes such bytes from the beginning of `from`.
pub(super) fn take_bytes<'b>(from: &mut &'b [u8]) -> Option<&'b [u8]> {
    let (length, rest) = from.split_first_chunk::<8>()?;
    let (bytes, rest) = rest.split_at_checked(usize::try_from(u64::from_le_bytes(*length)).ok()?)?;
    *from = rest;
    Some(bytes)
}

/// Adds token ids, seven bits a byte: most take one or two bytes.
pub(super) fn put_ids(into: &mut Vec<u8>, ids: &[u32]) {
    into.extend_from_slice(&(ids.len() as u64).to_le_bytes());
    for id in ids {
        let mut rest = *id;
        while rest > 0x7f {
            into.push(rest as u8 | 0x80);
            rest >>= 7;
        }
        into.push(rest as u8);
    }
}

/// Takes token ids from the beginning of `from`.
pub(super) fn take_ids(from: &mut &[u8]) -> Option<Vec<u32>> {
    let (count, rest) = from.split_first_chunk::<8>()?;
    *from = rest;
    (0..u64::from_le_bytes(*count)).map(|_| take_id(from)).collect()
}

fn take_id(from: &mut &[u8]) -> Option<u32> {
    let (mut id, mut shift) = (0, 0);
    loop {
        let (byte, rest) = from.split_first()?;
        *from = rest;
        id |= u32::from(byte & 0x7f).checked_shl(shift)?;
        if *byte <= 0x7f {
            return Some(id);
        }
        shift += 7;
    }
}

/// Adds a row to imitate.
pub(super) fn put_row(into: &mut Vec<u8>, SftRow { prompt, response }: &SftRow) {
    put_ids(into, prompt);
    put_ids(into, response);
}

/// Takes a row to imitate from the beginning of `from`.
pub(super) fn take_row(from: &mut &[u8]) -> Option<SftRow> {
    Some(SftRow { prompt: take_ids(from)?, response: take_ids(from)? })
}

impl StoredRow for ResponsePair {
    type Context = ();

    fn write(&self, into: &mut Vec<u8>, _: &mut LongValues) -> Result<()> {
        put_row(into, &self.chosen);
        put_row(into, &self.rejected);
        Ok(())
    }

    fn read(mut bytes: &[u8], _: &LongValues, (): &()) -> Option<Self> {
        Some(Self { chosen: take_row(&mut bytes)?, rejected: take_row(&mut bytes)? })
    }
}

impl StoredRow for ConversationPair {
    type Context = ();

    fn write(&self, into: &mut Vec<u8>, _: &mut LongValues) -> Result<()> {
        put_ids(into, &self.chosen);
        put_ids(into, &self.rejected);
        into.extend_from_slice(&self.margin.to_le_bytes());
        Ok(())
    }

    fn read(mut bytes: &[u8], _: &LongValues, (): &()) -> Option<Self> {
        let (chosen, rejected) = (take_ids(&mut bytes)?, take_ids(&mut bytes)?);
        Some(Self { chosen, rejected, margin: f64::from_le_bytes(bytes.try_into().ok()?) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stored<R: StoredRow<Context = ()>>(most_in_memory: usize, rows: &[R]) -> StoredRows<R> {
        let mut stored = StoredRows::within(most_in_memory, ());
        rows.iter().for_each(|row| stored.push(row.clone()).unwrap());
        stored.finish()
    }

    /// Checks rows that are in memory, in a file from the first of them on, and in a file from a later one on.
    fn check<R: StoredRow<Context = ()> + PartialEq + std::fmt::Debug>(rows: &[R]) {
        for most in [usize::MAX, 0, 20] {
            let stored = stored(most, rows);
            assert_eq!((stored.len(), stored.spool.is_none()), (rows.len(), most == usize::MAX));
            for number in (0..rows.len()).rev() {
                assert_eq!(*stored.get(number).unwrap(), rows[number]);
            }
            assert_eq!(stored.into_vec().unwrap(), rows);
        }
        assert_eq!(R::read(b"no row", &LongValues::within(0), &()), None);
    }

    #[test]
    fn a_row_is_the_same_after_it_was_in_a_file() {
        let row = |prompt: &[u32], response: &[u32]| SftRow { prompt: prompt.into(), response: response.into() };
        let [first, second] = [row(&[0, 127, 128, 16_383, 16_384, 1 << 28, u32::MAX], &[]), row(&[], &[7])];
        check(&[
            ResponsePair { chosen: first.clone(), rejected: second.clone() },
            ResponsePair { chosen: second, rejected: first },
        ]);
        let pair = |margin| ConversationPair { chosen: vec![1, 2], rejected: vec![3], margin };
        check(&[pair(0.1 + 0.2), pair(-0.0), pair(f64::MAX)]);
    }

    /// A row with one value.
    #[derive(Debug, Clone, PartialEq)]
    struct Text(String);

    impl StoredRow for Text {
        type Context = ();

        fn write(&self, into: &mut Vec<u8>, values: &mut LongValues) -> Result<()> {
            values.put(into, self.0.as_bytes())
        }

        fn read(mut bytes: &[u8], values: &LongValues, (): &()) -> Option<Self> {
            let text = values.take(&mut bytes)?.into_owned();
            bytes.is_empty().then(|| String::from_utf8(text).ok().map(Self))?
        }
    }

    #[test]
    fn a_long_value_of_many_rows_is_kept_once() {
        let text = |letter: &str, length: usize| Text(letter.repeat(length));
        let mut rows = vec![text("a", LONG), text("b", LONG - 1), text("c", 0)];
        rows.extend(vec![text("d", 2 * LONG); 100]);
        check(&rows);
        // The numbers of 101 long values, and two short ones.
        let stored = stored(300 * LONG, &rows);
        assert_eq!((stored.spool.is_none(), stored.bytes), (true, 101 * 9 + 2 * 9 + LONG - 1));
        // In memory, rows may have their values each for itself.
        let stored = super::tests::stored(200 * LONG, &rows);
        assert!(stored.spool.is_some_and(|spool| !spool.is_in_memory()));
        let mut value = Vec::new();
        stored.values.spool.read(1, &mut value).unwrap();
        assert_eq!(value, text("d", 2 * LONG).0.into_bytes());
        assert!(stored.values.spool.read(2, &mut value).is_err());
    }
}
