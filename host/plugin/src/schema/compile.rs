//! Compiles the schemas within a schema.

use super::error::{ERROR_CHARS, MAX_SUBSCHEMAS, SchemaError};
use super::keyword::{Keyword, Members, Node, NodeId};
use super::leaf::{self, Leaf};
use super::pattern::Pattern;
use super::room::Room;
use jsonschema::Draft;
use referencing::Resolver;
use serde_json::{Map, Value};
use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;

type Compiled<T> = Result<T, SchemaError>;
/// Makes a keyword of a list of schemas.
type ListKeyword = fn(Vec<NodeId>) -> Keyword;

/// Compiles the schemas that can be reached from a schema, one after the other: neither deep nesting nor a long chain of
/// references takes stack.
pub(super) struct Compiler<'r> {
    room: &'r mut Room,
    /// The numbers of the schemas.
    ids: HashMap<Identity, NodeId>,
    /// Schemas that have a number and are not compiled yet.
    waiting: VecDeque<Place<'r>>,
    /// Texts of dynamic scopes, and their numbers.
    scopes: HashMap<String, usize>,
    leaves: HashMap<String, Arc<Leaf>>,
    patterns: HashMap<String, Arc<Pattern>>,
}

/// What tells schemas apart: the address of its JSON, its draft, and where its dynamic references lead.
type Identity = (usize, Draft, usize);

/// A schema, and how its references are resolved.
struct Place<'r> {
    schema: &'r Value,
    resolver: Resolver<'r>,
    draft: Draft,
}

fn wrong(error: referencing::Error) -> SchemaError {
    SchemaError::not_a_schema(error)
}

impl<'r> Compiler<'r> {
    /// Takes the schemas' part of `room`.
    pub(super) fn new(room: &'r mut Room) -> Self {
        let (ids, waiting, scopes) = (HashMap::new(), VecDeque::new(), HashMap::new());
        Self { room, ids, waiting, scopes, leaves: HashMap::new(), patterns: HashMap::new() }
    }

    /// Compiles a schema and those that it refers to. It is the first.
    pub(super) fn compile(mut self, schema: &'r Value, resolver: Resolver<'r>, draft: Draft) -> Compiled<Vec<Node>> {
        self.id(Place { schema, resolver, draft })?;
        let mut nodes = Vec::new();
        while let Some(place) = self.waiting.pop_front() {
            let node = self.node(nodes.len(), &place)?;
            nodes.push(node);
        }
        Ok(nodes)
    }

    /// The number of a schema.
    fn id(&mut self, place: Place<'r>) -> Compiled<NodeId> {
        let identity = (std::ptr::from_ref(place.schema) as usize, place.draft, self.scope(&place.resolver)?);
        let next = self.ids.len();
        if let Some(id) = self.ids.get(&identity) {
            return Ok(*id);
        }
        if next == MAX_SUBSCHEMAS {
            return Err(SchemaError::TooManySubschemas);
        }
        self.room.take_subschema()?;
        self.ids.insert(identity, next);
        self.waiting.push_back(place);
        Ok(next)
    }

    /// The number of a dynamic scope: the resources that a dynamic reference looks in, each once.
    fn scope(&mut self, resolver: &Resolver<'r>) -> Compiled<usize> {
        let (base, scope) = (resolver.base_uri(), resolver.dynamic_scope());
        let mut outer: Vec<&str> = scope.iter().map(|uri| uri.as_str()).collect();
        outer.reverse();
        outer.push(base.as_str());
        // A chain of resources makes a scope of all of them for each schema that it leads to.
        self.room.take_scope(outer.iter().map(|uri| uri.len()).sum())?;
        let mut known = HashSet::new();
        outer.retain(|uri| known.insert(*uri));
        let text = format!("{} {base}", outer.join(" "));
        let next = self.scopes.len();
        Ok(*self.scopes.entry(text).or_insert(next))
    }

    fn node(&mut self, id: NodeId, place: &Place<'r>) -> Compiled<Node> {
        let map = match place.schema {
            Value::Bool(allowed) => return Ok(Node::Always(*allowed)),
            Value::Object(map) => map,
            _ => return Err(SchemaError::not_a_schema(format!("{} is not an object or a boolean", place.schema))),
        };
        // The crate panics at it.
        if place.draft == Draft::Unknown {
            return Err(SchemaError::NotASchema("`$schema` names no draft of JSON Schema".to_owned()));
        }
        let mut keywords = Vec::new();
        // Up to draft 7, `$ref` stands alone.
        if place.draft >= Draft::Draft201909 || !map.contains_key("$ref") {
            self.values(map, place, &mut keywords)?;
            self.members(map, place, &mut keywords)?;
            self.items(map, place, &mut keywords)?;
            self.applied(map, place, &mut keywords)?;
            if place.draft >= Draft::Draft201909 {
                self.unevaluated(id, map, place, &mut keywords)?;
            }
        }
        self.references(map, place, &mut keywords)?;
        Ok(Node::All(keywords))
    }

    /// The keywords that apply no schema.
    fn values(&mut self, map: &'r Map<String, Value>, place: &Place<'r>, keywords: &mut Vec<Keyword>) -> Compiled<()> {
        if let Some(leaf) = leaf::keywords_of(map) {
            keywords.push(Keyword::Leaf(self.leaf(leaf, place.draft)?));
        }
        if let Some(options) = map.get("enum") {
            // It means the same in each draft. The oldest compare all of its values with one another first.
            let leaf = Map::from_iter([("enum".to_owned(), options.clone())]);
            keywords.push(Keyword::Leaf(self.leaf(leaf, Draft::Draft202012)?));
        }
        if let Some(pattern) = map.get("pattern") {
            let text = pattern.as_str().ok_or_else(|| not_a("pattern", "a string"))?;
            keywords.push(Keyword::Pattern(self.pattern(text)?));
        }
        if map.get("uniqueItems") == Some(&Value::Bool(true)) {
            keywords.push(Keyword::UniqueItems);
        }
        Ok(())
    }

    fn leaf(&mut self, keywords: Map<String, Value>, draft: Draft) -> Compiled<Arc<Leaf>> {
        let json = Value::Object(keywords.clone()).to_string();
        let (bytes, key) = (json.len(), format!("{draft:?} {json}"));
        if let Some(leaf) = self.leaves.get(&key) {
            return Ok(leaf.clone());
        }
        let leaf = Arc::new(Leaf::new(keywords, bytes, draft).map_err(SchemaError::not_a_schema)?);
        self.leaves.insert(key, leaf.clone());
        Ok(leaf)
    }

    fn pattern(&mut self, text: &str) -> Compiled<Arc<Pattern>> {
        if let Some(pattern) = self.patterns.get(text) {
            return Ok(pattern.clone());
        }
        let pattern = Arc::new(Pattern::new(text)?);
        self.room.take_pattern(pattern.bytes())?;
        self.patterns.insert(text.to_owned(), pattern.clone());
        Ok(pattern)
    }

    fn members(&mut self, map: &'r Map<String, Value>, place: &Place<'r>, keywords: &mut Vec<Keyword>) -> Compiled<()> {
        let mut members = Members::default();
        for (name, schema) in object(map, "properties")? {
            members.named.insert(name.clone(), self.child(schema, place)?);
        }
        for (pattern, schema) in object(map, "patternProperties")? {
            members.patterns.push((self.pattern(pattern)?, self.child(schema, place)?));
        }
        members.other = self.keyword(map, "additionalProperties", place)?;
        if !members.named.is_empty() || !members.patterns.is_empty() || members.other.is_some() {
            keywords.push(Keyword::Members(members));
        }
        if place.draft >= Draft::Draft6 {
            keywords.extend(self.keyword(map, "propertyNames", place)?.map(Keyword::Names));
        }
        Ok(())
    }

    fn items(&mut self, map: &'r Map<String, Value>, place: &Place<'r>, keywords: &mut Vec<Keyword>) -> Compiled<()> {
        let mut skip = 0;
        if place.draft >= Draft::Draft202012 && map.contains_key("prefixItems") {
            let prefix = self.list(map, "prefixItems", place)?;
            skip = prefix.len();
            keywords.push(Keyword::Prefix(prefix));
        }
        if map.get("items").is_some_and(Value::is_array) {
            let prefix = self.list(map, "items", place)?;
            skip = prefix.len();
            keywords.push(Keyword::Prefix(prefix));
            let item = self.keyword(map, "additionalItems", place)?;
            keywords.extend(item.map(|item| Keyword::Items { skip, item }));
        } else {
            let item = self.keyword(map, "items", place)?;
            keywords.extend(item.map(|item| Keyword::Items { skip, item }));
        }
        if place.draft >= Draft::Draft6
            && let Some(item) = self.keyword(map, "contains", place)?
        {
            let has_bounds = place.draft >= Draft::Draft201909;
            let bound = |name: &str| map.get(name).filter(|_| has_bounds).and_then(whole);
            let (min, max) = (bound("minContains").unwrap_or(1), bound("maxContains").unwrap_or(u64::MAX));
            keywords.push(Keyword::Contains { item, min, max });
        }
        Ok(())
    }

    /// The keywords that apply schemas to the same value.
    fn applied(&mut self, map: &'r Map<String, Value>, place: &Place<'r>, keywords: &mut Vec<Keyword>) -> Compiled<()> {
        let dependencies = object(map, "dependencies")?.filter(|(_, schema)| !schema.is_array());
        let dependencies = self.named(dependencies, place)?;
        if !dependencies.is_empty() {
            keywords.push(Keyword::Dependencies(dependencies));
        }
        if place.draft >= Draft::Draft201909 {
            let dependent = self.named(object(map, "dependentSchemas")?, place)?;
            if !dependent.is_empty() {
                keywords.push(Keyword::Dependent(dependent));
            }
        }
        let kinds: [(&str, ListKeyword); 3] =
            [("allOf", Keyword::AllOf), ("anyOf", Keyword::AnyOf), ("oneOf", Keyword::OneOf)];
        for (name, kind) in kinds {
            if map.contains_key(name) {
                keywords.push(kind(self.list(map, name, place)?));
            }
        }
        if let Some(not) = map.get("not") {
            let text = not.to_string().chars().take(ERROR_CHARS).collect();
            keywords.push(Keyword::Not(self.child(not, place)?, text));
        }
        if place.draft >= Draft::Draft7
            && let Some(condition) = self.keyword(map, "if", place)?
        {
            let (then, otherwise) = (self.keyword(map, "then", place)?, self.keyword(map, "else", place)?);
            keywords.push(Keyword::If { condition, then, otherwise });
        }
        Ok(())
    }

    fn unevaluated(
        &mut self,
        of: NodeId,
        map: &'r Map<String, Value>,
        place: &Place<'r>,
        keywords: &mut Vec<Keyword>,
    ) -> Compiled<()> {
        let member = self.keyword(map, "unevaluatedProperties", place)?;
        keywords.extend(member.map(|member| Keyword::UnevaluatedProperties { of, member }));
        let item = self.keyword(map, "unevaluatedItems", place)?;
        keywords.extend(item.map(|item| Keyword::UnevaluatedItems { of, item }));
        Ok(())
    }

    fn references(&mut self, map: &Map<String, Value>, place: &Place<'r>, keywords: &mut Vec<Keyword>) -> Compiled<()> {
        let draft = place.draft;
        for name in ["$ref", "$recursiveRef", "$dynamicRef"] {
            let is_known = match name {
                "$ref" => true,
                "$recursiveRef" => draft == Draft::Draft201909,
                _ => draft >= Draft::Draft202012,
            };
            let Some(reference) = map.get(name).filter(|_| is_known) else { continue };
            let reference = reference.as_str().ok_or_else(|| not_a(name, "a string"))?;
            let found = match name {
                "$recursiveRef" => place.resolver.lookup_recursive_ref(),
                // It refers to the resource that it is in: nothing new.
                _ if reference.is_empty() => continue,
                _ => place.resolver.lookup(reference),
            };
            let (schema, resolver, draft) = found.map_err(wrong)?.into_inner();
            if !std::ptr::eq(schema, place.schema) {
                keywords.push(Keyword::Ref(self.id(Place { schema, resolver, draft })?));
            }
        }
        Ok(())
    }

    /// The number of the schema that a keyword has.
    fn keyword(&mut self, map: &'r Map<String, Value>, name: &str, place: &Place<'r>) -> Compiled<Option<NodeId>> {
        map.get(name).map(|schema| self.child(schema, place)).transpose()
    }

    fn list(&mut self, map: &'r Map<String, Value>, name: &str, place: &Place<'r>) -> Compiled<Vec<NodeId>> {
        let schemas = map.get(name).and_then(Value::as_array).ok_or_else(|| not_a(name, "an array"))?;
        schemas.iter().map(|schema| self.child(schema, place)).collect()
    }

    fn named(
        &mut self,
        schemas: impl Iterator<Item = (&'r String, &'r Value)>,
        place: &Place<'r>,
    ) -> Compiled<Vec<(String, NodeId)>> {
        schemas.map(|(name, schema)| Ok((name.clone(), self.child(schema, place)?))).collect()
    }

    /// The number of a schema within the schema at `place`.
    fn child(&mut self, schema: &'r Value, place: &Place<'r>) -> Compiled<NodeId> {
        let draft = place.draft.detect(schema);
        let resolver = place.resolver.in_subresource(draft.create_resource_ref(schema)).map_err(wrong)?;
        self.id(Place { schema, resolver, draft })
    }
}

/// The members of a keyword's object.
fn object<'r>(
    map: &'r Map<String, Value>,
    name: &str,
) -> Compiled<impl Iterator<Item = (&'r String, &'r Value)> + use<'r>> {
    match map.get(name) {
        None => Ok(None.into_iter().flatten()),
        Some(Value::Object(map)) => Ok(Some(map.iter()).into_iter().flatten()),
        Some(_) => Err(not_a(name, "an object")),
    }
}

/// A whole number that is not negative, which may be written `2.0`.
fn whole(value: &Value) -> Option<u64> {
    let float = || value.as_f64().filter(|it| it.fract() == 0.0 && *it >= 0.0);
    value.as_u64().or_else(|| float().map(|it| it as u64))
}

fn not_a(keyword: &str, what: &str) -> SchemaError {
    SchemaError::NotASchema(format!("`{keyword}` is not {what}"))
}
