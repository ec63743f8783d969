//! A schema as it is checked.

use super::leaf::Leaf;
use super::pattern::Pattern;
use std::collections::HashMap;
use std::sync::Arc;

/// The number of a schema among all within a schema.
pub(super) type NodeId = usize;

/// A schema within a schema.
pub(super) enum Node {
    /// A boolean: it allows everything or nothing.
    Always(bool),
    /// It allows what each of these allows.
    All(Vec<Keyword>),
}

/// A keyword, with the keywords beside it that it depends on. Each allows values of other types than its own.
pub(super) enum Keyword {
    /// Keywords that apply no schema.
    Leaf(Arc<Leaf>),
    /// `pattern`
    Pattern(Arc<Pattern>),
    /// `uniqueItems`
    UniqueItems,
    /// `properties`, `patternProperties` and `additionalProperties`
    Members(Members),
    /// `propertyNames`
    Names(NodeId),
    /// `prefixItems`, or `items` that is an array
    Prefix(Vec<NodeId>),
    /// `items` or `additionalItems`: the items after the first `skip`.
    Items { skip: usize, item: NodeId },
    /// `contains`, `minContains` and `maxContains`
    Contains { item: NodeId, min: u64, max: u64 },
    /// `dependentSchemas`: a schema for objects that have a member.
    Dependent(Vec<(String, NodeId)>),
    /// The schemas of `dependencies`, which evaluate nothing for `unevaluatedProperties`.
    Dependencies(Vec<(String, NodeId)>),
    /// `allOf`
    AllOf(Vec<NodeId>),
    /// `anyOf`
    AnyOf(Vec<NodeId>),
    /// `oneOf`
    OneOf(Vec<NodeId>),
    /// `not`, and its start as text
    Not(NodeId, String),
    /// `if`, `then` and `else`
    If { condition: NodeId, then: Option<NodeId>, otherwise: Option<NodeId> },
    /// `unevaluatedProperties` of the schema `of`
    UnevaluatedProperties { of: NodeId, member: NodeId },
    /// `unevaluatedItems` of the schema `of`
    UnevaluatedItems { of: NodeId, item: NodeId },
    /// `$ref`, `$dynamicRef` or `$recursiveRef`
    Ref(NodeId),
}

/// The schemas of an object's members.
#[derive(Default)]
pub(super) struct Members {
    pub(super) named: HashMap<String, NodeId>,
    pub(super) patterns: Vec<(Arc<Pattern>, NodeId)>,
    /// For members that are neither named nor fit a pattern.
    pub(super) other: Option<NodeId>,
}
