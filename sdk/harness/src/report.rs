//! A call for people: all that is known of it, one thing a line.

use gavel_data::{Evaluation, Outcome, Sample, ShownLines, Usage};
use std::fmt;

/// Characters of a response that are shown.
const RESPONSE: usize = 300;

/// What is known of a call.
pub(crate) struct Report<'a> {
    pub(crate) sample: &'a Sample,
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
        if let Some(diagnosis) = diagnosis {
            line(f, "printed", &diagnosis.stderr)?;
            line(f, "trapped", &diagnosis.backtrace.join("\n"))?;
        }
        line(f, "used", &used(usage))?;
        let response = self.sample.response();
        let shown: String = response.chars().take(RESPONSE).collect();
        let rest = if shown.len() < response.len() { format!("… ({} bytes)", response.len()) } else { String::new() };
        line(f, "response", &format!("{shown:?}{rest}"))
    }
}

/// A text with its title; further lines of it stand below its first.
fn line(f: &mut fmt::Formatter<'_>, title: &str, text: &str) -> fmt::Result {
    for (number, line) in text.lines().enumerate() {
        let line = format!("  {:<9} {}", if number == 0 { title } else { "" }, ShownLines(line));
        writeln!(f, "{}", line.trim_end())?;
    }
    Ok(())
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

/// What a call used, in words.
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
