//! JSON Schemas that a tool wrote, and checks of values that a policy wrote, with bounded work.
//!
//! The crate `jsonschema` checks the keywords that look at one value only. The keywords that apply schemas to a value or
//! to its parts are checked here: a pair of schema and value is checked once, and work is counted in steps, so that
//! neither a schema nor a value can hold up the host.

mod apply;
mod check;
mod compile;
mod error;
mod evaluated;
mod keyword;
mod leaf;
mod meta_schema;
mod pattern;
mod room;
mod steps;
mod unique;

use check::Check;
use compile::Compiler;
use error::MAX_BYTES;
pub(crate) use error::{Refusal, SchemaError, shortened};
use jsonschema::{Draft, Registry, uri};
use keyword::Node;
pub(crate) use room::Room;
use serde_json::Value;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use steps::Extent;

/// The base of a schema that has no `$id`.
const DEFAULT_BASE: &str = "json-schema:///";

/// A JSON Schema that is ready to check values.
pub(crate) struct Schema {
    /// The first is the schema itself.
    nodes: Vec<Node>,
}

impl Schema {
    /// Reads a schema, which must be an object, and takes its part of `room`. Returns it as JSON too.
    ///
    /// # Errors
    /// It is too large, or is not a JSON Schema.
    pub(crate) fn read(text: &str, room: &mut Room) -> Result<(Value, Self), SchemaError> {
        if text.len() > MAX_BYTES {
            return Err(SchemaError::TooLong(text.len()));
        }
        room.take_bytes(text.len())?;
        let value: Value = serde_json::from_str(text).map_err(SchemaError::NotJson)?;
        if !value.is_object() {
            return Err(SchemaError::NotAnObject);
        }
        let schema = Self::new(&value, room)?;
        Ok((value, schema))
    }

    fn new(schema: &Value, room: &mut Room) -> Result<Self, SchemaError> {
        meta_schema::check(schema)?;
        let wrong = |error: jsonschema::ReferencingError| SchemaError::not_a_schema(error);
        let draft = Draft::default().detect(schema);
        let resource = draft.create_resource_ref(schema);
        let base = uri::from_str(resource.id().unwrap_or(DEFAULT_BASE)).map_err(wrong)?;
        let registry = Registry::new().draft(draft).add(base.as_str(), resource).map_err(wrong)?;
        let registry = registry.prepare().map_err(wrong)?;
        let nodes = Compiler::new(room).compile(schema, registry.resolver(base), draft)?;
        Ok(Self { nodes })
    }

    /// Checks a value.
    ///
    /// # Errors
    /// The schema does not allow the value, or the check takes too many steps.
    pub(crate) fn check(&self, value: &Value) -> Result<(), Refusal> {
        Check::new(&self.nodes, Extent::Full).run(value)
    }

    /// What [`Schema::check`] finds. Once nobody waits for the check, there are no steps left.
    pub(crate) fn check_until(&self, value: &Value, is_given_up: Arc<AtomicBool>) -> Result<(), Refusal> {
        Check::new(&self.nodes, Extent::Full).until(is_given_up).run(value)
    }

    /// What [`Schema::check`] finds, if that takes milliseconds at most.
    pub(crate) fn check_shortly(&self, value: &Value) -> Option<Result<(), Refusal>> {
        match Check::new(&self.nodes, Extent::Short).run(value) {
            Err(Refusal::TooManySteps) => None,
            checked => Some(checked),
        }
    }
}

#[cfg(test)]
mod tests;
