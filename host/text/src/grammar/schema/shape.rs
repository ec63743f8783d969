//! The size of a schema once its parts are combined.
//!
//! The library combines the parts of a schema, such as those of `allOf`, into one. Alternatives multiply then, and it
//! counts the combinations but not the copies that they need. The same is done here with shapes, which share what the
//! library would copy, so that a schema that would grow too large is refused before.

use super::walk::{list, target};
use serde_json::{Map, Value};
use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;

/// The most parts, with copies. Each takes some hundred bytes.
const MOST_PARTS: u64 = 200_000;
/// The most combinations; the library has the same limit.
const MOST_STEPS: u64 = 50_000;
/// The most combinations within each other; the library has the same limit.
const DEEPEST: usize = 128;
/// The most comparisons between alternatives of `oneOf`, between patterns, or between properties.
const MOST_COMPARISONS: u64 = 1 << 26;
/// A comparison of two patterns takes as long as so many of alternatives.
const OF_PATTERNS: u64 = 10_000;
/// A text with several conditions takes as long as so many other parts.
const OF_CONDITIONS: u64 = 64;
/// Keywords without an effect on values.
const ANNOTATIONS: [&str; 15] = [
    "$anchor",
    "$defs",
    "definitions",
    "$schema",
    "$id",
    "id",
    "$comment",
    "title",
    "description",
    "default",
    "readOnly",
    "writeOnly",
    "examples",
    "contentMediaType",
    "contentEncoding",
];
/// The types of values.
const TYPES: [&str; 6] = ["null", "boolean", "number", "string", "array", "object"];

/// What the schemas of a grammar have taken together.
#[derive(Default)]
pub(in super::super) struct Taken {
    steps: u64,
    comparisons: u64,
    parts: u64,
}

/// Refuses a schema that would grow too large, after others of its grammar.
pub(super) fn check(root: &Value, taken: &mut Taken) -> Result<(), String> {
    let mut combined = Combined { root, references: HashMap::new(), taken };
    let shape = combined.of(root)?;
    combined.keep(&shape)
}

/// A combined schema.
struct Shape<'s> {
    kind: Kind<'s>,
    /// Its parts, with copies.
    parts: u64,
}

type Shared<'s> = Rc<Shape<'s>>;

enum Kind<'s> {
    Any,
    /// A value without parts.
    Value {
        has_conditions: bool,
    },
    Reference(&'s str),
    Alternatives {
        all: Vec<Shared<'s>>,
        /// Whether exactly one must hold, so that they are compared with each other.
        exclude: bool,
    },
    Object {
        properties: BTreeMap<&'s str, Shared<'s>>,
        patterns: BTreeMap<&'s str, Shared<'s>>,
        rest: Option<Shared<'s>>,
    },
    Array {
        first: Vec<Shared<'s>>,
        rest: Option<Shared<'s>>,
    },
}

impl<'s> Shape<'s> {
    fn new(kind: Kind<'s>) -> Shared<'s> {
        let parts = match &kind {
            Kind::Any | Kind::Value { has_conditions: false } | Kind::Reference(_) => 1,
            Kind::Value { has_conditions: true } => OF_CONDITIONS,
            Kind::Alternatives { all, .. } => sum(all.iter()),
            Kind::Object { properties, patterns, rest } => {
                sum(properties.values().chain(patterns.values()).chain(rest))
            }
            Kind::Array { first, rest } => sum(first.iter().chain(rest)),
        };
        Rc::new(Self { kind, parts })
    }

    fn value() -> Shared<'s> {
        Self::new(Kind::Value { has_conditions: false })
    }
}

/// What has been combined of a schema.
struct Combined<'s, 't> {
    root: &'s Value,
    /// The schemas that references lead to; `None` while one is combined.
    references: HashMap<&'s str, Option<Shared<'s>>>,
    taken: &'t mut Taken,
}

impl<'s> Combined<'s, '_> {
    fn of(&mut self, schema: &'s Value) -> Result<Shared<'s>, String> {
        self.step()?;
        let Value::Object(schema) = schema else {
            return Ok(if *schema == Value::Bool(true) { Shape::new(Kind::Any) } else { Shape::value() });
        };
        let mut whole = Shape::new(Kind::Any);
        let mut has_own = false;
        for (keyword, value) in schema {
            let part = match keyword.as_str() {
                "const" => constant(value),
                "enum" => {
                    let all = list(schema, keyword).unwrap_or_default().iter().map(constant).collect();
                    Shape::new(Kind::Alternatives { all, exclude: false })
                }
                "anyOf" | "oneOf" => {
                    let all = self.all(list(schema, keyword).unwrap_or_default())?;
                    self.alternatives(all, keyword == "oneOf")?
                }
                "allOf" => {
                    for part in list(schema, keyword).unwrap_or_default() {
                        let part = self.of(part)?;
                        whole = self.combine(&whole, &part, 0)?;
                    }
                    continue;
                }
                "$ref" => match value.as_str() {
                    Some(reference) => {
                        self.define(reference)?;
                        Shape::new(Kind::Reference(reference))
                    }
                    None => continue,
                },
                _ => {
                    has_own |= !ANNOTATIONS.contains(&keyword.as_str());
                    continue;
                }
            };
            whole = self.combine(&whole, &part, 0)?;
        }
        if has_own {
            let own = self.own(schema)?;
            whole = self.combine(&whole, &own, 0)?;
        }
        Ok(whole)
    }

    fn all(&mut self, schemas: &'s [Value]) -> Result<Vec<Shared<'s>>, String> {
        schemas.iter().map(|schema| self.of(schema)).collect()
    }

    fn named(
        &mut self,
        schema: &'s Map<String, Value>,
        keyword: &str,
    ) -> Result<BTreeMap<&'s str, Shared<'s>>, String> {
        let Some(Value::Object(named)) = schema.get(keyword) else { return Ok(BTreeMap::new()) };
        named.iter().map(|(name, schema)| Ok((name.as_str(), self.of(schema)?))).collect()
    }

    /// The keywords of a schema that do not refer to other schemas for the same value.
    fn own(&mut self, schema: &'s Map<String, Value>) -> Result<Shared<'s>, String> {
        let types: Vec<&str> = match schema.get("type") {
            Some(Value::String(only)) => vec![only.as_str()],
            Some(Value::Array(several)) => several.iter().filter_map(Value::as_str).collect(),
            _ => TYPES.to_vec(),
        };
        let mut all = Vec::new();
        for kind in types {
            self.step()?;
            all.push(match kind {
                "object" => {
                    let (properties, patterns) =
                        (self.named(schema, "properties")?, self.named(schema, "patternProperties")?);
                    let rest = schema.get("additionalProperties").map(|rest| self.of(rest)).transpose()?;
                    self.object(properties, patterns, rest)?
                }
                "array" => {
                    let items = schema.get("items").filter(|items| !items.is_array());
                    let first = list(schema, "prefixItems").or_else(|| list(schema, "items")).unwrap_or_default();
                    let rest = schema.get("additionalItems").or(items).map(|rest| self.of(rest)).transpose()?;
                    Shape::new(Kind::Array { first: self.all(first)?, rest })
                }
                "string" => {
                    let conditions = ["pattern", "format", "minLength", "maxLength"];
                    let has_conditions = conditions.iter().any(|keyword| schema.contains_key(*keyword));
                    Shape::new(Kind::Value { has_conditions })
                }
                _ => Shape::value(),
            });
        }
        match all.as_slice() {
            [only] => Ok(only.clone()),
            _ => Ok(Shape::new(Kind::Alternatives { all, exclude: false })),
        }
    }

    /// Combines the schema that a reference leads to, once.
    fn define(&mut self, reference: &'s str) -> Result<(), String> {
        if self.references.contains_key(reference) {
            return Ok(());
        }
        self.references.insert(reference, None);
        // The library refuses a reference that leads nowhere.
        let Some(schema) = target(self.root, reference) else { return Ok(()) };
        let shape = self.of(schema)?;
        self.keep(&shape)?;
        self.references.insert(reference, Some(shape));
        Ok(())
    }

    /// What holds where `one` and `other` hold.
    fn combine(&mut self, one: &Shared<'s>, other: &Shared<'s>, depth: usize) -> Result<Shared<'s>, String> {
        self.step()?;
        if depth > DEEPEST {
            return Err("its parts are combined more than 128 deep".into());
        }
        let combined = match (&one.kind, &other.kind) {
            (Kind::Any, _) => other.clone(),
            (_, Kind::Any) => one.clone(),
            (Kind::Reference(reference), _) => {
                let one = self.referred(reference)?;
                self.combine(&one, other, depth + 1)?
            }
            (_, Kind::Reference(reference)) => {
                let other = self.referred(reference)?;
                self.combine(one, &other, depth + 1)?
            }
            (Kind::Alternatives { all, exclude }, _) => {
                let all = all.iter().map(|one| self.combine(one, other, depth + 1)).collect::<Result<_, _>>()?;
                self.alternatives(all, *exclude)?
            }
            (_, Kind::Alternatives { all, exclude }) => {
                let all = all.iter().map(|other| self.combine(one, other, depth + 1)).collect::<Result<_, _>>()?;
                self.alternatives(all, *exclude)?
            }
            (
                Kind::Object { properties, patterns, rest },
                Kind::Object { properties: of_other, patterns: other_patterns, rest: other_rest },
            ) => {
                let properties = self.both((properties, rest), (of_other, other_rest), depth)?;
                let patterns = self.both((patterns, rest), (other_patterns, other_rest), depth)?;
                let rest = self.optional(rest.as_ref(), other_rest.as_ref(), depth)?;
                self.object(properties, patterns, rest)?
            }
            (Kind::Array { first, rest }, Kind::Array { first: of_other, rest: other_rest }) => {
                let mut items = Vec::new();
                for place in 0..first.len().max(of_other.len()) {
                    let own = first.get(place).or(rest.as_ref());
                    let others = of_other.get(place).or(other_rest.as_ref());
                    items.push(self.optional(own, others, depth)?.unwrap_or_else(|| Shape::new(Kind::Any)));
                }
                let rest = self.optional(rest.as_ref(), other_rest.as_ref(), depth)?;
                Shape::new(Kind::Array { first: items, rest })
            }
            (Kind::Value { has_conditions: own }, Kind::Value { has_conditions: others }) => {
                Shape::new(Kind::Value { has_conditions: *own || *others })
            }
            // Values of two types: nothing.
            _ => Shape::value(),
        };
        if combined.parts > MOST_PARTS {
            return Err(too_large());
        }
        Ok(combined)
    }

    /// The schemas of the names in either of two objects. A name that one lacks has the schema of its other names.
    fn both(
        &mut self,
        (one, rest): (&BTreeMap<&'s str, Shared<'s>>, &Option<Shared<'s>>),
        (other, other_rest): (&BTreeMap<&'s str, Shared<'s>>, &Option<Shared<'s>>),
        depth: usize,
    ) -> Result<BTreeMap<&'s str, Shared<'s>>, String> {
        let mut all = BTreeMap::new();
        for name in one.keys().chain(other.keys().filter(|name| !one.contains_key(*name))) {
            let (own, others) = (one.get(name).or(rest.as_ref()), other.get(name).or(other_rest.as_ref()));
            if let Some(combined) = self.optional(own, others, depth)? {
                all.insert(*name, combined);
            }
        }
        Ok(all)
    }

    fn optional(
        &mut self,
        one: Option<&Shared<'s>>,
        other: Option<&Shared<'s>>,
        depth: usize,
    ) -> Result<Option<Shared<'s>>, String> {
        match (one, other) {
            (Some(one), Some(other)) => self.combine(one, other, depth + 1).map(Some),
            (one, other) => Ok(one.or(other).cloned()),
        }
    }

    fn referred(&self, reference: &str) -> Result<Shared<'s>, String> {
        let shape = self.references.get(reference).cloned().flatten();
        shape.ok_or_else(|| format!("a circle of references with other keywords beside `$ref` {reference:?}"))
    }

    fn alternatives(&mut self, all: Vec<Shared<'s>>, exclude: bool) -> Result<Shared<'s>, String> {
        if exclude {
            self.compare((all.len() as u64).saturating_mul(all.len() as u64))?;
        }
        Ok(Shape::new(Kind::Alternatives { all, exclude }))
    }

    fn object(
        &mut self,
        properties: BTreeMap<&'s str, Shared<'s>>,
        patterns: BTreeMap<&'s str, Shared<'s>>,
        rest: Option<Shared<'s>>,
    ) -> Result<Shared<'s>, String> {
        // The library looks at all later properties at each.
        let names = properties.len() as u64;
        self.compare(names.saturating_mul(names))?;
        let count = patterns.len() as u64;
        self.compare(count.saturating_mul(count).saturating_mul(OF_PATTERNS))?;
        Ok(Shape::new(Kind::Object { properties, patterns, rest }))
    }

    fn compare(&mut self, comparisons: u64) -> Result<(), String> {
        self.taken.comparisons = self.taken.comparisons.saturating_add(comparisons);
        if self.taken.comparisons > MOST_COMPARISONS { Err(too_large()) } else { Ok(()) }
    }

    fn step(&mut self) -> Result<(), String> {
        self.taken.steps += 1;
        if self.taken.steps > MOST_STEPS { Err(too_large()) } else { Ok(()) }
    }

    fn keep(&mut self, shape: &Shape) -> Result<(), String> {
        self.taken.parts = self.taken.parts.saturating_add(shape.parts);
        if self.taken.parts > MOST_PARTS { Err(too_large()) } else { Ok(()) }
    }
}

/// The parts of a schema with these parts.
fn sum<'a, 's: 'a>(shapes: impl Iterator<Item = &'a Shared<'s>>) -> u64 {
    shapes.fold(1, |sum, shape| sum.saturating_add(shape.parts))
}

/// The shape of a value in `const` or `enum`.
fn constant<'s>(value: &'s Value) -> Shared<'s> {
    match value {
        Value::Array(items) => {
            Shape::new(Kind::Array { first: items.iter().map(constant).collect(), rest: Some(Shape::value()) })
        }
        Value::Object(fields) => {
            let properties = fields.iter().map(|(name, value)| (name.as_str(), constant(value))).collect();
            Shape::new(Kind::Object { properties, patterns: BTreeMap::new(), rest: Some(Shape::value()) })
        }
        _ => Shape::value(),
    }
}

fn too_large() -> String {
    "its parts are too many once they are combined".into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_would_grow_too_large_is_refused() {
        let names =
            |from: usize, count: usize| (from..from + count).map(|at| json!(format!("{at}"))).collect::<Vec<_>>();
        let alternatives = |keyword: &str, count| json!({keyword: names(0, count).into_iter().map(|at| json!({"const": at})).collect::<Vec<_>>()});
        let tree = json!({"properties": {"l": {"$ref": "#"}, "r": {"$ref": "#"}}});
        let patterns: Map<String, Value> = (0..30).map(|at| (format!("^{at}a"), json!({}))).collect();
        for (what, large) in [
            ("copies", json!({"enum": names(0, 3000), "oneOf": vec![json!(true); 3000]})),
            (
                "copies of properties",
                json!({"allOf": [
                    {"properties": {"a": {"oneOf": vec![json!(true); 1000]}}},
                    {"properties": {"a": {"enum": names(0, 1000)}}},
                ]}),
            ),
            ("products", json!({"allOf": vec![alternatives("anyOf", 40); 4]})),
            ("comparisons", alternatives("oneOf", 9000)),
            (
                "comparisons, again",
                json!({"allOf": [alternatives("oneOf", 3000), {"oneOf": [true]}, {"oneOf": [true]},
                                                    {"oneOf": [true]}, {"oneOf": [true]}, {"oneOf": [true]}, {"oneOf": [true]},
                                                    {"oneOf": [true]}, {"oneOf": [true]}]}),
            ),
            ("patterns", json!({"allOf": vec![json!({"type": "object", "patternProperties": patterns}); 9]})),
            (
                "recursion",
                json!({"$defs": {"a": tree}, "allOf": [{"$ref": "#/$defs/a"}, {"properties": {"l": {"$ref": "#/$defs/a"}}}]}),
            ),
        ] {
            assert!(check(&large, &mut Taken::default()).is_err(), "{what}");
        }
    }

    #[test]
    fn large_schemas_of_the_usual_kinds_are_not() {
        let object = |from: usize| {
            let properties: Map<String, Value> = (from..from + 200)
                .map(|at| (format!("p{at}"), json!({"type": "string", "enum": ["a", "b", "c", at.to_string()]})))
                .collect();
            json!({"type": "object", "properties": properties})
        };
        for usual in [
            json!({"type": "string", "enum": (0..5000).map(|at| at.to_string()).collect::<Vec<_>>()}),
            json!({"allOf": [object(0), object(100), object(1000)]}),
            json!({"anyOf": (0..20).map(|at| object(at * 7)).collect::<Vec<_>>()}),
            json!({"$defs": {"node": {"type": "object", "properties": {"next": {"$ref": "#/$defs/node"}}}},
                   "type": "array", "items": {"$ref": "#/$defs/node"}}),
        ] {
            assert_eq!(check(&usual, &mut Taken::default()), Ok(()));
        }
    }
}
