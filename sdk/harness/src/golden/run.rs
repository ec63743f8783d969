//! Running cases.

use super::read::{Case, CaseFile};
use crate::error::HarnessError;
use crate::expectation::Mismatch;
use crate::harness::Harness;
use crate::plugin::{LoadedPlugin, params_text};
use crate::report::Report;
use gavel_data::Evaluation;
use gavel_plugin::PluginSpec;
use std::collections::HashMap;
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
/// some.
///
/// # Errors
/// The plugin does not load.
pub fn run(harness: &Harness, spec: &PluginSpec, file: &CaseFile) -> Result<CaseResults, HarnessError> {
    let mut loaded: HashMap<String, LoadedPlugin> = HashMap::new();
    // Without a case's parameters first: an error of the plugin itself is then told as such.
    loaded.insert(params_text(&spec.params), harness.load(spec.clone())?);
    let mut cases = Vec::with_capacity(file.cases.len());
    for case in &file.cases {
        let params = case.params.as_ref().unwrap_or(&spec.params);
        let key = params_text(params);
        if !loaded.contains_key(&key) {
            let own = PluginSpec { params: params.clone(), ..spec.clone() };
            let of_case = |source| HarnessError::CaseParams { path: file.path.clone(), line: case.line, source };
            loaded.insert(key.clone(), harness.load(own).map_err(of_case)?);
        }
        let call = loaded[&key].score_seeded(case.sample.clone(), case.seed);
        let evaluation = call.evaluation().clone();
        let mismatches = case.expected.as_ref().map(|expected| expected.check(&evaluation)).unwrap_or_default();
        cases.push(CaseResult { case: case.clone(), evaluation, mismatches });
    }
    Ok(CaseResults { plugin: spec.name.clone(), path: file.path.clone(), cases })
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
    /// Whether everything came as expected.
    pub fn passed(&self) -> bool {
        self.mismatches.is_empty()
    }

    /// All that is known of it: where it stands in the file `path`, what was
    /// expected, what came.
    pub fn report(&self, path: &Path) -> String {
        let mut text = format!("{} ({}:{})\n", self.case.name, path.display(), self.case.line);
        self.mismatches.iter().for_each(|mismatch| text.push_str(&format!("  {mismatch}\n")));
        text + &self.to_string()
    }
}

impl fmt::Display for CaseResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Report { sample: &self.case.sample, evaluation: &self.evaluation }.fmt(f)
    }
}
