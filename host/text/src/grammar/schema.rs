//! JSON schemas, before the library compiles them.
//!
//! The library refuses most of what it does not support. [`check`] refuses the rest: keywords that it reads in another
//! way than a validator does, so that a response would not be valid; schemas without a finite value; and schemas whose
//! size or nesting grows beyond bounds before the library counts its work.

mod finite;
mod keywords;
mod shape;
mod walk;

pub(super) use keywords::ends_with_escape;
use llguidance::JsonCompileOptions;
use serde_json::{Value, json};
pub(super) use shape::Taken;
use walk::{children_mut, count};

/// The most bytes of a schema.
const MOST_BYTES: usize = 256 << 10;
/// The white space between the parts of a value. Without a bound, a policy may write nothing else.
const WHITE_SPACE: &str = r"[\x20\x0A\x0D\x09]{1,32}";
/// The escapes in texts. With `u`, the name of a property could be written in several ways, and so twice.
const ESCAPES: &str = "nrbtf\\\"";

/// The most characters before the `@` of an e-mail address (RFC 5321, section 4.5.3.1), which the library does not bound.
const LONGEST_LOCAL_PART: u64 = 64;

/// Refuses a schema to which responses cannot be bound, and gives the reason. `taken` counts the work for all schemas of a
/// grammar.
pub(super) fn check(schema: &Value, taken: &mut Taken) -> Result<(), String> {
    let bytes = schema.to_string().len();
    if bytes > MOST_BYTES {
        return Err(format!("its {bytes} bytes are more than {MOST_BYTES}"));
    }
    keywords::check(schema)?;
    finite::check(schema)?;
    shape::check(schema, taken)
}

/// The schema with the settings of the library.
pub(super) fn bound_to(schema: &Value) -> Value {
    let options = JsonCompileOptions {
        whitespace_pattern: Some(WHITE_SPACE.into()),
        json_allowed_escapes: Some(ESCAPES.into()),
        ..JsonCompileOptions::default()
    };
    // Settings are written into an object.
    let mut schema = match schema {
        Value::Bool(true) => json!({}),
        other => other.clone(),
    };
    if schema.is_object() {
        shorten_addresses(&mut schema);
        options.apply_to(&mut schema);
    }
    schema
}

/// Bounds e-mail addresses, so that no part of one is too long.
fn shorten_addresses(schema: &mut Value) {
    let Value::Object(schema) = schema else { return };
    if schema.get("format").is_some_and(|format| format == "email") {
        let most = count(schema, "maxLength").unwrap_or(LONGEST_LOCAL_PART);
        schema.insert("maxLength".into(), json!(most.min(LONGEST_LOCAL_PART)));
    }
    children_mut(schema).for_each(shorten_addresses);
}
