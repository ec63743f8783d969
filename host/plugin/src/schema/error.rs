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

/// Why a value was refused.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// The schema does not allow it: the first few errors.
    Wrong(Vec<String>),
    /// Its check takes more than the steps that a check has.
    TooManySteps,
}
