//! The page of `cargo xtask learning`, and its pictures.

use super::cases::{Case, Kind};
use super::{Learned, SAMPLES, STEPS};
use crate::failure::Result;
use crate::plot::{self, Series};
use std::fmt::Write;
use std::path::Path;

/// The mean over seeds at each step.
fn mean(case: &Case, learned: &[Learned]) -> Vec<(u64, f64)> {
    let runs: Vec<&Learned> = learned.iter().filter(|run| run.name == case.name).collect();
    let Some(first) = runs.first() else { return Vec::new() };
    let at = |(number, (step, _)): (usize, &(u64, f64))| {
        let values: Vec<f64> = runs.iter().filter_map(|run| run.points.get(number)).map(|point| point.1).collect();
        (*step, values.iter().sum::<f64>() / values.len().max(1) as f64)
    };
    first.points.iter().enumerate().map(at).collect()
}

/// Draws the curves of each part.
pub fn draw(root: &Path, cases: &[Case], learned: &[Learned]) -> Result<()> {
    for kind in Kind::ALL {
        let [name, title, _] = kind.words();
        let curves: Vec<(&str, Vec<(u64, f64)>)> = cases
            .iter()
            .filter(|case| case.kind == kind)
            .map(|case| (case.name.as_str(), mean(case, learned)))
            .filter(|(_, points)| !points.is_empty())
            .collect();
        let series: Vec<Series<'_>> = curves.iter().map(|(name, points)| Series { name, points }).collect();
        if !series.is_empty() {
            plot::write_many(&root.join(format!("docs/learning-{name}.svg")), title, "validation accuracy", &series)?;
        }
    }
    Ok(())
}

/// The page.
pub fn page(cases: &[Case], learned: &[Learned]) -> String {
    let mut page = format!(
        "# What each algorithm learns\n\n\
        `cargo xtask learning` trains the policy of the demo with every recipe of [algorithms.md](algorithms.md#recipes), with up to three seeds, and with every other name, with one. Then it compares ways to give credit, to draw rows, and to draw tokens. All runs of a part begin with the same warm-up of their seed. Except for credit of turns, they draw {} samples in {STEPS} steps of two updates, and keep the demo's learning rate. No setting was tuned, so a low number says that a method needs another learning rate or more samples on this task, not that it is worse than another. Compare runs of the same part only: parts were trained by different versions of Gavel, so that their warm-ups differ. `learning.jsonl` has the data.\n",
        STEPS * SAMPLES
    );
    for kind in Kind::ALL {
        let shown = |case: &&Case| case.kind == kind && learned.iter().any(|run| run.name == case.name);
        let cases: Vec<&Case> = cases.iter().filter(shown).collect();
        if !cases.is_empty() {
            part(&mut page, kind, &cases, learned);
        }
    }
    page
}

/// Adds a part of the page: a picture and a table.
fn part(page: &mut String, kind: Kind, cases: &[&Case], learned: &[Learned]) {
    let [picture, _, heading] = kind.words();
    let about = match kind {
        Kind::Recipe => "",
        Kind::Distillation => {
            "The teacher is what the recipe of GRPO made of the first seed. In self-distillation, it is the policy of up to ten steps before, beside the rewards; the others learn from the teacher alone.\n\n"
        }
        Kind::Name => "The teacher of `distillation` is what the recipe of GRPO made of the first seed.\n\n",
        Kind::Credit => {
            "The reward is the share of digits in the right place ([item-credit](../plugins/item-credit/README.md)), and only measured is whether all are. With credit, each right digit has its own reward, and each wrong one the negative. The settings come from the recipe of PPO, and for GRPO from the demo.\n\n"
        }
        Kind::Sampler => {
            "[near-half](../plugins/near-half/README.md) prefers questions whose success rate is near a half. With all rows of the demo, most questions come at most once in a run. The few rows are the first 256, so that a question comes seven times on average. The validation questions are the demo's.\n\n"
        }
        Kind::Turns => {
            "The policy of `cargo xtask demo-tools` may call a calculator before it answers. The runs have the settings of `demo/tools.toml`: GRPO, 40 steps of 128 samples. `the answer` has the demo's reward, whether the answer is right. `the answer and the call` adds 0.5 for a sample whose calculator gave the right number ([tool-credit](../plugins/tool-credit/README.md)). The other runs give 0.5 to the turn that called it, or -0.5 if the number was wrong, and compare [turns](algorithms.md#rewards-of-turns) by `index`, `return` or `state`.\n\n"
        }
        Kind::Draws => {
            "`int8` draws with [weights of 8 bits](configuration.md#fewer-bits), and corrects the update by `rollout_is = \"token\"`. The grammar allows the form that the demo rewards, `Answer: [0-9]( [0-9])*`, and nothing else. [Masks](algorithms.md#what-could-be-drawn) are what training knows about the tokens that could be drawn; `without masks`, it takes the whole softmax. Validation draws in the same way, so what is valid is bound by the grammar too.\n\n"
        }
    };
    // Writing to a text does not fail.
    let _ = write!(
        page,
        "\n## {heading}\n\n{about}![accuracy over steps](learning-{picture}.svg)\n\n\
         | | before | after, by seed | mean |\n|---|---|---|---|\n"
    );
    for case in cases {
        let runs: Vec<&Learned> = learned.iter().filter(|run| run.name == case.name).collect();
        let ends = || runs.iter().filter_map(|run| Some((run.points.first()?.1, run.points.last()?.1)));
        let list =
            |numbers: Vec<f64>| numbers.iter().map(|number| format!("{number:.3}")).collect::<Vec<_>>().join(", ");
        let after: Vec<f64> = ends().map(|(_, after)| after).collect();
        let mean = after.iter().sum::<f64>() / after.len().max(1) as f64;
        let name = if kind == Kind::Name { format!("`{}`", case.name) } else { case.name.clone() };
        let before = list(ends().map(|(before, _)| before).collect());
        let _ = writeln!(page, "| {name} | {before} | {} | {mean:.3} |", list(after));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_has_the_end_of_each_run() {
        let case = Case { name: "GRPO".into(), settings: String::new(), kind: Kind::Recipe };
        let run = |seed: u64, end: f64| Learned {
            name: "GRPO".into(),
            settings: String::new(),
            seed,
            points: vec![(0, 0.25), (10, end)],
        };
        let learned = [run(1, 0.5), run(2, 1.0)];
        assert_eq!(mean(&case, &learned), [(0, 0.25), (10, 0.75)]);
        assert!(page(&[case], &learned).contains("| GRPO | 0.250, 0.250 | 0.500, 1.000 | 0.750 |\n"));
    }
}
