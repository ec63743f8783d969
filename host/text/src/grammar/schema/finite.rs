//! Schemas that no finite value satisfies, such as a list item that must have an item of its own kind.

use super::walk::{children, count, list, required, target};
use serde_json::{Map, Value};
use std::cell::Cell;
use std::collections::{HashMap, HashSet};

/// The most schemas that are looked at, some of them once for each reference.
const MOST_STEPS: u64 = 20_000_000;

/// Refuses a schema all of whose values would be endless.
pub(super) fn check(root: &Value) -> Result<(), String> {
    let mut known = Known { root, finite: HashSet::new(), references: HashMap::new(), steps: Cell::new(0) };
    known.collect(root);
    // A reference has a finite value if its schema has one, given the references that are known to have one.
    loop {
        let now: Vec<&str> =
            known.references.iter().filter(|(_, to)| known.is_finite(to)).map(|(name, _)| *name).collect();
        if now.is_empty() {
            break;
        }
        for name in now {
            known.references.remove(name);
            known.finite.insert(name);
        }
    }
    let is_finite = known.is_finite(root);
    if known.steps.get() > MOST_STEPS {
        return Err("its references are too many to follow".into());
    }
    if is_finite { Ok(()) } else { Err("no finite value satisfies it".into()) }
}

struct Known<'s> {
    root: &'s Value,
    /// The references that have a finite value.
    finite: HashSet<&'s str>,
    /// The others that are in the schema, and where they lead.
    references: HashMap<&'s str, &'s Value>,
    steps: Cell<u64>,
}

impl<'s> Known<'s> {
    fn collect(&mut self, schema: &'s Value) {
        let Value::Object(schema) = schema else { return };
        if let Some(reference) = schema.get("$ref").and_then(Value::as_str) {
            // A reference that leads nowhere is refused by the library.
            match target(self.root, reference) {
                Some(to) => _ = self.references.insert(reference, to),
                None => _ = self.finite.insert(reference),
            }
        }
        children(schema).for_each(|child| self.collect(child));
    }

    fn is_finite(&self, schema: &Value) -> bool {
        self.steps.set(self.steps.get() + 1);
        if self.steps.get() > MOST_STEPS {
            return true;
        }
        let Value::Object(schema) = schema else { return *schema != Value::Bool(false) };
        let all = |schemas: &[Value]| schemas.iter().all(|schema| self.is_finite(schema));
        let any = |schemas: &[Value]| schemas.iter().any(|schema| self.is_finite(schema));
        let reference = schema.get("$ref").and_then(Value::as_str);
        reference.is_none_or(|reference| self.finite.contains(reference))
            && list(schema, "allOf").is_none_or(all)
            && list(schema, "anyOf").is_none_or(any)
            && list(schema, "oneOf").is_none_or(any)
            && (self.allows(schema, "object", |schema| self.is_finite_object(schema))
                || self.allows(schema, "array", |schema| self.is_finite_array(schema))
                || self.allows(schema, "value", |_| true))
    }

    /// Whether values may have this type, `object`, `array` or `value` for any other, and one of them is finite.
    fn allows(&self, schema: &Map<String, Value>, kind: &str, is_finite: impl Fn(&Map<String, Value>) -> bool) -> bool {
        let is_kind = |one: &Value| match one.as_str() {
            Some(own @ ("object" | "array")) => own == kind,
            // The library refuses types that are none.
            _ => kind == "value",
        };
        let is_type = match schema.get("type") {
            None => true,
            Some(Value::Array(several)) => several.iter().any(is_kind),
            Some(only) => is_kind(only),
        };
        is_type && is_finite(schema)
    }

    fn is_finite_object(&self, schema: &Map<String, Value>) -> bool {
        let properties = schema.get("properties").and_then(Value::as_object);
        let of = |name: &str| {
            let own = properties.and_then(|properties| properties.get(name));
            // Which of the patterns match is not looked at.
            own.or_else(|| schema.get("additionalProperties").filter(|_| !schema.contains_key("patternProperties")))
        };
        required(schema).all(|name| of(name).is_none_or(|schema| self.is_finite(schema)))
    }

    fn is_finite_array(&self, schema: &Map<String, Value>) -> bool {
        let least = count(schema, "minItems").unwrap_or_default();
        let first = list(schema, "prefixItems").or_else(|| list(schema, "items")).unwrap_or_default();
        let rest = schema.get("additionalItems").or_else(|| schema.get("items").filter(|items| !items.is_array()));
        let needs = |place: u64| first.get(place as usize).or(rest).is_none_or(|schema| self.is_finite(schema));
        // All items after the first have one schema.
        (0..least.min(first.len() as u64 + 1)).all(needs)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn endless_values_are_refused_and_recursion_that_may_end_is_not() {
        let node = |next: Value| json!({"type": "object", "properties": {"next": next}, "required": ["next"]});
        let list = |schema: Value| json!({"$defs": {"node": schema}, "$ref": "#/$defs/node"});
        let own = json!({"$ref": "#/$defs/node"});
        for endless in [
            list(node(own.clone())),
            list(own.clone()),
            list(json!({"type": "array", "items": own, "minItems": 1})),
            list(json!({"anyOf": [node(own.clone()), own]})),
            list(json!({"type": "object", "required": ["a"], "additionalProperties": own})),
            node(json!({"$ref": "#"})),
            json!({"allOf": [node(json!({"$ref": "#"}))]}),
            json!(false),
        ] {
            assert_eq!(check(&endless), Err("no finite value satisfies it".into()), "{endless}");
        }
        for finite in [
            list(node(json!({"anyOf": [own, {"type": "null"}]}))),
            list(json!({"type": "object", "properties": {"next": own}})),
            list(json!({"type": "array", "items": own})),
            list(json!({"type": ["array", "string"], "items": own, "minItems": 1})),
            json!({"$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"type": "string"}}, "$ref": "#/$defs/a"}),
            json!(true),
            json!({}),
        ] {
            assert_eq!(check(&finite), Ok(()), "{finite}");
        }
    }
}
