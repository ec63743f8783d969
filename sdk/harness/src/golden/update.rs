//! Writing expectations from actual results.

use super::read::{CaseFile, Question};
use super::run::{Came, CaseResult, CaseResults};
use super::session::state_to_json;
use crate::error::CaseError;
use crate::expectation::{Expectation, Mismatch};
use crate::tool::CallExpectation;
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
    /// The former expectation, as JSON; absent if there was none.
    pub before: Option<String>,
    /// The new expectation, as JSON.
    pub after: String,
}

impl CaseFile {
    /// Writes the actual results into the cases that failed, had no expectation
    /// or stated only that there is a score. Returns the changes. Other cases
    /// are not changed; of these, only their `expect`.
    ///
    /// # Errors
    /// The file cannot be written, a case expects refused parameters but they are accepted, an agent left the script of
    /// its case, or a tool failed to report its state.
    pub fn update(&self, results: &CaseResults) -> Result<Vec<Change>, CaseError> {
        if let Some(accepted) = results.cases.iter().find(|result| matches!(result.came, Came::Refusal(None))) {
            return Err(CaseError::Accepted { path: self.path.clone(), line: accepted.case.line });
        }
        if let Some((off_script, difference)) = results.cases.iter().find_map(off_script) {
            let (path, line) = (self.path.clone(), off_script.case.line);
            return Err(CaseError::OffScript { path, line, what: difference.to_string() });
        }
        let without_state = |result: &CaseResult| match &result.came {
            Came::Session(session) => Some((result.case.line, session.failure()?)),
            _ => None,
        };
        if let Some((line, failure)) = results.cases.iter().find_map(without_state) {
            return Err(CaseError::NoState { path: self.path.clone(), line, what: failure.to_string() });
        }
        let mut changes = Vec::new();
        let mut texts: HashMap<NonZeroUsize, Written> = HashMap::new();
        for result in &results.cases {
            if let (Question::Session(session), Came::Session(came)) = (&result.case.question, &result.came) {
                let written = session.updated_calls(&came.calls);
                changes.extend(written.iter().flatten().map(|(number, before, after)| Change {
                    case: format!("{}, call {number}", result.case.name),
                    line: result.case.line,
                    before: before.as_ref().map(|before| before.to_json().to_string()),
                    after: after.to_json().to_string(),
                }));
                let after = |(_, _, after): (usize, _, CallExpectation)| after.to_json();
                let calls = written.into_iter().map(|call| call.map(after)).collect();
                let state = session.updated_state(came.state.as_ref().ok().and_then(Option::as_ref));
                let state = state.as_ref().map(state_to_json);
                changes.extend(state.as_ref().map(|after| Change {
                    case: result.case.name.clone(),
                    line: result.case.line,
                    before: session.state.as_ref().map(|before| state_to_json(before).to_string()),
                    after: after.to_string(),
                }));
                texts.insert(result.case.line, Written::Session { calls, state });
                continue;
            }
            if let (Question::Attempt(case), Came::Attempt(attempt)) = (&result.case.question, &result.came) {
                if result.passed() && case.expected.is_some() {
                    continue;
                }
                let after = case.expected.clone().unwrap_or_default().updated(attempt).to_json();
                changes.push(Change {
                    case: result.case.name.clone(),
                    line: result.case.line,
                    before: case.expected.as_ref().map(|stated| stated.to_json().to_string()),
                    after: after.to_string(),
                });
                texts.insert(result.case.line, Written::Expect(after));
                continue;
            }
            if result.passed() && result.case.expected.is_some() && result.unstated_score().is_none() {
                continue;
            }
            let stated = result.case.expected.as_ref();
            let after = match stated {
                Some(stated) => stated.updated(&result.came, &result.mismatches),
                None => Expectation::default().updated(&result.came, &[]),
            };
            let after = after.to_json();
            changes.push(Change {
                case: result.case.name.clone(),
                line: result.case.line,
                before: stated.map(|stated| stated.to_json().to_string()),
                after: after.to_string(),
            });
            texts.insert(result.case.line, Written::Expect(after));
        }
        if changes.is_empty() {
            return Ok(changes);
        }
        let lines = (1..).filter_map(NonZeroUsize::new).zip(self.text.split_inclusive('\n'));
        let text: String = lines
            .map(|(number, line)| match texts.get(&number) {
                Some(Written::Expect(expected)) => with_expected(line, expected),
                Some(Written::Session { calls, state }) => {
                    let line = with_expected_calls(line, calls);
                    state.as_ref().map_or(line.clone(), |state| with_expected(&line, state))
                }
                None => line.to_owned(),
            })
            .collect();
        write_whole(&self.path, text.as_bytes())
            .map_err(|source| CaseError::Write { path: self.path.clone(), source })?;
        Ok(changes)
    }
}

/// Where an agent left its script.
fn off_script(result: &CaseResult) -> Option<(&CaseResult, &Mismatch)> {
    match &result.came {
        Came::Attempt(attempt) => Some((result, attempt.off_script().first()?)),
        _ => None,
    }
}

/// The new content of a case.
enum Written {
    /// Its `expect`.
    Expect(Value),
    /// The `expect` of those calls of a session that have another one, and its own, if that is another.
    Session { calls: Vec<Option<Value>>, state: Option<Value> },
}

/// A line in which the `calls` have other values of `expect`.
fn with_expected_calls(line: &str, expected: &[Option<Value>]) -> String {
    let columns = columns(line);
    let Some(calls) = columns.iter().rfind(|column| column.name == "calls") else { return line.to_owned() };
    let mut places = Vec::new();
    // After the bracket.
    let mut at = calls.value.start + 1;
    while let Some((_, place)) = value::<IgnoredAny>(line, at).filter(|(_, place)| place.end < calls.value.end) {
        at = place.end;
        places.push(place);
    }
    // From the last to the first, so that places stay right.
    let written = places.into_iter().zip(expected).filter_map(|(place, expected)| Some((place, expected.as_ref()?)));
    written.collect::<Vec<_>>().into_iter().rev().fold(line.to_owned(), |line, (place, expected)| {
        format!("{}{}{}", &line[..place.start], with_expected(&line[place.clone()], expected), &line[place.end..])
    })
}

/// A line with another value of its column `expect`; the rest stays the same, including spaces.
fn with_expected(line: &str, expected: &Value) -> String {
    let columns = columns(line);
    let spaced = columns.first().is_none_or(|column| line[column.key.end..column.value.start].ends_with(' '));
    let text = written(expected, spaced);
    // If a key appears twice, the last one counts.
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

/// The place of a column in a line.
struct Column {
    name: String,
    key: Range<usize>,
    value: Range<usize>,
}

/// The columns of a line that is a JSON object; empty for any other line.
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

/// The next JSON value after `from`, past spaces and punctuation, and its place.
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

    #[test]
    fn only_the_expectations_of_calls_change() {
        let line =
            "{\"calls\" : [ {\"name\": \"a\"},{\"name\":\"b]\",\"expect\":1} , {\"name\": \"c\"} ], \"case\": \"x\"}\n";
        let expected = json!({"answer": "1"});
        assert_eq!(
            with_expected_calls(line, &[Some(expected.clone()), Some(expected), None]),
            "{\"calls\" : [ {\"name\": \"a\", \"expect\": {\"answer\": \"1\"}},{\"name\":\"b]\",\"expect\":{\"answer\":\"1\"}} , {\"name\": \"c\"} ], \"case\": \"x\"}\n"
        );
    }
}
