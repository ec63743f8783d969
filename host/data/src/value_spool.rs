//! Long values of records, such as the same text in each row of a dataset, of which a spool has each once.

use crate::spool::{Spool, SpoolError};
use std::collections::HashMap;

/// The most values that are known before all are forgotten, and kept once more.
const KNOWN: usize = 1 << 16;

/// Values by their numbers.
#[derive(Debug)]
pub struct ValueSpool {
    spool: Spool,
    /// The numbers of values by their hashes.
    known: HashMap<blake3::Hash, usize>,
}

impl ValueSpool {
    /// Values in memory up to `most_in_memory` bytes, and then in a file in the folder for temporary files.
    pub fn new(most_in_memory: usize) -> Self {
        Self { spool: Spool::new(most_in_memory), known: HashMap::new() }
    }

    /// Adds a value. Returns its number.
    ///
    /// # Errors
    /// It has no room.
    pub fn push(&mut self, value: &[u8]) -> Result<usize, SpoolError> {
        let hash = blake3::hash(value);
        if let Some(number) = self.known.get(&hash) {
            return Ok(*number);
        }
        if self.known.len() == KNOWN {
            self.known.clear();
        }
        let number = self.spool.len();
        self.spool.push(value)?;
        self.known.insert(hash, number);
        Ok(number)
    }

    /// Moves the values to the file.
    ///
    /// # Errors
    /// They have no room.
    pub fn flush(&mut self) -> Result<(), SpoolError> {
        self.spool.flush()
    }

    /// Reads the value `number` into `value`.
    ///
    /// # Errors
    /// There is no such value, or the file cannot be read.
    pub fn read(&self, number: usize, value: &mut Vec<u8>) -> Result<(), SpoolError> {
        self.spool.read(number, value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_kept_once() {
        let mut values = ValueSpool::new(10);
        let value = |number: usize| number.to_le_bytes();
        for number in 0..KNOWN {
            assert_eq!(values.push(&value(number)).unwrap(), number);
            assert_eq!(values.push(&value(number / 2)).unwrap(), number / 2);
        }
        // Known no more.
        assert_eq!(values.push(&value(KNOWN)).unwrap(), KNOWN);
        assert_eq!(values.push(&value(7)).unwrap(), KNOWN + 1);
        values.flush().unwrap();
        let mut found = Vec::new();
        for (number, kept) in [(0, 0), (KNOWN - 1, KNOWN - 1), (KNOWN + 1, 7)] {
            values.read(number, &mut found).unwrap();
            assert_eq!(found, value(kept));
        }
        assert!(values.read(KNOWN + 2, &mut found).is_err());
    }
}
