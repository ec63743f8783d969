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
/// How a call of [`measure`] begins in templates.
pub(super) const MEASURE: &str = "__measured(";
/// How a call of [`keep`] begins in templates. With two brackets, `1, 2` is one value.
pub(super) const KEEP: &str = "__kept((";

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
        None => Err(too_long()),
    }
}

fn too_long() -> Error {
    Error::new(ErrorKind::OutOfFuel, "its texts and lists are too long: the template makes them longer and longer")
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

/// A value that a template keeps, from one turn of a loop to the next: no list in a list in a list without end, which
/// would overflow the stack.
pub(super) fn keep(value: Value) -> Result<Value> {
    if matches!(value.kind(), ValueKind::Seq | ValueKind::Iterable | ValueKind::Map) && !is_within(&value, TEXT_BYTES) {
        return Err(too_long());
    }
    match value.kind() {
        // A slice of a list refers to that list, and may be sliced again.
        ValueKind::Iterable => Ok(value.try_iter()?.collect()),
        _ => Ok(value),
    }
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
