//! Keywords that the library reads in another way than a validator does, and nesting beyond bounds.

use super::walk::{children, count, list, required, target};
use serde_json::{Map, Number, Value};
use std::collections::HashSet;
use std::ptr::from_ref;

/// The deepest nesting of schemas, and of values within them.
const DEEPEST: usize = 64;
/// The most references with different texts, times the nesting: the library follows each, one within another.
const MOST_LEVELS: usize = 16_384;
/// The most `patternProperties` of an object: the library compares each with each.
const MOST_PATTERNS: usize = 32;
/// The largest whole number that a 64-bit float, as the library reads it, keeps apart from all others.
const EXACT: u64 = 1 << 53;
/// The largest divisor that the library reads, with as many decimals at most.
const LARGEST_DIVISOR: f64 = 10_000.0;
const DIVISOR_DECIMALS: i32 = 3;
/// The most properties of a schema in which their number is bounded: the library writes the others out for each.
const MOST_COUNTED: usize = 200;
/// Keywords that combine schemas.
const COMBINING: [&str; 4] = ["allOf", "anyOf", "oneOf", "$ref"];

/// Checks every schema within `root`.
pub(super) fn check(root: &Value) -> Result<(), String> {
    let mut found = Found::default();
    found.check(root, 0)?;
    if found.has_divisor && found.has_all_of {
        return Err("`multipleOf` and `allOf` in one schema are not supported".into());
    }
    if found.counts_properties && found.properties > MOST_COUNTED {
        return Err(format!(
            "`minProperties` and `maxProperties` are not supported in a schema with more than {MOST_COUNTED} properties"
        ));
    }
    let leads_out = |reference: &&&str| target(root, reference).is_some_and(|to| !found.seen.contains(&from_ref(to)));
    if let Some(reference) = found.references.iter().find(leads_out) {
        return Err(format!("`$ref` {reference:?} leads to no schema\nhint: put the schema into `$defs`"));
    }
    let levels = (found.references.len() + 1) * (found.deepest + 1);
    if levels > MOST_LEVELS {
        let references = found.references.len();
        return Err(format!("its {references} references and its depth of {} are too much", found.deepest));
    }
    Ok(())
}

#[derive(Default)]
struct Found<'s> {
    references: HashSet<&'s str>,
    /// The schemas that were checked.
    seen: HashSet<*const Value>,
    deepest: usize,
    /// How many properties all objects have.
    properties: usize,
    counts_properties: bool,
    has_divisor: bool,
    has_all_of: bool,
}

impl<'s> Found<'s> {
    fn check(&mut self, schema: &'s Value, depth: usize) -> Result<(), String> {
        self.deepest = self.deepest.max(depth);
        if depth > DEEPEST {
            return Err(format!("schemas are nested more than {DEEPEST} deep"));
        }
        self.seen.insert(from_ref(schema));
        let Value::Object(schema) = schema else { return Ok(()) };
        if schema.contains_key("x-guidance") {
            return Err("`x-guidance` is not supported".into());
        }
        if depth > 0 && ["$id", "id"].iter().any(|keyword| schema.get(*keyword).is_some_and(Value::is_string)) {
            return Err("`$id` within a schema is not supported\nhint: refer to it by its place, `#/$defs/NAME`".into());
        }
        if let Some(reference) = schema.get("$ref").and_then(Value::as_str) {
            check_reference(reference)?;
            self.references.insert(reference);
        }
        self.check_numbers(schema)?;
        check_counts(schema)?;
        check_items(schema)?;
        check_patterns(schema)?;
        self.properties += schema.get("properties").and_then(Value::as_object).map_or(0, Map::len);
        self.counts_properties |=
            ["minProperties", "maxProperties"].iter().any(|keyword| schema.contains_key(*keyword));
        self.has_all_of |= schema.contains_key("allOf");
        for value in schema.get("const").into_iter().chain(list(schema, "enum").unwrap_or_default()) {
            check_value(value, 0)?;
        }
        children(schema).try_for_each(|child| self.check(child, depth + 1))
    }

    fn check_numbers(&mut self, schema: &Map<String, Value>) -> Result<(), String> {
        for keyword in ["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"] {
            if let Some(Value::Number(number)) = schema.get(keyword) {
                check_number(number).map_err(|why| format!("`{keyword}`: {why}"))?;
            }
        }
        let Some(divisor) = schema.get("multipleOf") else { return Ok(()) };
        self.has_divisor = true;
        let divisor = divisor.as_f64().unwrap_or_default();
        let scaled = divisor * 10f64.powi(DIVISOR_DECIMALS);
        if !(divisor > 0.0 && divisor <= LARGEST_DIVISOR) || (scaled - scaled.round()).abs() > 1e-9 {
            return Err(format!(
                "`multipleOf` must be above 0 and at most {LARGEST_DIVISOR}, with at most {DIVISOR_DECIMALS} decimals"
            ));
        }
        match COMBINING.iter().find(|keyword| schema.contains_key(**keyword)) {
            Some(keyword) => Err(format!("`multipleOf` beside `{keyword}` is not supported")),
            None => Ok(()),
        }
    }
}

fn check_reference(reference: &str) -> Result<(), String> {
    let is_place = reference == "#" || reference.starts_with("#/");
    if is_place && !reference.contains(['~', '%']) {
        return Ok(());
    }
    Err(format!("`$ref` {reference:?} is not supported\nhint: refer to a place within the schema, `#/$defs/NAME`"))
}

/// Refuses keywords of different drafts: the library reads those of the older one, and a validator those of the newer.
fn check_items(schema: &Map<String, Value>) -> Result<(), String> {
    let of_older = schema.contains_key("additionalItems") || schema.get("items").is_some_and(Value::is_array);
    match of_older && schema.contains_key("prefixItems") {
        true => Err("`prefixItems` beside `additionalItems` or a list of `items` is not supported".into()),
        false => Ok(()),
    }
}

/// Refuses patterns that are none, and that the library takes for others.
fn check_patterns(schema: &Map<String, Value>) -> Result<(), String> {
    let of_names = schema.get("patternProperties").and_then(Value::as_object).into_iter().flat_map(Map::keys);
    let own = schema.get("pattern").and_then(Value::as_str);
    match own.into_iter().chain(of_names.map(String::as_str)).find(|pattern| ends_with_escape(pattern)) {
        Some(pattern) => Err(format!("the pattern {pattern:?} ends with a lone `\\`")),
        None => Ok(()),
    }
}

/// Whether a regular expression ends with a `\` that escapes nothing.
pub(in super::super) fn ends_with_escape(regex: &str) -> bool {
    regex.bytes().rev().take_while(|byte| *byte == b'\\').count() % 2 == 1
}

/// Refuses numbers of properties that the library does not count as a validator does.
fn check_counts(schema: &Map<String, Value>) -> Result<(), String> {
    let patterns = schema.get("patternProperties").and_then(Value::as_object).map_or(0, Map::len);
    if patterns > MOST_PATTERNS {
        return Err(format!("{patterns} `patternProperties` are more than {MOST_PATTERNS}"));
    }
    let named: HashSet<&str> = required(schema).collect();
    // A response may write a name that is not in the schema twice, which is one property.
    match count(schema, "minProperties") {
        Some(least) if least > named.len() as u64 + 1 => Err(format!(
            "`minProperties` {least} is not supported with {} `required` properties\nhint: name the properties in `required`",
            named.len()
        )),
        _ => Ok(()),
    }
}

/// Refuses a value in `const` or `enum` that the library would not write exactly.
fn check_value(value: &Value, depth: usize) -> Result<(), String> {
    if depth > DEEPEST {
        return Err(format!("a value is nested more than {DEEPEST} deep"));
    }
    match value {
        Value::Number(number) => check_number(number),
        Value::Array(items) => items.iter().try_for_each(|item| check_value(item, depth + 1)),
        Value::Object(fields) => {
            fields.iter().try_for_each(|(name, field)| check_text(name).and_then(|()| check_value(field, depth + 1)))
        }
        Value::String(text) => check_text(text),
        Value::Null | Value::Bool(_) => Ok(()),
    }
}

/// Refuses a text that cannot be written without the escape `\u`: the library would leave the character out.
fn check_text(text: &str) -> Result<(), String> {
    let needs_escape = |char: &char| matches!(char, '\0'..='\x1f') && !"\n\r\t\x08\x0c".contains(*char);
    match text.chars().find(needs_escape) {
        Some(char) => Err(format!("the text {text:?} has the control character {char:?}, which is not supported")),
        None => Ok(()),
    }
}

fn check_number(number: &Number) -> Result<(), String> {
    let whole = number.as_u64().or_else(|| number.as_i64().map(i64::unsigned_abs));
    let is_exact = match whole {
        Some(whole) => whole <= EXACT,
        None => number.as_f64().is_some_and(|value| value.abs() <= EXACT as f64),
    };
    if is_exact { Ok(()) } else { Err(format!("the number {number} is beyond 2^53, so that it is not exact")) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn refused(schema: Value) -> Option<String> {
        check(&schema).err()
    }

    #[test]
    fn what_the_library_would_misread_is_refused() {
        let properties: Map<String, Value> = (0..=MOST_COUNTED).map(|at| (at.to_string(), json!({}))).collect();
        for (schema, why) in [
            (json!({"x-guidance": {"lenient": true}}), "`x-guidance`"),
            (json!({"items": {"$id": "a"}}), "`$id` within"),
            (json!({"$ref": "other.json"}), "`$ref` \"other.json\""),
            (json!({"$ref": "#/$defs/a~1b"}), "`$ref` \"#/$defs/a~1b\""),
            (json!({"const": 9_007_199_254_740_993u64}), "beyond 2^53"),
            (json!({"enum": [{"a": [1e300]}]}), "beyond 2^53"),
            (json!({"const": ["nul\0"]}), "the control character '\\0'"),
            (json!({"enum": [{"a\u{1f}": 1}]}), "the control character '\\u{1f}'"),
            (json!({"minimum": 1e30}), "`minimum`: the number"),
            (
                json!({"$ref": "#/components/a", "components": {"a": {}}}),
                "`$ref` \"#/components/a\" leads to no schema",
            ),
            (json!({"prefixItems": [{}], "additionalItems": false}), "`prefixItems` beside"),
            (json!({"prefixItems": [{}], "items": [{}]}), "`prefixItems` beside"),
            (json!({"pattern": "a\\"}), "the pattern \"a\\\\\" ends"),
            (json!({"patternProperties": {"\\\\\\": {}}}), "ends with a lone"),
            (
                json!({"maxProperties": 1, "allOf": [{"properties": properties}]}),
                "`maxProperties` are not supported in",
            ),
            (json!({"multipleOf": 0}), "`multipleOf` must be above 0"),
            (json!({"multipleOf": 0.0001}), "`multipleOf` must be above 0"),
            (json!({"multipleOf": 3, "$ref": "#"}), "`multipleOf` beside `$ref`"),
            (json!({"allOf": [{"multipleOf": 3}, {"multipleOf": 2}]}), "`multipleOf` and `allOf`"),
            (json!({"minProperties": 2}), "`minProperties` 2"),
            (json!({"properties": {"a": {"minProperties": 3, "required": ["x", "x"]}}}), "`minProperties` 3"),
        ] {
            let found = refused(schema.clone());
            assert!(found.as_ref().is_some_and(|found| found.contains(why)), "{schema}: {found:?}");
        }
        for schema in [
            json!(true),
            json!({"$id": "https://example.org/a", "$defs": {"id": {"type": "string"}}, "$ref": "#/$defs/id"}),
            json!({"properties": {"$id": {"const": 5}, "x-guidance": {}}}),
            json!({"minProperties": 2, "required": ["a"], "multipleOf": 0.25}),
            json!({"const": 9_007_199_254_740_992u64}),
            json!({"properties": properties.clone(), "pattern": "a\\\\"}),
            json!({"enum": ["\n\r\t\u{8}\u{c}\u{7f}\\\""], "required": ["\0"]}),
        ] {
            assert_eq!(refused(schema.clone()), None, "{schema}");
        }
    }

    #[test]
    fn nesting_has_a_bound() {
        let nested = |depth| (0..depth).fold(json!({}), |inner, _| json!({"items": inner}));
        assert_eq!(refused(nested(DEEPEST)), None);
        assert!(refused(nested(DEEPEST + 1)).unwrap().contains("more than 64 deep"));
        let value = (0..DEEPEST + 1).fold(json!(1), |inner, _| json!([inner]));
        assert!(refused(json!({"const": value})).unwrap().contains("more than 64 deep"));
        let references: Vec<Value> = (0..600).map(|at| json!({"$ref": format!("#/anyOf/{at}")})).collect();
        assert_eq!(refused(json!({"anyOf": references})), None);
        let mut deep = nested(30);
        deep["anyOf"] = references.into();
        assert!(refused(deep).unwrap().contains("its 600 references and its depth of 30"));
    }
}
