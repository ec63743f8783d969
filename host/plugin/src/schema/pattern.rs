//! Regular expressions of a schema.

use super::error::SchemaError;
use super::steps::{Steps, TooManySteps};
use jsonschema::error::ValidationErrorKind;
use jsonschema::{PatternOptions, ValidationOptions, Validator};
use serde_json::{Value, json};

/// The least memory, in bytes, that a compiled pattern is given. It is doubled until the pattern fits.
const MIN_SIZE: usize = 4 << 10;
/// The most memory that a compiled pattern is given, in bytes.
const MAX_SIZE: usize = 10 << 20;
/// A state of a compiled pattern takes some 32 bytes, and at worst each byte of a text visits each state.
const BYTES_A_STEP: usize = 128;
/// How often a pattern with look-around or back-references may go back in one search: few times first, since the steps
/// of a search are taken for the worst case.
const BACKTRACKS: [usize; 3] = [8, 256, 8192];
/// Bytes of the transitions that a pattern keeps from its searches.
const CACHE: usize = 128 << 10;

/// A regular expression of ECMA 262.
pub(super) struct Pattern {
    text: String,
    /// The most bytes that each of the engines takes.
    size: usize,
    engine: Engine,
}

enum Engine {
    /// Searches in linear time.
    Linear(Validator),
    /// Has look-around or back-references: goes back at most so often.
    Backtracking(Vec<(usize, Validator)>),
}

impl Pattern {
    /// Compiles a pattern.
    ///
    /// # Errors
    /// It is not a regular expression, or takes too much memory.
    pub(super) fn new(text: &str) -> Result<Self, SchemaError> {
        let schema = json!({"pattern": text});
        let options = jsonschema::options;
        let build = |options: ValidationOptions<'_>| options.build(&schema).map_err(|error| error.to_string());
        for size in sizes() {
            let linear = PatternOptions::regex().size_limit(size).dfa_size_limit(CACHE);
            if let Ok(validator) = build(options().with_pattern_options(linear)) {
                return Ok(Self { text: text.to_owned(), size, engine: Engine::Linear(validator) });
            }
        }
        let mut what = String::new();
        for size in sizes() {
            let backtracking = |limit: usize| {
                let engine = PatternOptions::fancy_regex().size_limit(size).dfa_size_limit(CACHE);
                Ok((limit, build(options().with_pattern_options(engine.backtrack_limit(limit)))?))
            };
            match BACKTRACKS.into_iter().map(backtracking).collect::<Result<Vec<_>, String>>() {
                Ok(engines) => {
                    return Ok(Self { text: text.to_owned(), size, engine: Engine::Backtracking(engines) });
                }
                Err(error) => what = error,
            }
        }
        Err(SchemaError::not_a_schema(what))
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// The most bytes that it takes.
    pub(super) fn bytes(&self) -> usize {
        match &self.engine {
            Engine::Linear(_) => self.size,
            Engine::Backtracking(engines) => self.size * engines.len(),
        }
    }

    /// Whether it is found in `text`.
    pub(super) fn is_match(&self, text: &str, steps: &mut Steps) -> Result<bool, TooManySteps> {
        let value = Value::String(text.to_owned());
        let a_byte = (self.size / BYTES_A_STEP) as u64;
        let once = (text.len() as u64 + 1).saturating_mul(a_byte);
        match &self.engine {
            Engine::Linear(validator) => {
                steps.take(once)?;
                Ok(validator.is_valid(&value))
            }
            Engine::Backtracking(engines) => {
                let once = once.saturating_mul(parts(&self.text));
                for (limit, validator) in engines {
                    steps.take(once.saturating_mul(*limit as u64))?;
                    match validator.validate(&value) {
                        Ok(()) => return Ok(true),
                        Err(error) if is_given_up(error.kind()) => {}
                        Err(_) => return Ok(false),
                    }
                }
                Err(TooManySteps)
            }
        }
    }
}

fn sizes() -> impl Iterator<Item = usize> {
    std::iter::successors(Some(MIN_SIZE), |size| (*size < MAX_SIZE).then_some((size * 2).min(MAX_SIZE)))
}

/// The most parts of a pattern that are searched each on its own, between two times that the search goes back.
fn parts(pattern: &str) -> u64 {
    1 + pattern.bytes().filter(|byte| b"([*+?{|\\".contains(byte)).count() as u64
}

/// Whether a search went back too often.
fn is_given_up(kind: &ValidationErrorKind) -> bool {
    matches!(kind, ValidationErrorKind::BacktrackLimitExceeded { .. } | ValidationErrorKind::RegexEngineFailure { .. })
}
