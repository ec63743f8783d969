//! The summary that the demo prints at its end.

use crate::demo::Run;
use crate::failure::{Failure, Result};
use crate::setup::cannot;
use crate::ui::Seconds;
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::time::Duration;

/// Validation accuracy over a run.
#[derive(Debug, PartialEq)]
pub struct Curve {
    /// Step and greedy accuracy in `[0, 1]`, in the order of steps; never empty.
    points: Vec<(u64, f64)>,
}

impl Curve {
    /// Step and number, in the order of steps; not empty.
    pub fn points(&self) -> &[(u64, f64)] {
        &self.points
    }

    /// Reads it from a run's `metrics.jsonl`.
    pub fn read(path: &Path) -> Result<Self> {
        Self::read_metric(path, "val/accuracy")
    }

    /// Reads another metric.
    pub fn read_metric(path: &Path, name: &str) -> Result<Self> {
        let text = fs::read_to_string(path).map_err(|error| cannot("read", path, &error))?;
        let point = |line: &str| {
            let metrics: Value = serde_json::from_str(line).ok()?;
            Some((metrics.get("step")?.as_u64()?, metrics.get(name)?.as_f64()?))
        };
        let points: Vec<_> = text.lines().filter_map(point).collect();
        if points.is_empty() {
            return Err(Failure::new(format!("no line of {} has {name}", path.display()))
                .hint("the run's configuration must validate at least once"));
        }
        Ok(Self { points })
    }
}

/// The summary of the demo's `run`; the demo took `time`.
pub fn demo(curve: &Curve, run: &Run, time: Duration) -> String {
    let bar = |accuracy: f64| "#".repeat((accuracy * 40.0).round() as usize);
    let rows: String = curve
        .points
        .iter()
        .map(|&(step, accuracy)| format!("  step {step:>4}  {:>5.1} %  {}\n", accuracy * 100.0, bar(accuracy)))
        .collect();
    let (before, after) = (curve.points[0].1 * 100.0, curve.points[curve.points.len() - 1].1 * 100.0);
    format!(
        "
Greedy accuracy on 500 questions that training never saw:
{rows}
From {before:.1} % after the warm-up to {after:.1} % after reinforcement learning, in {time}.

The run is in {folder}/:
  config.toml, metrics.jsonl, trajectories/, checkpoints/, and event files for TensorBoard

Try next:
  target/release/gavel generate -m {checkpoint} --chat --prompt 'Smallest first, please: 4 0 9 8' --temperature 0
  target/release/gavel eval -c demo/train.toml --checkpoint {checkpoint}
  target/release/gavel replay {folder}
  target/release/gavel plugin inspect target/plugins/exact-answer.wasm
  plugins/exact-answer/src/lib.rs is a reward to start yours from
",
        folder = run.folder,
        checkpoint = run.checkpoint,
        time = Seconds(time),
    )
}

/// A demo with tools, as its summary presents it.
pub struct ToolsDemo {
    /// What validation asks.
    pub asked: &'static str,
    /// The configuration of its reinforcement learning.
    pub config: &'static str,
    /// What to read next.
    pub read: &'static str,
}

/// The summary of the run of a demo with tools; the demo took `time`.
pub fn demo_tools(about: &ToolsDemo, accuracy: &Curve, calls: &Curve, run: &Run, time: Duration) -> String {
    let rows: String = accuracy
        .points
        .iter()
        .zip(&calls.points)
        .map(|(&(step, accuracy), &(_, calls))| format!("  {step:>4}  {:>7.1} %  {calls:>5.2}\n", accuracy * 100.0))
        .collect();
    let ends = |curve: &Curve| (curve.points[0].1, curve.points[curve.points.len() - 1].1);
    let ((before, after), (few, many)) = (ends(accuracy), ends(calls));
    format!(
        "
Greedy answers to {asked} that training never saw:
  step   accuracy  calls
{rows}
From {:.1} % with {few:.2} calls an answer to {:.1} % with {many:.2}, in {time}.

The run is in {folder}/. Try next:
  target/release/gavel eval -c {config} --checkpoint {checkpoint} --samples 4
  {read}
",
        before * 100.0,
        after * 100.0,
        asked = about.asked,
        config = about.config,
        read = about.read,
        folder = run.folder,
        checkpoint = run.checkpoint,
        time = Seconds(time),
    )
}

/// The folders of the demo with a reward model: its runs, and the picture of the second one.
pub struct RewardModelRuns<'a> {
    /// The run that trained the reward model.
    pub reward_model: &'a Run,
    /// The run that trained a policy on it.
    pub policy: &'a Run,
    /// The picture.
    pub plot: &'a str,
}

/// The summary of the demo with a reward model: its accuracy on held-out pairs, and the scores of a policy's samples by
/// the reward model and by the exact answer. The demo took `time`.
pub fn demo_reward_model(
    pairs: &Curve,
    liked: &Curve,
    exact: &Curve,
    runs: &RewardModelRuns<'_>,
    time: Duration,
) -> String {
    let every = (liked.points.len() / 12).max(1);
    let last = liked.points.len() - 1;
    let rows: String = liked
        .points
        .iter()
        .zip(&exact.points)
        .enumerate()
        .filter(|(at, _)| at % every == 0 || *at == last)
        .map(|(_, (&(step, liked), &(_, exact)))| format!("  {step:>4}  {liked:>12.2}  {:>7.1} %\n", exact * 100.0))
        .collect();
    let ends = |curve: &Curve| (curve.points[0].1, curve.points[last].1);
    let ((low, high), (first, end)) = (ends(liked), ends(exact));
    let higher = |best: (u64, f64), point: &(u64, f64)| if point.1 > best.1 { *point } else { best };
    let (step, most) = exact.points.iter().fold((0, f64::NEG_INFINITY), higher);
    let lesson = match high > low && end < 0.9 * most {
        true => "After that, the policy got better for the reward model and worse for the task.",
        false => "The policy did not learn to exploit the reward model; another seed may.",
    };
    format!(
        "
The reward model prefers the right answer in {:.1} % of 500 held-out pairs. Samples of the policy that was trained on it:
  step  reward model  right answers
{rows}
The score of the reward model went from {low:.2} to {high:.2}. Right answers were {:.1} % at first, {:.1} % at step {step}
and {:.1} % at the end. {lesson}

Both curves are in {plot}, in {time}; the numbers are in {policy}/metrics.jsonl. Try next:
  target/release/gavel score --reward-model pairs={checkpoint} --data target/demo/sft.parquet --out scores.jsonl
  docs/preferences.md says how to train a reward model on other pairs
",
        pairs.points[pairs.points.len() - 1].1 * 100.0,
        first * 100.0,
        most * 100.0,
        end * 100.0,
        plot = runs.plot,
        policy = runs.policy.folder,
        checkpoint = runs.reward_model.checkpoint,
        time = Seconds(time),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(lines: &str) -> Result<Curve> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("metrics.jsonl");
        fs::write(&path, lines).unwrap();
        Curve::read(&path)
    }

    #[test]
    fn the_curve_is_where_validation_was() {
        let curve = read(
            "{\"step\":0,\"val/accuracy\":0.3}\n{\"step\":1,\"reward/mean\":0.5}\n{\"step\":20,\"val/accuracy\":0.875}\n",
        )
        .unwrap();
        assert_eq!(curve.points, [(0, 0.3), (20, 0.875)]);
        let run = Run { folder: "runs/demo".into(), checkpoint: "runs/demo/checkpoints/step-000020".into() };
        let text = demo(&curve, &run, Duration::from_secs(130));
        assert!(text.contains("--checkpoint runs/demo/checkpoints/step-000020\n"), "{text}");
        assert!(text.contains("From 30.0 % after the warm-up to 87.5 % after"), "{text}");
        assert!(text.contains(&format!("step   20   87.5 %  {}\n", "#".repeat(35))), "{text}");
        assert!(text.contains("in 2 min 10 s"), "{text}");

        let exact = Curve { points: vec![(1, 0.25), (2, 0.75), (3, 0.5)] };
        let liked = Curve { points: vec![(1, -1.0), (2, 0.5), (3, 2.0)] };
        let runs = RewardModelRuns { reward_model: &run, policy: &run, plot: "runs/demo/plot.svg" };
        let text = demo_reward_model(&curve, &liked, &exact, &runs, Duration::from_secs(130));
        for part in [
            "prefers the right answer in 87.5 % of 500 held-out pairs",
            "     2          0.50     75.0 %\n",
            "went from -1.00 to 2.00. Right answers were 25.0 % at first, 75.0 % at step 2\nand 50.0 % at the end. After that,",
            "Both curves are in runs/demo/plot.svg, in 2 min 10 s",
        ] {
            assert!(text.contains(part), "no {part:?} in {text}");
        }
        let text = demo_reward_model(&curve, &liked, &liked, &runs, Duration::from_secs(130));
        assert!(text.contains("did not learn to exploit"), "{text}");

        let calls = Curve { points: vec![(0, 0.0), (20, 1.0)] };
        let about = ToolsDemo { asked: "200 orders", config: "demo/shop.toml", read: "plugins/shop is a tool" };
        let text = demo_tools(&about, &curve, &calls, &run, Duration::from_secs(130));
        assert!(text.contains("Greedy answers to 200 orders that"), "{text}");
        assert!(text.contains("eval -c demo/shop.toml --checkpoint runs/demo/checkpoints/step-000020 "), "{text}");
        assert!(text.ends_with("\n  plugins/shop is a tool\n"), "{text}");
        assert!(text.contains("    20     87.5 %   1.00\n"), "{text}");
        assert!(text.contains("From 30.0 % with 0.00 calls an answer to 87.5 % with 1.00, in 2 min 10 s"), "{text}");
    }

    #[test]
    fn a_run_without_validation_is_a_failure() {
        let error = read("{\"step\":1,\"reward/mean\":0.5}\n").unwrap_err().to_string();
        assert!(error.contains("has val/accuracy"), "{error}");
    }
}
