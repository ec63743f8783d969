//! `cargo xtask learning-judges`: what the policy of the demo learns from the exact answer, from a reward model that was
//! trained on pairs, and from a language model that `gavel serve` serves behind a server that delays, limits and fails.
//! The curves and counts are kept in `docs/learning-judges.jsonl`, and shown in `docs/learning-judges.md`.

mod checks;
mod recorded;
mod report;
mod served;
mod unreliable;

use crate::demo::{self, Run};
use crate::failure::Result;
use crate::summary::Curve;
use report::{Learned, Mistakes};
use served::Served;
use std::path::Path;
use unreliable::Unreliable;

/// The rewards of `demo/train.toml`, `demo/learning-pairs.toml` and `demo/learning-judge.toml`.
const PLUGINS: [&str; 4] = ["exact-answer", "format", "reward-model", "llm-judge"];
const SEEDS: u64 = 3;
/// The seed of the reward model and of the language model, which judge the policies of all seeds.
const JUDGES_SEED: u64 = 1;
const STEPS: u64 = 60;

/// What a policy is trained on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Teacher {
    /// The name of its `[[reward]]`.
    reward: &'static str,
    /// Its name on the page.
    title: &'static str,
    config: &'static str,
}

const EXACT: Teacher = Teacher { reward: "answer", title: "the exact answer", config: "demo/train.toml" };
const PAIRS: Teacher = Teacher { reward: "pairs", title: "a reward model", config: "demo/learning-pairs.toml" };
const JUDGE: Teacher = Teacher { reward: "judge", title: "a language model", config: "demo/learning-judge.toml" };
const TEACHERS: [Teacher; 3] = [EXACT, PAIRS, JUDGE];

/// Takes the runs that the data does not have yet, and writes data and page after each.
pub fn run(root: &Path) -> Result<()> {
    demo::build(root, &PLUGINS)?;
    let mut learned = report::read(root)?;
    report::write(root, &learned)?;
    for seed in 1..=SEEDS {
        for teacher in TEACHERS {
            if learned.iter().any(|run| run.reward == teacher.reward && run.seed == seed) {
                continue;
            }
            learned.push(take(root, teacher, seed)?);
            report::write(root, &learned)?;
        }
    }
    Ok(())
}

/// Makes what the policy is trained on, and trains it.
fn take(root: &Path, teacher: Teacher, seed: u64) -> Result<Learned> {
    if teacher == EXACT {
        let run = train(root, teacher, seed, &[])?;
        return learned(root, teacher, seed, &run, None);
    }
    // Of a policy that the exact answer has taught: what judges must sort better than what it judges.
    let base = format!("model.path={}", train(root, EXACT, JUDGES_SEED, &[])?.checkpoint);
    let settings = [&format!("seed={JUDGES_SEED}"), base.as_str()];
    if teacher == PAIRS {
        let judge = demo::once(root, "reward model", "reward-model", "demo/judge-pairs.toml", &settings)?;
        let path = format!("reward_model.pairs.path={}", judge.checkpoint);
        let run = train(root, teacher, seed, &[&path])?;
        return learned(root, teacher, seed, &run, Some(&judge));
    }
    let judge = demo::once(root, "judge", "sft", "demo/judge-sft.toml", &settings)?;
    let served = Served::start(root, &judge.checkpoint)?;
    let server = Unreliable::start(served.address.clone(), seed)?;
    let url = format!("chat.judge.base_url=http://{}/v1", server.address());
    let run = train(root, teacher, seed, &[&url])?;
    let requests = server.requests();
    let checks = checks::take(root, &run, &served.address)?;
    Ok(Learned { requests: Some(requests), checks: Some(checks), ..learned(root, teacher, seed, &run, Some(&judge))? })
}

fn train(root: &Path, teacher: Teacher, seed: u64, more: &[&str]) -> Result<Run> {
    let policy = demo::warm_up(root, "demo/sft.toml", &format!("seed={seed}"))?;
    let settings = [
        format!("seed={seed}"),
        format!("model.path={}", policy.checkpoint),
        format!("train.steps={STEPS}"),
        "train.validate_every=10".to_owned(),
        format!("log.name=learning-judges-{}-{seed}", teacher.reward),
    ];
    let settings: Vec<&str> = settings.iter().map(String::as_str).chain(more.iter().copied()).collect();
    demo::once(root, &format!("{}, seed {seed}", teacher.title), "train", teacher.config, &settings)
}

/// What a run recorded. `judge` is the run that made its reward.
fn learned(root: &Path, teacher: Teacher, seed: u64, run: &Run, judge: Option<&Run>) -> Result<Learned> {
    let metrics = |run: &Run| root.join(&run.folder).join("metrics.jsonl");
    let quality = judge.map(|judge| Curve::read(&metrics(judge))).transpose()?;
    let samples = recorded::read(&root.join(&run.folder))?;
    let reward = teacher.reward;
    let mistakes = (teacher == JUDGE).then(|| {
        let (wrong_accepted, right_refused) = recorded::mistakes(&samples, reward);
        Mistakes { wrong_accepted, right_refused }
    });
    Ok(Learned {
        reward: reward.to_owned(),
        seed,
        accuracy: Curve::read(&metrics(run))?.points().to_vec(),
        quality: quality.and_then(|curve| curve.points().last().map(|point| point.1)),
        outcomes: recorded::outcomes(&samples, reward),
        counted_without_score: recorded::counted_without_score(&samples, reward),
        disagreement: recorded::disagreement(&samples, reward),
        mistakes,
        requests: None,
        checks: None,
    })
}
