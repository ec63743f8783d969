//! Running cases.

use super::read::{Case, CaseFile};
use super::table::FakeChatTable;
use crate::call::Call;
use crate::endpoints::Endpoints;
use crate::error::{CaseError, HarnessError};
use crate::expectation::Mismatch;
use crate::harness::Harness;
use crate::plugins::Plugins;
use crate::report::Report;
use gavel_data::{Evaluation, Shown};
use gavel_plugin::PluginSpec;
use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

/// What came of all cases of a file.
#[derive(Debug)]
#[must_use = "cases that failed are no error"]
pub struct CaseResults {
    /// The plugin's name.
    pub plugin: String,
    /// The file.
    pub path: PathBuf,
    /// Whether groups were judged: the cases of one share a call, and each has
    /// all that it used.
    pub judged: bool,
    /// Its cases, in order.
    pub cases: Vec<CaseResult>,
}

/// What came of a case.
#[derive(Debug, Clone)]
pub struct CaseResult {
    /// The case.
    pub case: Case,
    /// The call.
    pub evaluation: Evaluation,
    /// What is not as expected; nothing where the case passes.
    pub mismatches: Vec<Mismatch>,
}

/// Runs cases one after another: what each used is then its own. The plugin is
/// `spec`, with the parameters of a case in place of its own where the case has
/// some. The endpoints of `chat` reply what stands there, from the first reply
/// in each case, or what the case says.
///
/// # Errors
/// The plugin does not load, or is none that scores; a case has replies of an
/// endpoint that is not granted.
pub fn run(
    harness: &Harness,
    spec: &PluginSpec,
    chat: &BTreeMap<String, FakeChatTable>,
    file: &CaseFile,
) -> Result<CaseResults, HarnessError> {
    let line = |case: &Case, what: String| CaseError::Line { path: file.path.clone(), line: case.line, what };
    for case in &file.cases {
        if let Some(name) = case.replies.keys().find(|name| !spec.grants.chat.contains(name)) {
            let granted = if spec.grants.chat.is_empty() { "none".to_owned() } else { spec.grants.chat.join(", ") };
            let what = format!(
                "`replies` names `{name}`, which is not granted; granted are: {granted}\nhint: correct the name, or add it to `grant = {{ chat = […] }}` of the test"
            );
            return Err(line(case, what).into());
        }
    }
    let endpoints = Endpoints::new(harness, chat, file.cases.iter().flat_map(|case| case.replies.keys()));
    let place = |case: &Case| format!("{}, line {}", file.path.display(), case.line);
    let plugins = Plugins::load(harness, spec, file.cases.iter().map(|case| (case.params.as_ref(), place(case))))?;
    let judged = plugins.any().judges();
    let mut cases = Vec::with_capacity(file.cases.len());
    for group in file.groups() {
        let first = &group[0];
        if judged {
            if let Some(odd) = group.iter().find(|case| case.params != first.params) {
                let what = format!("its `params` are not those of line {}, and a group is judged at once", first.line);
                return Err(line(odd, what).into());
            }
            endpoints.restart(&first.replies);
            let samples = group.iter().map(Case::input);
            let calls = plugins.of(first.params.as_ref()).judge_seeded(samples, first.seed);
            cases.extend(group.iter().zip(calls).map(|(case, call)| CaseResult::new(case, call)));
        } else {
            for case in group {
                endpoints.restart(&case.replies);
                let call = plugins.of(case.params.as_ref()).score_seeded(case.input(), case.seed);
                cases.push(CaseResult::new(case, call));
            }
        }
    }
    Ok(CaseResults { plugin: spec.name.clone(), path: file.path.clone(), judged, cases })
}

impl CaseResults {
    /// The cases that did not come out as expected.
    pub fn failed(&self) -> impl Iterator<Item = &CaseResult> {
        self.cases.iter().filter(|case| !case.passed())
    }

    /// Every case came out as expected.
    #[track_caller]
    #[allow(clippy::panic, reason = "an assertion of a test")]
    pub fn assert_pass(&self) {
        let failed: Vec<String> = self.failed().map(|case| case.report(&self.path)).collect();
        if !failed.is_empty() {
            let (count, all) = (failed.len(), self.cases.len());
            panic!("plugin `{}`: {count} of {all} cases failed\n\n{}", self.plugin, failed.join("\n"));
        }
    }
}

impl CaseResult {
    fn new(case: &Case, call: Call) -> Self {
        let evaluation = call.evaluation().clone();
        let mismatches = case.expected.as_ref().map(|expected| expected.check(&evaluation)).unwrap_or_default();
        Self { case: case.clone(), evaluation, mismatches }
    }

    /// Whether everything came as expected.
    pub fn passed(&self) -> bool {
        self.mismatches.is_empty()
    }

    /// All that is known of it: where it stands in the file `path`, what was
    /// expected, what came.
    pub fn report(&self, path: &Path) -> String {
        let mut text = format!("{} ({}:{})\n", Shown(&self.case.name), path.display(), self.case.line);
        self.mismatches.iter().for_each(|mismatch| text.push_str(&format!("  {mismatch}\n")));
        text + &self.to_string()
    }
}

impl fmt::Display for CaseResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Report { sample: &self.case.sample, evaluation: &self.evaluation }.fmt(f)
    }
}
