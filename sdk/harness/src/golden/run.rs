//! Running cases.

use super::read::{Case, CaseFile, Question, groups};
use super::session::PlayedSession;
use super::table::FakeChatTable;
use crate::attempt::Attempt;
use crate::call::Call;
use crate::endpoints::Endpoints;
use crate::error::{CaseError, HarnessError};
use crate::expectation::{Mismatch, no_decision, no_row};
use crate::harness::Harness;
use crate::plugin::LoadedPlugin;
use crate::plugins::Plugins;
use crate::report::{AnswerReport, EstimatesReport, Report, RowReport, head, line, said};
use gavel_data::{Diagnosis, Evaluation, Shown, Usage};
use gavel_plugin::advantage::EstimateCall;
use gavel_plugin::sampler::SampleCall;
use gavel_plugin::{Decision, LoadError, PluginSpec, RowCall};
use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

/// The results of all cases of a file.
#[derive(Debug)]
#[must_use = "failed cases are not an error"]
pub struct CaseResults {
    /// The plugin's name.
    pub plugin: String,
    /// The file.
    pub path: PathBuf,
    /// Whether groups were judged. The cases of a group share a call, and each
    /// shows the usage of the whole call.
    pub judged: bool,
    /// Its cases, in order.
    pub cases: Vec<CaseResult>,
}

/// The result of a case.
#[derive(Debug, Clone)]
pub struct CaseResult {
    /// The case.
    pub case: Case,
    /// The plugin's answer.
    pub came: Came,
    /// The differences from the expectation, or that there is none; empty if the case passes.
    pub mismatches: Vec<Mismatch>,
}

/// The answer of a plugin in a case.
#[derive(Debug, Clone)]
pub enum Came {
    /// The call that scored a sample.
    Evaluation(Evaluation),
    /// The call that asked a taskset for a row.
    Row(RowCall),
    /// A session of a tool.
    Session(PlayedSession),
    /// The attempt of an agent.
    Attempt(Box<Attempt>),
    /// The call that asked for the advantages of groups.
    Estimates(EstimateCall),
    /// The call that asked for the next tasks of a run.
    Answer(SampleCall),
    /// Why the plugin refuses its parameters; `None` if it accepts them.
    Refusal(Option<String>),
}

/// Runs cases one after another, so that each usage belongs to one case. The
/// plugin is `spec`; the parameters of a case, if it has any, replace the
/// parameters of `spec`. The endpoints of `chat` give their replies in order,
/// restarting in each case, unless the case has its own replies.
///
/// # Errors
/// The plugin does not load or does not score, or a case has replies of an
/// endpoint that is not granted.
pub fn run(
    harness: &Harness,
    spec: &PluginSpec,
    chat: &BTreeMap<String, FakeChatTable>,
    file: &CaseFile,
) -> Result<CaseResults, HarnessError> {
    run_some(harness, spec, chat, &file.path, &file.cases)
}

/// As [`run`], but only for the group of the case at `index`: a judger's verdict on a case depends on its group. `None`
/// if the file has no such case.
///
/// # Errors
/// As for [`run`].
pub fn run_one(
    harness: &Harness,
    spec: &PluginSpec,
    chat: &BTreeMap<String, FakeChatTable>,
    file: &CaseFile,
    index: usize,
) -> Result<Option<CaseResult>, HarnessError> {
    let mut first = 0;
    for group in groups(&file.cases) {
        if index < first + group.len() {
            let results = run_some(harness, spec, chat, &file.path, group)?;
            return Ok(results.cases.into_iter().nth(index - first));
        }
        first += group.len();
    }
    Ok(None)
}

/// Runs cases of the file `path`.
fn run_some(
    harness: &Harness,
    spec: &PluginSpec,
    chat: &BTreeMap<String, FakeChatTable>,
    path: &Path,
    all: &[Case],
) -> Result<CaseResults, HarnessError> {
    let wrong = |case: &Case, what: String| CaseError::Line { path: path.to_owned(), line: case.line, what };
    for case in all {
        let granted: Vec<&String> = spec.grants.chat.iter().chain(&spec.grants.reward_model).collect();
        if let Some(name) = case.replies.keys().find(|name| !granted.contains(name)) {
            let granted = match granted.is_empty() {
                true => "none".to_owned(),
                false => granted.into_iter().map(String::as_str).collect::<Vec<_>>().join(", "),
            };
            let what = format!(
                "`replies` names `{name}`, which is not granted; granted are: {granted}\nhint: correct the name, or add it to `grant = {{ chat = […] }}` of the test"
            );
            return Err(wrong(case, what).into());
        }
    }
    let endpoints = Endpoints::new(harness, chat, all.iter().flat_map(|case| case.replies.keys()));
    let place = |case: &Case| format!("{}, line {}", path.display(), case.line);
    let called = all.iter().filter(|case| !matches!(case.question, Question::Nothing));
    // If no case calls the plugin, the common parameters need not be right.
    let plugins = match called.clone().next() {
        Some(_) => Some(Plugins::load(harness, spec, called.map(|case| (case.params.as_ref(), place(case))))?),
        None => None,
    };
    let judged = plugins.as_ref().is_some_and(|plugins| plugins.any().judges());
    let mut cases = Vec::with_capacity(all.len());
    for group in groups(all) {
        let first = &group[0];
        let Some(plugins) = plugins.as_ref().filter(|_| !matches!(first.question, Question::Nothing)) else {
            let refusal = refusal(harness, spec, first)
                .map_err(|source| HarnessError::CaseParams { place: place(first), source })?;
            cases.push(CaseResult::new(first, Came::Refusal(refusal)));
            continue;
        };
        check_question(first, plugins.any()).map_err(|what| wrong(first, what))?;
        if judged && let Some(odd) = group.iter().find(|case| case.params != first.params) {
            let what =
                format!("its `params` differ from those of line {}, and one call judges the whole group", first.line);
            return Err(wrong(odd, what).into());
        }
        let plugin = plugins.of(first.params.as_ref());
        let inputs = group.iter().filter_map(|case| match &case.question {
            Question::Sample(input) => Some((case, input.clone())),
            _ => None,
        });
        match &first.question {
            Question::Row(index) => cases.push(CaseResult::new(first, Came::Row(plugin.row(*index, first.seed)))),
            Question::Session(session) => {
                endpoints.restart(&first.replies);
                cases.push(CaseResult::new(first, Came::Session(session.run(plugin, first.seed)?)));
            }
            Question::Attempt(attempt) => {
                endpoints.restart(&first.replies);
                cases.push(CaseResult::new(first, Came::Attempt(Box::new(attempt.run(plugin, first.seed)?))));
            }
            Question::Batch(batch) => {
                let call = plugin.block_on(plugin.plugin().estimate_call(batch.clone(), first.seed));
                cases.push(CaseResult::new(first, Came::Estimates(call)));
            }
            Question::Draw(request) => {
                let call = plugin.block_on(plugin.plugin().sample_call(request.clone()));
                cases.push(CaseResult::new(first, Came::Answer(call)));
            }
            _ if judged => {
                endpoints.restart(&first.replies);
                let calls = plugin.judge_seeded(inputs.map(|(_, input)| input), first.seed);
                cases.extend(group.iter().zip(calls).map(|(case, call)| CaseResult::of_call(case, &call)));
            }
            _ => cases.extend(inputs.map(|(case, input)| {
                endpoints.restart(&case.replies);
                CaseResult::of_call(case, &plugins.of(case.params.as_ref()).score_seeded(input, case.seed))
            })),
        }
    }
    Ok(CaseResults { plugin: spec.name.clone(), path: path.to_owned(), judged, cases })
}

/// Refuses a question that the plugin has no function for.
fn check_question(case: &Case, plugin: &LoadedPlugin) -> Result<(), String> {
    match case.question {
        Question::Attempt(_) if plugin.agent().is_none() => Err(format!(
            "`policy` is for an agent, and `{}` is not one\nhint: give the case {}",
            plugin.name(),
            if plugin.tool().is_some() { "`calls`" } else { "a `response`" }
        )),
        Question::Sample(_) | Question::Row(_) if plugin.agent().is_some() => Err(format!(
            "`{}` is an agent, which only attempts tasks\nhint: a case of an agent has a `prompt`, the turns of its `policy`, and `response` in `expect`",
            plugin.name()
        )),
        Question::Sample(_) | Question::Row(_) if plugin.tool().is_some() => Err(format!(
            "`{}` is a tool, which only answers calls\nhint: a case of a tool has `calls`, each with `name`, `arguments` and `expect`",
            plugin.name()
        )),
        Question::Batch(_) if !plugin.is_advantage() => Err(format!(
            "`groups` are for an advantage, and `{}` is not one\nhint: give the case a `response`",
            plugin.name()
        )),
        Question::Sample(_) if plugin.is_advantage() && !plugin.scores() => Err(format!(
            "`{}` turns rewards into advantages, and does not score a response\nhint: a case of an advantage has `groups`, and `advantages` in `expect`",
            plugin.name()
        )),
        Question::Draw(_) if !plugin.is_sampler() => Err(format!(
            "`datasets` are for a sampler, and `{}` is not one\nhint: give the case a `response`",
            plugin.name()
        )),
        Question::Sample(_) if plugin.is_sampler() && !plugin.scores() => Err(format!(
            "`{}` draws tasks, and does not score a response\nhint: a case of a sampler has `datasets` and `wanted`, and `draws` in `expect`",
            plugin.name()
        )),
        Question::Session(_) if plugin.tool().is_none() => {
            Err(format!("`calls` are for a tool, and `{}` is not one\nhint: give the case a `response`", plugin.name()))
        }
        Question::Sample(_) if !plugin.scores() => Err(format!(
            "`{}` is a taskset and does not score a response\nhint: a case of a taskset has `index`, `seed`, and `row` in `expect`",
            plugin.name()
        )),
        Question::Row(_) if !plugin.is_taskset() => Err(format!(
            "`index` asks for the row of a taskset, and `{}` is not one\nhint: give the case a `response`",
            plugin.name()
        )),
        _ => Ok(()),
    }
}

/// Why the plugin refuses the case's parameters; `None` if it accepts them.
fn refusal(harness: &Harness, spec: &PluginSpec, case: &Case) -> Result<Option<String>, LoadError> {
    let params = case.params.as_ref().unwrap_or(&spec.params).clone();
    match harness.load(PluginSpec { params, ..spec.clone() }) {
        Ok(_) => Ok(None),
        Err(LoadError::Params { what, .. }) => Ok(Some(what)),
        Err(error) => Err(error),
    }
}

/// A taskset's answer in a few words.
fn came_of_row(call: &RowCall) -> String {
    match &call.row {
        Ok(_) => "a row".to_owned(),
        Err(outcome) => said(&no_row(call, outcome)),
    }
}

/// The answer of a plugin that decides in a few words; `what` it is.
fn came_of_decision<T>(call: &Decision<T>, what: &str) -> String {
    match &call.answer {
        Ok(_) => what.to_owned(),
        Err(outcome) => said(&no_decision(call, outcome)),
    }
}

impl CaseResults {
    /// The cases that failed.
    pub fn failed(&self) -> impl Iterator<Item = &CaseResult> {
        self.cases.iter().filter(|case| !case.passed())
    }

    /// Asserts that every case passed.
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
    fn of_call(case: &Case, call: &Call) -> Self {
        Self::new(case, Came::Evaluation(call.evaluation().clone()))
    }

    fn new(case: &Case, came: Came) -> Self {
        let mismatches = match (&came, &case.question, &case.expected) {
            (Came::Session(came), Question::Session(session), _) => session.mismatches(came),
            (Came::Attempt(came), Question::Attempt(attempt), _) => attempt.mismatches(came),
            (Came::Evaluation(evaluation), _, Some(expected)) => expected.check(evaluation),
            (Came::Row(call), _, Some(expected)) => expected.check_row(call),
            (Came::Estimates(call), _, Some(expected)) => expected.check_estimates(call),
            (Came::Answer(call), _, Some(expected)) => expected.check_answer(call),
            (Came::Refusal(refusal), _, Some(expected)) => expected.check_refusal(refusal.as_deref()),
            (Came::Evaluation(evaluation), _, None) => vec![Mismatch::unstated(said(evaluation))],
            (Came::Row(call), _, None) => vec![Mismatch::unstated(came_of_row(call))],
            (Came::Estimates(call), _, None) => vec![Mismatch::unstated(came_of_decision(call, "advantages"))],
            (Came::Answer(call), _, None) => vec![Mismatch::unstated(came_of_decision(call, "draws"))],
            _ => Vec::new(),
        };
        Self { case: case.clone(), came, mismatches }
    }

    /// Whether the case passed.
    pub fn passed(&self) -> bool {
        self.mismatches.is_empty()
    }

    /// The score, if the case passed and states only that there is one.
    pub fn unstated_score(&self) -> Option<f64> {
        match &self.came {
            Came::Evaluation(evaluation) if self.case.expected.as_ref()?.is_any_score() => evaluation.outcome.score(),
            _ => None,
        }
    }

    /// The resources that its call used, or all calls of a session; zero if there was no call.
    pub fn usage(&self) -> Usage {
        match &self.came {
            Came::Evaluation(evaluation) => evaluation.usage,
            Came::Row(call) => call.usage,
            Came::Estimates(call) => call.usage,
            Came::Answer(call) => call.usage,
            Came::Session(session) => session.usage(),
            Came::Attempt(attempt) => attempt.report().usage,
            Came::Refusal(_) => Usage::default(),
        }
    }

    /// The output and the trap of its call.
    pub(super) fn diagnosis(&self) -> Option<&Diagnosis> {
        match &self.came {
            Came::Evaluation(evaluation) => evaluation.diagnosis.as_ref(),
            Came::Row(call) => call.diagnosis.as_ref(),
            Came::Estimates(call) => call.diagnosis.as_ref(),
            Came::Answer(call) => call.diagnosis.as_ref(),
            Came::Session(session) => session.calls.iter().rev().find_map(|call| call.report().diagnosis.as_ref()),
            Came::Attempt(attempt) => attempt.report().diagnosis.as_ref(),
            Came::Refusal(_) => None,
        }
    }

    /// Everything that is known of the case: its place in the file `path`, the
    /// expectation and the actual result.
    pub fn report(&self, path: &Path) -> String {
        let mut text = format!("{} ({}:{})\n", Shown(&self.case.name), path.display(), self.case.line);
        self.mismatches.iter().for_each(|mismatch| text.push_str(&format!("  {mismatch}\n")));
        text + &self.to_string()
    }
}

impl fmt::Display for CaseResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.came, &self.case.question) {
            (Came::Evaluation(evaluation), Question::Sample(input)) => {
                Report { sample: Some(&input.sample), evaluation }.fmt(f)
            }
            (Came::Evaluation(evaluation), _) => Report { sample: None, evaluation }.fmt(f),
            (Came::Row(call), _) => RowReport(call).fmt(f),
            (Came::Estimates(call), _) => EstimatesReport(call).fmt(f),
            (Came::Answer(call), _) => AnswerReport(call).fmt(f),
            (Came::Session(PlayedSession { calls, state }), _) => {
                (1..).zip(calls).try_for_each(|(number, call)| call.fmt_with(f, &format!("call {number}")))?;
                match state {
                    Ok(None) => Ok(()),
                    Ok(Some(state)) => line(f, "state", &head(state.as_text())),
                    Err(outcome) => line(f, "no state", &head(&outcome.reason().unwrap_or_default())),
                }
            }
            (Came::Attempt(attempt), _) => attempt.fmt(f),
            (Came::Refusal(refusal), _) => {
                line(f, "params", refusal.as_ref().map_or("accepted", |_| "refused"))?;
                line(f, "reason", refusal.as_deref().unwrap_or_default())
            }
        }
    }
}
