//! What each keyword asks of a value.

use super::check::Check;
use super::error::MAX_ERRORS;
use super::keyword::{Keyword, Members, NodeId};
use super::leaf::{Leaf, size};
use super::steps::{Checked, Steps};
use super::unique::is_unique;
use serde_json::{Map, Value};
use std::rc::Rc;

// Functions that `keyword` calls are not inlined: it recurs, and a frame of its own would have room for all of theirs.
impl Check<'_> {
    /// Whether a keyword allows a value. Its errors are described if errors are.
    pub(super) fn keyword(&mut self, keyword: &Keyword, value: &Value) -> Checked<bool> {
        match (keyword, value) {
            (Keyword::Leaf(leaf), _) => self.leaf(leaf, value),
            (Keyword::Pattern(pattern), Value::String(text)) => {
                let found = pattern.is_match(text, &mut self.steps)?;
                Ok(found || self.wrong(|| format!("{value} does not match \"{}\"", pattern.text())))
            }
            (Keyword::UniqueItems, Value::Array(items)) => {
                self.steps.take(size(value))?;
                Ok(is_unique(items) || self.wrong(|| format!("{value} has non-unique elements")))
            }
            (Keyword::Members(members), Value::Object(map)) => self.members(members, map),
            (Keyword::Names(node), Value::Object(map)) => self.names(*node, map),
            (Keyword::Prefix(nodes), Value::Array(items)) => {
                self.items(items.iter().zip(nodes).enumerate().map(|(place, (item, node))| (place, item, *node)))
            }
            (Keyword::Items { skip, item: node }, Value::Array(items)) => {
                self.items(items.iter().enumerate().skip(*skip).map(|(place, item)| (place, item, *node)))
            }
            (Keyword::Contains { item, min, max }, Value::Array(items)) => {
                let count = self.count(items.iter().map(|value| (*item, value)))?;
                let fits = (*min..=*max).contains(&count);
                Ok(fits || self.wrong(|| format!("None of {value} are valid under the given schema")))
            }
            (Keyword::Dependent(schemas) | Keyword::Dependencies(schemas), Value::Object(map)) => {
                self.steps.take(Steps::PART * schemas.len() as u64)?;
                self.each(schemas.iter().filter(|(name, _)| map.contains_key(name)).map(|(_, node)| *node), value)
            }
            (Keyword::AllOf(nodes), _) => self.each(nodes.iter().copied(), value),
            (Keyword::AnyOf(nodes), _) => self.any_of(nodes, value),
            (Keyword::OneOf(nodes), _) => self.one_of(nodes, value),
            (Keyword::Not(node, text), _) => {
                let allowed = !self.is_allowed(*node, value)?;
                Ok(allowed || self.wrong(|| format!("{text} is not allowed for {value}")))
            }
            (Keyword::If { condition, then, otherwise }, _) => {
                let chosen = if self.is_allowed(*condition, value)? { then } else { otherwise };
                self.each(chosen.iter().copied(), value)
            }
            (Keyword::UnevaluatedProperties { of, member }, Value::Object(map)) => {
                self.unevaluated_members(*of, *member, value, map)
            }
            (Keyword::UnevaluatedItems { of, item }, Value::Array(items)) => {
                self.unevaluated_items(*of, *item, value, items)
            }
            (Keyword::Ref(node), _) => self.part(*node, value, None),
            _ => Ok(true),
        }
    }

    #[inline(never)]
    fn leaf(&mut self, leaf: &Leaf, value: &Value) -> Checked<bool> {
        self.steps.take(leaf.steps(value))?;
        if !self.describes() {
            return Ok(leaf.validator().is_valid(value));
        }
        let mut allowed = true;
        for error in leaf.validator().iter_errors(value).take(MAX_ERRORS) {
            allowed = self.wrong(|| error.to_string());
        }
        Ok(allowed)
    }

    /// Whether schemas allow the same value.
    #[inline(never)]
    fn each(&mut self, nodes: impl Iterator<Item = NodeId>, value: &Value) -> Checked<bool> {
        let mut allowed = true;
        for node in nodes {
            allowed &= self.part(node, value, None)?;
            if !allowed && self.is_decided() {
                break;
            }
        }
        Ok(allowed)
    }

    #[inline(never)]
    fn members(&mut self, members: &Members, map: &Map<String, Value>) -> Checked<bool> {
        let (mut allowed, mut unexpected) = (true, Vec::new());
        for (name, value) in map {
            self.steps.take(Steps::PART + name.len() as u64)?;
            let at = || name.replace('~', "~0").replace('/', "~1");
            let named = members.named.get(name).copied();
            let mut is_known = named.is_some();
            if let Some(node) = named {
                allowed &= self.part(node, value, Some(&at))?;
            }
            for (pattern, node) in &members.patterns {
                if pattern.is_match(name, &mut self.steps)? {
                    is_known = true;
                    allowed &= self.part(*node, value, Some(&at))?;
                }
            }
            match members.other.filter(|_| !is_known) {
                Some(node) if self.allows_nothing(node) => unexpected.push(name.clone()),
                Some(node) => allowed &= self.part(node, value, Some(&at))?,
                None => {}
            }
            if (!allowed || !unexpected.is_empty()) && self.is_decided() {
                break;
            }
        }
        Ok((unexpected.is_empty() || self.unexpected("Additional properties", &unexpected)) && allowed)
    }

    #[inline(never)]
    fn names(&mut self, node: NodeId, map: &Map<String, Value>) -> Checked<bool> {
        let mut allowed = true;
        for name in map.keys() {
            self.steps.take(Steps::PART + name.len() as u64)?;
            let name = Rc::new(Value::String(name.clone()));
            self.names.push(name.clone());
            allowed &= self.part(node, &name, None)?;
            if !allowed && self.is_decided() {
                break;
            }
        }
        Ok(allowed)
    }

    #[inline(never)]
    fn items<'i>(&mut self, items: impl Iterator<Item = (usize, &'i Value, NodeId)>) -> Checked<bool> {
        let mut allowed = true;
        for (place, item, node) in items {
            allowed &= self.part(node, item, Some(&|| place.to_string()))?;
            if !allowed && self.is_decided() {
                break;
            }
        }
        Ok(allowed)
    }

    /// The number of these schemas that allow their value.
    #[inline(never)]
    pub(super) fn count<'v>(&mut self, pairs: impl Iterator<Item = (NodeId, &'v Value)>) -> Checked<u64> {
        let mut count = 0;
        for (node, value) in pairs {
            count += u64::from(self.is_allowed(node, value)?);
        }
        Ok(count)
    }

    #[inline(never)]
    fn any_of(&mut self, nodes: &[NodeId], value: &Value) -> Checked<bool> {
        for node in nodes {
            if self.is_allowed(*node, value)? {
                return Ok(true);
            }
        }
        Ok(self.wrong(|| format!("{value} is not valid under any of the schemas listed in the 'anyOf' keyword")))
    }

    #[inline(never)]
    fn one_of(&mut self, nodes: &[NodeId], value: &Value) -> Checked<bool> {
        let what = match self.count(nodes.iter().map(|node| (*node, value)))? {
            0 => "not valid under any",
            1 => return Ok(true),
            _ => "valid under more than one",
        };
        Ok(self.wrong(|| format!("{value} is {what} of the schemas listed in the 'oneOf' keyword")))
    }

    #[inline(never)]
    pub(super) fn unexpected(&mut self, what: &str, unexpected: &[String]) -> bool {
        let were = if unexpected.len() == 1 { "was" } else { "were" };
        self.wrong(|| format!("{what} are not allowed ('{}' {were} unexpected)", unexpected.join("', '")))
    }
}
