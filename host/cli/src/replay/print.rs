//! The results of a replay, as text.

use crate::table::{self, cut};
use crate::terminal::outln;
use gavel_data::{Columns, EvaluationRecord, OutcomeKind, Shown};
use gavel_scoring::recording::Damage;
use gavel_scoring::replay::{
    Comparison, Difference, Disagreement, PluginChange, RecordedVerdicts, RewardChange, VerdictSummary, Verification,
};
use std::collections::BTreeMap;
use std::path::Path;

pub fn verification(run: &Path, found: &Verification, shown: usize) {
    let Verification { samples, verdicts, different, without_call, .. } = found;
    let result = match different {
        0 => "all the same, to the last bit".to_owned(),
        different => format!("{different} differ"),
    };
    outln!("{}: {samples} samples, {verdicts} verdicts given again: {result}", run.display());
    if *without_call > 0 {
        outln!("  {without_call} samples have no verdict to compare: no plugin was called for them");
    }
    damage(&found.damage, shown);
    if found.differences.is_empty() {
        return;
    }
    let row = |difference: &Difference| {
        let Difference { sample, task_id, plugin, what, recorded, replayed, .. } = difference;
        let plugin = plugin.as_deref().unwrap_or("all");
        [sample.as_str(), task_id, plugin, what, recorded, replayed].map(cut)
    };
    table::print(
        ["sample", "task", "plugin", "what", "recorded", "now"],
        found.differences.iter().take(shown).map(row),
    );
    let more = found.differences.len().saturating_sub(shown);
    if more > 0 {
        outln!("  … and {more} more; --worst N shows more, --json all of them");
    }
}

pub fn comparison(run: &Path, found: &Comparison) {
    outln!("{}: what other rewards would have changed", run.display());
    changes(found);
    if found.without_call > 0 {
        outln!("  {} samples are as they were: no plugin was called for them", found.without_call);
    }
    damage(&found.damage, found.worst.len().max(1));
    worst(found, ["recorded", "now"]);
}

/// Prints the requested samples with their recorded verdicts.
pub fn recorded(samples: &[RecordedVerdicts]) {
    for found in samples {
        let RecordedVerdicts { sample, task_id, prompt, response, ground_truth, reward, reason, .. } = found;
        outln!();
        let reward = reward.map_or("no reward".to_owned(), |reward| format!("reward {reward}"));
        outln!("{sample}, task {}: recorded with {reward}", cut(task_id));
        let prompt: Vec<_> = prompt.iter().map(|said| format!("{}: {}", said.role.as_str(), said.text())).collect();
        item("prompt", &prompt.join("\n"));
        item("response", if response.is_empty() { "(empty)" } else { response });
        item("truth", ground_truth.as_deref().unwrap_or_default());
        for (tool, state) in &found.states {
            item("state", &format!("{tool} {}", state.as_text()));
        }
        item("extra", &object(found.extra.as_ref()));
        item("reason", reason.as_deref().unwrap_or_default());
        for (name, verdict) in &found.plugins {
            outln!("  {}  {}", Shown(name), said(verdict));
            item(
                if verdict.score.is_some() { "note" } else { "reason" },
                verdict.reason.as_deref().unwrap_or_default(),
            );
            let metrics: Vec<_> = verdict.metrics.iter().map(|(name, value)| format!("{name} {value}")).collect();
            item("metrics", &metrics.join(", "));
            item("payload", &object(verdict.payload.as_deref()));
            item("printed", &verdict.diagnosis.stderr);
            item("trapped", &verdict.diagnosis.backtrace.join("\n"));
        }
        for (name, why) in &found.not_called {
            outln!("  {}  not called ({})", Shown(name), why.as_str());
        }
    }
}

/// An object as JSON; empty if there is none.
fn object(fields: Option<&Columns>) -> String {
    fields.and_then(|fields| serde_json::to_string(fields).ok()).unwrap_or_default()
}

/// A recorded outcome in a few words.
fn said(verdict: &EvaluationRecord) -> String {
    let kind = verdict.outcome.as_str();
    match (verdict.score, verdict.budget) {
        (Some(score), _) => format!("{kind} {score}"),
        (None, Some(budget)) => format!("{kind} ({budget})"),
        (None, None) => kind.to_owned(),
    }
}

/// A text with its title; the further lines are aligned with the first.
pub(super) fn item(title: &str, text: &str) {
    for (number, line) in text.lines().enumerate() {
        outln!("    {:<8} {}", if number == 0 { title } else { "" }, Shown(line));
    }
}

/// The parts of the recording that were left out, and lines beside which others are missing.
fn damage(damage: &Damage, shown: usize) {
    let Damage { lines, samples } = damage;
    if !lines.is_empty() {
        let s = if lines.len() == 1 { " is" } else { "s are" };
        outln!("  {} line{s} damaged or out of place:", lines.len());
        for line in lines.iter().take(shown) {
            outln!("    {line}");
        }
        let more = lines.len().saturating_sub(shown);
        if more > 0 {
            outln!("    … and {more} more; --json shows all of them");
        }
    }
    if *samples > 0 {
        outln!("  {samples} samples left out: a judger needs whole groups, and theirs are not whole");
    }
}

/// What changed in verdicts and rewards.
pub fn changes(found: &Comparison) {
    found.plugins.iter().for_each(plugin);
    if let Some(rewards) = &found.rewards {
        self::rewards(rewards);
    }
}

/// The samples on which two versions, with these names, disagree most.
pub fn worst(found: &Comparison, [was, is]: [&str; 2]) {
    if found.worst.is_empty() {
        return;
    }
    outln!("worst disagreements");
    let row = |worst: &Disagreement| {
        let Disagreement { sample, step, plugin, recorded, replayed, response, .. } = worst;
        let response = format!("{response:?}");
        [sample.as_str(), &step.to_string(), plugin, &verdict(recorded), &verdict(replayed), &response].map(cut)
    };
    table::print(["sample", "step", "plugin", was, is, "response"], found.worst.iter().map(row));
}

fn plugin(change: &PluginChange) {
    let PluginChange { name, component, hash, samples, agreed, recorded_mean, replayed_mean, .. } = change;
    outln!("{name}: now {component}, hash {}", hash.get(..16).unwrap_or(hash));
    outln!("  agreement        {} of {samples} samples", share(*agreed, *samples));
    if change.only_recorded + change.only_replayed > 0 {
        outln!(
            "  gate             {} samples called only before, {} only now",
            change.only_recorded,
            change.only_replayed
        );
    }
    if let (Some(recorded), Some(replayed)) = (recorded_mean, replayed_mean) {
        outln!("  mean score       {recorded:.4} -> {replayed:.4} ({:+.4})", replayed - recorded);
    }
    outln!("  outcomes         {} -> {}", outcomes(&change.recorded_outcomes), outcomes(&change.replayed_outcomes));
}

fn rewards(change: &RewardChange) {
    outln!("rewards");
    if let (Some(recorded), Some(replayed)) = (change.recorded_mean, change.replayed_mean) {
        outln!("  mean             {recorded:.4} -> {replayed:.4} ({:+.4})", replayed - recorded);
    }
    outln!(
        "  rank flips       {} of {} pairs within groups; {} ties made or broken",
        share(change.pairs_flipped, change.pairs),
        change.pairs,
        change.ties_changed
    );
    outln!(
        "  advantage        {} of {} samples have another sign, {} of them the opposite one",
        share(change.advantage_sign_changed, change.samples),
        change.samples,
        change.advantage_sign_flipped
    );
}

fn share(part: u64, whole: u64) -> String {
    format!("{part} ({:.1} %)", 100.0 * part as f64 / whole.max(1) as f64)
}

fn outcomes(counts: &BTreeMap<OutcomeKind, u64>) -> String {
    counts.iter().map(|(kind, count)| format!("{count} {}", kind.as_str())).collect::<Vec<_>>().join(", ")
}

fn verdict(verdict: &VerdictSummary) -> String {
    match verdict.score {
        Some(score) => score.to_string(),
        None => verdict.outcome.as_str().to_owned(),
    }
}
