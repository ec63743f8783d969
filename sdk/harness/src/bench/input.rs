//! The inputs with which a plugin is called repeatedly.

use crate::golden::{Case, Question};
use crate::plugin::{LoadedPlugin, verdict};
use crate::rows::{DataRow, PluginData};
use crate::tool::FunctionCall;
use gavel_data::{Evaluation, SampleInput, Usage};
use gavel_plugin::Decision;
use gavel_plugin::advantage::Batch;
use gavel_plugin::sampler::Request;
use std::fmt::Debug;
use std::sync::Arc;
use std::time::Instant;

/// The input of one call, or of the calls of a session.
pub(super) enum Input<'a> {
    Sample(SampleInput, u64),
    Group(Vec<SampleInput>, u64),
    Session(&'a Case),
    Batch(Arc<Batch>, u64),
    Draw(Arc<Request>),
}

/// A call that was answered.
pub(super) struct Answered {
    pub(super) latency_us: u64,
    pub(super) usage: Usage,
    /// How it ended, in one word.
    pub(super) outcome: &'static str,
    /// The bits of its score, or the text of its answer.
    pub(super) verdict: String,
}

impl<'a> Input<'a> {
    /// The inputs in a file; if they are `judged`, samples of one task are a group.
    pub(super) fn of(data: &'a PluginData, judged: bool) -> Vec<Self> {
        match data {
            PluginData::Rows(rows) => of_rows(rows, judged),
            PluginData::Sessions(cases) => cases.iter().map(Self::Session).collect(),
            PluginData::Batches(cases) | PluginData::Requests(cases) => cases.iter().filter_map(of_decision).collect(),
        }
    }

    pub(super) fn ask(&self, plugin: &LoadedPlugin) -> Vec<Answered> {
        plugin.block_on(self.start(plugin))
    }

    pub(super) async fn start(&self, plugin: &LoadedPlugin) -> Vec<Answered> {
        let start = Instant::now();
        match self {
            Self::Sample(sample, seed) => {
                let said = plugin.plugin().score(sample, *seed).await;
                vec![Answered::of(&said, start)]
            }
            Self::Group(samples, seed) => {
                let said = plugin.plugin().judge(samples, *seed).await.into_iter().next();
                vec![Answered::of(&verdict(said), start)]
            }
            Self::Session(case) => calls(plugin, case).await,
            Self::Batch(batch, seed) => {
                let call = plugin.plugin().estimate_call(batch.clone(), *seed).await;
                vec![Answered::of_decision(&call, "advantages", start)]
            }
            Self::Draw(request) => {
                let call = plugin.plugin().sample_call(request.clone()).await;
                vec![Answered::of_decision(&call, "draws", start)]
            }
        }
    }
}

fn of_rows<'a>(rows: &[DataRow], judged: bool) -> Vec<Input<'a>> {
    let rows: Vec<(SampleInput, u64)> = rows.iter().filter_map(|row| Some((row.input()?, row.seed))).collect();
    match judged {
        false => rows.into_iter().map(|(input, seed)| Input::Sample(input, seed)).collect(),
        true => rows
            .chunk_by(|(one, _), (next, _)| one.sample.task.id == next.sample.task.id)
            .map(|group| Input::Group(group.iter().map(|(input, _)| input.clone()).collect(), group[0].1))
            .collect(),
    }
}

fn of_decision<'a>(case: &Case) -> Option<Input<'a>> {
    match &case.question {
        Question::Batch(batch) => Some(Input::Batch(batch.clone(), case.seed)),
        Question::Draw(request) => Some(Input::Draw(request.clone())),
        _ => None,
    }
}

/// The calls of a session that reach the tool, one after another.
async fn calls(plugin: &LoadedPlugin, case: &Case) -> Vec<Answered> {
    let Question::Session(session) = &case.question else { return Vec::new() };
    let Ok(mut open) = plugin.open(session.settings.clone(), case.seed).await else { return Vec::new() };
    let mut answered = Vec::with_capacity(session.calls.len());
    for call in &session.calls {
        let start = Instant::now();
        let came = open.ask(&call.function, &call.arguments).await;
        answered.push(Answered::of_call(&came, start));
    }
    answered
}

impl Answered {
    fn of(said: &Evaluation, start: Instant) -> Self {
        let outcome = said.outcome.kind().as_str();
        let verdict = said.outcome.score().map(|score| score.to_bits().to_string()).unwrap_or_default();
        Self { latency_us: micros(start), usage: said.usage, outcome, verdict }
    }

    /// Of a call for a decision; `what` it is.
    fn of_decision<T: Debug>(call: &Decision<T>, what: &'static str, start: Instant) -> Self {
        let (outcome, verdict) = match &call.answer {
            Ok(answer) => (what, format!("{answer:?}")),
            Err(outcome) => (outcome.kind().as_str(), String::new()),
        };
        Self { latency_us: micros(start), usage: call.usage, outcome, verdict }
    }

    fn of_call(came: &FunctionCall, start: Instant) -> Self {
        let report = came.report();
        let (outcome, verdict) = (report.ending().as_str(), report.text());
        Self { latency_us: micros(start), usage: report.usage, outcome, verdict }
    }
}

/// Microseconds since `start`.
pub(super) fn micros(start: Instant) -> u64 {
    u64::try_from(start.elapsed().as_micros()).unwrap_or(u64::MAX)
}
