//! How much a template may do: steps, and bytes of the texts that it makes on the way.

use super::values::{Result, has_namespace, size_within, text};
use minijinja::value::ValueKind;
use minijinja::{Error, ErrorKind, Value};
use std::cell::Cell;
use std::iter::successors;

/// The most steps of the engine. A turn takes some hundred of them.
const STEPS: u64 = 4_000_000;
/// The most bytes of literal texts, if every step wrote the longest one.
const LITERAL_BYTES: u64 = 4 << 30;
/// The most bytes that steps read, if every step read the longest text.
const READ_BYTES: u64 = 1 << 38;
/// The bytes of texts that are made, which is far more than any model reads.
const BYTES: usize = 2 << 30;
/// The bytes of lists that are gone through, each time.
const LIST_BYTES: usize = 32 << 30;
/// The longest texts: a template that needs longer ones than the first is rendered anew with the next, and fewer steps.
pub(super) const TEXTS: [usize; 5] = [64 << 10, 256 << 10, 1 << 20, 4 << 20, TEXT_BYTES];
/// The most bytes of one text.
const TEXT_BYTES: usize = 16 << 20;
/// The bytes of an item in a list.
pub(super) const ITEM_BYTES: usize = 32;
/// How a call of [`measure`] begins in templates.
pub(super) const MEASURE: &str = "__measured(";
/// How a call of [`keep`] begins in templates. With two brackets, `1, 2` is one value.
pub(super) const KEEP: &str = "__kept((";
/// The same for [`keep_in`].
pub(super) const KEEP_IN: &str = "__kept_in((";
/// The filter of a `set` block's text.
pub(super) const KEEP_BLOCK: &str = "|__kept";

/// What is left to a template.
#[derive(Clone, Copy)]
struct Left {
    /// Bytes of all texts.
    bytes: usize,
    /// Bytes of lists that are gone through.
    list_bytes: usize,
    /// The longest text that it may make.
    text: usize,
    /// The largest list that it may keep: its input may be large.
    list: usize,
    /// The bytes of a longer text or list that it needed.
    needed: usize,
}

thread_local! {
    /// What is left to the template that this thread renders.
    static LEFT: Cell<Left> = const { Cell::new(Left::of(TEXT_BYTES, TEXT_BYTES)) };
}

impl Left {
    const fn of(text: usize, list: usize) -> Self {
        Self { bytes: BYTES, list_bytes: LIST_BYTES, text, list, needed: 0 }
    }
}

/// The steps of a template whose longest literal text has `literal` bytes, and all other texts at most `text`.
pub(super) fn steps(literal: usize, text: usize) -> u64 {
    STEPS.min(LITERAL_BYTES / (literal as u64).max(1)).min(READ_BYTES / (text as u64).max(1))
}

/// Gives a template that starts now the whole budget for texts of `text` bytes, and lists as large, or twice as large as
/// its input.
pub(super) fn start(text: usize, input: usize) {
    LEFT.set(Left::of(text, text.max(input.saturating_mul(2)).min(TEXT_BYTES)));
}

/// The bytes of a text or a list that the template needed, and that are more than it may make; otherwise 0.
pub(super) fn needed() -> usize {
    LEFT.get().needed
}

/// Counts a text that the template makes.
pub(super) fn charge(bytes: usize) -> Result<()> {
    check_text(bytes)?;
    let left = LEFT.get();
    LEFT.set(Left { bytes: left.bytes.checked_sub(bytes).ok_or_else(too_long)?, ..left });
    Ok(())
}

fn check_text(bytes: usize) -> Result<()> {
    let left = LEFT.get();
    if bytes <= left.text {
        return Ok(());
    }
    LEFT.set(Left { needed: bytes, ..left });
    Err(too_long())
}

/// Counts a list or a map that is gone through.
fn charge_list(value: &Value) -> Result<()> {
    let left = LEFT.get();
    let Some(size) = size_within(value, left.list) else {
        LEFT.set(Left { needed: size_within(value, TEXT_BYTES).unwrap_or(usize::MAX), ..left });
        return Err(too_long());
    };
    LEFT.set(Left { list_bytes: left.list_bytes.checked_sub(size).ok_or_else(too_long)?, ..left });
    Ok(())
}

fn too_long() -> Error {
    Error::new(ErrorKind::OutOfFuel, "its texts and lists are too long: the template makes them longer and longer")
}

/// Whether a template has failed as it had used up its budget.
pub(super) fn is_used_up(error: &Error) -> bool {
    successors(Some(error as &dyn std::error::Error), |error| error.source())
        .filter_map(|error| error.downcast_ref::<Error>())
        .any(|error| error.kind() == ErrorKind::OutOfFuel)
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
    match (value.kind(), value.as_str()) {
        // A block may have been made of many texts.
        (_, Some(text)) => check_text(text.len()).map(|()| value),
        // A slice of a list refers to that list, and may be sliced again.
        (ValueKind::Iterable, _) => {
            charge_list(&value)?;
            Ok(value.try_iter()?.collect())
        }
        (ValueKind::Seq | ValueKind::Map, _) => charge_list(&value).map(|()| value),
        _ => Ok(value),
    }
}

/// A value that a namespace keeps: no other namespace, which could contain the first one. Going through them would never
/// end.
pub(super) fn keep_in(value: Value) -> Result<Value> {
    let value = keep(value)?;
    if matches!(value.kind(), ValueKind::Seq | ValueKind::Map) {
        charge_list(&value)?;
        if has_namespace(&value) {
            return Err(Error::new(ErrorKind::InvalidOperation, "a namespace in a namespace may contain itself"));
        }
    }
    Ok(value)
}

/// Whether a name is one of the calls above, which a template must not replace by its own.
pub(super) fn is_reserved(name: &str) -> bool {
    [MEASURE, KEEP, KEEP_IN].iter().any(|call| call.trim_end_matches('(') == name)
}

/// Counts a value that is a part of a text or of a list, and gives it.
pub(super) fn measure(value: Value) -> Result<Value> {
    match (value.kind(), value.as_str()) {
        (_, Some(text)) => charge(text.len())?,
        // A list shares its items with others; only as a text would it be as long as all of them.
        (ValueKind::Seq | ValueKind::Iterable | ValueKind::Map, _) => {
            charge_list(&value)?;
            charge(value.len().unwrap_or_default().saturating_mul(ITEM_BYTES))?;
        }
        _ => {}
    }
    Ok(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_texts_leave_few_steps() {
        assert_eq!(TEXTS.map(|text| steps(0, text)), [STEPS, 1 << 20, 1 << 18, 1 << 16, 1 << 14]);
        assert_eq!((steps(0, 0), steps(1 << 20, 1)), (STEPS, 1 << 12));
    }

    #[test]
    fn a_text_or_a_list_that_is_longer_than_now_asks_for_more() {
        let list = |items: usize| keep((0..items).map(Value::from).collect());
        start(80, 0);
        assert!(charge(80).is_ok() && list(9).is_ok() && needed() == 0);
        assert!(charge(81).is_err() && needed() == 81);
        start(80, 0);
        assert!(list(10).is_err() && needed() == 88);
        // A list of the input is as large as the input.
        start(80, 80);
        assert!(list(19).is_ok() && list(20).is_err());
        // More than any template may make.
        start(TEXT_BYTES, 0);
        assert!((0..BYTES / TEXT_BYTES).all(|_| charge(TEXT_BYTES).is_ok()));
        assert!(charge(1).is_err() && needed() == 0);
        let deep = (0..200).fold(Value::from(0), |value, _| Value::from(vec![value]));
        assert!(keep(deep).is_err() && needed() == usize::MAX);
    }
}
