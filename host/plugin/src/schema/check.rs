//! A check of a value.

use super::error::{MAX_ERRORS, Refusal, shortened};
use super::keyword::{Keyword, Node, NodeId};
use super::steps::{Checked, Extent, Steps, TooManySteps};
use serde_json::Value;
use std::collections::{HashMap, HashSet};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// The deepest nesting of schemas in a check: each takes some hundred bytes of the thread's stack.
const MAX_DEPTH: usize = 1000;

/// A check of a value. It first finds whether the value is allowed, and then, if it is not, describes why.
pub(super) struct Check<'s> {
    nodes: &'s [Node],
    extent: Extent,
    pub(super) steps: Steps,
    depth: usize,
    /// Whether a schema allows a value, by the schema's number and the value's address. A pair whose check is under way
    /// counts as allowed, so that a schema that refers to itself ends.
    verdicts: HashMap<(NodeId, usize), bool>,
    /// Names of members as values, kept so that no two have one address.
    pub(super) names: Vec<Rc<Value>>,
    /// While errors are described.
    report: Option<Report>,
}

#[derive(Default)]
struct Report {
    errors: Vec<String>,
    /// Where the value is, from the outside in.
    path: Vec<String>,
    /// Pairs that have been described.
    seen: HashSet<(NodeId, usize)>,
}

impl<'s> Check<'s> {
    pub(super) fn new(nodes: &'s [Node], extent: Extent) -> Self {
        let (verdicts, names) = (HashMap::new(), Vec::new());
        Self { nodes, extent, steps: Steps::of_check(extent), depth: 0, verdicts, names, report: None }
    }

    /// The same check, which ends once nobody waits for it.
    pub(super) fn until(self, is_given_up: Arc<AtomicBool>) -> Self {
        Self { steps: self.steps.until(is_given_up), ..self }
    }

    /// Checks `value` with the first schema.
    pub(super) fn run(mut self, value: &Value) -> Result<(), Refusal> {
        match self.errors(value) {
            Ok(None) => Ok(()),
            Ok(Some(errors)) => Err(Refusal::Wrong(errors)),
            Err(TooManySteps) => Err(Refusal::TooManySteps),
        }
    }

    fn errors(&mut self, value: &Value) -> Checked<Option<Vec<String>>> {
        if self.is_allowed(0, value)? {
            return Ok(None);
        }
        self.report = Some(Report::default());
        self.steps.describe(self.extent);
        let described = self.describe(0, value);
        // The value is wrong even if there are no steps left to say all that is wrong with it. A full check may say more
        // than a short one.
        if self.extent == Extent::Short {
            described?;
        }
        let errors = self.report.take().map(|report| report.errors).unwrap_or_default();
        let none = || vec!["the schema does not allow them".to_owned()];
        Ok(Some(if errors.is_empty() { none() } else { errors }))
    }

    /// The keywords of a schema.
    pub(super) fn keywords(&self, node: NodeId) -> &'s [Keyword] {
        match &self.nodes[node] {
            Node::Always(_) => &[],
            Node::All(keywords) => keywords,
        }
    }

    /// Whether a schema allows a value.
    pub(super) fn is_allowed(&mut self, node: NodeId, value: &Value) -> Checked<bool> {
        self.steps.take(Steps::VISIT)?;
        if let Node::Always(allowed) = self.nodes[node] {
            return Ok(allowed);
        }
        let pair = (node, std::ptr::from_ref(value) as usize);
        if let Some(allowed) = self.verdicts.get(&pair) {
            return Ok(*allowed);
        }
        self.verdicts.insert(pair, true);
        let report = self.report.take();
        let allowed = self.each_allows(node, value);
        // The errors that were found before stay, also if there are no steps left.
        self.report = report;
        let allowed = allowed?;
        self.verdicts.insert(pair, allowed);
        Ok(allowed)
    }

    /// Describes the errors of a value that a schema does not allow.
    fn describe(&mut self, node: NodeId, value: &Value) -> Checked<()> {
        if self.is_allowed(node, value)? {
            return Ok(());
        }
        let pair = (node, std::ptr::from_ref(value) as usize);
        if !self.report.as_mut().is_some_and(|report| report.seen.insert(pair)) {
            return Ok(());
        }
        if let Node::Always(_) = self.nodes[node] {
            self.wrong(|| format!("False schema does not allow {value}"));
        }
        self.each_allows(node, value)?;
        Ok(())
    }

    fn each_allows(&mut self, node: NodeId, value: &Value) -> Checked<bool> {
        self.go_deeper()?;
        let mut allowed = true;
        for keyword in self.keywords(node) {
            allowed &= self.keyword(keyword, value)?;
            if !allowed && self.is_decided() {
                break;
            }
        }
        self.depth -= 1;
        Ok(allowed)
    }

    /// Counts one more level of recursion.
    fn go_deeper(&mut self) -> Checked<()> {
        self.depth += 1;
        if self.depth > MAX_DEPTH { Err(TooManySteps) } else { Ok(()) }
    }

    /// Whether a schema is `false`.
    pub(super) fn allows_nothing(&self, node: NodeId) -> bool {
        matches!(self.nodes[node], Node::Always(false))
    }

    /// Whether errors are described.
    pub(super) fn describes(&self) -> bool {
        self.report.is_some()
    }

    /// Whether one error is enough.
    pub(super) fn is_decided(&self) -> bool {
        self.report.as_ref().is_none_or(|report| report.errors.len() >= MAX_ERRORS)
    }

    /// An error, described if errors are.
    pub(super) fn wrong(&mut self, what: impl FnOnce() -> String) -> bool {
        if let Some(report) = self.report.as_mut().filter(|report| report.errors.len() < MAX_ERRORS) {
            let (what, path) = (shortened(&what()), shortened(&report.path.join("/")));
            report.errors.push(if path.is_empty() { what } else { format!("{path}: {what}") });
        }
        false
    }

    /// Whether a schema allows the same value, or the part of it that is at `at`. Its errors are described if errors are.
    pub(super) fn part(&mut self, node: NodeId, value: &Value, at: Option<&dyn Fn() -> String>) -> Checked<bool> {
        if self.report.is_none() {
            return self.is_allowed(node, value);
        }
        let step = at.map(|at| at());
        let deeper = step.is_some();
        if let Some(report) = self.report.as_mut() {
            report.path.extend(step);
        }
        self.describe(node, value)?;
        if let Some(report) = self.report.as_mut().filter(|_| deeper) {
            report.path.pop();
        }
        self.is_allowed(node, value)
    }
}
