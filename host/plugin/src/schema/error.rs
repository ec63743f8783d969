//! Why a schema or a value is refused.

/// The most bytes of a schema. Usual ones have some thousand.
pub(super) const MAX_BYTES: usize = 256 * 1024;
/// The most schemas within a schema, each counted once however often it is referred to.
pub(super) const MAX_SUBSCHEMAS: usize = 10_000;
/// The most bytes of all `$id` and `id` of a schema: each reference is resolved against them.
pub(super) const MAX_ID_BYTES: usize = 4096;
/// The most errors of a value that are described.
pub(super) const MAX_ERRORS: usize = 3;
/// The most characters of each error, since a wrong value may be long.
pub(super) const ERROR_CHARS: usize = 300;
/// The last of them where an error is longer: it is said there what is wrong with the value.
const END_CHARS: usize = 100;

/// Why a schema cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SchemaError {
    #[error("has {0} bytes, more than the {MAX_BYTES} allowed\nhint: shorten it where the tool describes it")]
    TooLong(usize),
    #[error(
        "has more than {MAX_SUBSCHEMAS} schemas within it, which are all that it may have\nhint: shorten it where the tool describes it"
    )]
    TooManySubschemas,
    #[error(
        "has no room beside the others of its tool, which may have {most} {what} in all\nhint: let the tool describe fewer functions, or shorter schemas"
    )]
    NoRoom { most: usize, what: &'static str },
    #[error(
        "has more than the {MAX_ID_BYTES} bytes that `$id` may have in all\nhint: use shorter ones, or `$defs` without"
    )]
    LongIdentifiers,
    #[error("is not JSON: {0}")]
    NotJson(serde_json::Error),
    #[error("is not an object")]
    NotAnObject,
    #[error("is not a JSON Schema: {0}")]
    NotASchema(String),
}

impl SchemaError {
    pub(super) fn not_a_schema(error: impl ToString) -> Self {
        Self::NotASchema(shortened(&error.to_string()))
    }
}

/// An error without its middle if it is long: it quotes a part of a schema or of a value.
pub(crate) fn shortened(error: &str) -> String {
    let Some((over, _)) = error.char_indices().nth(ERROR_CHARS) else { return error.to_owned() };
    let start = error.char_indices().nth(ERROR_CHARS - END_CHARS - 1).map_or(over, |(at, _)| at);
    let end = error.char_indices().nth_back(END_CHARS - 1).map_or(over, |(at, _)| at);
    format!("{}…{}", &error[..start], &error[end..])
}

/// Why a value was refused.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// The schema does not allow it: the first few errors.
    Wrong(Vec<String>),
    /// Its check takes more than the steps that a check has.
    TooManySteps,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_error_keeps_both_ends() {
        let short = "é".repeat(ERROR_CHARS);
        assert_eq!(shortened(&short), short);
        let long = format!("{}{}{}", "a".repeat(1000), "é".repeat(1000), "z".repeat(END_CHARS));
        let expected = format!("{}…{}", "a".repeat(ERROR_CHARS - END_CHARS - 1), "z".repeat(END_CHARS));
        assert_eq!(shortened(&long), expected);
        assert_eq!(expected.chars().count(), ERROR_CHARS);
    }
}
