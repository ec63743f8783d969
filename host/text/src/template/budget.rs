//! How much a template may do: steps, work with long texts and lists, and bytes of the texts that it makes on the way.

use super::values::{Extent, Result, extent_within, has_namespace, text};
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
/// The work with texts and lists beside the steps, in about as many nanoseconds.
pub(super) const WORK: u64 = 6_000_000_000;
/// The work of each of the short conversations that show which form of messages a template takes.
pub(super) const PROBE: u64 = WORK / 8;
/// The work with a byte of a text that is searched.
pub(super) const SEARCH: u64 = 6;
/// The work with a byte of a text whose letters are changed.
pub(super) const CHANGE: u64 = 16;
/// The work with a byte of a text that is taken apart into characters.
pub(super) const SPELL: u64 = 64;
/// The work with an item of a list that is gone through.
pub(super) const ITEM: u64 = 64;
/// The longest texts: a template that needs longer ones than the first is rendered anew with the next, and fewer steps.
pub(super) const TEXTS: [usize; 5] = [64 << 10, 256 << 10, 1 << 20, 4 << 20, TEXT_BYTES];
/// The most bytes of one text.
const TEXT_BYTES: usize = 16 << 20;
/// The most arguments of a call that are in a list.
const ARGUMENTS: usize = 256;
/// The bytes of an item in a list.
pub(super) const ITEM_BYTES: usize = 32;
/// How a call of [`measure`] begins in templates.
pub(super) const MEASURE: &str = "__measured(";
/// How a call of [`keep`] begins in templates. With two brackets, `1, 2` is one value.
pub(super) const KEEP: &str = "__kept((";
/// The same for [`keep_in`].
pub(super) const KEEP_IN: &str = "__kept_in((";
/// The same for [`search`].
pub(super) const SEARCHED: &str = "__searched((";
/// The same for [`compare`].
pub(super) const COMPARED: &str = "__compared((";
/// The same for [`spread`].
pub(super) const SPREAD: &str = "__spread((";
/// The filter of a `set` block's text.
pub(super) const KEEP_BLOCK: &str = "|__kept";

/// What is left to a template.
#[derive(Clone, Copy)]
struct Left {
    /// Bytes of all texts.
    bytes: usize,
    /// Work with texts and lists.
    work: u64,
    /// The longest text that it may make.
    text: usize,
    /// The largest list that it may keep: its input may be large.
    list: usize,
    /// The bytes of a longer text or list that it needed.
    needed: usize,
}

thread_local! {
    /// What is left to the template that this thread renders.
    static LEFT: Cell<Left> = const { Cell::new(Left::of(TEXT_BYTES, TEXT_BYTES, WORK)) };
}

impl Left {
    const fn of(text: usize, list: usize, work: u64) -> Self {
        Self { bytes: BYTES, work, text, list, needed: 0 }
    }
}

/// The steps of a template whose longest literal text has `literal` bytes, and all other texts at most `text`.
pub(super) fn steps(literal: usize, text: usize) -> u64 {
    STEPS.min(LITERAL_BYTES / (literal as u64).max(1)).min(READ_BYTES / (text as u64).max(1))
}

/// Gives a template that starts now `work` and the whole budget for texts of `text` bytes, and lists as large, or twice as
/// large as its input.
pub(super) fn start(text: usize, input: usize, work: u64) {
    LEFT.set(Left::of(text, text.max(input.saturating_mul(2)).min(TEXT_BYTES), work));
}

/// Does `work` without a budget: no template does it.
pub(super) fn unlimited<T>(work: impl FnOnce() -> T) -> T {
    let left = LEFT.replace(Left { bytes: usize::MAX, ..Left::of(usize::MAX, usize::MAX, u64::MAX) });
    let done = work();
    LEFT.set(left);
    done
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

/// Refuses a text that is longer than texts may be now.
pub(super) fn check_text(bytes: usize) -> Result<()> {
    let left = LEFT.get();
    if bytes <= left.text {
        return Ok(());
    }
    LEFT.set(Left { needed: bytes, ..left });
    Err(too_long())
}

/// Counts work.
pub(super) fn charge_work(work: u64) -> Result<()> {
    let left = LEFT.get();
    let Some(work) = left.work.checked_sub(work) else {
        return Err(Error::new(ErrorKind::OutOfFuel, "it goes through long texts and lists too often"));
    };
    LEFT.set(Left { work, ..left });
    Ok(())
}

/// Counts the work with a text of `bytes` bytes.
pub(super) fn charge_bytes(bytes: usize, work: u64) -> Result<()> {
    charge_work((bytes as u64).saturating_mul(work))
}

/// Counts a list or a map that is gone through.
fn charge_list(value: &Value) -> Result<Extent> {
    let left = LEFT.get();
    let Some(extent) = extent_within(value, left.list) else {
        let needed = extent_within(value, TEXT_BYTES).map_or(usize::MAX, |extent| extent.bytes);
        LEFT.set(Left { needed, ..left });
        return Err(too_long());
    };
    charge_bytes(extent.items, ITEM)?;
    Ok(extent)
}

/// Counts a value of which each item is gone through, with `work` for each byte of its texts.
pub(super) fn read(value: &Value, work: u64) -> Result<()> {
    match (value.kind(), value.as_str()) {
        (_, Some(text)) => charge_bytes(text.len(), work),
        (ValueKind::Seq | ValueKind::Iterable | ValueKind::Map, _) => {
            charge_bytes(charge_list(value)?.text_bytes(), work)
        }
        _ => Ok(()),
    }
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

/// The widest field of a format.
const FIELD: usize = 9999;

/// Counts the longest text that a format could make of `values` before it makes it: each field may be wide, or have the
/// longest value.
pub(super) fn check_format(format: &str, values: &[Value]) -> Result<()> {
    let widths = format.split(|char: char| !char.is_ascii_digit()).filter(|width| !width.is_empty());
    let widths: Option<Vec<usize>> = widths.map(|width| width.parse().ok().filter(|width| *width <= FIELD)).collect();
    let Some(widths) = widths.filter(|_| !format.contains("%*") && !format.contains("%.*")) else {
        let what = format!("a format with fields of more than {FIELD} characters");
        return Err(Error::new(ErrorKind::InvalidOperation, what));
    };
    let mut longest = widths.into_iter().max().unwrap_or_default();
    for value in values {
        read(value, SEARCH)?;
        longest = longest.max(extent_within(value, TEXT_BYTES).map_or(TEXT_BYTES, |extent| extent.bytes));
    }
    let fields = format.bytes().filter(|byte| matches!(byte, b'%' | b'{')).count();
    check_text(fields.saturating_mul(longest).saturating_add(format.len()))
}

/// `str(value)` of a value, which is counted.
pub(super) fn counted_text(value: Value) -> Result<String> {
    let value = measure(value)?;
    let text = text(&value);
    if value.as_str().is_none() {
        charge_bytes(text.len(), SPELL)?;
        charge(text.len())?;
    }
    Ok(text)
}

/// A value that a template keeps, from one turn of a loop to the next: no list in a list in a list without end, which
/// would overflow the stack.
pub(super) fn keep(value: Value) -> Result<Value> {
    match (value.kind(), value.as_str()) {
        // A block may have been made of many texts.
        (_, Some(text)) => check_text(text.len()).map(|()| value),
        (ValueKind::Seq | ValueKind::Iterable | ValueKind::Map, _) => {
            charge_list(&value)?;
            listed(value)
        }
        _ => Ok(value),
    }
}

/// A value in which something is looked for, or of which a part is taken: no slice of a slice without end.
pub(super) fn search(value: Value) -> Result<Value> {
    read(&value, SEARCH)?;
    listed(value)
}

/// A value that is compared with another: its texts take no longer than a step.
pub(super) fn compare(value: Value) -> Result<Value> {
    read(&value, 0).map(|()| value)
}

/// The arguments of a call, after `*` or `**`.
pub(super) fn spread(value: Value) -> Result<Value> {
    match value.len().is_some_and(|length| length <= ARGUMENTS) {
        true => Ok(value),
        false => {
            let what = format!("a call with a list of more than {ARGUMENTS} arguments");
            Err(Error::new(ErrorKind::InvalidOperation, what))
        }
    }
}

/// The value, or its items as a list: a slice of a list refers to that list, and may be sliced again.
pub(super) fn listed(value: Value) -> Result<Value> {
    match value.kind() {
        ValueKind::Iterable => Ok(value.try_iter()?.collect()),
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
    [MEASURE, KEEP, KEEP_IN, SEARCHED, COMPARED, SPREAD].iter().any(|call| call.trim_end_matches('(') == name)
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
        start(80, 0, WORK);
        assert!(charge(80).is_ok() && list(9).is_ok() && needed() == 0);
        assert!(charge(81).is_err() && needed() == 81);
        start(80, 0, WORK);
        assert!(list(10).is_err() && needed() == 88);
        // A list of the input is as large as the input.
        start(80, 80, WORK);
        assert!(list(19).is_ok() && list(20).is_err());
        // More than any template may make.
        start(TEXT_BYTES, 0, WORK);
        assert!((0..BYTES / TEXT_BYTES).all(|_| charge(TEXT_BYTES).is_ok()));
        assert!(charge(1).is_err() && needed() == 0);
        let deep = (0..200).fold(Value::from(0), |value, _| Value::from(vec![value]));
        assert!(keep(deep).is_err() && needed() == usize::MAX);
    }
    #[test]
    fn a_value_is_read_as_often_as_there_is_work_left() {
        let text = Value::from("x".repeat(100));
        start(1000, 0, 10 * 100 * SEARCH);
        assert!((0..10).all(|_| search(text.clone()).is_ok()) && search(text.clone()).is_err());
        let list: Value = (0..9).map(Value::from).collect();
        start(1000, 0, 2 * 10 * ITEM);
        assert!(compare(list.clone()).is_ok() && keep(list.clone()).is_ok() && keep(list.clone()).is_err());
        // A text is compared at once.
        assert!(compare(text).is_ok() && needed() == 0);
        // No slice of a slice.
        start(1000, 0, WORK);
        let sliced = list.try_iter().unwrap().collect::<Vec<_>>();
        let iterable = Value::make_iterable(move || sliced.clone().into_iter());
        assert_eq!((iterable.kind(), search(iterable).unwrap().kind()), (ValueKind::Iterable, ValueKind::Seq));
    }

    #[test]
    fn a_format_counts_its_longest_text_before_it_is_made() {
        let long = [Value::from("x".repeat(100))];
        for (format, values, bytes) in [
            ("%s: %d", &[][..], 6),
            ("%s%s%s", &long, 3 * 108 + 6),
            ("{0}{0} {1:99}", &[], 3 * 99 + 13),
            ("%9999d%%", &[], 3 * 9999 + 8),
        ] {
            start(bytes, 1000, WORK);
            assert!(check_format(format, values).is_ok(), "{format}");
            start(bytes - 1, 1000, WORK);
            assert!(check_format(format, values).is_err() && needed() == bytes, "{format}: {}", needed());
        }
        start(TEXT_BYTES, 0, WORK);
        for wide in ["%10000d", "%99999999999999999999d", "%*d", "%.*f"] {
            assert!(check_format(wide, &[]).is_err() && needed() == 0, "{wide}");
        }
    }

    #[test]
    fn a_list_of_arguments_has_a_most() {
        let list = |items: usize| spread((0..items).map(Value::from).collect());
        assert!(list(ARGUMENTS).is_ok() && list(ARGUMENTS + 1).is_err());
    }

    #[test]
    fn what_is_done_without_a_budget_leaves_the_budget_as_it_is() {
        start(10, 0, WORK);
        assert!(unlimited(|| charge(1 << 40)).is_ok() && charge(11).is_err() && needed() == 11);
    }
}
