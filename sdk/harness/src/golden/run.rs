//! Running cases.

use super::read::{Case, CaseFile};
use super::table::FakeChatTable;
use crate::call::Call;
use crate::chat::FakeChat;
use crate::error::{CaseError, HarnessError};
use crate::expectation::Mismatch;
use crate::harness::Harness;
use crate::plugin::{LoadedPlugin, params_text};
use crate::report::Report;
use gavel_data::Evaluation;
use gavel_plugin::PluginSpec;
use std::collections::{BTreeMap, HashMap};
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
/// some; the endpoints that it is granted reply what `chat` or the case says.
///
/// # Errors
/// The plugin does not load.
pub fn run(
    harness: &Harness,
    spec: &PluginSpec,
    chat: &BTreeMap<String, FakeChatTable>,
    file: &CaseFile,
) -> Result<CaseResults, HarnessError> {
    let endpoints = Endpoints::new(harness, spec, chat);
    let mut loaded: HashMap<String, LoadedPlugin> = HashMap::new();
    // With its own parameters first: an error of the plugin itself is then told as such.
    let plugin = harness.load(spec.clone())?;
    if !plugin.scores() {
        return Err(HarnessError::ScoresNothing(spec.name.clone()));
    }
    loaded.insert(params_text(&spec.params), plugin);
    let mut cases = Vec::with_capacity(file.cases.len());
    for group in file.groups() {
        let own: Vec<String> =
            group.iter().map(|case| params_text(case.params.as_ref().unwrap_or(&spec.params))).collect();
        for (case, key) in group.iter().zip(&own) {
            if let (Some(params), false) = (&case.params, loaded.contains_key(key)) {
                let of_case = |source| HarnessError::CaseParams { path: file.path.clone(), line: case.line, source };
                let spec = PluginSpec { params: params.clone(), ..spec.clone() };
                loaded.insert(key.clone(), harness.load(spec).map_err(of_case)?);
            }
        }
        let calls = if loaded[&own[0]].judges() {
            if let Some(odd) = own.iter().position(|params| *params != own[0]) {
                let what = "a group is judged with one set of `params`, and the case above has another".to_owned();
                return Err(CaseError::Line { path: file.path.clone(), line: group[odd].line, what }.into());
            }
            endpoints.restart(&group[0]);
            loaded[&own[0]].judge_seeded(group.iter().map(|case| case.sample.clone()), group[0].seed)
        } else {
            let score = |(case, params): (&Case, &String)| {
                endpoints.restart(case);
                loaded[params].score_seeded(case.sample.clone(), case.seed)
            };
            group.iter().zip(&own).map(score).collect()
        };
        cases.extend(group.iter().zip(calls).map(|(case, call)| CaseResult::new(case, call)));
    }
    Ok(CaseResults { plugin: spec.name.clone(), path: file.path.clone(), cases })
}

/// The fake endpoints of a plugin and what they reply in each case.
struct Endpoints<'a> {
    fakes: BTreeMap<&'a str, FakeChat>,
    chat: &'a BTreeMap<String, FakeChatTable>,
}

impl<'a> Endpoints<'a> {
    /// All endpoints that the plugin is granted, with or without replies.
    fn new(harness: &Harness, spec: &'a PluginSpec, chat: &'a BTreeMap<String, FakeChatTable>) -> Self {
        let fake = |name: &'a String| {
            let fake = FakeChat::replies::<String>([]);
            harness.chat(name, &fake);
            (name.as_str(), fake)
        };
        Self { fakes: spec.grants.chat.iter().map(fake).collect(), chat }
    }

    /// Starts the replies of a case.
    fn restart(&self, case: &Case) {
        for (name, fake) in &self.fakes {
            let common = self.chat.get(*name).map(|table| &table.replies);
            fake.restart(case.replies.get(*name).or(common).map_or(&[], Vec::as_slice));
        }
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
