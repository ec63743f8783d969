//! Long values that several rows have, such as the texts of a dictionary, in memory once.

use crate::json::{Json, WeakJson};
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

/// Shorter values are not shared.
const LONG: usize = 1024;
/// The most values that are known before those that no row has are forgotten.
const KNOWN: usize = 4096;

/// The long values of the rows that a program holds.
#[derive(Default)]
pub(super) struct SharedValues {
    known: HashMap<u64, WeakJson>,
    /// How many are known when values are forgotten.
    most: usize,
}

impl SharedValues {
    /// The value, or the same one of an earlier row.
    pub(super) fn share(&mut self, value: Json) -> Json {
        if value.as_text().len() < LONG {
            return value;
        }
        let mut hasher = DefaultHasher::new();
        value.as_text().hash(&mut hasher);
        let hash = hasher.finish();
        if let Some(known) = self.known.get(&hash).and_then(WeakJson::upgrade).filter(|known| *known == value) {
            return known;
        }
        if self.known.len() >= self.most.max(KNOWN) {
            self.known.retain(|_, value| value.upgrade().is_some());
            self.most = 2 * self.known.len();
        }
        self.known.insert(hash, value.downgrade());
        value
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_value_is_in_memory_once_and_not_after_its_rows() {
        let mut shared = SharedValues::default();
        let mut value = |text: &str| shared.share(Json::from(text.repeat(LONG).as_str()));
        let (first, other, again) = (value("a"), value("b"), value("a"));
        assert!(std::ptr::eq(first.as_text(), again.as_text()) && first != other);
        let gone = other.downgrade();
        drop(other);
        assert!(gone.upgrade().is_none());
        // As many values as there are: none but the ones in use stays known.
        for number in 0..KNOWN + 2 {
            value(&format!("{number:04}"));
        }
        assert!(std::ptr::eq(first.as_text(), value("a").as_text()));
        assert!(shared.known.len() < KNOWN, "{}", shared.known.len());
    }
}
