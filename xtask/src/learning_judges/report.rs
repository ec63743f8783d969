//! The data of the runs, and the page that shows them.

use super::checks::Checks;
use super::unreliable::{BURST, DELAY, FAILING, RATE, Requests};
use super::{STEPS, TEACHERS};
use crate::failure::{Failure, Result};
use crate::plot::{self, Series};
use crate::setup::cannot;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::Path;

const DATA: &str = "docs/learning-judges.jsonl";
const PAGE: &str = "docs/learning-judges.md";
const PICTURE: &str = "docs/learning-judges.svg";

/// A run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Learned {
    /// The name of the reward that it was trained on.
    pub reward: String,
    pub seed: u64,
    /// Step and validation accuracy, by the exact answer.
    pub accuracy: Vec<(u64, f64)>,
    /// The share of held-out pairs or answers that the reward judges as the exact answer does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quality: Option<f64>,
    /// How many samples had each outcome of the reward.
    pub outcomes: BTreeMap<String, u64>,
    /// How many samples without a score of the reward counted in training.
    pub counted_without_score: u64,
    /// Step, and the share of pairs of a right and a wrong answer that the reward has in another order.
    pub disagreement: Vec<(u64, f64)>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mistakes: Option<Mistakes>,
    /// What the server did to the requests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requests: Option<Requests>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checks: Option<Checks>,
}

/// The mistakes of a judge about the samples of a run.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Mistakes {
    /// The share of wrong answers that it takes for right.
    pub wrong_accepted: f64,
    /// The share of right answers that it takes for wrong.
    pub right_refused: f64,
}

/// The runs so far.
pub fn read(root: &Path) -> Result<Vec<Learned>> {
    let path = root.join(DATA);
    let text = match fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(cannot("read", &path, &error)),
    };
    let run = |(number, line): (usize, &str)| {
        let wrong = |error| Failure::new(format!("line {} of {DATA} is not a run", number + 1)).why(error);
        serde_json::from_str(line).map_err(wrong)
    };
    text.lines().enumerate().map(run).collect()
}

/// Writes the data, the picture and the page.
pub fn write(root: &Path, learned: &[Learned]) -> Result<()> {
    let mut data = String::new();
    for run in learned {
        let line = serde_json::to_string(run).map_err(|error| Failure::new("cannot write a run").why(error))?;
        data += &format!("{line}\n");
    }
    put(root, DATA, &data)?;
    let curves: Vec<(&str, Vec<(u64, f64)>)> = TEACHERS
        .iter()
        .map(|teacher| (teacher.title, mean(&of(learned, teacher.reward))))
        .filter(|(_, points)| !points.is_empty())
        .collect();
    let series: Vec<Series<'_>> = curves.iter().map(|(name, points)| Series { name, points }).collect();
    if !series.is_empty() {
        plot::write_many(&root.join(PICTURE), "Trained on: mean over seeds", "validation accuracy", &series)?;
    }
    put(root, PAGE, &page(learned))
}

fn put(root: &Path, name: &str, text: &str) -> Result<()> {
    let path = root.join(name);
    fs::write(&path, text).map_err(|error| cannot("write", &path, &error))
}

/// The runs of a reward.
fn of<'a>(learned: &'a [Learned], reward: &str) -> Vec<&'a Learned> {
    learned.iter().filter(|run| run.reward == reward).collect()
}

/// The mean accuracy at each step.
fn mean(runs: &[&Learned]) -> Vec<(u64, f64)> {
    let Some(first) = runs.first() else { return Vec::new() };
    let at = |(number, (step, _)): (usize, &(u64, f64))| {
        let values: Vec<f64> = runs.iter().filter_map(|run| run.accuracy.get(number)).map(|point| point.1).collect();
        (*step, values.iter().sum::<f64>() / values.len().max(1) as f64)
    };
    first.accuracy.iter().enumerate().map(at).collect()
}

fn page(learned: &[Learned]) -> String {
    let (least, most) = DELAY;
    let mut page = format!(
        "# What a policy learns from a judge\n\n\
        `cargo xtask learning-judges` trains the policy of the demo with three rewards, with three seeds each: the exact answer, a reward model that was trained on pairs, and the judgement of a language model. All runs have the settings of `demo/train.toml` and {STEPS} steps, and begin with the same warm-up of their seed. `learning-judges.jsonl` has the data.\n\n\
        - **The reward model** (`demo/judge-pairs.toml`) is trained on pairs of a right answer and one with a mistake. It and the language model begin with the policy of seed 1 that the exact answer has taught, and judge the policies of all seeds.\n\
        - **The language model** (`demo/judge-sft.toml`) is trained by `gavel sft` on the same answers. It compares the right answer with the judged one digit by digit, and writes a score of 10 or 0. `gavel serve` serves it, and the plugin `llm-judge` asks it.\n\
        - Between them is a server that delays each answer by {least} to {most} ms. It takes {RATE} requests a second, {BURST} of them at once, and answers more with 429. {} % of the requests fail: with 503, without an answer, or with half of it. A request is sent at most twice.\n\
        - **The exact answer** is measured in all runs, with weight 0 in the last two.\n\n\
        ![accuracy over steps](learning-judges.svg)\n\n\
        ## Accuracy\n\n\
        Greedy answers to 500 questions that training never saw, by seed.\n\n\
        | trained on | before | after | mean |\n|---|---|---|---|\n",
        FAILING * 100.0
    );
    for teacher in TEACHERS {
        let runs = of(learned, teacher.reward);
        let ends: Vec<_> =
            runs.iter().filter_map(|run| Some((run.accuracy.first()?.1, run.accuracy.last()?.1))).collect();
        if ends.is_empty() {
            continue;
        }
        let mean = ends.iter().map(|(_, after)| after).sum::<f64>() / ends.len() as f64;
        let [before, after] = [list(ends.iter().map(|end| end.0)), list(ends.iter().map(|end| end.1))];
        // Writing to a text does not fail, here and below.
        let _ = writeln!(page, "| {} | {before} | {after} | {mean:.3} |", teacher.title);
    }
    page += "\n## The rewards against the exact answer\n\n\
        *Held out* is the share of answers or pairs that training of the reward never saw, and that it judges as the exact answer does. *Disagreement* is the share of pairs of a right and a wrong answer to the same question, among the samples of ten steps of the run, in which the reward does not prefer the right one; a tie counts half.\n\n\
        | trained on | seed | held out | disagreement, first and last ten steps | wrong answers taken for right | right answers taken for wrong |\n|---|---|---|---|---|---|\n";
    for (title, run) in with_titles(learned) {
        let Some(quality) = run.quality else { continue };
        let ends = run.disagreement.first().zip(run.disagreement.last());
        let ends = ends.map_or_else(String::new, |(first, last)| format!("{:.3}, {:.3}", first.1, last.1));
        let [accepted, refused] = match run.mistakes {
            Some(Mistakes { wrong_accepted, right_refused }) => {
                [wrong_accepted, right_refused].map(|each| format!("{each:.3}"))
            }
            None => [String::new(), String::new()],
        };
        let _ = writeln!(page, "| {title} | {} | {quality:.3} | {ends} | {accepted} | {refused} |", run.seed);
    }
    page += "\n## Outcomes\n\n\
        The outcomes of each reward in the whole run. A sample without a score has no reward, and is not trained on: the last column counts exceptions.\n\n\
        | trained on | seed | outcomes | without a score, but counted |\n|---|---|---|---|\n";
    for (title, run) in with_titles(learned) {
        let outcomes: Vec<String> = run.outcomes.iter().map(|(name, count)| format!("{count} {name}")).collect();
        let _ = writeln!(page, "| {title} | {} | {} | {} |", run.seed, outcomes.join(", "), run.counted_without_score);
    }
    page += "\n## The requests to the language model\n\n\
        What the server in front of it did to the requests of the run. A sample's second request is among them, and so are those about the answers to the 500 questions, which validation asks. Afterwards, every verdict of the run is given again from the recording, and the language model is asked again about some of the samples with a score, without that server. The last two columns count the verdicts that differ.\n\n\
        | seed | answered | 429 | 503 | cut | replayed, different | asked again, different |\n|---|---|---|---|---|---|---|\n";
    for run in of(learned, "judge") {
        let (Some(requests), Some(checks)) = (run.requests, &run.checks) else { continue };
        let Requests { answered, limited, failed, cut } = requests;
        let Checks { replayed, replayed_otherwise, asked_again, scored_otherwise } = checks;
        let _ = writeln!(
            page,
            "| {} | {answered} | {limited} | {failed} | {cut} | {replayed}, {replayed_otherwise} | {asked_again}, {scored_otherwise} |",
            run.seed
        );
    }
    page
}

fn with_titles(learned: &[Learned]) -> impl Iterator<Item = (&'static str, &Learned)> {
    TEACHERS.iter().flat_map(|teacher| of(learned, teacher.reward).into_iter().map(|run| (teacher.title, run)))
}

fn list(numbers: impl Iterator<Item = f64>) -> String {
    numbers.map(|number| format!("{number:.3}")).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(seed: u64, end: f64) -> Learned {
        Learned {
            reward: "judge".into(),
            seed,
            accuracy: vec![(0, 0.25), (10, end)],
            quality: Some(0.9),
            outcomes: BTreeMap::from([("abstained".into(), 12), ("scored".into(), 100)]),
            counted_without_score: 0,
            disagreement: vec![(10, 0.125), (20, 0.25)],
            mistakes: Some(Mistakes { wrong_accepted: 0.05, right_refused: 0.1 }),
            requests: Some(Requests { answered: 100, limited: 4, failed: 3, cut: 2 }),
            checks: Some(Checks { replayed: 112, replayed_otherwise: 0, asked_again: 50, scored_otherwise: 1 }),
        }
    }

    #[test]
    fn the_page_has_each_run() {
        let page = page(&[judged(1, 0.5), judged(2, 1.0)]);
        for row in [
            "| a language model | 0.250, 0.250 | 0.500, 1.000 | 0.750 |\n",
            "| a language model | 1 | 0.900 | 0.125, 0.250 | 0.050 | 0.100 |\n",
            "| a language model | 2 | 12 abstained, 100 scored | 0 |\n",
            "| 1 | 100 | 4 | 3 | 2 | 112, 0 | 50, 1 |\n",
        ] {
            assert!(page.contains(row), "no {row:?} in {page}");
        }
    }

    #[test]
    fn runs_are_read_as_they_were_written() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("docs")).unwrap();
        let runs = [judged(1, 0.5), Learned { mistakes: None, checks: None, ..judged(2, 1.0) }];
        write(folder.path(), &runs).unwrap();
        assert_eq!(read(folder.path()).unwrap(), runs);
        fs::write(folder.path().join(DATA), "{}\n").unwrap();
        assert!(read(folder.path()).unwrap_err().to_string().contains("line 1 of docs/learning-judges.jsonl"));
    }
}
