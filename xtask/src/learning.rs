//! `cargo xtask learning`: what each algorithm learns on the task of the demo, from the same warm-up and with the same
//! number of samples. The curves are kept in `docs/learning.jsonl`, and shown in `docs/learning.md`.

use crate::demo;
use crate::failure::{Failure, Result};
use crate::plot::{self, Series};
use crate::setup::cannot;
use crate::summary::Curve;
use serde_json::{Value, json};
use std::fmt::Write;
use std::fs;
use std::path::Path;
use toml::Table;

const DATA: &str = "docs/learning.jsonl";
const PAGE: &str = "docs/learning.md";
/// The rewards of `demo/train.toml`, and that of the recipe of DAPO.
const REWARDS: [&str; 3] = ["exact-answer", "format", "length"];
/// Seeds of a recipe; other cases have the first.
const SEEDS: u64 = 3;
const STEPS: u64 = 60;
/// Samples of a step, whatever the size of the groups.
const SAMPLES: u64 = 256;
/// The size of the groups of `demo/train.toml`.
const GROUP: u64 = 8;

/// The names of `train.algorithm` that no recipe has, with the loss that belongs to them.
const ALGORITHMS: [(&str, &str); 4] = [
    ("grpo_passk", "vanilla"),
    ("gpg", "gpg"),
    ("optimal_token_baseline", "vanilla"),
    ("tir_optimal_token_baseline", "vanilla"),
];
/// The names of `train.loss.policy` that no recipe has.
const LOSSES: [&str; 10] =
    ["gspo_token", "icepop", "m2po", "sapo", "geo_mean", "clip_cov", "kl_cov", "dppo_tv", "dppo_kl", "dro"];

/// What a run adds to `demo/train.toml`.
struct Case {
    name: String,
    /// TOML.
    settings: String,
    is_recipe: bool,
}

/// The validation accuracy of a run.
struct Learned {
    name: String,
    settings: String,
    seed: u64,
    /// Step and accuracy.
    points: Vec<(u64, f64)>,
}

/// Takes the runs that the data does not have yet, and writes data and page after each.
pub fn run(root: &Path) -> Result<()> {
    demo::build(root, &REWARDS)?;
    let cases = cases(root)?;
    let mut learned = read(root)?;
    // What a recipe or a name was before is not shown.
    learned.retain(|run| cases.iter().any(|case| case.name == run.name && case.settings == run.settings));
    report(root, &cases, &learned)?;
    for seed in 1..=SEEDS {
        let is_missing = |case: &&Case| {
            let is_it = |run: &Learned| run.name == case.name && run.settings == case.settings && run.seed == seed;
            (case.is_recipe || seed == 1) && !learned.iter().any(is_it)
        };
        let missing: Vec<&Case> = cases.iter().filter(is_missing).collect();
        if missing.is_empty() {
            continue;
        }
        let warm_up = demo::warm_up(root, "demo/sft.toml", &format!("seed={seed}"))?;
        for case in missing {
            let points = take(root, case, seed, &warm_up.checkpoint)?;
            learned.push(Learned { name: case.name.clone(), settings: case.settings.clone(), seed, points });
            report(root, &cases, &learned)?;
        }
    }
    Ok(())
}

fn report(root: &Path, cases: &[Case], learned: &[Learned]) -> Result<()> {
    write(root, DATA, &data(learned))?;
    draw(root, cases, learned)?;
    write(root, PAGE, &page(cases, learned))
}

/// The recipes of the page, and each name that none of them has.
fn cases(root: &Path) -> Result<Vec<Case>> {
    let path = root.join("docs/algorithms.md");
    let page = fs::read_to_string(&path).map_err(|error| cannot("read", &path, &error))?;
    let other = |name: &str, settings: String| Case { name: name.to_owned(), settings, is_recipe: false };
    let algorithms = ALGORITHMS
        .map(|(name, loss)| other(name, format!("[train]\nalgorithm = \"{name}\"\nloss.policy = \"{loss}\"\n")));
    let losses = LOSSES.map(|name| other(name, format!("[train]\nloss.policy = \"{name}\"\n")));
    Ok(recipes(&page).into_iter().chain(algorithms).chain(losses).collect())
}

/// The blocks of TOML below a paragraph that begins with a method in bold.
fn recipes(page: &str) -> Vec<Case> {
    let (mut found, mut method, mut block) = (Vec::new(), String::new(), None);
    for line in page.lines() {
        match (&mut block, line) {
            (None, "```toml") => block = Some(String::new()),
            (Some(_), "```") => {
                let settings = block.take().unwrap_or_default();
                found.push(Case { name: method.clone(), settings, is_recipe: true });
            }
            (Some(text), line) => *text += &format!("{line}\n"),
            (None, line) => {
                if let Some((name, _)) = line.strip_prefix("**").and_then(|rest| rest.split_once("**")) {
                    name.clone_into(&mut method);
                }
            }
        }
    }
    found
}

/// Trains from the warm-up, and gives step and accuracy.
fn take(root: &Path, case: &Case, seed: u64, warm_up: &str) -> Result<Vec<(u64, f64)>> {
    let added: Table = case.settings.parse().map_err(|error: toml::de::Error| {
        Failure::new(format!("the recipe {} is not TOML", case.name)).why(error.to_string())
    })?;
    let group = added.get("rollout").and_then(|rollout| rollout.get("group_size")?.as_integer());
    let prompts = SAMPLES / group.map_or(GROUP, |size| size.unsigned_abs().max(1));
    let name: String = case.name.to_lowercase().replace("++", "pp").replace([' ', '.'], "-");
    let config = format!("target/demo/learning-{name}.toml");
    write(root, &config, &format!("include = \"../../demo/train.toml\"\n\n{}", case.settings))?;
    let settings = [
        format!("seed={seed}"),
        format!("model.path={warm_up}"),
        format!("train.steps={STEPS}"),
        format!("train.prompts_per_step={prompts}"),
        format!("train.mini_batch_prompts={}", prompts / 2),
        "train.validate_every=10".to_owned(),
        "log.trajectories=false".to_owned(),
        format!("log.name=learning-{name}-{seed}"),
    ];
    let settings = settings.iter().flat_map(|setting| ["--set", setting.as_str()]);
    let arguments: Vec<&str> = ["train", "-c", &config].into_iter().chain(settings).collect();
    let run = demo::gavel(root, &format!("{}, seed {seed}", case.name), &arguments)?;
    Ok(Curve::read(&root.join(run.folder).join("metrics.jsonl"))?.points().to_vec())
}

fn read(root: &Path) -> Result<Vec<Learned>> {
    let path = root.join(DATA);
    let text = match fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(cannot("read", &path, &error)),
    };
    let run = |line: &str| {
        let value: Value = serde_json::from_str(line).ok()?;
        let text = |key: &str| value.get(key)?.as_str().map(str::to_owned);
        let point = |point: &Value| Some((point.get(0)?.as_u64()?, point.get(1)?.as_f64()?));
        let points = value.get("accuracy")?.as_array()?.iter().map(point).collect::<Option<Vec<_>>>()?;
        Some(Learned { name: text("name")?, settings: text("settings")?, seed: value.get("seed")?.as_u64()?, points })
    };
    let wrong = |number: usize| Failure::new(format!("line {} of {DATA} is not a run", number + 1));
    text.lines().enumerate().map(|(number, line)| run(line).ok_or_else(|| wrong(number))).collect()
}

fn data(learned: &[Learned]) -> String {
    let line = |Learned { name, settings, seed, points }: &Learned| {
        let run = json!({"name": name, "settings": settings, "seed": seed, "accuracy": points});
        format!("{run}\n")
    };
    learned.iter().map(line).collect()
}

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

fn draw(root: &Path, cases: &[Case], learned: &[Learned]) -> Result<()> {
    for (are_recipes, name, title) in
        [(true, "recipes", "The recipes: mean over seeds"), (false, "others", "The other names")]
    {
        let curves: Vec<(&str, Vec<(u64, f64)>)> = cases
            .iter()
            .filter(|case| case.is_recipe == are_recipes)
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

fn page(cases: &[Case], learned: &[Learned]) -> String {
    let mut page = format!(
        "# What each algorithm learns\n\n\
        `cargo xtask learning` trains the policy of the demo with every recipe of [algorithms.md](algorithms.md#recipes), with up to three seeds, and with every other name, with one. All runs begin with the same warm-up of their seed, draw {} samples in {STEPS} steps of two updates, and keep the demo's learning rate. No setting was tuned, so a low number says that a method needs another learning rate or more samples on this task, not that it is worse than another. `learning.jsonl` has the data.\n\n\
        ![accuracy over steps, recipes](learning-recipes.svg)\n\n\
        ![accuracy over steps, other names](learning-others.svg)\n\n\
        | | before | after, by seed | mean |\n|---|---|---|---|\n",
        STEPS * SAMPLES
    );
    for case in cases.iter().filter(|case| learned.iter().any(|run| run.name == case.name)) {
        let runs: Vec<&Learned> = learned.iter().filter(|run| run.name == case.name).collect();
        let ends = || runs.iter().filter_map(|run| Some((run.points.first()?.1, run.points.last()?.1)));
        let list =
            |numbers: Vec<f64>| numbers.iter().map(|number| format!("{number:.3}")).collect::<Vec<_>>().join(", ");
        let after: Vec<f64> = ends().map(|(_, after)| after).collect();
        let mean = after.iter().sum::<f64>() / after.len().max(1) as f64;
        let name = if case.is_recipe { case.name.clone() } else { format!("`{}`", case.name) };
        let before = list(ends().map(|(before, _)| before).collect());
        // Writing to a text does not fail.
        let _ = writeln!(page, "| {name} | {before} | {} | {mean:.3} |", list(after));
    }
    page
}

fn write(root: &Path, name: &str, text: &str) -> Result<()> {
    let path = root.join(name);
    fs::write(&path, text).map_err(|error| cannot("write", &path, &error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recipes_are_read_from_the_page() {
        let found = recipes(
            "**GRPO**, as published.\n\n```toml\n[train]\n```\ntext\n```sh\nls\n```\n**A B**\n```toml\na = 1\n```\n",
        );
        let found: Vec<_> = found.iter().map(|case| (case.name.as_str(), case.settings.as_str())).collect();
        assert_eq!(found, [("GRPO", "[train]\n"), ("A B", "a = 1\n")]);
    }

    #[test]
    fn every_name_of_the_page_has_a_run() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let page = fs::read_to_string(root.join("docs/algorithms.md")).unwrap();
        let cases = cases(&root).unwrap();
        for heading in ["\n## Advantages\n", "\n## Losses\n"] {
            let section = page.split(heading).nth(1).unwrap().split("\n## ").next().unwrap();
            let names = section.lines().filter_map(|line| Some(line.strip_prefix("| `")?.split_once("` |")?.0));
            let names: Vec<&str> = names.filter(|name| !name.contains('.')).collect();
            assert!(names.len() > 10, "{names:?}");
            for name in names {
                assert!(cases.iter().any(|case| case.settings.contains(&format!("\"{name}\""))), "{name}");
            }
        }
    }

    #[test]
    fn the_page_has_the_end_of_each_run() {
        let case = Case { name: "GRPO".into(), settings: String::new(), is_recipe: true };
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
