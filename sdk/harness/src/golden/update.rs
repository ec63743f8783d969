//! Writing expectations from what came.

use super::read::CaseFile;
use super::run::CaseResults;
use crate::error::CaseError;
use crate::expectation::Expectation;
use gavel_data::files::write_whole;
use serde::Serialize;
use serde::de::IgnoredAny;
use serde_json::Value;
use serde_json::ser::Formatter;
use std::collections::HashMap;
use std::io::{self, Write};
use std::num::NonZeroUsize;
use std::ops::Range;

/// An expectation that was written.
#[derive(Debug, Clone, PartialEq)]
pub struct Change {
    /// The case.
    pub case: String,
    /// Its line, from 1.
    pub line: NonZeroUsize,
    /// What was expected, as JSON; absent where nothing was.
    pub before: Option<String>,
    /// What is expected now, as JSON.
    pub after: String,
}

impl CaseFile {
    /// Writes what came into the cases that failed or stated nothing, and says
    /// what was changed. A case that passed stays as it is, and of the others
    /// all but their `expect` stays as it is written.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn update(&self, results: &CaseResults) -> Result<Vec<Change>, CaseError> {
        let mut changes = Vec::new();
        let mut texts: HashMap<NonZeroUsize, Value> = HashMap::new();
        for result in results.cases.iter().filter(|result| !result.passed() || result.case.expected.is_none()) {
            let stated = result.case.expected.as_ref();
            let after = match stated {
                Some(stated) => stated.updated(&result.evaluation, &result.mismatches),
                None => Expectation::default().updated(&result.evaluation, &[]),
            };
            let after = after.to_json();
            changes.push(Change {
                case: result.case.name.clone(),
                line: result.case.line,
                before: stated.map(|stated| stated.to_json().to_string()),
                after: after.to_string(),
            });
            texts.insert(result.case.line, after);
        }
        if changes.is_empty() {
            return Ok(changes);
        }
        let lines = (1..).filter_map(NonZeroUsize::new).zip(self.text.split_inclusive('\n'));
        let text: String = lines
            .map(|(number, line)| match texts.get(&number) {
                Some(expected) => with_expected(line, expected),
                None => line.to_owned(),
            })
            .collect();
        write_whole(&self.path, text.as_bytes())
            .map_err(|source| CaseError::Write { path: self.path.clone(), source })?;
        Ok(changes)
    }
}

/// A line with another value of its column `expect`; all else stays as it is
/// written, to the last space.
fn with_expected(line: &str, expected: &Value) -> String {
    let columns = columns(line);
    let spaced = columns.first().is_none_or(|column| line[column.key.end..column.value.start].ends_with(' '));
    let text = written(expected, spaced);
    // Of a key that stands there twice, the last counts.
    match columns.iter().rfind(|column| column.name == "expect") {
        Some(column) => format!("{}{text}{}", &line[..column.value.start], &line[column.value.end..]),
        None => {
            let end = columns.last().map_or_else(|| line.find('{').map_or(0, |at| at + 1), |last| last.value.end);
            let comma = match (columns.is_empty(), spaced) {
                (true, _) => "",
                (false, true) => ", ",
                (false, false) => ",",
            };
            let colon = if spaced { ": " } else { ":" };
            format!("{}{comma}\"expect\"{colon}{text}{}", &line[..end], &line[end..])
        }
    }
}

/// Where a column stands in a line.
struct Column {
    name: String,
    key: Range<usize>,
    value: Range<usize>,
}

/// The columns of a line that is a JSON object. What is no object has none.
fn columns(line: &str) -> Vec<Column> {
    let mut found = Vec::new();
    let mut at = line.find('{').map_or(line.len(), |at| at + 1);
    while let Some((name, key)) = value::<String>(line, at) {
        let Some((_, value)) = value::<IgnoredAny>(line, key.end) else { break };
        at = value.end;
        found.push(Column { name, key, value });
    }
    found
}

/// The next JSON value after `from`, behind spaces and punctuation, and where
/// it stands.
fn value<T: serde::de::DeserializeOwned>(line: &str, from: usize) -> Option<(T, Range<usize>)> {
    let rest = &line[from..];
    let start = from + rest.find(|c: char| !c.is_whitespace() && c != ',' && c != ':')?;
    let mut values = serde_json::Deserializer::from_str(&line[start..]).into_iter::<T>();
    let value = values.next()?.ok()?;
    Some((value, start..start + values.byte_offset()))
}

fn written(value: &Value, spaced: bool) -> String {
    if !spaced {
        return value.to_string();
    }
    let mut text = Vec::new();
    // A vector takes every byte.
    let _ = value.serialize(&mut serde_json::Serializer::with_formatter(&mut text, Spaced));
    String::from_utf8_lossy(&text).into_owned()
}

/// JSON in one line with a space after commas and colons, as Python writes it.
struct Spaced;

impl Formatter for Spaced {
    fn begin_array_value<W: ?Sized + Write>(&mut self, writer: &mut W, first: bool) -> io::Result<()> {
        if first { Ok(()) } else { writer.write_all(b", ") }
    }

    fn begin_object_key<W: ?Sized + Write>(&mut self, writer: &mut W, first: bool) -> io::Result<()> {
        if first { Ok(()) } else { writer.write_all(b", ") }
    }

    fn begin_object_value<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        writer.write_all(b": ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn all_but_the_expectation_stays_as_it_is_written() {
        let expected = json!({"score": 1, "metrics": {"a": 0.5}});
        for (before, after) in [
            (
                r#"{"response":"x","expect":{"score":0}}"#,
                r#"{"response":"x","expect":{"score":1,"metrics":{"a":0.5}}}"#,
            ),
            (
                "  { \"expect\" :  {\"min\": 0} , \"response\": \"}\\\"{ , \\u00e9\" }\r\n",
                "  { \"expect\" :  {\"score\": 1, \"metrics\": {\"a\": 0.5}} , \"response\": \"}\\\"{ , \\u00e9\" }\r\n",
            ),
            (
                "{\"response\": \"x\", \"deep\": [1,  {\"expect\": 3}]}\n",
                "{\"response\": \"x\", \"deep\": [1,  {\"expect\": 3}], \"expect\": {\"score\": 1, \"metrics\": {\"a\": 0.5}}}\n",
            ),
            ("\u{feff}{\"expect\":0}", "\u{feff}{\"expect\":{\"score\":1,\"metrics\":{\"a\":0.5}}}"),
            (r#"{"a":1,"expect":null}"#, r#"{"a":1,"expect":{"score":1,"metrics":{"a":0.5}}}"#),
            (r#"{"a":-1.50e+3,"b":true}"#, r#"{"a":-1.50e+3,"b":true,"expect":{"score":1,"metrics":{"a":0.5}}}"#),
        ] {
            assert_eq!(with_expected(before, &expected), after);
        }
    }
}
