//! What a person would look for in the rewards of a run: how they go together, what failed and why, which answers to
//! different tasks are alike and score high, and what rises while something else falls.

use crate::correlation::{Correlations, correlations};
use crate::error::Result;
use crate::failures::{Failures, counted, failures};
use crate::index::Index;
use crate::likeness::alike;
use crate::page::IndexState;
use crate::place::{LinePlace, read_line_at};
use crate::run::ViewedRun;
use crate::trends::{Trend, trends};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// The samples with high rewards whose texts are compared: the newest of the best tenth.
const MOST_COMPARED: usize = 2000;
/// The most bytes of lines that are read for it.
const MOST_BYTES: u64 = 64 << 20;
/// The most lists of alike answers that are shown, and the samples of each.
const MOST_LISTS: usize = 12;
const MOST_OF_LIST: usize = 20;
/// The characters that are shown of an answer.
const TEXT: usize = 300;

/// What was found in a run.
#[derive(Debug, Serialize)]
pub(crate) struct Findings {
    index: IndexState,
    correlations: Correlations,
    failures: Vec<Failures>,
    alike: Vec<Alike>,
    /// The samples whose answers were compared, and the lowest reward of them.
    compared: usize,
    compared_from: Option<f64>,
    trends: Vec<Trend>,
}

/// Answers that are nearly the same, to tasks that want different ones.
#[derive(Debug, Serialize)]
struct Alike {
    /// The newest of them.
    text: String,
    count: usize,
    /// How many different answers their tasks want; of tasks that say none, how many tasks there are.
    wanted: usize,
    mean_reward: f64,
    /// The newest of them.
    ids: Vec<String>,
}

pub(crate) fn findings(run: &ViewedRun) -> Result<Findings> {
    let trends = trends(&*run.curves()?);
    let (index, correlations, (counts, failed), (best, compared_from)) = {
        let index = run.index();
        (IndexState::of(&index), correlations(&index), counted(&index), best(&index))
    };
    let failures = failures(counts, &failed);
    let answers: Vec<Answer> = best.iter().filter_map(answer).collect();
    let texts: Vec<String> = answers.iter().map(|answer| answer.response.clone()).collect();
    let lists = alike(&texts);
    let mut alike: Vec<Alike> = lists.iter().filter_map(|list| Alike::of(list, &answers)).collect();
    alike.sort_by_key(|alike| std::cmp::Reverse((alike.wanted, alike.count)));
    alike.truncate(MOST_LISTS);
    Ok(Findings { index, correlations, failures, alike, compared: answers.len(), compared_from, trends })
}

/// Where the newest of the samples with the highest rewards are, and the lowest of their rewards.
fn best(index: &Index) -> (Vec<LinePlace>, Option<f64>) {
    let scored = || index.rows.iter().filter(|row| row.trajectory == 0 && !row.reward.is_nan());
    let mut rewards: Vec<f64> = scored().map(|row| row.reward).collect();
    if rewards.is_empty() {
        return (Vec::new(), None);
    }
    let tenth = rewards.len() * 9 / 10;
    let (_, from, _) = rewards.select_nth_unstable_by(tenth, f64::total_cmp);
    let from = *from;
    let mut bytes = 0;
    let places = scored().rev().filter(|row| row.reward >= from).take(MOST_COMPARED);
    let places = places.take_while(|row| {
        bytes += u64::from(row.length);
        bytes <= MOST_BYTES
    });
    (places.filter_map(|row| Some((index.path(row)?, row.offset, row.length))).collect(), Some(from))
}

/// What is compared of a sample.
#[derive(Deserialize)]
struct Answer {
    id: String,
    #[serde(default)]
    response: String,
    #[serde(default)]
    task: String,
    #[serde(default)]
    ground_truth: Option<String>,
    #[serde(default)]
    reward: f64,
}

fn answer(place: &LinePlace) -> Option<Answer> {
    let answer: Answer = serde_json::from_slice(&read_line_at(place).ok()?).ok()?;
    Some(answer).filter(|answer| !answer.response.trim().is_empty())
}

impl Alike {
    fn of(list: &[usize], all: &[Answer]) -> Option<Self> {
        let answers: Vec<&Answer> = list.iter().filter_map(|number| all.get(*number)).collect();
        let wanted = |answer: &&Answer| answer.ground_truth.clone().unwrap_or_else(|| answer.task.clone());
        let wanted = answers.iter().map(wanted).collect::<BTreeSet<String>>().len();
        let first = answers.first().filter(|_| wanted > 1)?;
        Some(Self {
            text: first.response.chars().take(TEXT).collect(),
            count: answers.len(),
            wanted,
            mean_reward: answers.iter().map(|answer| answer.reward).sum::<f64>() / answers.len() as f64,
            ids: answers.iter().take(MOST_OF_LIST).map(|answer| answer.id.clone()).collect(),
        })
    }
}
