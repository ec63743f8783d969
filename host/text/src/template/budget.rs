//! How much a template may do: steps, and bytes of the texts that it makes on the way.

use super::values::{Result, is_within, text};
use minijinja::value::ValueKind;
use minijinja::{Error, ErrorKind, Value};
use std::cell::Cell;

/// The most steps of the engine. A turn takes some hundred of them.
const STEPS: u64 = 20_000_000;
/// The most bytes of literal texts, if every step wrote the longest one.
const LITERAL_BYTES: u64 = 4 << 30;
/// The bytes of texts, which is far more than any model reads.
const BYTES: usize = 2 << 30;
/// The most bytes of one text.
const TEXT_BYTES: usize = 16 << 20;
/// The bytes of an item in a list.
pub(super) const ITEM_BYTES: usize = 32;
/// The name of the function that [`measure`] is in templates.
pub(super) const MEASURE: &str = "__measured";

thread_local! {
    /// What is left to the template that this thread renders.
    static LEFT: Cell<usize> = const { Cell::new(BYTES) };
}

/// The steps of a template whose longest literal text has `longest` bytes.
pub(super) fn steps(longest: usize) -> u64 {
    STEPS.min(LITERAL_BYTES / (longest as u64).max(1))
}

/// Gives a template that starts now the whole budget.
pub(super) fn start() {
    LEFT.set(BYTES);
}

/// Counts a text that the template makes.
pub(super) fn charge(bytes: usize) -> Result<()> {
    match LEFT.get().checked_sub(bytes).filter(|_| bytes <= TEXT_BYTES) {
        Some(left) => {
            LEFT.set(left);
            Ok(())
        }
        None => {
            Err(Error::new(ErrorKind::OutOfFuel, "its texts are too long: the template makes them longer and longer"))
        }
    }
}

/// Refuses a format that asks for wide fields, such as `%099999d`: their memory is taken before the text is counted.
pub(super) fn check_format(format: &str) -> Result<()> {
    let is_wide = format.split(|char: char| !char.is_ascii_digit()).any(|width| width.len() > 4);
    match is_wide || format.contains("%*") || format.contains("%.*") {
        false => Ok(()),
        true => Err(Error::new(ErrorKind::InvalidOperation, "a format with fields of more than 9999 characters")),
    }
}

/// `str(value)` of a value, which is counted.
pub(super) fn counted_text(value: Value) -> Result<String> {
    Ok(text(&measure(value)?))
}

/// Counts a value that is a part of a text or of a list, and gives it.
pub(super) fn measure(value: Value) -> Result<Value> {
    let bytes = match (value.kind(), value.as_str()) {
        (_, Some(text)) => text.len(),
        // A list shares its items with others; only as a text would it be as long as all of them.
        (ValueKind::Seq | ValueKind::Iterable | ValueKind::Map, _) => match is_within(&value, TEXT_BYTES) {
            true => value.len().unwrap_or_default().saturating_mul(ITEM_BYTES),
            false => usize::MAX,
        },
        _ => 0,
    };
    charge(bytes).map(|()| value)
}
