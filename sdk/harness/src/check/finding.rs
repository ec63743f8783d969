//! The findings of a check.

use crate::distribution::Distribution;
use crate::plugin::LoadedPlugin;
use gavel_plugin::{Limits, PluginSpec};
use serde::Serialize;
use std::collections::BTreeMap;

/// Characters of an example that are kept.
const EXAMPLE: usize = 160;

/// How bad a finding is for training.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// A policy learns it, or a run is not reproducible.
    High,
    /// A policy may learn it, or samples are lost.
    Medium,
    /// It does no harm.
    Low,
}

impl Severity {
    /// The word that is printed.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::High => "high",
            Self::Medium => "medium",
            Self::Low => "low",
        }
    }
}

/// The kind of a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// A wrong answer scores as high as the right one, or a trick scores higher.
    FalseAccept,
    /// A call failed.
    Failure,
    /// The same input does not give the same verdict.
    NonDeterminism,
    /// A call needs most of what it may use.
    Cost,
    /// A grant that the plugin does not need.
    Grant,
    /// A tool describes a function so that a policy cannot know how to call it.
    Description,
}

impl Kind {
    /// The word that is printed.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::FalseAccept => "false accept",
            Self::Failure => "failure",
            Self::NonDeterminism => "non-determinism",
            Self::Cost => "cost",
            Self::Grant => "grant",
            Self::Description => "description",
        }
    }
}

/// A finding, with the first row that showed it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Finding {
    /// How bad it is for training.
    pub severity: Severity,
    /// Its kind.
    pub kind: Kind,
    /// The mutation of the golden answer; absent if it was not mutated.
    pub mutation: Option<&'static str>,
    /// What happened.
    pub what: String,
    /// How often it occurred.
    pub count: u64,
    /// The place of the row; empty if it is not about a row.
    pub row: String,
    /// The beginning of the response, or of the arguments.
    pub example: String,
}

/// The result of a check.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CheckReport {
    /// The plugin's name.
    pub plugin: String,
    /// The component's name and version.
    pub component: String,
    /// BLAKE3 of the component, in hexadecimal.
    pub hash: String,
    /// Rows that were checked, or sessions of a tool.
    pub rows: usize,
    /// Golden answers by origin: `response`, or the form in which the ground
    /// truth was written.
    pub golden: BTreeMap<String, u64>,
    /// Rows for which no response scored higher than nonsense.
    pub without_golden: Vec<String>,
    /// Golden answers that were mutated.
    pub mutated: usize,
    /// Mutated answers that were scored, or calls of a tool with mutated arguments.
    pub tried: u64,
    /// Mutated golden answers whose score does not depend on the ground truth.
    /// A wrong answer is not a false accept for these.
    pub ignores_truth: u64,
    /// Processor time of the calls of the rows, in microseconds.
    pub cpu_us: Distribution,
    /// The most processor time of a mutated answer, in microseconds.
    pub worst_cpu_us: u64,
    /// The most memory of a call of the rows, in bytes.
    pub peak_memory: u64,
    /// Verdicts that were compared with a repetition.
    pub compared: u64,
    /// Notes that are not findings.
    pub notes: Vec<String>,
    /// The findings, the worst first.
    pub findings: Vec<Finding>,
}

impl CheckReport {
    pub(super) fn of(plugin: &LoadedPlugin, spec: &PluginSpec, rows: usize) -> Self {
        let info = plugin.info();
        Self {
            plugin: spec.name.clone(),
            component: format!("{} {}", info.name, info.version),
            hash: plugin.hash().to_owned(),
            rows,
            golden: BTreeMap::new(),
            without_golden: Vec::new(),
            mutated: 0,
            tried: 0,
            ignores_truth: 0,
            cpu_us: Distribution::default(),
            worst_cpu_us: 0,
            peak_memory: 0,
            compared: 0,
            notes: Vec::new(),
            findings: Vec::new(),
        }
    }
}

/// Collects findings and counts equal ones.
#[derive(Default)]
pub(super) struct Findings(Vec<Finding>);

impl Findings {
    pub(super) fn add(&mut self, finding: Finding) {
        // Findings of two rows that differ only in numbers are equal.
        let same = |other: &&mut Finding| {
            (other.kind, other.mutation) == (finding.kind, finding.mutation)
                && (finding.kind == Kind::FalseAccept || head(&other.what) == head(&finding.what))
        };
        match self.0.iter_mut().find(same) {
            Some(known) => known.count += 1,
            None => {
                let example = finding.example.chars().take(EXAMPLE).collect();
                self.0.push(Finding { example, ..finding });
            }
        }
    }

    /// Calls of ordinary rows that need most of their limits.
    pub(super) fn cost(&mut self, report: &CheckReport, limits: &Limits) {
        let mut cost = |what: String| {
            self.add(Finding {
                severity: Severity::Medium,
                kind: Kind::Cost,
                mutation: None,
                what,
                count: 1,
                row: String::new(),
                example: String::new(),
            });
        };
        let (p99, cpu) = (report.cpu_us.p99, limits.cpu.as_micros() as u64);
        if p99 > cpu / 2 {
            cost(format!("processor time: the 99th percentile of the rows is {} ms of {} ms", p99 / 1000, cpu / 1000));
        }
        let (peak, memory) = (report.peak_memory, limits.memory as u64);
        if peak > memory / 4 * 3 {
            cost(format!("memory: a row needs {} MiB of {} MiB", peak >> 20, memory >> 20));
        }
    }

    pub(super) fn into_list(mut self) -> Vec<Finding> {
        self.0.sort_by_key(|finding| finding.severity);
        self.0
    }
}

/// The text before the first colon: the rest may name the row.
fn head(what: &str) -> &str {
    what.split(':').next().unwrap_or(what)
}
