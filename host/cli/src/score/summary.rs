//! The summary of `gavel score`.

use super::dash::is_dash;
use crate::outcomes::{self, Counts, Outcomes, listed};
use crate::report;
use crate::terminal::{self, errln};
use gavel_data::{OutcomeKind, SampleOutcome};
use serde::Serialize;
use std::path::Path;

/// The numbers of all rows; as JSON, what `--json` prints.
#[derive(Default, Serialize)]
pub struct Summary {
    rows: u64,
    pub seconds: f64,
    reward_mean: Option<f64>,
    #[serde(skip)]
    reward_sum: f64,
    /// The rewards that are not in the sum yet, in order: a sum of sums would have other last digits.
    #[serde(skip)]
    rewards: Vec<f64>,
    outcomes: Counts,
    plugins: Outcomes,
    /// Why rows could not be read.
    pub unreadable: Vec<String>,
}

impl Summary {
    /// Counts a row that was scored.
    pub fn add(&mut self, scores: &SampleOutcome) {
        self.rows += 1;
        *self.outcomes.entry(scores.outcome.as_str()).or_default() += 1;
        self.rewards.extend(scores.reward);
        self.plugins.add(scores);
    }

    /// Counts the rows of the next batch.
    pub fn join(&mut self, next: Self) {
        let Self { rows, outcomes, plugins, rewards, unreadable, .. } = next;
        self.rows += rows;
        outcomes::join(&mut self.outcomes, outcomes);
        self.plugins.join(plugins);
        self.reward_sum = rewards.into_iter().fold(self.reward_sum, |sum, reward| sum + reward);
        let scored = self.outcomes.get(OutcomeKind::Scored.as_str()).copied().unwrap_or(0);
        self.reward_mean = (scored > 0).then(|| self.reward_sum / scored as f64);
        self.unreadable.extend(unreadable);
    }

    pub fn print(&self, out: &Path) {
        let rate = self.rows as f64 / self.seconds.max(1e-9);
        let rows = if self.rows == 1 { "row" } else { "rows" };
        let out = if is_dash(out) { "stdout".into() } else { out.to_string_lossy() };
        errln!("{} {rows} in {:.2} s ({rate:.0} rows/s) -> {out}", self.rows, self.seconds);
        if self.rows > 0 {
            let mean = self.reward_mean.map_or_else(|| "none".to_owned(), |mean| format!("mean {mean:.4}"));
            errln!("  reward    {mean}; {}", listed(&self.outcomes));
        }
        self.plugins.lines().for_each(|line| errln!("  {line}"));
    }

    /// Prints why the first row could not be read, and how many others could not.
    pub fn print_unreadable(&self) {
        let Some((first, others)) = self.unreadable.split_first() else { return };
        terminal::error(&report::clipped(first));
        match others.len() {
            0 => {}
            1 => errln!("1 more row cannot be read: --json lists both"),
            count => errln!("{count} more rows cannot be read: --json lists them all"),
        }
    }
}
