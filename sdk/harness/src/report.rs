//! A call for people: everything that is known of it, one item a line.

use crate::batch::{written_advantage, written_state};
use crate::expectation::{no_decision, no_row};
use crate::request::{written_draws, written_refusals};
use gavel_data::{Columns, Diagnosis, Evaluation, Json, Outcome, Sample, ShownLines, Usage};
use gavel_plugin::RowCall;
use gavel_plugin::advantage::EstimateCall;
use gavel_plugin::sampler::SampleCall;
use serde_json::Value;
use std::fmt;

/// Characters of a long text that are shown.
const SHOWN: usize = 300;

/// Everything that is known of a call.
pub(crate) struct Report<'a> {
    /// What it scored; absent for the call of a taskset.
    pub(crate) sample: Option<&'a Sample>,
    pub(crate) evaluation: &'a Evaluation,
}

impl fmt::Display for Report<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Evaluation { outcome, usage, diagnosis, .. } = self.evaluation;
        line(f, "outcome", &said(self.evaluation))?;
        if let Some(reason) = outcome.reason() {
            line(f, if outcome.score().is_some() { "note" } else { "reason" }, &reason)?;
        }
        if let Outcome::Scored(score) = outcome
            && !score.metrics.is_empty()
        {
            let metrics: Vec<_> = score.metrics.iter().map(|m| format!("{} {}", m.name, m.value)).collect();
            line(f, "metrics", &metrics.join(", "))?;
        }
        details(f, diagnosis.as_ref(), usage)?;
        let Some(sample) = self.sample else { return Ok(()) };
        let response = sample.response();
        let shown: String = response.chars().take(SHOWN).collect();
        let rest = if shown.len() < response.len() { format!("… ({} bytes)", response.len()) } else { String::new() };
        line(f, "response", &format!("{shown:?}{rest}"))
    }
}

/// Everything that is known of a call that asked a taskset for a row.
pub(crate) struct RowReport<'a>(pub(crate) &'a RowCall);

impl fmt::Display for RowReport<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(call) = self;
        match &call.row {
            Err(outcome) => Report { sample: None, evaluation: &no_row(call, outcome) }.fmt(f),
            Ok(columns) => {
                line(f, "row", Json::from(Columns::clone(columns)).as_text())?;
                details(f, call.diagnosis.as_ref(), &call.usage)
            }
        }
    }
}

/// Everything that is known of a call that asked for advantages.
pub(crate) struct EstimatesReport<'a>(pub(crate) &'a EstimateCall);

impl fmt::Display for EstimatesReport<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(call) = self;
        match &call.answer {
            Err(outcome) => Report { sample: None, evaluation: &no_decision(call, outcome) }.fmt(f),
            Ok(estimates) => {
                for (number, group) in estimates.advantages.iter().enumerate() {
                    let group: Vec<_> = group.iter().map(|each| written_advantage(each).to_string()).collect();
                    line(f, &format!("group {number}"), &head(&format!("[{}]", group.join(", "))))?;
                }
                if !estimates.state.is_empty() {
                    line(f, "state", &head(&written_state(&estimates.state).to_string()))?;
                }
                details(f, call.diagnosis.as_ref(), &call.usage)
            }
        }
    }
}

/// Everything that is known of a call that asked for tasks.
pub(crate) struct AnswerReport<'a>(pub(crate) &'a SampleCall);

impl fmt::Display for AnswerReport<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(call) = self;
        match &call.answer {
            Err(outcome) => Report { sample: None, evaluation: &no_decision(call, outcome) }.fmt(f),
            Ok(answer) => {
                line(f, "draws", &head(&written_draws(answer).to_string()))?;
                if !answer.refusals.is_empty() {
                    line(f, "refusals", &head(&Value::from(written_refusals(answer)).to_string()))?;
                }
                if !answer.state.is_empty() {
                    line(f, "state", &head(&written_state(&answer.state).to_string()))?;
                }
                details(f, call.diagnosis.as_ref(), &call.usage)
            }
        }
    }
}

/// What a call printed, where it trapped, and what it used.
pub(crate) fn details(f: &mut fmt::Formatter<'_>, diagnosis: Option<&Diagnosis>, usage: &Usage) -> fmt::Result {
    if let Some(diagnosis) = diagnosis {
        line(f, "printed", &diagnosis.stderr)?;
        line(f, "trapped", &diagnosis.backtrace.join("\n"))?;
    }
    line(f, "used", &used(usage))
}

/// A text with its title; its further lines are below its first.
pub(crate) fn line(f: &mut fmt::Formatter<'_>, title: &str, text: &str) -> fmt::Result {
    for (number, line) in text.lines().enumerate() {
        let line = format!("  {:<9} {}", if number == 0 { title } else { "" }, ShownLines(line));
        writeln!(f, "{}", line.trim_end())?;
    }
    Ok(())
}

/// A long text's beginning, and its size.
pub(crate) fn head(text: &str) -> String {
    let shown: String = text.chars().take(SHOWN).collect();
    if shown.len() < text.len() { format!("{shown}… ({} bytes)", text.len()) } else { shown }
}

/// An outcome in a few words: `scored 1`, `fault (trap)`.
pub(crate) fn said(evaluation: &Evaluation) -> String {
    let kind = evaluation.outcome.kind().as_str();
    match (evaluation.outcome.score(), evaluation.detail()) {
        (Some(score), _) => format!("{kind} {score}"),
        (None, Some(detail)) => format!("{kind} ({detail})"),
        (None, None) => kind.to_owned(),
    }
}

/// The usage of a call, in words.
fn used(usage: &Usage) -> String {
    let fuel = usage.fuel.map(|fuel| format!(", {fuel} fuel")).unwrap_or_default();
    let milliseconds = |us: u64| us as f64 / 1e3;
    format!(
        "{:.3} ms of processor time, {:.3} ms in all, {:.1} MiB{fuel}",
        milliseconds(usage.cpu_us),
        milliseconds(usage.elapsed_us),
        usage.peak_memory as f64 / f64::from(1 << 20)
    )
}
