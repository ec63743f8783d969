//! Running cases.

use super::read::{Case, CaseFile};
use super::table::FakeChatTable;
use crate::call::Call;
use crate::endpoints::Endpoints;
use crate::error::{CaseError, HarnessError};
use crate::expectation::Mismatch;
use crate::harness::Harness;
use crate::plugin::LoadedPlugin;
use crate::report::Report;
use gavel_data::Evaluation;
use gavel_plugin::PluginSpec;
use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::path::{Path, PathBuf};
use std::rc::Rc;

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
/// some. The endpoints of `chat` reply what stands there, from the first reply
/// in each case, or what the case says.
///
/// # Errors
/// The plugin does not load, or is none that scores.
pub fn run(
    harness: &Harness,
    spec: &PluginSpec,
    chat: &BTreeMap<String, FakeChatTable>,
    file: &CaseFile,
) -> Result<CaseResults, HarnessError> {
    let endpoints = Endpoints::new(harness, chat, file.cases.iter().flat_map(|case| case.replies.keys()));
    let mut plugins = Plugins { harness, spec, file, loaded: HashMap::new() };
    let mut cases = Vec::with_capacity(file.cases.len());
    for group in file.groups() {
        let first = &group[0];
        let plugin = plugins.of(first)?;
        if plugin.judges() {
            if let Some(odd) = group.iter().find(|case| case.params != first.params) {
                let what = format!("its `params` are not those of line {}, and a group is judged at once", first.line);
                return Err(CaseError::Line { path: file.path.clone(), line: odd.line, what }.into());
            }
            endpoints.restart(&first.replies);
            let calls = plugin.judge_seeded(group.iter().map(|case| case.sample.clone()), first.seed);
            cases.extend(group.iter().zip(calls).map(|(case, call)| CaseResult::new(case, call)));
        } else {
            for case in group {
                let plugin = plugins.of(case)?;
                endpoints.restart(&case.replies);
                cases.push(CaseResult::new(case, plugin.score_seeded(case.sample.clone(), case.seed)));
            }
        }
    }
    Ok(CaseResults { plugin: spec.name.clone(), path: file.path.clone(), cases })
}

/// The plugin, once for each of the parameters that cases have.
struct Plugins<'a> {
    harness: &'a Harness,
    spec: &'a PluginSpec,
    file: &'a CaseFile,
    loaded: HashMap<String, Rc<LoadedPlugin>>,
}

impl Plugins<'_> {
    fn of(&mut self, case: &Case) -> Result<Rc<LoadedPlugin>, HarnessError> {
        let params = case.params.as_ref().unwrap_or(&self.spec.params);
        // A map of JSON values has only string keys.
        let key = serde_json::to_string(params).unwrap_or_default();
        if let Some(plugin) = self.loaded.get(&key) {
            return Ok(plugin.clone());
        }
        let spec = PluginSpec { params: params.clone(), ..self.spec.clone() };
        let plugin = self.harness.load(spec).map_err(|source| match case.params {
            Some(_) => HarnessError::CaseParams { path: self.file.path.clone(), line: case.line, source },
            None => HarnessError::Load(source),
        })?;
        if !plugin.scores() {
            return Err(HarnessError::ScoresNothing(self.spec.name.clone()));
        }
        let plugin = Rc::new(plugin);
        self.loaded.insert(key, plugin.clone());
        Ok(plugin)
    }
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
