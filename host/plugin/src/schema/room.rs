//! What the schemas of one tool may take together.

use super::error::SchemaError;

/// The most bytes of all schemas of a tool.
const BYTES: usize = 8 << 20;
/// The most schemas within them.
const SUBSCHEMAS: usize = 50_000;
/// The most bytes of their patterns, compiled.
const PATTERN_BYTES: usize = 32 << 20;
/// The most bytes of the identifiers in the dynamic scopes of these schemas.
const SCOPE_BYTES: usize = 32 << 20;

/// What further schemas of a tool may take.
pub(crate) struct Room {
    bytes: usize,
    subschemas: usize,
    pattern_bytes: usize,
    scope_bytes: usize,
}

impl Default for Room {
    fn default() -> Self {
        Self { bytes: BYTES, subschemas: SUBSCHEMAS, pattern_bytes: PATTERN_BYTES, scope_bytes: SCOPE_BYTES }
    }
}

impl Room {
    pub(super) fn take_bytes(&mut self, bytes: usize) -> Result<(), SchemaError> {
        take(&mut self.bytes, bytes, SchemaError::NoRoom { most: BYTES, what: "bytes" })
    }

    pub(super) fn take_subschema(&mut self) -> Result<(), SchemaError> {
        take(&mut self.subschemas, 1, SchemaError::NoRoom { most: SUBSCHEMAS, what: "schemas within them" })
    }

    pub(super) fn take_pattern(&mut self, bytes: usize) -> Result<(), SchemaError> {
        let what = "bytes of compiled patterns";
        take(&mut self.pattern_bytes, bytes, SchemaError::NoRoom { most: PATTERN_BYTES, what })
    }

    pub(super) fn take_scope(&mut self, bytes: usize) -> Result<(), SchemaError> {
        let what = "bytes of identifiers in the scopes of their schemas";
        take(&mut self.scope_bytes, bytes, SchemaError::NoRoom { most: SCOPE_BYTES, what })
    }
}

fn take(left: &mut usize, taken: usize, none: SchemaError) -> Result<(), SchemaError> {
    *left = left.checked_sub(taken).ok_or(none)?;
    Ok(())
}
