//! `cargo xtask learning`: what each algorithm learns on the task of the demo, from the same warm-up and with the same
//! number of samples; what a sampler adds there, credit of turns on the demo with tools, and ways to draw tokens. The
//! curves are kept in `docs/learning.jsonl`, and shown in `docs/learning.md`.

mod cases;
mod few_rows;
mod page;

use crate::demo;
use crate::failure::{Failure, Result};
use crate::setup::cannot;
use crate::summary::Curve;
use cases::{Case, Kind, SEEDS, TEACHER, cases};
use page::{draw, page};
use serde_json::{Value, json};
use std::fs;
use std::path::Path;
use toml::Table;

const DATA: &str = "docs/learning.jsonl";
const PAGE: &str = "docs/learning.md";
/// The plugins of both demos, the reward of the DAPO recipe, the rewards of the cases with credit, and the sampler.
const PLUGINS: [&str; 7] =
    ["exact-answer", "format", "calculator", "length", "item-credit", "tool-credit", "near-half"];
const STEPS: u64 = 60;
/// Samples of a step, whatever the size of the groups.
const SAMPLES: u64 = 256;
/// The size of the groups of `demo/train.toml`.
const GROUP: u64 = 8;

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
    let cases = cases(root)?;
    let mut learned = read(root)?;
    // What a recipe or a name was before is not shown.
    learned.retain(|run| cases.iter().any(|case| case.name == run.name && case.settings == run.settings));
    report(root, &cases, &learned)?;
    let runs: Vec<(u64, &Case)> = (1..=SEEDS).flat_map(|seed| missing(&cases, &learned, seed)).collect();
    if runs.is_empty() {
        return Ok(());
    }
    demo::build(root, &PLUGINS)?;
    few_rows::write(root)?;
    for (seed, case) in runs {
        let [first, _] = case.kind.demo();
        let warm_up = demo::warm_up(root, first, &format!("seed={seed}"))?;
        if case.settings.contains(TEACHER) && !root.join(TEACHER).is_dir() {
            let grpo = cases.iter().find(|case| case.name == "GRPO");
            let grpo = grpo.ok_or_else(|| Failure::new("docs/algorithms.md has no recipe of GRPO"))?;
            take(root, grpo, 1, &warm_up.checkpoint)?;
        }
        let points = take(root, case, seed, &warm_up.checkpoint)?;
        learned.push(Learned { name: case.name.clone(), settings: case.settings.clone(), seed, points });
        report(root, &cases, &learned)?;
    }
    Ok(())
}

/// The runs with this seed that the data does not have yet.
fn missing<'a>(cases: &'a [Case], learned: &[Learned], seed: u64) -> Vec<(u64, &'a Case)> {
    let is_missing = |case: &&Case| {
        let is_it = |run: &Learned| run.name == case.name && run.settings == case.settings && run.seed == seed;
        seed <= case.kind.seeds() && !learned.iter().any(is_it)
    };
    cases.iter().filter(is_missing).map(|case| (seed, case)).collect()
}

fn report(root: &Path, cases: &[Case], learned: &[Learned]) -> Result<()> {
    write(root, DATA, &data(learned))?;
    draw(root, cases, learned)?;
    write(root, PAGE, &page(cases, learned))
}

/// Trains from the warm-up, and gives step and accuracy.
fn take(root: &Path, case: &Case, seed: u64, warm_up: &str) -> Result<Vec<(u64, f64)>> {
    let name: String = case.name.to_lowercase().replace("++", "pp").replace([' ', '.', ','], "-");
    let config = format!("target/demo/learning-{name}.toml");
    let [_, demo] = case.kind.demo();
    write(root, &config, &format!("include = \"../../{demo}\"\n\n{}", case.settings))?;
    let mut settings = vec![
        format!("seed={seed}"),
        format!("model.path={warm_up}"),
        "train.validate_every=10".to_owned(),
        "log.trajectories=false".to_owned(),
        format!("log.name=learning-{name}-{seed}"),
    ];
    // The runs with tools have the steps and samples of their demo.
    if case.kind != Kind::Turns {
        let prompts = SAMPLES / group(case)?;
        settings.push(format!("train.steps={STEPS}"));
        settings.push(format!("train.prompts_per_step={prompts}"));
        settings.push(format!("train.mini_batch_prompts={}", prompts / 2));
    }
    let settings = settings.iter().flat_map(|setting| ["--set", setting.as_str()]);
    let arguments: Vec<&str> = ["train", "-c", &config].into_iter().chain(settings).collect();
    let run = demo::gavel(root, &format!("{}, seed {seed}", case.name), &arguments)?;
    Ok(Curve::read(&root.join(run.folder).join("metrics.jsonl"))?.points().to_vec())
}

/// The size of its groups.
fn group(case: &Case) -> Result<u64> {
    let added: Table = case.settings.parse().map_err(|error: toml::de::Error| {
        Failure::new(format!("the recipe {} is not TOML", case.name)).why(error.to_string())
    })?;
    let size = added.get("rollout").and_then(|rollout| rollout.get("group_size")?.as_integer());
    Ok(size.map_or(GROUP, |size| size.unsigned_abs().max(1)))
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

fn write(root: &Path, name: &str, text: &str) -> Result<()> {
    let path = root.join(name);
    fs::write(&path, text).map_err(|error| cannot("write", &path, &error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_data_has_is_not_trained_again() {
        let case = |name: &str, kind| Case { name: name.to_owned(), settings: "a = 1\n".to_owned(), kind };
        let cases = [case("A", Kind::Recipe), case("B", Kind::Name), case("C", Kind::Turns)];
        let run = |name: &str, settings: &str, seed| Learned {
            name: name.to_owned(),
            settings: settings.to_owned(),
            seed,
            points: Vec::new(),
        };
        let learned = [run("A", "a = 1\n", 1), run("B", "a = 2\n", 1), run("C", "a = 1\n", 2)];
        let names =
            |seed| missing(&cases, &learned, seed).iter().map(|(_, case)| case.name.as_str()).collect::<String>();
        assert_eq!([names(1), names(2), names(3)], ["BC", "A", "AC"]);
    }
}
