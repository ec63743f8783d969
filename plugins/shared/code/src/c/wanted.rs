//! What an assertion wants of an answer.

use super::number::{Number, Type};
use serde_json::Value;
use std::fmt;

/// The value that an expression should have.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Wanted {
    Truth(bool),
    Equal(Number),
    Text(String),
    /// A text of which so many bytes count, as for `strncmp`.
    Beginning(String, usize),
    Near {
        value: f64,
        within: f64,
        /// Whether a distance of just `within` is near.
        closed: bool,
    },
}

/// The two lines of a child about an expression: its value, and its type as a number of [`TYPES`].
pub(crate) struct Answer {
    value: Value,
    of: u64,
}

/// The associations that give the type of an expression as a number, for `_Generic`.
const TYPES: &str = "_Bool: 1, float: 2, double: 3, long double: 3, unsigned: 4, long: 5, long long: 5, \
                     unsigned long: 6, unsigned long long: 6, default: 0";

/// The statements that answer with an expression's value and type.
pub(crate) fn answering(expression: &str) -> String {
    format!("__answer(({expression})); __answer(_Generic(({expression}), {TYPES}));")
}

impl Answer {
    /// Reads two lines of JSON.
    pub(crate) fn read(value: &str, of: &str) -> Option<Self> {
        Some(Self { value: serde_json::from_str(value).ok()?, of: of.parse().ok()? })
    }

    fn number(&self) -> Option<Number> {
        let whole = || self.value.as_i64().map(i128::from).or_else(|| self.value.as_u64().map(i128::from));
        match self.of {
            1 => self.value.as_bool().map(|truth| Number::whole(Type::Int, truth.into())),
            2 => self.value.as_f64().map(|value| Number::float(value as f32)),
            3 => self.value.as_f64().map(Number::double),
            4 => whole().map(|value| Number::whole(Type::Unsigned, value)),
            5 => whole().map(|value| Number::whole(Type::Long, value)),
            6 => whole().map(|value| Number::whole(Type::UnsignedLong, value)),
            // A null pointer is equal to 0.
            _ if self.value.is_null() => Some(Number::whole(Type::Int, 0)),
            _ => whole().map(|value| Number::whole(Type::Int, value)),
        }
    }

    fn truth(&self) -> Option<bool> {
        match &self.value {
            Value::Bool(truth) => Some(*truth),
            // What is no number is true in C, as infinity is. A pointer to a text is true, and a null pointer is not.
            Value::Null => Some(matches!(self.of, 2 | 3)),
            Value::String(_) => Some(true),
            _ => self.number().map(|number| number.real() != 0.0),
        }
    }
}

impl Wanted {
    pub(crate) fn is(&self, answer: &Answer) -> bool {
        let (text, number) = (answer.value.as_str(), answer.number());
        match self {
            Self::Truth(truth) => answer.truth() == Some(*truth),
            Self::Equal(value) => number.is_some_and(|number| number.equals(*value)),
            Self::Text(wanted) => text == Some(wanted),
            Self::Beginning(wanted, bytes) => {
                text.is_some_and(|text| text.bytes().take(*bytes).eq(wanted.bytes().take(*bytes)))
            }
            Self::Near { value, within, closed } => number.is_some_and(|number| {
                let distance = (number.real() - value).abs();
                distance < *within || (*closed && distance == *within)
            }),
        }
    }
}

impl fmt::Display for Wanted {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Truth(truth) => write!(formatter, "{truth}"),
            Self::Equal(value) => write!(formatter, "{value}"),
            Self::Text(text) => write!(formatter, "{text:?}"),
            Self::Beginning(text, bytes) => write!(formatter, "{text:?} in {bytes} bytes"),
            Self::Near { value, within, .. } => write!(formatter, "{value:?} within {within:?}"),
        }
    }
}

impl fmt::Display for Answer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.value.fmt(formatter)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_compared_by_their_types() {
        let is = |wanted: &Wanted, value, of| wanted.is(&Answer::read(value, of).unwrap());
        let whole = |value| Wanted::Equal(Number::whole(Type::Int, value));
        let near = |closed| Wanted::Near { value: 0.5, within: 0.25, closed };
        for (wanted, value, of) in [
            (Wanted::Truth(true), "true", "1"),
            (Wanted::Truth(true), "true", "0"),
            (Wanted::Truth(true), "5", "0"),
            (Wanted::Truth(true), "\"\"", "0"),
            (Wanted::Truth(true), "null", "3"),
            (Wanted::Truth(false), "null", "0"),
            (Wanted::Truth(false), "0.0", "3"),
            (Wanted::Truth(false), "false", "1"),
            (whole(1), "true", "1"),
            (whole(0), "null", "0"),
            (whole(-1), "4294967295", "4"),
            (whole(2), "2.0", "3"),
            (Wanted::Equal(Number::whole(Type::Unsigned, 4_294_967_295)), "-1", "0"),
            (Wanted::Equal(Number::float(0.1)), "0.10000000149011612", "2"),
            (Wanted::Text("a\"".into()), "\"a\\\"\"", "0"),
            (Wanted::Beginning("abc".into(), 2), "\"abd\"", "0"),
            (Wanted::Beginning("ab".into(), 5), "\"ab\"", "0"),
            (near(false), "0.6", "3"),
            (near(true), "0.75", "3"),
            (near(true), "0.25", "2"),
        ] {
            assert!(is(&wanted, value, of), "{wanted:?} {value} {of}");
        }
        for (wanted, value, of) in [
            (Wanted::Truth(false), "null", "3"),
            (Wanted::Truth(false), "\"\"", "0"),
            (whole(1), "true", "0"),
            (whole(1), "5", "0"),
            (whole(0), "null", "3"),
            (whole(0), "\"\"", "0"),
            (whole(-1), "4294967295", "5"),
            (Wanted::Equal(Number::double(0.1)), "0.10000000149011612", "2"),
            (Wanted::Text("null".into()), "null", "0"),
            (Wanted::Text("5".into()), "5", "0"),
            (Wanted::Beginning("abc".into(), 3), "\"ab\"", "0"),
            (near(false), "0.75", "3"),
            (near(true), "null", "3"),
        ] {
            assert!(!is(&wanted, value, of), "{wanted:?} {value} {of}");
        }
    }
}
