//! Which parts of a value the keywords of a schema have evaluated, for `unevaluatedProperties` and `unevaluatedItems`.

use super::check::Check;
use super::keyword::{Keyword, NodeId};
use super::steps::{Checked, Steps};
use serde_json::{Map, Value};
use std::collections::HashSet;

// Functions that `keyword` calls are not inlined: it recurs, and a frame of its own would have room for all of theirs.
impl Check<'_> {
    /// Whether a schema allows the members that the schema `of` does not evaluate.
    #[inline(never)]
    pub(super) fn unevaluated_members(
        &mut self,
        of: NodeId,
        member: NodeId,
        value: &Value,
        map: &Map<String, Value>,
    ) -> Checked<bool> {
        let evaluated = self.evaluated_members(of, value, map)?;
        self.steps.take(Steps::PART * map.len() as u64)?;
        let mut unexpected = Vec::new();
        for (name, value) in map.iter().filter(|(name, _)| !evaluated.contains(name.as_str())) {
            if !self.is_allowed(member, value)? {
                if !self.describes() {
                    return Ok(false);
                }
                unexpected.push(name.clone());
            }
        }
        Ok(unexpected.is_empty() || self.unexpected("Unevaluated properties", &unexpected))
    }

    /// Whether a schema allows the items that the schema `of` does not evaluate.
    #[inline(never)]
    pub(super) fn unevaluated_items(
        &mut self,
        of: NodeId,
        item: NodeId,
        value: &Value,
        items: &[Value],
    ) -> Checked<bool> {
        let evaluated = self.evaluated_items(of, value, items)?;
        let mut unexpected = Vec::new();
        for (value, _) in items.iter().zip(evaluated).filter(|(_, is_evaluated)| !is_evaluated) {
            if !self.is_allowed(item, value)? {
                if !self.describes() {
                    return Ok(false);
                }
                unexpected.push(value.to_string());
            }
        }
        Ok(unexpected.is_empty() || self.unexpected("Unevaluated items", &unexpected))
    }

    /// The names of the members that the schema `of` evaluates, other than by its own `unevaluatedProperties`.
    fn evaluated_members<'v>(
        &mut self,
        of: NodeId,
        value: &Value,
        map: &'v Map<String, Value>,
    ) -> Checked<HashSet<&'v str>> {
        let mut evaluated = HashSet::new();
        for node in self.evaluating(of, value)? {
            for keyword in self.keywords(node) {
                match keyword {
                    Keyword::Members(members) => {
                        for name in map.keys() {
                            self.steps.take(Steps::PART + name.len() as u64)?;
                            let mut is_known = members.other.is_some() || members.named.contains_key(name);
                            for (pattern, _) in &members.patterns {
                                is_known = is_known || pattern.is_match(name, &mut self.steps)?;
                            }
                            if is_known {
                                evaluated.insert(name.as_str());
                            }
                        }
                    }
                    Keyword::UnevaluatedProperties { member, .. } if node != of => {
                        self.steps.take(Steps::PART * map.len() as u64)?;
                        for (name, value) in map {
                            if !evaluated.contains(name.as_str()) && self.is_allowed(*member, value)? {
                                evaluated.insert(name.as_str());
                            }
                        }
                    }
                    _ => {}
                }
            }
        }
        Ok(evaluated)
    }

    /// For each item, whether the schema `of` evaluates it, other than by its own `unevaluatedItems`.
    fn evaluated_items(&mut self, of: NodeId, value: &Value, items: &[Value]) -> Checked<Vec<bool>> {
        let mut evaluated = vec![false; items.len()];
        for node in self.evaluating(of, value)? {
            for keyword in self.keywords(node) {
                self.steps.take(items.len() as u64)?;
                match keyword {
                    Keyword::Items { .. } => evaluated.fill(true),
                    Keyword::Prefix(nodes) => evaluated.iter_mut().take(nodes.len()).for_each(|it| *it = true),
                    Keyword::Contains { item: node, .. } => self.add_allowed(*node, items, &mut evaluated)?,
                    Keyword::UnevaluatedItems { item, .. } if node != of => {
                        self.add_allowed(*item, items, &mut evaluated)?;
                    }
                    _ => {}
                }
            }
        }
        Ok(evaluated)
    }

    fn add_allowed(&mut self, node: NodeId, items: &[Value], evaluated: &mut [bool]) -> Checked<()> {
        for (item, is_evaluated) in items.iter().zip(evaluated) {
            *is_evaluated = *is_evaluated || self.is_allowed(node, item)?;
        }
        Ok(())
    }

    /// The schema `of`, and the schemas that it applies to the same value and that allow it.
    fn evaluating(&mut self, of: NodeId, value: &Value) -> Checked<Vec<NodeId>> {
        let (mut found, mut seen, mut next) = (Vec::new(), HashSet::new(), vec![of]);
        while let Some(node) = next.pop() {
            self.steps.take(Steps::VISIT)?;
            if !seen.insert(node) {
                continue;
            }
            found.push(node);
            for keyword in self.keywords(node) {
                match keyword {
                    Keyword::Ref(node) => next.push(*node),
                    Keyword::AllOf(nodes) | Keyword::AnyOf(nodes) => next.extend(self.allowing(nodes, value)?),
                    Keyword::OneOf(nodes) => {
                        let allowing = self.allowing(nodes, value)?;
                        next.extend(allowing.iter().filter(|_| allowing.len() == 1));
                    }
                    Keyword::If { condition, then, otherwise } => {
                        let allowed = self.is_allowed(*condition, value)?;
                        next.extend(allowed.then_some(*condition));
                        next.extend(if allowed { then } else { otherwise });
                    }
                    Keyword::Dependent(schemas) => {
                        self.steps.take(Steps::PART * schemas.len() as u64)?;
                        let has = |name: &String| value.as_object().is_some_and(|map| map.contains_key(name));
                        next.extend(schemas.iter().filter(|(name, _)| has(name)).map(|(_, node)| *node));
                    }
                    _ => {}
                }
            }
        }
        Ok(found)
    }

    fn allowing(&mut self, nodes: &[NodeId], value: &Value) -> Checked<Vec<NodeId>> {
        let mut allowing = Vec::new();
        for node in nodes {
            if self.is_allowed(*node, value)? {
                allowing.push(*node);
            }
        }
        Ok(allowing)
    }
}
