//! Calls in a list of Python that is the whole reply.

use super::format::THOUGHT_END;
use super::parsed::{Broken, ParsedCall, Section};
use super::python::Reader;
use gavel_data::{Columns, Json};

const OPEN: &str = "<|python_start|>";
const CLOSE: &str = "<|python_end|>";

/// The list after its mark, and the mark after it where there is one.
pub(super) fn section(text: &str) -> Option<Section> {
    let body = text.strip_prefix(OPEN)?;
    Some(match list(body) {
        Ok((calls, after)) => Section::whole(text, after, calls),
        Err(broken) => Section::broken(text, broken.after(OPEN.len()), CLOSE, THOUGHT_END),
    })
}

/// A reply that begins as a list of calls. With other text after the list, it is no call.
pub(super) fn unmarked(said: &str) -> Option<Section> {
    let mut reader = Reader::new(said);
    if !reader.next("[") || reader.function().is_err() || !reader.next("(") {
        return None;
    }
    match list(said) {
        Ok((calls, "")) => Some(Section::whole(said, "", calls)),
        Ok(_) => None,
        Err(broken) => Some(Section::rest(said, broken)),
    }
}

/// The calls, and the text after the list.
fn list(text: &str) -> Result<(Vec<ParsedCall>, &str), Broken> {
    let mut reader = Reader::new(text);
    reader.take("[", "a list of calls does not follow")?;
    let mut calls = Vec::new();
    while !reader.next("]") {
        calls.push(call(&mut reader)?);
        reader.separator("]")?;
    }
    if calls.is_empty() {
        return Err(Broken::at(text, text, "the list of calls is empty"));
    }
    reader.next(CLOSE);
    Ok((calls, reader.rest.trim_start()))
}

/// `NAME(KEY=VALUE, …)`
fn call(reader: &mut Reader<'_>) -> Result<ParsedCall, Broken> {
    let name = reader.function()?.to_owned();
    reader.take("(", "`(` does not follow the name of a function")?;
    let mut arguments = Columns::default();
    while !reader.next(")") {
        let key = reader.name()?;
        reader.take("=", "an argument is not written as NAME=VALUE")?;
        arguments.insert(key, reader.value()?);
        reader.separator(")")?;
    }
    Ok(ParsedCall { name, arguments: Json::from(arguments).plain_text(), id: None })
}
