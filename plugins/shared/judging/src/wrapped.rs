//! Reads the verdict of an object that is the only one in another: `{"evaluation": {"score": 7}}`.

use crate::claim::Form;
use crate::criterion::is_criterion;
use crate::object::{Found, objects};
use crate::quotation::{is_own, words};

/// Objects around the verdict that are read.
const DEEPEST: usize = 4;

/// The verdict of the only object in an object, if its name is that of a verdict and not that of a criterion.
pub(crate) fn wrapped<T: Copy + PartialEq>(text: &str, outer: &Found, form: &Form<T>) -> Option<T> {
    read(text, outer, form, DEEPEST)
}

fn read<T: Copy + PartialEq>(text: &str, outer: &Found, form: &Form<T>, depth: usize) -> Option<T> {
    let inside = text.get(outer.at.start + 1..outer.at.end.checked_sub(1)?)?;
    let found = objects(inside).filter(|_| depth > 0)?;
    let [inner] = &found[..] else { return None };
    name(&inside[..inner.at.start]).filter(|name| is_own(name) && !words(name).any(|word| is_criterion(&word)))?;
    let verdict = match inner.object.verdict(form) {
        Some(verdict) => verdict?,
        None => read(inside, inner, form, depth - 1)?,
    };
    let is_doubted = outer.object.contradicts(verdict, form) || inner.object.rescales(verdict, form);
    (!is_doubted).then_some(verdict)
}

/// The name of the field whose value follows a text.
fn name(before: &str) -> Option<&str> {
    let before = before.trim_end();
    let before = before.strip_suffix('[').unwrap_or(before).trim_end();
    let name = before.strip_suffix(':')?.trim_end().strip_suffix('"')?;
    name.rsplit('"').next()
}
